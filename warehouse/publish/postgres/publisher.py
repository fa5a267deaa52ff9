"""`warehouse publish URL`: send the changed tables of a warehouse to a PostgreSQL server."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.publish.postgres import registry, steps
from warehouse.publish.postgres import server as remote
from warehouse.publish.postgres.plan import Plan, make_plan
from warehouse.publish.postgres.registry import Names, look, refuse_missing_roles
from warehouse.publish.postgres.tables import Sent, refuse_long, tables_to_send, write_csv
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

LOCK_TIMEOUT = 60.0


@dataclass(frozen=True)
class Published:
    """Result of a publish or dry run."""

    build: str
    changed: tuple[Sent, ...]
    sent: tuple[Sent, ...]
    """Tables among them whose rows were not on the server yet."""
    unchanged: tuple[Sent, ...]
    gone: tuple[str, ...]
    """Earlier published tables that this warehouse lacks."""
    actions: tuple[str, ...]
    """Objects created, replaced and dropped, one line each."""


def publish(
    target: Path,
    url: str,
    *,
    tables: Sequence[str] | None = None,
    readers: Sequence[str] = (),
    schema_prefix: str = "",
    dry_run: bool = False,
    verify: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
    memory: str | None = None,
    progress: Callable[[Sent], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    bar: Bar | None = None,
) -> Published:
    """Send the tables that changed since the last publish, and publish them in one transaction.

    Parameters
    ----------
    target
        The folder of the warehouse.
    url
        `postgresql://USER@HOST:PORT/NAME`, without a password.
    tables
        Full names. Default: all tables of reference, topology and metrics. With names, other tables that were
        published earlier stay as they are.
    readers
        Roles that may read the published tables; created where they do not exist.
    schema_prefix
        Put before the name of each schema.
    dry_run
        Say what would be done, and change nothing.
    verify
        Compare a digest of the rows on the server, besides their count.
    lock_timeout
        Seconds to try, where readers are in the way.
    progress
        Called with each table before it is sent.
    warn
        Called before the swap with each index of a user that would be lost.
    bar
        The progress bar, if any.

    Raises
    ------
    QueryError
        When the server refuses, objects of users are in the way, another publish is under way, a table cannot be
        stored there, a part is damaged, or readers do not make room. What readers see is then as it was.
    """
    refuse_long([schema_prefix + registry.OWN], "the schema", "a shorter --schema-prefix")
    refuse_long(readers, "the role", "a shorter name for --reader")
    with scratch_folder("publish") as scratch, connect(target, outputs=[scratch], memory=memory) as connection:

        def work() -> Published:
            row = connection.execute("SELECT build_id FROM meta.build").fetchone()
            with closing(remote.connect(url)) as server:  # it may refuse; hashing the tables takes longer
                wanted = tables_to_send(connection, target, tables)
                publication = _Publication(
                    server, connection, target, scratch, str(row[0]) if row else "", wanted, Names(schema_prefix),
                    readers, keep_others=tables is not None, dry_run=dry_run, verify=verify,
                    lock_timeout=lock_timeout,
                )  # fmt: skip
                return publication.run(progress, warn, bar)

        return interruptible(connection, work)


@dataclass(frozen=True)
class _Publication:
    server: Any
    connection: duckdb.DuckDBPyConnection
    target: Path
    scratch: Path
    build: str
    wanted: Sequence[Sent]
    names: Names
    readers: Sequence[str]
    keep_others: bool
    dry_run: bool
    verify: bool
    lock_timeout: float

    def run(self, progress: Callable[[Sent], None], warn: Callable[[str], None], bar: Bar | None) -> Published:
        """Plan the publish; unless it is a dry run, send, swap and drop unused versions."""
        server, names = self.server, self.names
        schemas = sorted({names.view(table.full_name)[0] for table in self.wanted})
        with remote.refusals("the server refuses"):
            remote.hold(server)
            missing = refuse_missing_roles(server, self.readers)
            state = look(server, names, schemas)
            # A schema of an earlier publish may hold none of today's tables, but views that must be dropped.
            earlier = sorted({names.view(name)[0] for name in state.current} - set(schemas))
            state = look(server, names, [*schemas, *earlier]) if earlier else state
            plan = make_plan(
                server, names, state, self.wanted,
                keep_others=self.keep_others, verify=self.verify,
            )  # fmt: skip
            number = state.number + bool(plan.changes or plan.gone or plan.forgotten)
            old = self._superseded(plan, number)
        left = steps.left_over(state, old, {change.layout.layout for change in plan.changes})
        more = [f"drop     table {names.own}.{name}  which nobody reads any more" for name in left]
        more += [f"create   role {reader}" for reader in missing]
        result = Published(
            self.build,
            tuple(change.table for change in plan.changes),
            tuple(change.table for change in plan.changes if not change.is_sent),
            plan.unchanged,
            (*plan.gone, *plan.forgotten),
            tuple(plan.actions(schemas if plan.changes else (), more=more)),
        )
        if self.dry_run:
            return result
        if result.changed or result.gone or self.readers:
            self._send(plan, progress, warn, bar)
            with remote.refusals("the tables cannot be swapped"):
                patience = remote.Patience(self.lock_timeout)
                steps.attach(server, plan, patience)
                steps.swap(server, plan, self.build, self.readers, missing, schemas, patience)
        self._drop_old(plan)
        return result

    def _superseded(self, plan: Plan, number: int) -> list[registry.Version]:
        kept = set(plan.current().values())
        relations = {table.full_name for table in self.wanted} | {*plan.gone, *plan.forgotten}
        return steps.superseded(self.server, plan.state, self.names, kept, relations, number)

    def _send(self, plan: Plan, progress: Callable[[Sent], None], warn: Callable[[str], None], bar: Bar | None) -> None:
        """Send the missing rows, one table at a time, next to the published ones."""
        lost = []
        to_send = [change for change in plan.changes if not change.is_sent]
        # By digest: rows that leave the target are no longer compared by anybody.
        refuse_damage(self.target, [one.table.full_name for one in to_send], digests=True)
        if not plan.state.has_registry:
            with remote.refusals("the server refuses"), self.server.transaction():
                registry.create(self.server, self.names, self.build)
        for change in with_progress(to_send, bar, lambda one: one.table.full_name):
            progress(change.table)
            csv = self.scratch / "rows.csv"
            write_csv(self.connection, change.table, csv)
            with remote.refusals(f"the server does not take {change.table.full_name}"):
                lost += steps.send(self.server, plan, change, csv, self.build)
            # At once, so that the scratch folder never holds more than one table.
            csv.unlink()
        for one in lost:
            warn(one)

    def _drop_old(self, plan: Plan) -> None:
        """Drop versions that nobody can read; those in use stay until the next publish."""
        with remote.refusals("published, but rows of earlier publishes cannot be dropped"):
            if plan.changes or plan.gone or plan.forgotten:
                steps.note_readers(self.server, self.names)
            schemas = sorted({self.names.view(table.full_name)[0] for table in self.wanted})
            # Again: readers may have gone since the plan, and the swap has retired versions.
            state = look(self.server, self.names, schemas)
            old = self._superseded(replace(plan, state=state), state.number)
            steps.drop(self.server, self.names, state, old)
