"""Find or write one part, check it, and find the cause of a failure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import CheckError, ModelError
from warehouse.engine import python_model
from warehouse.engine.base import EngineError, Parts, Scratch, Select, Source
from warehouse.formats.base import CsvFormat, is_raw
from warehouse.graph.dag import model_error
from warehouse.graph.plan import Key
from warehouse.graph.sources import refuse_changes
from warehouse.kernels import UnsupportedError
from warehouse.runner.build_state import BuildState
from warehouse.runner.check_sql import run_checks
from warehouse.runner.kernel_parts import KernelParts
from warehouse.runner.part_checks import PartChecks
from warehouse.runner.reporter import Reporter
from warehouse.store.part_records import INPUTS, Part


class RawDamageError(Exception):
    """Failure of a part that reads raw CSV files directly: the files may be damaged."""

    def __init__(self, key: Key, relations: list[str], cause: ModelError) -> None:
        super().__init__(str(cause))
        self.key = key
        self.relations = relations
        self.cause = cause


class PartMaker:
    """Writer of the parts of one build, for use by several threads.

    Parameters
    ----------
    in_turn
        True to make one part after the other, each with its checks.
    """

    def __init__(self, state: BuildState, checks: PartChecks, reporter: Reporter, *, in_turn: bool) -> None:
        self._in_turn = in_turn
        self._state = state
        self._checks = checks
        self._reporter = reporter
        self._graph = state.graph
        self._engine = state.prepared.engine
        self._store = state.prepared.store
        self._unsupported: set[str] = set()
        self._kernels = KernelParts(state)

    def close(self) -> None:
        """Remove spool files that did not become parts."""
        self._kernels.close()

    def make(self, key: Key) -> Part:
        """Return an up-to-date part from the store, or a new one; with its checks, unless these can wait.

        Raises
        ------
        RawDamageError
            When a model that reads raw CSV files fails.
        ModelError, CheckError
            When another model or a check fails.
        """
        self._reporter.part_started(key.model, key.partition)
        inputs = self._state.inputs.of(key)
        fingerprint = hashing.of(inputs)
        found, is_kept = self._state.find_or_keep(key, fingerprint, inputs)
        if found is not None and is_kept:
            self._state.outcome.checks[key] = []
            self._reporter.part_finished(found, 0.0, reused=True)
            return found
        at_once = self._are_checked_at_once(key, is_made=found is not None)
        with self._costing(key):
            part, results = found, None
            if part is not None and at_once:
                results = self._checks.stored_results(key, part)
            if part is None or (at_once and results is None):
                part = self._write_and_check(key, fingerprint, inputs, part, check=at_once)
        if found is None:
            self._state.outcome.made.add(key)
        if at_once:
            self._finish(key, part)
        return part

    def check(self, key: Key) -> Part:
        """Check a part that was made without its checks; return it. Raises ModelError and CheckError."""
        part = self._state.parts[key]
        if key not in self._state.outcome.checks:
            with self._costing(key):
                if self._checks.stored_results(key, part) is None:
                    self._write_and_check(key, part.fingerprint, {}, part, check=True)
            self._finish(key, part)
        return part

    def is_checked_first(self, key: Key) -> bool:
        """Return True if a part must be checked before its rows are read.

        The grain check of a `presorted` part may have it written again. A check of a model that reads raw CSV files may
        find that one of them must be repaired.
        """
        return self._in_turn or self._graph.nodes[key.model].model.presorted or bool(self._csv_relations(key))

    def _are_checked_at_once(self, key: Key, *, is_made: bool) -> bool:
        """Return True if a part's checks run now: they must, or they can and take little time."""
        is_quick = is_made or self._state.sources.are_few_rows(key)
        return self.is_checked_first(key) or (is_quick and self._checks.can_run(key))

    def _finish(self, key: Key, part: Part) -> None:
        outcome = self._state.outcome
        results = self._checks.stored_results(key, part)
        assert results is not None, f"a check of {key} has no result"
        outcome.checks[key] = results
        self._reporter.part_finished(part, outcome.seconds[key], key not in outcome.made)

    @contextmanager
    def _costing(self, key: Key) -> Iterator[None]:
        """Add up the seconds of a part; find the cause of a failure."""
        started = time.perf_counter()
        node, seconds = self._graph.nodes[key.model], self._state.outcome.seconds
        try:
            yield
        except EngineError as error:
            raise self._find_cause(key, model_error(node.model, node.sql, error)) from error
        except CheckError as error:
            found = self._find_cause(key, error)
            if found is error:  # an error that is its own cause is a cycle, in which Dask does not end
                raise
            raise found from error
        finally:
            self._kernels.drop(key)
        seconds[key] = seconds.get(key, 0.0) + time.perf_counter() - started

    def _write_and_check(
        self, key: Key, fingerprint: str, inputs: Mapping[str, object], part: Part | None, *, check: bool
    ) -> Part:
        """Write a part unless one is given; with `check`, check it.

        Rows of a `presorted` model are written without sorting. If the grain check finds them out of order, the part is
        written a second time, sorted.
        """
        node = self._graph.nodes[key.model]
        presorted = node.model.presorted
        in_memory = not presorted and self._state.sources.are_few_rows(key)
        sources = self._state.sources.of(key, with_checks=check)
        with self._engine.scratch(sources, one_thread=presorted, in_memory=in_memory) as scratch:

            def write(*, sort: bool) -> Part:
                notes: dict[str, object] = {INPUTS: {**inputs, "sql": node.sql.strip()}}
                into = lambda path: self._write_rows(key, scratch, sources, path, sort=sort)  # noqa: E731
                confirm = partial(refuse_changes, sources)
                return self._store.write(key.model, key.partition, fingerprint, into, notes, confirm)

            if part is None:
                part = write(sort=not presorted)
                scratch.hold(part.file)
            if check:
                scratch.add(node.name, Parts(node.model.columns, (part.file,)))
                checks = self._checks.to_run(key, part)
                counts = run_checks(scratch, node.model, checks)
                if presorted and counts[0]:  # the grain check is the first one
                    part = write(sort=True)
                    counts = run_checks(scratch, node.model, checks)
                refuse_changes(sources)
                self._checks.store_results(scratch, key, part, checks, counts)
        return part

    def _write_rows(self, key: Key, scratch: Scratch, sources: Mapping[str, Source], path: Path, *, sort: bool) -> int:
        """Write the rows of a model, sorted by grain; from its Python function or kernel if it has one."""
        node = self._graph.nodes[key.model]
        model = node.model
        if model.is_python:
            nodes = self._graph.nodes
            orders = [nodes[read].model.grain if read in nodes else () for read in model.reads]
            return python_model.write(scratch, model, orders, path)
        if self._state.inputs.kernel_of(node):
            try:
                return self._kernels.write(key, scratch, sources, path)
            except UnsupportedError as error:
                if str(error) not in self._unsupported:  # one unsupported file can affect several kernels
                    self._unsupported.add(str(error))
                    self._reporter.note(f"{model.name} is made by its SELECT, which takes longer, because of {error}")
        return scratch.write(Select(node.sql, model.columns), path, model.grain if sort else ())

    def _find_cause(self, key: Key, error: ModelError) -> Exception:
        """Return RawDamageError if the model reads raw CSV files, directly or through views; else the error itself."""
        relations = self._csv_relations(key)
        return RawDamageError(key, relations, error) if relations else error

    def _csv_relations(self, key: Key) -> list[str]:
        """Return the relations of raw CSV files that a model reads, directly or through views."""
        raw_files = self._state.prepared.raw_files
        reads = self._graph.below_views(self._graph.nodes[key.model].reads)
        raw = (read for read in reads if is_raw(read))
        return sorted({read for read in raw if any(isinstance(one, CsvFormat) for one in raw_files.formats_of(read))})
