"""`warehouse build` and `warehouse plan`."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from warehouse.cli.options import DATA, ENGINE, JSON, PROJECT, TARGET, command, flag, option, say_json, settings, tell
from warehouse.store import up_to_date
from warehouse.store.manifest import KEPT_BUILDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from warehouse.base.settings import Settings
    from warehouse.runner.reporter import Reporter
    from warehouse.runner.session import BuildOptions

_LEAST_MEMORY = 1_000_000_000
"""Minimum address space: libraries and threads reserve more than they use."""


def _address(text: str) -> str:
    import re

    if not re.fullmatch(r"local:[1-9]\d{0,2}|tcp://[^\s/:][^\s/]*:\d{1,5}", text):
        raise argparse.ArgumentTypeError(f"is {text!r}, not tcp://HOST:PORT or local:N")
    return text


_BUILD = (
    *DATA,
    TARGET,
    PROJECT,
    option(
        "-s", "--select", metavar="SEL", action="append", default=[],
        help="only these models: a name, a layer, a glob; +name with its upstream, name+ with its downstream models",
    ),
    *ENGINE,
    option("--keep", metavar="N", type=int, default=KEPT_BUILDS, help=f"builds to keep (default {KEPT_BUILDS})"),
    flag("--paranoid", "hash all files again, even those with unchanged size and times"),
)  # fmt: skip
"""Options that define a build."""


@command(
    "build",
    "read the data folders, build all models, check them, publish",
    "warehouse build -d data/\n  warehouse build -d data/ -t build/anew --profile",
    *_BUILD,
    flag("--wait", "wait for another build of this target to end"),
    JSON,
    flag("--quiet", "print only errors"),
    flag("--profile", "what each model cost: CPU, time, rows, bytes, memory, spill; on stdout"),
    option(
        "--scheduler", metavar="ADDRESS", type=_address,
        help="make the parts on the workers of Dask: tcp://HOST:PORT or local:N",
    ),
)  # fmt: skip
def run_build(given: argparse.Namespace) -> int:
    """Build and print a summary, or that there is nothing to do."""
    started = time.perf_counter()
    settled = settings(given)
    # Before the imports of a build: with nothing to do, they would cost most of the time.
    if not (given.select or given.paranoid):
        unchanged, _ = up_to_date.unchanged(settled, keep=max(1, given.keep))
        if unchanged is not None:
            _print_unchanged(unchanged, started, given)
            return 0

    _check_memory()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads would compete with the engine's
    from warehouse.runner.build import build
    from warehouse.runner.reporter import Reporter, StreamReporter
    from warehouse.runner.session import scheduler

    is_silent = given.quiet or given.json
    reporter = Reporter() if is_silent else StreamReporter(sys.stderr, settled.target)
    if given.profile:
        from warehouse.quality.profiling import Profile

        reporter = profile = Profile(io.StringIO() if is_silent else sys.stderr, settled.target)
    with reporter.reporting_failure(settled.target), ExitStack() as opened:
        executor = opened.enter_context(scheduler(given.scheduler)) if given.scheduler else None
        result = build(settled, reporter, _options(given)._replace(executor=executor, wait=given.wait))
    reporter.ended(result)
    if not is_silent:
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
        shown += [f"{warnings:,} warning{'s' * (warnings > 1)}"] * bool(warnings)
        sys.stderr.write(f"Up to date  {', '.join(shown)}, checked in {time.perf_counter() - started:.2f} s\n")
        if given.profile:
            sys.stderr.write("Nothing was built: use another target to profile a whole build (-t DIR).\n")


def _options(given: argparse.Namespace) -> BuildOptions:
    from warehouse.runner.session import BuildOptions

    return BuildOptions(select=tuple(given.select), keep=max(1, given.keep), paranoid=given.paranoid)


def print_remarks(settled: Settings, reporter: Reporter) -> None:
    """Print the lines of the project's named query `after-build`, if it has one."""
    from warehouse.base.errors import QueryError
    from warehouse.base.startup import duckdb
    from warehouse.engine.duckdb_errors import sentence
    from warehouse.project.named_queries import load_query
    from warehouse.project.project import Project
    from warehouse.reader.connection import connect

    query = load_query("after-build", Project.open(settled.project).query_folders)
    if query is None:
        return
    try:
        with connect(settled.target) as connection:
            lines = [str(line) for (line,) in connection.execute(query.sql).fetchall()]
    except QueryError as error:  # for example, another process opened the file for writing; the build is published
        lines = [f"no remarks: {error.message}"]
    except duckdb.Error as error:  # for example, the query reads models that the project leaves out
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

    from warehouse.base.errors import SettingsError
    from warehouse.base.text import size

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_MEMORY:
        raise SettingsError(
            f"this process may take {size(limit)} of memory, and a build needs {size(_LEAST_MEMORY)} at least",
            hint="ulimit -v sets that limit",
        )


@command(
    "plan",
    "print what build would do, and why, model by model; nothing is built",
    "warehouse plan -d data/",
    *_BUILD,
    flag("--json", "every part with its reasons and downstream parts, as JSON"),
)
def run_plan(given: argparse.Namespace) -> int:
    """Print what a build would do."""
    from warehouse.cli.plan_text import as_text
    from warehouse.runner.dry_run import dry_run

    settled = settings(given)
    plan = dry_run(settled, _options(given))
    tell(given, plan.summary, lambda: as_text(plan, settled.target))
    return 0
