"""`warehouse publish URL`: the tables of a warehouse into a PostgreSQL server, only those that changed."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.serve.connect import connect
from warehouse.serve.interrupt import interruptible
from warehouse.serve.postgres import server as remote
from warehouse.serve.postgres.tables import Sent, tables_to_send, write_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb


@dataclass(frozen=True)
class Published:
    """What a publish did, or would do."""

    build: str
    changed: tuple[Sent, ...]
    unchanged: tuple[Sent, ...]
    gone: tuple[str, ...]
    """Tables of an earlier publish that this warehouse does not have."""

    @property
    def tables(self) -> tuple[Sent, ...]:
        """All that stand on the server afterwards, of this warehouse."""
        return (*self.changed, *self.unchanged)


def publish(
    target: Path,
    url: str,
    *,
    tables: Sequence[str] | None = None,
    readers: Sequence[str] = (),
    dry_run: bool = False,
    memory: str | None = None,
    progress: Callable[[Sent], None] = lambda _: None,
) -> Published:
    """Send the tables that changed since the last publish and swap them in, in one transaction.

    Parameters
    ----------
    target
        The folder of the warehouse.
    url
        `postgresql://USER@HOST:PORT/NAME`, without a password.
    tables
        Full names; all of reference, topology and metrics where left out. With names, other tables that were
        published earlier stay as they are.
    readers
        Roles that may read all of it; made where they are not there.
    dry_run
        Say what would be sent, and change nothing.
    progress
        Called with each table before it is sent.

    Raises
    ------
    QueryError
        When the server refuses, views of users would break, another publish is under way, or a table cannot be
        stored there. The tables on the server are then as they were.
    """
    with tempfile.TemporaryDirectory(prefix="warehouse-publish-") as scratch:
        connection = connect(target, outputs=[Path(scratch)], memory=memory)
        try:

            def work() -> Published:
                row = connection.execute("SELECT build_id FROM meta.build").fetchone()
                wanted = tables_to_send(connection, tables)
                server = remote.connect(url)
                try:
                    result = _compare(server, wanted, str(row[0]) if row else "", keep_others=tables is not None)
                    if not dry_run and (result.changed or result.gone or readers):
                        _send(server, connection, result, Path(scratch), readers, progress)
                finally:
                    server.close()
                return result

            return interruptible(connection, work)
        finally:
            connection.close()


def _compare(server: Any, wanted: Sequence[Sent], build: str, *, keep_others: bool) -> Published:
    with remote.refusals("the server refuses"):
        remote.hold(server)
        there = remote.published(server)
        changed = tuple(table for table in wanted if there.get(table.full_name) != table.fingerprint)
        unchanged = tuple(table for table in wanted if there.get(table.full_name) == table.fingerprint)
        gone = () if keep_others else tuple(sorted(there.keys() - {table.full_name for table in wanted}))
        remote.refuse_to_break_views(server, [*(table.full_name for table in changed), *gone])
    return Published(build, changed, unchanged, gone)


def _send(
    server: Any,
    connection: duckdb.DuckDBPyConnection,
    result: Published,
    scratch: Path,
    readers: Sequence[str],
    progress: Callable[[Sent], None],
) -> None:
    """New tables beside the old ones, one at a time, then all of them in their place."""
    with remote.refusals("the server refuses"):
        remote.make_tables(server)
    for table in result.changed:
        progress(table)
        csv = scratch / "rows.csv"
        write_csv(connection, table, csv)
        with remote.refusals(f"the server does not take {table.full_name}"):
            remote.send(server, table, csv)
        csv.unlink()
    with remote.refusals("the tables cannot be swapped"):
        remote.swap(server, result.changed, result.gone, result.tables, result.build, readers)
