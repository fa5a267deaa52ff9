"""Retired versions: kept for two more publishes and until no older transaction runs, then dropped."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError
from warehouse.publish.postgres.registry import DEFINITION
from warehouse.publish.postgres.server import Lock, Patience, ident, patiently, text
from warehouse.publish.postgres.views import view_body

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.publish.postgres.registry import Names, State, Version

_DROP_SECONDS = 5.0
"""Time limit for all drops together; tables in use stay until the next publish."""
_RUNNING = """
    SELECT coalesce(array_agg(l.virtualtransaction), '{}') FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid()
        AND (a.datname IS NULL OR a.datname = current_database())
"""
"""Running transactions of this database, in SQL."""


def superseded(
    server: Any, state: State, names: Names, kept: set[int], relations: set[str], number: int
) -> list[Version]:
    """Return the versions that no transaction can read.

    Parameters
    ----------
    kept
        Versions that are published or will be.
    relations
        Tables whose rows were sent but never published, and may be dropped.
    number
        Number of the last publish.
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
    """Return the tables to drop with these versions: partitions, and layouts that become empty.

    Layouts in `needed` stay for a version that will be sent.
    """
    going = {one.version for one in versions}
    staying = needed | {one.layout for one in state.versions.values() if one.version not in going}
    return [one.stored for one in versions] + [
        one.parent for one in state.layouts.values() if one.layout not in staying
    ]


def note_readers(server: Any, names: Names) -> None:
    """Record the running transactions, which may still read the versions just replaced."""
    server.execute(
        f"UPDATE {ident(names.own)}.versions SET readers = ({_RUNNING}) WHERE retired IS NOT NULL AND readers IS NULL"
    )


def drop(server: Any, names: Names, state: State, versions: list[Version]) -> None:
    """Drop unused versions and layouts; tables in use wait for the next publish."""
    own, patience = ident(names.own), Patience(_DROP_SECONDS)
    for one in versions:
        parent = state.layouts[one.layout].parent if one.attached else None
        forget = f"DELETE FROM {own}.versions WHERE version = {one.version}"
        _drop_table(server, names, one.stored, parent, forget, patience)
    for layout in _empty_layouts(server, names, state):
        _drop_layout(server, names, state, layout, patience)


def _drop_table(server: Any, names: Names, table: str, parent: str | None, forget: str, patience: Patience) -> None:
    """Drop a table if nobody uses it and no user object depends on it."""

    def work() -> None:
        server.execute(f"DROP TABLE {ident(names.own, table)}; {forget}")

    lock = Lock(f"ONLY {ident(names.own, parent or table)}", "ACCESS EXCLUSIVE", table)
    _unless_in_use(server, work, [lock], patience)


def _unless_in_use(server: Any, work: Callable[[], None], locks: Sequence[Lock], patience: Patience) -> None:
    """Run `work` unless a lock stays busy or a user object depends on the table."""
    from psycopg import errors

    with suppress(QueryError, errors.DependentObjectsStillExist):
        patiently(server, work, locks, patience)


def _empty_layouts(server: Any, names: Names, state: State) -> list[int]:
    own = ident(names.own)
    rows = server.execute(
        f"SELECT layout FROM {own}.layouts l WHERE NOT EXISTS (SELECT FROM {own}.versions v WHERE v.layout = l.layout) "
        f"AND NOT EXISTS (SELECT FROM {own}.published p WHERE p.layout = l.layout)"
    ).fetchall()
    return [row[0] for row in rows if row[0] in state.layouts]


def _drop_layout(server: Any, names: Names, state: State, layout: int, patience: Patience) -> None:
    """Remove a layout from its views, then drop its table."""
    own, gone = ident(names.own), state.layouts[layout]
    same = {one.layout for one in state.layouts.values() if one.relation == gone.relation}
    views = {name: one for name, one in state.current.items() if one.layout in same}

    def work() -> None:
        for relation, current in views.items():
            left = [state.layouts[one] for one in same - {layout}]
            left.sort(key=lambda one: (one.layout != current.layout, -one.layout))
            view = ident(*names.view(relation))
            server.execute(f"CREATE OR REPLACE VIEW {view} AS {view_body(names, relation, left)}")
            server.execute(
                f"UPDATE {own}.published SET definition = {DEFINITION.format(f'{text(view)}::regclass')} "
                "WHERE relation = %s",
                [relation],
            )
        server.execute(f"DROP TABLE {ident(names.own, gone.parent)}")
        server.execute(f"DELETE FROM {own}.layouts WHERE layout = %s", [layout])
        del state.layouts[layout]

    locks = [Lock(ident(*names.view(name)), "ACCESS EXCLUSIVE", name) for name in views]
    none = Lock(f"ONLY {ident(names.own, gone.parent)}", "ACCESS EXCLUSIVE", gone.relation)
    _unless_in_use(server, work, locks or [none], patience)
