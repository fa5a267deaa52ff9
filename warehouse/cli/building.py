"""`warehouse build`."""

from __future__ import annotations

import argparse
import json
import sys

from warehouse.cli.options import Commands, add_data, add_engine, add_project, add_target, command, settings


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(
        commands,
        "build",
        "read the data folders, build all models, check them, publish",
        "warehouse build -d data/",
    )
    add_data(one)
    add_target(one)
    add_project(one)
    one.add_argument(
        "-s", "--select", metavar="SEL", action="append", default=[],
        help="only these models: a name, a layer, a glob; +name with what it stands on, name+ with what stands on it",
    )  # fmt: skip
    add_engine(one)
    one.add_argument("--keep", metavar="N", type=int, default=3, help="builds to keep (default 3)")
    one.add_argument("--wait", action="store_true", help="wait for another build of this target to end")
    one.add_argument("--plain-sql", action="store_true", help="every model by its SELECT, none by its kernel")
    one.add_argument("--json", action="store_true", help="the result as JSON on stdout")
    one.add_argument("--quiet", action="store_true", help="say nothing but errors")
    one.set_defaults(run=run_build)


def run_build(given: argparse.Namespace) -> int:
    """Build, and say what was done."""
    from warehouse.building import build
    from warehouse.report import Silent, Terminal

    settled = settings(given)
    reporter = Silent() if given.quiet or given.json else Terminal(sys.stderr)
    with reporter.telling(settled.target):
        result = build(
            settled,
            reporter,
            select=given.select,
            keep=max(1, given.keep),
            wait=given.wait,
            kernels=not given.plain_sql,
        )
    if given.json:
        print(json.dumps(result.summary(), indent=1))  # noqa: T201
    reporter.ended(result)
    return 0
