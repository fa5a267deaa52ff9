"""Overhead of runners for 30 small SQL models: ours, lea, yato, and bare SQL.

    python -m bench.chain                      the first run installs the peers in a folder for temporary files

The chain has three layers of ten models. A staging model generates rows with `range()`, so no file is read. A topology
model joins two staging models; a metrics model sums two topology models. Apart from names of models, the SELECT is the
same for every runner. Each builds three times: a first build, a repeated build, and a build after an edit of one leaf.
CPU seconds are of the whole process, including its start. Ratios are to the bare SQL of the same case, in the same
version of DuckDB.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.measure import Case, in_turn, machine, table

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = Path(tempfile.gettempdir()) / "warehouse-bench" / "environments"
MODELS = 30
ROWS = 10_000
CASES = ("first build", "again, nothing changed", "one leaf edited")
Models = Mapping[str, str]
"""SELECT of each model by `layer.name`, in topological order."""

STAGING = """\
SELECT
    n AS poll_id,
    n % 64 AS port_id,
    TIMESTAMP '2024-01-01 00:00:00' + INTERVAL (n % 3600) SECOND AS polled_at,
    (n * {factor}) % 1000003 AS in_bytes,
    (n * {factor} + {number}) % 9973 AS out_bytes
FROM range({rows}) AS polls(n)
"""
TOPOLOGY = """\
WITH busiest AS (SELECT port_id, max(in_bytes) AS peak_bytes FROM {beside} GROUP BY port_id)
SELECT polls.poll_id, polls.port_id, polls.polled_at, polls.in_bytes + polls.out_bytes AS moved_bytes,
    busiest.peak_bytes
FROM {below} AS polls
INNER JOIN busiest ON polls.port_id = busiest.port_id
"""
METRICS = """\
WITH minutes AS (
    SELECT port_id, date_trunc('minute', polled_at) AS minute, sum(moved_bytes) AS moved_bytes,
        max(peak_bytes) AS peak_bytes
    FROM {below}
    GROUP BY port_id, date_trunc('minute', polled_at)
),
ports AS (SELECT port_id, count(*) AS polls FROM {beside} GROUP BY port_id)
SELECT minutes.port_id, minutes.minute, CAST(minutes.moved_bytes * {leaf} AS BIGINT) AS moved_bytes,
    minutes.peak_bytes, ports.polls
FROM minutes
INNER JOIN ports ON minutes.port_id = ports.port_id
"""
CONTRACTS = {
    "staging": ("[poll_id]", "poll_id port_id polled_at in_bytes out_bytes"),
    "topology": ("[poll_id]", "poll_id port_id polled_at moved_bytes peak_bytes"),
    "metrics": ("[port_id, minute]", "port_id minute moved_bytes peak_bytes polls"),
}
"""Grain and columns of the models of each layer."""


def chain(*, leaf: int = 1) -> Models:
    """Return the models; `leaf` is a factor in the last model, which no other model reads."""
    width = MODELS // len(CONTRACTS)
    staging, topology, metrics = {}, {}, {}
    for number in range(width):
        staging[f"staging.polls_{number:02}"] = STAGING.format(factor=7919 + 2 * number, number=number, rows=ROWS)
        topology[f"topology.moved_{number:02}"] = TOPOLOGY.format(
            below=f"staging.polls_{number:02}", beside=f"staging.polls_{(number + 1) % width:02}"
        )
        metrics[f"metrics.minutes_{number:02}"] = METRICS.format(
            below=f"topology.moved_{number:02}",
            beside=f"topology.moved_{(number + 3) % width:02}",
            leaf=leaf if number == width - 1 else 1,
        )
    return staging | topology | metrics


def bare(models: Models) -> Mapping[str, str]:
    """Return one script that creates the tables in order, the minimum cost of any runner, and what runs it."""
    schemas = "".join(f"CREATE SCHEMA IF NOT EXISTS {layer};\n" for layer in CONTRACTS)
    run = "import duckdb\nwith duckdb.connect('chain.duckdb', config={'threads': 2}) as connection:\n"
    return {
        "chain.sql": schemas + "\n".join(f"CREATE OR REPLACE TABLE {name} AS\n{models[name]};\n" for name in models),
        "chain.py": f"{run}    connection.execute(open('chain.sql').read())\n",
    }


def ours(models: Models) -> Mapping[str, str]:
    """Return our project: every model with its contract and a check of its grain."""
    files = {"warehouse.toml": "shipped = false\n"}
    for name, sql in models.items():
        grain, columns = CONTRACTS[name.partition(".")[0]]
        types = (f"  {one}: {'TIMESTAMP' if one in ('polled_at', 'minute') else 'BIGINT'}" for one in columns.split())
        head = ["/* ---", "about: A model of the chain.", f"grain: {grain}", "columns:", *types, "--- */"]
        files[f"models/{name.replace('.', '/')}.sql"] = "\n".join([*head, sql])
    return files


def lea(models: Models) -> Mapping[str, str]:
    """Return a folder of lea scripts."""
    files = {".env": "LEA_WAREHOUSE=duckdb\nLEA_DUCKDB_PATH=chain.duckdb\n"}
    return files | {f"scripts/{name.replace('.', '/')}.sql": sql for name, sql in models.items()}


def yato(models: Models) -> Mapping[str, str]:
    """Return a flat folder for yato, which names tables without a schema."""
    layer = re.compile(rf"\b(?:{'|'.join(CONTRACTS)})\.")
    return {f"sql/{layer.sub('', name)}.sql": layer.sub("", sql) for name, sql in models.items()}


class Runner(NamedTuple):
    """Program that builds tables from SQL files."""

    name: str
    files: Callable[[Models], Mapping[str, str]]
    build: tuple[str, ...]
    """Command, run in the project's folder; its first word is a program in the environment's `bin/`."""
    lock: str | None = None
    """List of pinned packages in `bench/peers/`; None for the Python that runs this benchmark."""

    def write(self, folder: Path, models: Models) -> None:
        """Write the chain; unchanged files keep their modification time."""
        for name, text in self.files(models).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")


OURS = Runner("warehouse", ours, ("python", "-m", "warehouse", "build"))
BARE = Runner("bare SQL", bare, ("python", "chain.py"))
PEERS = (
    Runner("bare SQL of peers", bare, ("python", "chain.py"), lock="bare"),
    Runner("yato", yato, ("yato", "run", "--db", "chain.duckdb", "sql"), lock="yato"),
    Runner("lea", lea, ("lea", "run", "--production"), lock="lea"),
)


def main() -> int:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    print(machine())
    print(f"{MODELS} models, {ROWS:,} rows each at the root; {given.rounds} rounds in turn after one not counted")
    with tempfile.TemporaryDirectory(prefix="chain-") as folder:
        cases: dict[str, Case] = {}
        for runner in (BARE, OURS, *PEERS):
            cases |= _cases(runner, Path(folder) / runner.name.replace(" ", "-"))
        costs = in_turn(cases, given.rounds, uncounted=1)
    for case in CASES:
        print(f"\n{case}")
        for some in ((BARE, OURS), PEERS):
            table({one.name: costs[f"{one.name}, {case}"] for one in some}, some[0].name, width=26)
    return 0


def _cases(runner: Runner, project: Path) -> dict[str, Case]:
    """Return the three builds of a runner, in its environment."""

    def anew() -> None:
        shutil.rmtree(project, ignore_errors=True)
        runner.write(project, chain())

    program = [sys.executable]
    if runner.lock:
        program = [str(_installed(runner.lock) / "bin" / runner.build[0])]
    # no usage statistics; compiled modules, as an installed program has; an empty cache for each project
    env = {"DO_NOT_TRACK": "1", "PYTHONDONTWRITEBYTECODE": "", "XDG_CACHE_HOME": str(project / "cache")}
    env["PYTHONPATH"] = str(HERE.parent)
    before = (anew, lambda: None, lambda: runner.write(project, chain(leaf=2)))
    return {
        f"{runner.name}, {case}": Case([*program, *runner.build[1:]], prepare, env, project)
        for case, prepare in zip(CASES, before, strict=True)
    }


def _installed(lock: str) -> Path:
    """Return the environment of a lock file, made if it is missing or of another lock file."""
    pinned, folder = HERE / "peers" / f"{lock}.txt", ENVIRONMENTS / lock
    done = folder / "installed.txt"
    if not done.is_file() or done.read_bytes() != pinned.read_bytes():
        print(f"installing {lock} into {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--requirement", str(pinned)], check=True)
        done.write_bytes(pinned.read_bytes())
    return folder


if __name__ == "__main__":
    raise SystemExit(main())
