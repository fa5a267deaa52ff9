"""Rows of earlier publishes: kept until two later publishes are done and no older transaction runs, then dropped."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from warehouse.serve.postgres.registry import DEFINITION
from warehouse.serve.postgres.server import ident, text
from warehouse.serve.postgres.views import view_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.serve.postgres.registry import Names, State, Version

_RUNNING = """
    SELECT coalesce(array_agg(l.virtualtransaction), '{}') FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid()
        AND (a.datname IS NULL OR a.datname = current_database())
"""
"""The transactions that run now in this database, in SQL."""


def superseded(
    server: Any, state: State, names: Names, kept: set[int], relations: set[str], number: int
) -> list[Version]:
    """Return the versions that nobody can read any more.

    Parameters
    ----------
    kept
        Versions that are published, or about to be.
    relations
        Tables of which rows that were sent and never published are not wanted any more.
    number
        Of the last publish.
    """
    if not state.has_registry:
        return []
    rows = server.execute(
        f"SELECT version FROM {ident(names.own)}.versions v WHERE retired < %s AND readers IS NOT NULL "
        f"AND NOT readers && ({_RUNNING})",
        [number],
    ).fetchall()
    unread = {row[0] for row in rows}
    seen = {one.version for one in state.current.values()}
    unpublished = {
        one.version
        for one in state.versions.values()
        if one.retired is None and one.version not in seen and state.layouts[one.layout].relation in relations
    }
    return [one for one in state.versions.values() if one.version in (unread | unpublished) - kept]


def left_over(state: State, versions: list[Version], needed: set[int]) -> list[str]:
    """Return the tables that go with these versions: their own, and those of layouts that have no other.

    Layouts in `needed` stay, since a version of theirs is to be sent.
    """
    going = {one.version for one in versions}
    staying = needed | {one.layout for one in state.versions.values() if one.version not in going}
    return [one.stored for one in versions] + [
        one.parent for one in state.layouts.values() if one.layout not in staying
    ]


def note_readers(server: Any, names: Names) -> None:
    """Note, of what was just replaced, which transactions may still read it: all that run now."""
    server.execute(
        f"UPDATE {ident(names.own)}.versions SET readers = ({_RUNNING}) WHERE retired IS NOT NULL AND readers IS NULL"
    )


def drop(server: Any, names: Names, state: State, versions: list[Version]) -> None:
    """Drop versions and layouts that are not needed; what is in use waits for the next publish."""
    own = ident(names.own)
    for one in versions:
        parent = state.layouts[one.layout].parent if one.attached else None
        _drop_table(server, names, one.stored, parent, f"DELETE FROM {own}.versions WHERE version = {one.version}")
    for layout in _empty_layouts(server, names, state):
        _drop_layout(server, names, state, layout)


def _drop_table(server: Any, names: Names, table: str, parent: str | None, note: str) -> None:
    """Drop a table if nobody uses it now and nothing of a user stands on it."""
    with _unless_in_use(server):
        server.execute(f"LOCK TABLE ONLY {ident(names.own, parent or table)} IN ACCESS EXCLUSIVE MODE NOWAIT")
        server.execute(f"DROP TABLE {ident(names.own, table)}; {note}")


@contextmanager
def _unless_in_use(server: Any) -> Iterator[None]:
    """A transaction that is given up where a lock is not free, or an object of a user stands on what is dropped."""
    from psycopg import errors

    in_use = (errors.LockNotAvailable, errors.DeadlockDetected, errors.DependentObjectsStillExist, errors.QueryCanceled)
    with suppress(*in_use), server.transaction():
        server.execute("SET LOCAL lock_timeout = '100ms'")
        yield


def _empty_layouts(server: Any, names: Names, state: State) -> list[int]:
    own = ident(names.own)
    rows = server.execute(
        f"SELECT layout FROM {own}.layouts l WHERE NOT EXISTS (SELECT FROM {own}.versions v WHERE v.layout = l.layout) "
        f"AND NOT EXISTS (SELECT FROM {own}.published p WHERE p.layout = l.layout)"
    ).fetchall()
    return [row[0] for row in rows if row[0] in state.layouts]


def _drop_layout(server: Any, names: Names, state: State, layout: int) -> None:
    """Take a layout out of its view, then drop it."""
    own, gone = ident(names.own), state.layouts[layout]
    current = state.current.get(gone.relation)
    with _unless_in_use(server):
        if current is not None:
            view = ident(*names.view(gone.relation))
            server.execute(f"LOCK TABLE {view} IN ACCESS EXCLUSIVE MODE NOWAIT")
            left = [one for one in state.layouts.values() if one.relation == gone.relation and one != gone]
            left.sort(key=lambda one: (one.layout != current.layout, -one.layout))
            server.execute(f"CREATE OR REPLACE VIEW {view} AS {view_body(names, left)}")
            server.execute(
                f"UPDATE {own}.published SET definition = {DEFINITION.format(f'{text(view)}::regclass')} "
                "WHERE relation = %s",
                [gone.relation],
            )
        server.execute(f"DROP TABLE {ident(names.own, gone.parent)}")
        server.execute(f"DELETE FROM {own}.layouts WHERE layout = %s", [layout])
        del state.layouts[layout]
