"""Overhead of runners for 30 small SQL models: ours, lea, yato, and bare SQL.

    python -m bench.chain                      all; the first run installs the peers under --scratch
    python -m bench.chain --no-peers           ours and the bare SQL alone

Each runner builds three times: a first build, a repeated build, and a build after an edit of one leaf model. CPU
seconds are of the whole process, including its start. Ratios are to the bare SQL of the same case, in the same version
of DuckDB. Each round runs all runners in turn.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.chain_models import MODELS, ROWS, chain, write
from bench.measure import Cost, machine, run, table
from bench.peers import BARE, BARE_PEERS, OURS, PEERS, QUIET, Runner, install

SCRATCH = Path(tempfile.gettempdir()) / "warehouse-bench"
CASES = ("first build", "again, nothing changed", "one leaf edited")
Costs = dict[tuple[str, str], list[Cost]]


def main() -> int:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--no-peers", action="store_true", help="ours and the bare SQL alone")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scratch", type=Path, default=SCRATCH, help="for environments and projects")
    given = options.parse_args()
    runners = [BARE, OURS] if given.no_peers else [BARE, OURS, BARE_PEERS, *PEERS]
    given.scratch.mkdir(parents=True, exist_ok=True)
    environments = given.scratch.absolute() / "environments"
    versions = install(runners, environments)
    print(machine())
    print(
        f"{MODELS} models, {ROWS:,} rows each at the root; {given.rounds} rounds in turn after one that is not counted"
    )
    with tempfile.TemporaryDirectory(prefix="chain-", dir=given.scratch) as folder:
        costs = measure(runners, environments, Path(folder), given.rounds)
    show(costs, runners, versions)
    return 0


def key(runner: Runner) -> str:
    """Return a name that distinguishes the two bare runs."""
    return f"{runner.name} {runner.engine}"


def measure(runners: list[Runner], environments: Path, folder: Path, rounds: int) -> Costs:
    """Return the costs of each runner and case, without the first round."""
    costs: Costs = {}
    for number in range(rounds + 1):
        for runner in runners:
            project = folder / key(runner).replace(" ", "-")
            shutil.rmtree(project, ignore_errors=True)
            write(runner.layout, project, chain())
            for case in CASES:
                if case == CASES[2]:
                    write(runner.layout, project, chain(leaf=2))
                cost = run(runner.command(environments), cwd=str(project), env=environment(project))
                costs.setdefault((key(runner), case), []).append(cost)
            print(f"round {number} of {rounds}: {runner.name}", file=sys.stderr, flush=True)
    return {which: found[1:] for which, found in costs.items()}


def environment(project: Path) -> Mapping[str, str]:
    """Return an environment that finds our package, with an empty cache for each project."""
    home = Path(__file__).resolve().parent.parent
    return {**QUIET, "PYTHONPATH": str(home), "XDG_CACHE_HOME": str(project / "cache")}


def show(costs: Costs, runners: list[Runner], versions: Mapping[str, str]) -> None:
    """Print a table per case and version of DuckDB."""
    for case in CASES:
        print(f"\n{case}")
        for bare in (BARE, BARE_PEERS):
            some = [runner for runner in runners if runner.engine == bare.engine]
            names = {runner: f"{runner.name} {versions.get(runner.lock or '', '')}" for runner in some}
            if some:
                table({name: costs[key(runner), case] for runner, name in names.items()}, names[bare], width=26)


if __name__ == "__main__":
    raise SystemExit(main())
