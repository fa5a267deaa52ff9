"""First catalog of a target, begun while parts are made.

DuckDB creates a relation with its comments in some milliseconds, on one core. At the end of a large build, that would
be a second for which all other cores wait.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

from warehouse.base.errors import WarehouseError
from warehouse.base.sql_text import identifier
from warehouse.base.startup import duckdb
from warehouse.graph.plan import Key
from warehouse.runner import catalog
from warehouse.runner.build_state import BuildState
from warehouse.runner.catalog import Base, Entry
from warehouse.runner.catalog_entries import COPIED_BYTES, early_entries, model_entry
from warehouse.runner.own_hours import MANY_PARTS
from warehouse.store.atomic import temporary_path
from warehouse.store.layout import CATALOG
from warehouse.store.manifest import current_build


class EarlyCatalog:
    """Writer of the relations whose parts are made, in a thread of its own.

    It decides nothing: the catalog of the build begins as a copy of this one, and replaces what differs. Only the first
    build of a target that has started worker processes has one; others have few relations to write, or few files.

    Parameters
    ----------
    state
        The running build. No part is being made yet.
    """

    def __init__(self, state: BuildState) -> None:
        prepared = state.prepared
        self._state = state
        self._path = temporary_path(prepared.store.target / CATALOG)
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._hashes: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._is_given = False
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._thread = threading.Thread(target=self._write, name="early catalog")
        is_first = current_build(prepared.store.target) is None and not prepared.options.paranoid
        if is_first and prepared.workers.pids:
            self._connection = prepared.engine.connection()
            catalog.begin(self._connection, self._path, None)
            self._changed.set()
            self._thread.start()

    def look(self) -> None:
        """Note that more parts are made."""
        self._changed.set()

    def base(self) -> Base | None:
        """End the thread and return what it wrote; None if there is nothing, or if it failed."""
        self._stop()
        if self._connection is None:
            return None
        try:
            self._connection.execute("COMMIT; CHECKPOINT published; USE memory; DETACH published")
        except duckdb.Error:  # the build writes the whole catalog, and names the cause
            self._abandon()
            return None
        self._is_given = True
        return Base(self._path, self._kinds, self._hashes, fresh_bytes=None)

    def close(self) -> None:
        """End the thread; remove the file unless `base` returned it."""
        self._stop()
        if not self._is_given:
            self._abandon()
        elif self._connection is not None:
            self._connection.close()

    def _abandon(self) -> None:
        """Detach the file from the engine, and remove it."""
        if self._connection is not None:
            for statement in ("ROLLBACK", "USE memory", "DETACH published"):
                with suppress(duckdb.Error):
                    self._connection.execute(statement)
            self._connection.close()
            self._connection = None
            self._path.unlink(missing_ok=True)

    def _stop(self) -> None:
        self._stopped.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _write(self) -> None:
        """Write relations as their parts are made, until the build has made all or fails."""
        try:
            while not self._stopped.is_set():
                self._changed.wait()
                self._changed.clear()
                for entry in self._made():
                    if self._stopped.is_set():
                        break
                    self._put(entry)
        except (WarehouseError, OSError, duckdb.Error):  # the build writes the whole catalog, and names the cause
            self._abandon()

    def _put(self, entry: Entry) -> None:
        assert self._connection is not None
        self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(entry.name.partition('.')[0])}")
        catalog.create(self._connection, entry, {})
        self._kinds[entry.name], self._hashes[entry.name] = entry.kind, catalog.entry_hash(entry)

    def _made(self) -> Iterator[Entry]:
        """Yield the relations that can be written now, in dependency order.

        Of tables only those that the catalog will copy whatever the size of the others is: the smallest are copied, and
        all tables of at most this size have at most `COPIED_BYTES` together.
        """
        state = self._state
        prepared, plan = state.prepared, state.plan
        if not self._hashes:
            yield from early_entries(prepared)
        made = dict(state.parts)
        parts_of = {
            name: [made[key] for partition in plan.partitions(name) if (key := Key(name, partition)) in made]
            for name in prepared.graph.order
        }
        surely_copied = COPIED_BYTES // len(parts_of)
        for name in prepared.graph.order:
            if name in self._hashes:
                continue
            node, parts = prepared.graph.nodes[name], parts_of[name]
            if node.model.is_view:
                is_ready = self._hashes.keys() >= set(node.reads)
            else:
                is_made = len(parts) == len(plan.partitions(name)) <= MANY_PARTS
                is_ready = is_made and sum(part.bytes for part in parts) <= surely_copied
            if is_ready:
                yield model_entry(prepared, name, parts)
