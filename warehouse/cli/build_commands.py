"""Command `warehouse build`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError, SettingsError
from warehouse.base.settings import Settings
from warehouse.base.text import plural, size
from warehouse.cli.commands import say_json, settings, tell
from warehouse.store import state

if TYPE_CHECKING:
    from warehouse.runner.reporter import Reporter

_LEAST_MEMORY = 1_000_000_000
"""Minimum address space: libraries and threads reserve more than they use."""


def run_build(given: argparse.Namespace) -> int:
    """Build and print a summary, or that there is nothing to do."""
    started = time.perf_counter()
    settled, keep = settings(given), max(1, given.keep)
    # Before the imports of a build: with nothing to do, they would cost most of the time.
    if not (given.select or given.paranoid):
        unchanged, _ = state.unchanged(settled, keep=keep)
        if unchanged is not None:
            _print_unchanged(unchanged, started, given)
            return 0

    _check_memory()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads would compete with the engine's
    from warehouse.runner.build import build
    from warehouse.runner.reporter import Reporter
    from warehouse.runner.session import BuildOptions, scheduler

    stream = None if given.quiet or given.json else sys.stderr
    reporter = Reporter(stream, settled.target)
    if given.profile:
        from warehouse.quality.profiling import Profile

        reporter = profile = Profile(stream, settled.target)
    with (
        reporter.reporting_failure(settled.target),
        scheduler(given.scheduler) if given.scheduler else nullcontext() as executor,
    ):
        options = BuildOptions(tuple(given.select), keep, given.wait, given.paranoid, executor)
        result = build(settled, reporter, options)
    reporter.ended(result)
    if stream:
        print_remarks(settled, reporter)
    if given.json or given.profile:
        tell(
            given,
            lambda: result.summary() | ({"profile": profile.summary()} if given.profile else {}),
            lambda: profile.table(),
        )
    return 0


def _print_unchanged(answer: Mapping[str, Any], started: float, given: argparse.Namespace) -> None:
    """Print that the last build is up to date."""
    summary = answer["summary"]
    if given.json:
        say_json(summary)
    elif not given.quiet:
        warnings = len(summary["checks"]["warned"])
        shown = [summary["build"][:8], f"{summary['parts']:,} parts", f"{answer['files']:,} files"]
        shown += [plural(warnings, "warning")] * bool(warnings)
        sys.stderr.write(f"Up to date  {', '.join(shown)}, checked in {time.perf_counter() - started:.2f} s\n")
        if given.profile:
            sys.stderr.write("Nothing was built: use another target to profile a whole build (-t DIR).\n")


def print_remarks(settled: Settings, reporter: Reporter) -> None:
    """Print the lines of the project's named query `after-build`, if it has one."""
    from warehouse.base.startup import duckdb
    from warehouse.engine.duckdb_errors import sentence
    from warehouse.project.named_queries import load_queries
    from warehouse.project.project import Project
    from warehouse.reader.connection import connect

    query = load_queries(Project.open(settled.project).query_folders, "after-build").get("after-build")
    if query is None:
        return
    try:
        with connect(settled.target) as connection:
            lines = [str(line) for (line,) in connection.execute(query.sql).fetchall()]
    # For example, another process opened the file for writing, or the query reads models that the project leaves out.
    except (QueryError, duckdb.Error) as error:
        lines = [f"no remarks: {query.path}: {sentence(error)}"]
    for line in lines:
        reporter.note(line)


def _check_memory() -> None:
    """Refuse to build with too little memory for NumPy and the engine, which would end the process.

    Raises
    ------
    SettingsError
        If memory is too small.
    """
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_MEMORY:
        raise SettingsError(
            f"this process may take {size(limit)} of memory, and a build needs {size(_LEAST_MEMORY)} at least",
            hint="ulimit -v sets that limit",
        )
