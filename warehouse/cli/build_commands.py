"""`warehouse build` and `warehouse plan`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from warehouse.base.startup import regex
from warehouse.cli.options import Commands, add_data, add_engine, add_project, add_target, command, settings
from warehouse.store import up_to_date
from warehouse.store.layout import KEPT_BUILDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from warehouse.base.settings import Settings
    from warehouse.runner.reporter import Reporter
    from warehouse.runner.session import BuildOptions

_SCHEDULER = regex(r"^(local:[1-9]\d{0,2}|tcp://[^\s/:][^\s/]*:\d{1,5})$")
_LEAST_MEMORY = 1_000_000_000
"""Minimum address space: libraries and threads reserve more than they use."""


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(
        commands,
        "build",
        "read the data folders, build all models, check them, publish",
        "warehouse build -d data/\n  warehouse build -d data/ -t build/anew --profile --plans plans/",
    )
    _add_common(one)
    one.add_argument("--wait", action="store_true", help="wait for another build of this target to end")
    one.add_argument("--json", action="store_true", help="the result as JSON on stdout")
    one.add_argument("--save", action="store_true", help="keep --data and --target in warehouse.toml")
    one.add_argument("--quiet", action="store_true", help="print only errors")
    one.add_argument(
        "--profile", metavar="BY", nargs="?", const="models", choices=("models", "parts"),
        help="what each model (or, with `parts`, each part) cost: CPU, time, rows, bytes, memory, spill; on stdout",
    )  # fmt: skip
    one.add_argument("--plans", metavar="DIR", help="--profile, and keep the engine's plans there")
    one.add_argument(
        "--scheduler", metavar="ADDRESS", help="make the parts on the workers of Dask: tcp://HOST:PORT or local:N"
    )
    one.set_defaults(run=run_build)

    one = command(
        commands,
        "plan",
        "print what build would do, and why, model by model; nothing is built",
        "warehouse plan -d data/",
    )
    _add_common(one)
    one.add_argument("--json", action="store_true", help="every part with its reasons and downstream parts, as JSON")
    one.set_defaults(run=run_plan)


def _add_common(one: argparse.ArgumentParser) -> None:
    """Add the options that define a build."""
    add_data(one)
    add_target(one)
    add_project(one)
    one.add_argument(
        "-s", "--select", metavar="SEL", action="append", default=[],
        help="only these models: a name, a layer, a glob; +name with its upstream, name+ with its downstream models",
    )  # fmt: skip
    add_engine(one)
    one.add_argument(
        "--keep", metavar="N", type=int, default=KEPT_BUILDS, help=f"builds to keep (default {KEPT_BUILDS})"
    )
    one.add_argument(
        "--paranoid", action="store_true", help="hash all files again, even those with unchanged size and times"
    )


def run_build(given: argparse.Namespace) -> int:
    """Build and print a summary, or that there is nothing to do."""
    started = time.perf_counter()
    settled = settings(given)
    _check_scheduler(given.scheduler)
    given.profile = given.profile or ("models" if given.plans else None)
    if not (given.select or given.paranoid):
        unchanged, _ = up_to_date.unchanged(settled, keep=max(1, given.keep))
        if unchanged is not None:
            _save(given)
            _print_unchanged(unchanged, started, given)
            return 0

    _prepare_process()
    from warehouse.runner.build import build
    from warehouse.runner.executor import scheduler

    reporter = _reporter(given, settled.target)
    if given.profile:
        from pathlib import Path

        from warehouse.quality.profiling import Profile

        reporter = profile = Profile(reporter, Path(given.plans) if given.plans else None)
    with reporter.reporting_failure(settled.target), ExitStack() as opened:
        executor = opened.enter_context(scheduler(given.scheduler)) if given.scheduler else None
        result = build(settled, reporter, _options(given)._replace(executor=executor))
    reporter.ended(result)
    _save(given)
    if not (given.quiet or given.json):
        _print_remarks(settled, reporter)
    if given.json:
        shown = result.summary() | ({"profile": profile.summary()} if given.profile else {})
        print(json.dumps(shown, indent=1))  # noqa: T201
    elif given.profile:
        print(*profile.table(by_part=given.profile == "parts"), sep="\n")  # noqa: T201
    return 0


def _print_unchanged(answer: Mapping[str, Any], started: float, given: argparse.Namespace) -> None:
    """Print that the last build is up to date."""
    summary = answer["summary"]
    if given.json:
        print(json.dumps(summary, indent=1), flush=True)  # noqa: T201
    elif not given.quiet:
        warnings = len(summary["checks"]["warned"])
        shown = [summary["build"][:8], f"{summary['parts']:,} parts", f"{answer['files']:,} files"]
        shown += [f"{warnings:,} warning{'s' * (warnings > 1)}"] * bool(warnings)
        sys.stderr.write(f"Up to date  {', '.join(shown)}, checked in {time.perf_counter() - started:.2f} s\n")
        if given.profile:
            sys.stderr.write("Nothing was built: use another target to profile a whole build (-t DIR).\n")


def _check_scheduler(text: str | None) -> None:
    if text is not None and not _SCHEDULER.match(text):
        from warehouse.base.errors import SettingsError

        raise SettingsError(f"--scheduler is {text!r}, not tcp://HOST:PORT or local:N", hint="for instance local:4")


def _prepare_process() -> None:
    _check_memory()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads would compete with the engine's


def _reporter(given: argparse.Namespace, target: Path) -> Reporter:
    from warehouse.runner.reporter import Reporter, StreamReporter

    return Reporter() if given.quiet or given.json else StreamReporter(sys.stderr, target)


def _save(given: argparse.Namespace) -> None:
    """Write the given settings to warehouse.toml after a successful build with --save, and print its path."""
    if not given.save:
        return
    from pathlib import Path

    from warehouse.project.scaffold import save

    sys.stderr.write(f"Saved  {save(given.data or [], given.target, Path.cwd())}\n")


def _options(given: argparse.Namespace) -> BuildOptions:
    from warehouse.runner.session import BuildOptions

    return BuildOptions(
        select=tuple(given.select),
        keep=max(1, given.keep),
        wait=getattr(given, "wait", False),
        paranoid=given.paranoid,
    )


def _print_remarks(settled: Settings, reporter: Reporter) -> None:
    """Print the remarks of the project's query `after-build`."""
    from warehouse.project.project import Project
    from warehouse.reader.after_build import remarks

    for line in remarks(Project.open(settled.project), settled.target):
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


def run_plan(given: argparse.Namespace) -> int:
    """Print what a build would do."""
    from warehouse.cli.plan_text import as_text
    from warehouse.runner.dry_run import dry_run

    settled = settings(given)
    plan = dry_run(settled, _options(given))
    for line in [json.dumps(plan.summary(), indent=1)] if given.json else as_text(plan, settled.target):
        print(line)  # noqa: T201
    return 0
