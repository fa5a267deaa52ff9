"""Ad-hoc queries: ten questions about an hour, on the published file and on raw or staged rows in other programs.

    python -m bench.adhoc                    the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.adhoc --full             a synthetic full-size hour: 24 switches, 2,160 files, 1.5 GB
    python -m bench.adhoc --peers none       without polars and chdb

Each answer is a whole process on one thread, including its start. `warehouse sql` reads the published file. DuckDB
reads a view over the CSV files (once per question, as it is slow). DuckDB, polars and chdb also read the same rows
staged as one Parquet file, sorted by port and time. If a question has the same meaning on raw rows, the answers must be
equal. Traffic per second or minute differs: raw rows have the times of polls only, without windows and flags.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.ingest import default_data, full_hour, port_csvs, readers
from bench.measure import machine, run

PEERS = ("polars", "chdb")
ENVIRONMENT = {"POLARS_MAX_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
"""Environment for one thread and for cached bytecode, as for an installed program."""
STAGE = """
import sys, duckdb
from pathlib import Path
from bench.ask import staged
duckdb.sql(f"COPY ({staged(Path(sys.argv[1]))} ORDER BY switch, port, time_ms) TO '{sys.argv[2]}' (COMPRESSION zstd)")
"""
PORT = "switch = 'Leaf-1' AND port = 'TwoHundredGigE1/0/1:1'"


class Question(NamedTuple):
    """Question as SQL on published tables and on raw rows; `same` if both answers must be equal."""

    published: str
    rows: str
    same: bool = True


QUESTIONS = {
    "bytes of a port": Question(
        f"SELECT sum(in_bytes), sum(out_bytes) FROM metrics.port_hour WHERE {PORT}",
        f"SELECT sum(in_bytes), sum(out_bytes) FROM rows_ WHERE {PORT}",
    ),
    "ten busiest ports": Question(
        "SELECT switch, port, sum(in_bytes) AS bytes FROM metrics.port_hour GROUP BY switch, port "
        "ORDER BY bytes DESC, switch, port LIMIT 10",
        "SELECT switch, port, sum(in_bytes) AS bytes FROM rows_ GROUP BY switch, port "
        "ORDER BY bytes DESC, switch, port LIMIT 10",
    ),
    "bytes of each switch": Question(
        "SELECT switch, sum(in_bytes), sum(out_bytes) FROM metrics.port_hour GROUP BY switch ORDER BY switch",
        "SELECT switch, sum(in_bytes), sum(out_bytes) FROM rows_ GROUP BY switch ORDER BY switch",
    ),
    "packets of each switch": Question(
        "SELECT switch, sum(in_packets), sum(out_packets) FROM metrics.port_hour GROUP BY switch ORDER BY switch",
        "SELECT switch, sum(in_packets), sum(out_packets) FROM rows_ GROUP BY switch ORDER BY switch",
    ),
    "ports that moved nothing": Question(
        "SELECT switch, port FROM metrics.port_hour GROUP BY switch, port HAVING sum(in_bytes) + sum(out_bytes) = 0 "
        "ORDER BY switch, port",
        "SELECT switch, port FROM (SELECT switch, port, sum(in_bytes) AS i, sum(out_bytes) AS o FROM rows_ "
        "GROUP BY switch, port) AS ports WHERE i + o = 0 ORDER BY switch, port",
    ),
    "all ports by minute": Question(
        "SELECT minute_utc, sum(in_bytes), sum(out_bytes) FROM metrics.port_minute "
        "GROUP BY minute_utc ORDER BY minute_utc",
        "SELECT minute, sum(in_bytes), sum(out_bytes) FROM rows_ GROUP BY minute ORDER BY minute",
        same=False,
    ),
    "a port by second": Question(
        f"SELECT second_utc, in_bytes, out_bytes FROM metrics.port_second WHERE {PORT} ORDER BY second_utc",
        f"SELECT second, sum(in_bytes), sum(out_bytes) FROM rows_ WHERE {PORT} GROUP BY second ORDER BY second",
        same=False,
    ),
    "fullest second of each switch": Question(
        "SELECT switch, max(in_bytes) FROM metrics.port_second GROUP BY switch ORDER BY switch",
        "SELECT switch, max(i) FROM (SELECT switch, port, second, sum(in_bytes) AS i FROM rows_ "
        "GROUP BY switch, port, second) AS seconds GROUP BY switch ORDER BY switch",
        same=False,
    ),
    "polls of a port": Question(
        f"SELECT epoch_us(time_utc) // 1000, in_bytes, in_packets FROM staging.port_counters WHERE {PORT} ORDER BY 1",
        f"SELECT time_ms, in_bytes, in_packets FROM rows_ WHERE {PORT} ORDER BY time_ms",
    ),
    "five minutes of a switch": Question(
        "SELECT port, max(in_bytes), count(window_start_utc), count(*) FILTER (WHERE list_contains(flags, 'gap')) "
        "FROM staging.port_counters WHERE switch = 'Leaf-1' "
        "AND time_utc >= TIMESTAMP '2024-05-23 16:10:00' AND time_utc < TIMESTAMP '2024-05-23 16:15:00' "
        "GROUP BY port ORDER BY port",
        "SELECT port, max(in_bytes), count(*) FROM rows_ WHERE switch = 'Leaf-1' "
        "AND time_ms >= 1716480600000 AND time_ms < 1716480900000 GROUP BY port ORDER BY port",
        same=False,
    ),
}


def main() -> int:
    """Run the queries and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peers", default="all", help="polars,chdb, all, or none")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        data = given.data or (full_hour(Path(scratch)) if given.full else default_data(Path(scratch)))
        wanted = [name for name in (PEERS if given.peers == "all" else given.peers.split(",")) if name in PEERS]
        _compare(data, given.rounds, Path(scratch), wanted)
    return 0


def _compare(data: Path, rounds: int, scratch: Path, wanted: list[str]) -> None:
    files = port_csvs(data)
    listing, rows, target = scratch / "files.txt", scratch / "rows.parquet", scratch / "target"
    listing.write_text("\n".join(map(str, files)), encoding="utf-8")
    python, versions = readers(wanted) if wanted else (Path(), "")
    print(machine() + versions)
    run([sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(target), "--quiet"])
    run([sys.executable, "-c", STAGE, str(listing), str(rows)])
    size = sum(path.stat().st_size for path in files)
    print(f"{len(files):,} port CSVs, {size / 1e6:,.0f} MB; staged {rows.stat().st_size / 1e6:,.0f} MB; ", end="")
    print(f"{rounds} rounds in turn, CSV views once; CPU seconds, medians\n")
    ask = str(Path(__file__).with_name("ask.py"))
    sql = [sys.executable, "-m", "warehouse", "sql", "-t", str(target), "--threads", "1", "-o"]
    ways: dict[str, Callable[[Question, str], list[str]]] = {
        "published": lambda question, out: [*sql, out, question.published],
        "csv": lambda question, out: [sys.executable, ask, "csv", str(listing), question.rows, out],
        "parquet": lambda question, out: [sys.executable, ask, "parquet", str(rows), question.rows, out],
    }
    for peer in wanted if python.is_file() else ():
        ways[peer] = lambda question, out, peer=peer: [str(python), ask, peer, str(rows), question.rows, out]  # type: ignore[misc]
    print(f"{'':<32}" + "".join(f"{name:>12}" for name in ways))
    for about, question in QUESTIONS.items():
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for round_ in range(rounds):
            for name, command in ways.items():
                if name != "csv" or not round_:
                    out = str(scratch / f"{name}.csv")
                    spent[name].append(run(command(question, out), env=ENVIRONMENT).cpu)
        print(f"{about:<32}" + "".join(f"{statistics.median(spent[name]):>12.2f}" for name in ways), flush=True)
        answers = {name: _answer(scratch / f"{name}.csv", headed=name == "published") for name in ways}
        others = [name for name in ways if question.same and answers[name] != answers["published"]]
        if others:
            raise SystemExit(f"another answer to: {about}: {', '.join(others)}")


def _answer(path: Path, *, headed: bool) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))[headed:]


if __name__ == "__main__":
    raise SystemExit(main())
