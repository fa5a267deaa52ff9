"""Find or write one part, check it, and find the cause of a failure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import CheckError, ModelError
from warehouse.engine import python_model
from warehouse.engine.base import CsvFiles, EngineError, Parts, Scratch, Select, Source
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Node, model_error
from warehouse.graph.plan import Key
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
    """Writer of the parts of one build, for use by several threads."""

    def __init__(self, state: BuildState, checks: PartChecks, reporter: Reporter) -> None:
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
        """Return a checked part: an up-to-date one from the store, or a new one.

        Raises
        ------
        RawDamageError
            When a model that reads raw CSV files fails.
        ModelError, CheckError
            When another model or a check fails.
        """
        started = time.perf_counter()
        self._reporter.part_started(key.model, key.partition)
        node = self._graph.nodes[key.model]
        inputs = self._state.inputs.of(key)
        fingerprint = hashing.of(inputs)
        found, is_kept = self._state.find_or_keep(key, fingerprint, inputs)
        outcome = self._state.outcome
        if found is not None and is_kept:
            outcome.checks[key] = []
            self._reporter.part_finished(found, 0.0, reused=True)
            return found
        try:
            part = found
            results = self._checks.stored_results(key, part) if part else None
            if part is None or results is None:
                part = self._write_and_check(key, node, fingerprint, inputs, part)
                results = self._checks.stored_results(key, part)
            assert results is not None, f"a check of {key} has no result"
            outcome.checks[key] = results
        except EngineError as error:
            raise self._find_cause(key, node, model_error(node.model, node.sql, error)) from error
        except CheckError as error:
            raise self._find_cause(key, node, error) from error
        finally:
            self._kernels.drop(key)
        outcome.seconds[key] = time.perf_counter() - started
        if found is None:
            outcome.made.add(key)
        self._reporter.part_finished(part, outcome.seconds[key], found is not None)
        return part

    def _write_and_check(
        self, key: Key, node: Node, fingerprint: str, inputs: Mapping[str, object], part: Part | None
    ) -> Part:
        """Write a part unless one is given, and check it.

        Rows of a `presorted` model are written without sorting. If the grain check finds them out of order, the part is
        written a second time, sorted.
        """
        presorted = node.model.presorted
        in_memory = not presorted and self._state.sources.are_few_rows(key)
        sources = self._state.sources.of(key)
        with self._engine.scratch(sources, one_thread=presorted, in_memory=in_memory) as scratch:

            def write(*, sort: bool) -> Part:
                notes: dict[str, object] = {INPUTS: {**inputs, "sql": node.sql.strip()}}
                into = lambda path: self._write_rows(key, scratch, sources, path, sort=sort)  # noqa: E731
                return self._store.write(key.model, key.partition, fingerprint, into, notes)

            if part is None:
                part = write(sort=not presorted)
                scratch.hold(part.path)
            scratch.add(node.name, Parts(node.model.columns, (part.path,)))
            checks = self._checks.to_run(key, part)
            counts = run_checks(scratch, node.model, checks)
            if presorted and counts[0]:  # the grain check is the first one
                part = write(sort=True)
                counts = run_checks(scratch, node.model, checks)
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

    def _find_cause(self, key: Key, node: Node, error: ModelError) -> Exception:
        """Return RawDamageError if the model reads raw CSV files, directly or through views; else the error itself."""
        raw = sorted({read for read in self._graph.below_views(node.reads) if is_raw(read)})
        sources = self._state.sources
        direct = [read for read in raw if isinstance(sources.raw(read, key.partition), CsvFiles)]
        return RawDamageError(key, direct, error) if direct else error
