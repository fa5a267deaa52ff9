"""Overhead of runners for 30 small SQL models: ours, lea, yato, and bare SQL.

    python -m bench.chain                      the first run installs the peers below build/envs
    python -m bench.chain --depth              own modules and functions that a first build enters, and how deep

The chain has three layers of ten models. A staging model generates rows with `range()`, so no file is read. A topology
model joins two staging models; a metrics model sums two topology models. Apart from names of models, the SELECT is the
same for every runner. Each builds three times: a first build, a repeated build, and a build after an edit of one leaf.
CPU seconds are of the whole process, including its start. Ratios are to the bare SQL of the same case, in the same
version of DuckDB. With `--depth`, the build runs in this process with two threads and one raw file; functions of all
threads count.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from bench.measure import Case, in_turn, machine, table
from tests.environments import environment

HERE = Path(__file__).resolve().parent
OWN = f"{HERE.parent / 'warehouse'}/"
RAW = (
    "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio\n"
    "2024/05/24 星期五 00:00:00.939,1716480000939,R-Leaf-1.GPU.S9825,TwoHundredGigE1/0/1:2,0,0,0,0,0,0\n"
)
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


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files; unchanged ones keep their modification time."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class Runner(NamedTuple):
    """Program that builds tables from SQL files."""

    files: Callable[[Models], Mapping[str, str]]
    build: tuple[str, ...]
    """Command, run in the project's folder; its first word is a program in the environment's `bin/`."""
    lock: str | None = None
    """List of pinned packages in `bench/peers/`; None for the Python that runs this benchmark."""


OURS = {
    "bare SQL": Runner(bare, ("python", "chain.py")),
    "warehouse": Runner(ours, ("python", "-m", "warehouse", "build")),
}
PEERS = {
    "bare SQL of peers": Runner(bare, ("python", "chain.py"), lock="bare"),
    "yato": Runner(yato, ("yato", "run", "--db", "chain.duckdb", "sql"), lock="yato"),
    "lea": Runner(lea, ("lea", "run", "--production"), lock="lea"),
}


def main() -> int:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--depth", action="store_true")
    given = options.parse_args()
    if given.depth:
        show_depth()
        return 0
    print(machine())
    print(f"{MODELS} models, {ROWS:,} rows each at the root; {given.rounds} rounds in turn after one not counted")
    with tempfile.TemporaryDirectory(prefix="chain-") as folder:
        cases: dict[str, Case] = {}
        for name, runner in {**OURS, **PEERS}.items():
            cases |= _cases(name, runner, Path(folder) / name.replace(" ", "-"))
        costs = in_turn(cases, given.rounds, uncounted=1)
    for case in CASES:
        print(f"\n{case}")
        for some in (OURS, PEERS):
            table({name: costs[f"{name}, {case}"] for name in some}, next(iter(some)), width=26)
    return 0


def _cases(name: str, runner: Runner, project: Path) -> dict[str, Case]:
    """Return the three builds of a runner, in its environment."""

    def anew() -> None:
        shutil.rmtree(project, ignore_errors=True)
        write(project, runner.files(chain()))

    python = Path(sys.executable)
    if runner.lock:
        python = environment(f"chain-{runner.lock}", (HERE / "peers" / f"{runner.lock}.txt").read_text("utf-8"))
    # no usage statistics; compiled modules, as an installed program has; an empty cache for each project
    env = {"DO_NOT_TRACK": "1", "PYTHONDONTWRITEBYTECODE": "", "XDG_CACHE_HOME": str(project / "cache")}
    env["PYTHONPATH"] = str(HERE.parent)
    command = [str(python.with_name(runner.build[0])), *runner.build[1:]]
    before = (anew, lambda: None, lambda: write(project, runner.files(chain(leaf=2))))
    return {
        f"{name}, {case}": Case(command, prepare, env, project) for case, prepare in zip(CASES, before, strict=True)
    }


class Watch:
    """Counter of the own functions that are entered, by `sys.setprofile` in each thread."""

    def __init__(self) -> None:
        self.entered: set[CodeType] = set()
        self.deepest = 0
        self._local = threading.local()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call or a return."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(OWN) or code.co_name == "<module>":
            return
        if event == "call":
            self.entered.add(code)
        depth = getattr(self._local, "depth", 0) + (1 if event == "call" else -1)
        self._local.depth = max(0, depth)
        self.deepest = max(self.deepest, depth)


def show_depth() -> None:
    """Print how many own functions a first build enters, and the largest number of them on one stack."""
    with tempfile.TemporaryDirectory(prefix="chain-") as scratch:
        folder, watch = Path(scratch), Watch()
        write(folder / "chain", ours(chain()))
        write(folder / "data/trafficinfo/2024052400/R-Leaf-1_GPU_S9825", {"Leaf-1_1_2.csv": RAW})
        threading.setprofile(watch)  # only threads that start after this are counted
        sys.setprofile(watch)
        try:
            import warehouse

            warehouse.build(folder / "data", folder / "target", project=folder / "chain", threads=2)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    modules = {code.co_filename for code in watch.entered}
    print(f"first build of {MODELS} models, two threads: {len(modules)} own modules, ", end="")
    print(f"{len(watch.entered):,} own functions, {watch.deepest} deep")


if __name__ == "__main__":
    raise SystemExit(main())
