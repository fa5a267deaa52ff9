"""Commands `warehouse sample`, `demo`, `init`: ways to begin."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from warehouse.base.errors import SettingsError
from warehouse.base.next_step import for_target
from warehouse.base.settings import settle
from warehouse.cli.options import Commands, add_target, command


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(commands, "sample", "write a synthetic release with planted truth", "warehouse sample data/sample")
    one.add_argument("directory", metavar="DIR")
    one.add_argument("--seed", type=int, default=7, metavar="N", help="another seed, other traffic (default 7)")
    one.add_argument("--hours", type=int, metavar="N", help="hours of traffic, 1 to 24 (default 2)")
    one.add_argument("--leaves", type=int, metavar="N", help="GPU leaves: 8, 12, 16 or 20 (default 8)")
    one.add_argument("--servers", type=int, metavar="N", help="servers a group of four leaves, 4 to 50 (default 4)")
    one.add_argument("--full", action="store_true", help="a full-size hour: 24 switches, 2,160 files, 1.5 GB")
    one.add_argument("--clean", action="store_true", help="plant no faults; what is odd in any release stays")
    one.set_defaults(run=run_sample)

    one = command(commands, "demo", "write a sample, build it, and query it", "warehouse demo")
    one.add_argument("directory", metavar="DIR", nargs="?", default="data/sample", help="default data/sample")
    add_target(one)
    one.set_defaults(run=run_demo)

    one = command(
        commands,
        "init",
        "start a folder with models of your own on top of the shipped ones",
        "warehouse init study/ && cd study && warehouse build\n  warehouse init study/ -d ~/downloads/release",
    )
    one.add_argument("directory", metavar="DIR", help="a new folder, or one without warehouse.toml")
    one.add_argument("-d", "--data", metavar="DIR", action="append", help="a release (default a small sample)")
    one.set_defaults(run=run_init)


def run_sample(given: argparse.Namespace) -> int:
    """Write the sample."""
    from warehouse.sample import SampleOptions, write_sample
    from warehouse.sample.options import SERVERS_A_SPINE

    size = {"hours": given.hours, "leaves": given.leaves, "servers_per_group": given.servers}
    if given.full and any(wish is not None for wish in size.values()):
        raise SettingsError("--full is a size of its own", hint="leave out --hours, --leaves and --servers, or --full")
    wishes = {**size, "seed": given.seed, "full": given.full or None, "planted": not given.clean}
    if given.servers:
        wishes["spines"] = max(SampleOptions.spines, -(-given.servers // SERVERS_A_SPINE))
    try:
        options = SampleOptions(**{name: value for name, value in wishes.items() if value is not None})
        truth = write_sample(Path(given.directory), options)
    except (ValueError, FileExistsError) as error:
        raise SettingsError(str(error).replace("servers_per_group", "servers")) from error
    print(f"Sample {truth.parent}, its truth in {truth}")  # noqa: T201
    print(f"Next   warehouse build -d {shlex.quote(str(truth.parent))}")  # noqa: T201
    return 0


def run_demo(given: argparse.Namespace) -> int:
    """Write the sample, build it, and answer a few questions."""
    from warehouse.project.project import Project
    from warehouse.reader.after_build import remarks
    from warehouse.reader.named_queries import load_queries
    from warehouse.reader.request import Request
    from warehouse.reader.user_query import answer
    from warehouse.runner.build import build
    from warehouse.runner.reporter import StreamReporter
    from warehouse.sample import write_sample

    folder = Path(given.directory)
    try:
        write_sample(folder)
    except FileExistsError as error:
        raise SettingsError(str(error)) from error
    sys.stderr.write(f"Sample {folder}: a small synthetic release, every trap of the real one planted\n")
    settled = settle({"data": [str(folder)], "target": given.target})
    reporter = StreamReporter(sys.stderr, settled.target)
    with reporter.reporting_failure(settled.target):
        result = build(settled, reporter)
    reporter.ended(result)
    for line in remarks(Project.open(), settled.target):
        reporter.note(line)
    queries = load_queries(Project.open().query_folders)
    for name, params in (
        ("hour-summary", {}),
        ("nic", {"server": "GPU-1"}),
        ("busiest-servers", {"limit": "5"}),
    ):
        flags = " ".join(f"--{key} {value}" for key, value in params.items())
        asked = for_target(f"warehouse sql -q {name} {flags}", settled.target)
        print(f"\n$ {asked}".rstrip(), flush=True)  # noqa: T201
        answer(Request(settled.target, query=queries[name], parameters=params, format="table"))
    steps = (
        "\nTry next:  warehouse ls                      what there is\n"
        "           warehouse show metrics.port_hour  what a number means\n"
        "           warehouse sql 'FROM metrics.leaf_hour'\n"
    )
    print(f"{for_target(steps, settled.target)}           warehouse build -d YOUR_RELEASE")  # noqa: T201
    return 0


def run_init(given: argparse.Namespace) -> int:
    """Create a project folder with models and build it, from a release or a small sample."""
    from warehouse.project.scaffold import SAMPLE, start_project

    folder = Path(given.directory)
    data = [str(Path(one).expanduser().resolve()) for one in given.data or ()]
    if missing := next((one for one in data if not Path(one).exists()), None):
        raise SettingsError(f"no such data folder: {missing}", hint="warehouse init DIR writes a small sample")
    for path in start_project(folder, data):
        print(f"wrote  {path}")  # noqa: T201
    if not data:
        from warehouse.sample import SampleOptions, write_sample

        few = SampleOptions(hours=1, seconds=300, jobs=False, utilization=False, hour_tables=False)
        try:
            write_sample(folder / SAMPLE, few)
        except FileExistsError as error:
            raise SettingsError(str(error)) from error
        print(f"wrote  {folder / SAMPLE}/: a synthetic release of 5 minutes")  # noqa: T201
    print(f"Next   cd {shlex.quote(given.directory)} && warehouse test metrics.top_servers && warehouse build")  # noqa: T201
    print("       warehouse sql 'FROM metrics.top_servers'")  # noqa: T201
    return 0
