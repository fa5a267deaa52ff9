"""Commands `warehouse sample`, `demo`, `init`: ways to begin."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from warehouse.base.errors import SettingsError
from warehouse.base.settings import settle
from warehouse.base.text import for_target
from warehouse.cli.commands import say


def run_sample(given: argparse.Namespace) -> None:
    """Write the sample."""
    from warehouse.sample import SampleOptions, write_sample
    from warehouse.sample.basics import SERVERS_A_SPINE

    size = {"hours": given.hours, "leaves": given.leaves, "servers_per_group": given.servers}
    if given.full and any(wish is not None for wish in size.values()):
        raise SettingsError("--full is a size of its own", hint="leave out --hours, --leaves and --servers, or --full")
    wishes = {**size, "seed": given.seed, "full": given.full or None, "planted": not given.clean}
    if given.servers:
        wishes["spines"] = max(SampleOptions.spines, -(-given.servers // SERVERS_A_SPINE))
    try:
        options = SampleOptions(**{name: value for name, value in wishes.items() if value is not None})
        truth = write_sample(Path(given.directory), options)
    except ValueError as error:
        raise SettingsError(str(error).replace("servers_per_group", "servers")) from error
    say(
        f"Sample {truth.parent}, its truth in {truth}",
        f"Next   warehouse build -d {shlex.quote(str(truth.parent))}",
    )


def run_demo(given: argparse.Namespace) -> int:
    """Write the sample, build it, and answer a few questions: each as a command does."""
    from warehouse.cli import main
    from warehouse.sample import write_sample

    folder = Path(given.directory)
    write_sample(folder)
    sys.stderr.write(f"Sample {folder}: a small synthetic release, every trap of the real one planted\n")
    target = settle({"target": given.target}).target
    if status := main(["build", "-d", str(folder), "-t", str(target)]):
        return status
    for asked in ("-q hour-summary", "-q nic --server GPU-1", "-q busiest-servers --limit 5"):
        print(f"\n$ {for_target(f'warehouse sql {asked}', target)}", flush=True)
        main(["sql", *asked.split(), "--format", "table", "-t", str(target)])
    steps = (
        "\nTry next:  warehouse ls                      what there is\n"
        "           warehouse show metrics.port_hour  what a number means\n"
        "           warehouse sql 'FROM metrics.leaf_hour'\n"
    )
    print(f"{for_target(steps, target)}           warehouse build -d YOUR_RELEASE")
    return 0


def run_init(given: argparse.Namespace) -> None:
    """Create a project folder with models and build it, from a release or a small sample."""
    from warehouse.project.first_files import SAMPLE, draft, start_project

    folder = Path(given.directory)
    traces = [given.trace] if given.trace else []
    # Absolute, as paths in warehouse.toml are relative to the new folder.
    data = [str(Path(one).expanduser().resolve()) for one in (*(given.data or ()), *traces)]
    if missing := next((one for one in data if not Path(one).exists()), None):
        raise SettingsError(f"no such data folder: {missing}", hint="warehouse init DIR writes a small sample")
    drafted = draft(Path(data[-1])) if given.trace else None
    say(*(f"wrote  {path}" for path in start_project(folder, data)))
    if drafted:
        mapping = folder / "data" / "traces" / f"{drafted[0]}.yaml"
        mapping.parent.mkdir(parents=True)
        mapping.write_text(drafted[1], encoding="utf-8")
        say(f"wrote  {mapping}: read each line with a `# ?`, then build; docs/traces.md says what the keys mean")
    if not data:
        from warehouse.sample import SampleOptions, write_sample

        few = SampleOptions(hours=1, seconds=300, jobs=False, utilization=False, hour_tables=False)
        write_sample(folder / SAMPLE, few)
        say(f"wrote  {folder / SAMPLE}/: a synthetic release of 5 minutes")
    asked = f"-q jobs --trace {drafted[0]}" if drafted else "'FROM metrics.top_servers'"
    tested = "staging.trace_jobs" if drafted else "metrics.top_servers"
    say(
        f"Next   cd {shlex.quote(given.directory)} && warehouse test {tested} && warehouse build",
        f"       warehouse sql {asked}",
    )
