"""Time to answers: ten questions to a built warehouse, and to DuckDB over views of the same CSV files.

    python -m bench.answers DIR                a release, such as data/real/zhejiang
    python -m bench.answers DIR --rounds 5

Each question is asked by a process of its own, as a person asks it: it opens DuckDB, runs one SELECT and fetches all
rows; the two sides in turn. The CSV side gets the topology sheet as a CSV file, made before the clock starts. Its
SELECTs are what one writes at first; `rows` says if they give the rows of the warehouse, and the last column what one
has to know to get them. The last lines say after how many questions the build has paid for itself.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.ingest import fabric_of, port_csvs
from bench.measure import Cost, in_turn, machine, medians, run
from warehouse.formats.zhejiang.port_counters import COLUMNS

ASK = """
import json, sys, duckdb
database, before, sql, answer = sys.argv[1:]
connection = duckdb.connect(database, read_only=database != ":memory:")
connection.execute("SET threads = 2; SET TimeZone = 'UTC'")
if before:
    connection.execute(open(before).read())
rows = connection.execute(sql).fetchall()
json.dump(rows, open(answer, "w"), default=str)
"""
VIEWS = """
CREATE VIEW counters AS
SELECT regexp_extract("DeviceName", '(ST-leaf|Leaf)-[0-9]+') AS switch, "PortName" AS port,
    epoch_ms("SaveTimeUTC") AS time_utc, "InOctets" AS in_bytes, "OutOctets" AS out_bytes
FROM read_csv({files}, auto_detect=false, header=true, delim=',', quote='', escape='', columns={columns});
CREATE VIEW sheet AS SELECT * FROM read_csv({sheet}, header=true, all_varchar=true);
"""


class Question(NamedTuple):
    """One question, as SQL for both sides."""

    text: str
    ours: str
    bare: str
    know: str
    """What the SELECT over CSV files leaves out, with the page that says it."""


def questions(server: str, leaf: str, port: str) -> list[Question]:
    """Return the ten questions about a server, a leaf and a port of it."""
    number = "TRY_CAST(regexp_extract(port, 'FourHundredGigE1/0/([0-9]+)', 1) AS INTEGER)"
    uplink = f"{number} BETWEEN 33 AND 62 AND switch LIKE 'Leaf%'"
    return [
        Question(
            f"Which leaf ports does {server} use, and what went over each?",
            f"""SELECT n.nic, n.switch, n.port, h.in_bytes, h.out_bytes FROM topology.nic_ports AS n
                JOIN metrics.port_hour AS h USING (cluster, switch, port) WHERE n.server = '{server}' ORDER BY ALL""",
            f"""SELECT s.nicname, c.switch, c.port, sum(in_bytes), sum(out_bytes) FROM counters AS c
                JOIN sheet AS s ON regexp_extract(s.switchname, 'Leaf-[0-9]+') = c.switch AND s.accessport = c.port
                WHERE regexp_extract(s.sysname, 'GPU-[0-9]+$') = '{server}' GROUP BY ALL ORDER BY ALL""",
            "names of NICs differ from those in logs (formats/workbook.md)",
        ),
        Question(
            "The ten ports that moved most",
            """SELECT switch, port, in_bytes + out_bytes AS bytes FROM metrics.port_hour
               ORDER BY bytes DESC, switch, port LIMIT 10""",
            """SELECT switch, port, sum(in_bytes + out_bytes) AS bytes FROM counters GROUP BY ALL
               ORDER BY bytes DESC, switch, port LIMIT 10""",
            "negative deltas of management ports are wraps (formats/port_counters.md)",
        ),
        Question(
            f"Bytes of {leaf} {port} by minute",
            f"""SELECT minute_utc, in_bytes, out_bytes FROM metrics.port_minute
                WHERE switch = '{leaf}' AND port = '{port}' ORDER BY ALL""",
            f"""SELECT date_trunc('minute', time_utc) AS minute_utc, sum(in_bytes), sum(out_bytes) FROM counters
                WHERE switch = '{leaf}' AND port = '{port}' GROUP BY ALL ORDER BY ALL""",
            "bytes moved since the last refresh, not since the last row (metrics/rates.md)",
        ),
        Question(
            "How balanced are the uplinks of each leaf?",
            """SELECT switch, round(cov, 6) FROM metrics.uplink_balance
               WHERE direction = 'out' AND switch LIKE 'Leaf%' ORDER BY ALL""",
            f"""SELECT switch, round(stddev_pop(bytes) / avg(bytes), 6) FROM (
                SELECT switch, port, sum(out_bytes) AS bytes FROM counters WHERE {uplink} GROUP BY ALL)
                GROUP BY ALL ORDER BY ALL""",
            "which ports are uplinks (metrics/topology.md)",
        ),
        Question(
            f"How balanced were the uplinks of {leaf} in each minute?",
            f"""SELECT minute_utc, round(cov, 6) FROM metrics.uplink_balance_minute
                WHERE direction = 'out' AND switch = '{leaf}' ORDER BY ALL""",
            f"""SELECT minute_utc, round(stddev_pop(bytes) / avg(bytes), 6) FROM (
                SELECT date_trunc('minute', time_utc) AS minute_utc, port, sum(out_bytes) AS bytes FROM counters
                WHERE switch = '{leaf}' AND {uplink} GROUP BY ALL) GROUP BY ALL ORDER BY ALL""",
            "polls pause for minutes; such minutes were not observed (metrics/balance.md)",
        ),
        Question(
            "The five fullest seconds of any port",
            """SELECT second_utc, switch, port, greatest(in_bytes, out_bytes) AS bytes FROM metrics.port_second
               ORDER BY bytes DESC, switch, port LIMIT 5""",
            """SELECT second_utc, switch, port, greatest(i, o) AS bytes FROM (
               SELECT date_trunc('second', time_utc) AS second_utc, switch, port,
                   sum(in_bytes) AS i, sum(out_bytes) AS o FROM counters GROUP BY ALL)
               ORDER BY bytes DESC, switch, port LIMIT 5""",
            "after a gap one row holds the bytes of minutes (metrics/rates.md)",
        ),
        Question(
            "The ten servers that moved most",
            """SELECT server, rx_bytes + tx_bytes AS bytes FROM metrics.server_hour
               ORDER BY bytes DESC, server LIMIT 10""",
            """SELECT regexp_extract(s.sysname, 'GPU-[0-9]+$') AS server, sum(in_bytes + out_bytes) AS bytes
               FROM counters AS c JOIN sheet AS s
               ON regexp_extract(s.switchname, 'Leaf-[0-9]+') = c.switch AND s.accessport = c.port
               GROUP BY ALL ORDER BY bytes DESC, server LIMIT 10""",
            "a tenth of the access ports is in no sheet (metrics/topology.md)",
        ),
        Question(
            "Bytes that each spine sent to the leaves",
            """SELECT u.spine, sum(h.in_bytes) AS bytes FROM metrics.port_hour AS h
               JOIN topology.uplinks AS u ON (u.cluster, u.leaf, u.leaf_port) = (h.cluster, h.switch, h.port)
               WHERE h.switch LIKE 'Leaf%' GROUP BY ALL ORDER BY ALL""",
            f"""SELECT 'spine-' || ((regexp_extract(port, '[0-9]+$')::INTEGER - 33) // 3 + 1) AS spine, sum(in_bytes)
                FROM counters WHERE {uplink} GROUP BY ALL ORDER BY ALL""",
            "no file says which uplink goes to which spine (metrics/topology.md)",
        ),
        Question(
            "The ten ports that lost most polls",
            """SELECT switch, port, missing_polls FROM metrics.port_hour
               ORDER BY missing_polls DESC, switch, port LIMIT 10""",
            """SELECT c.switch, c.port, any_value(s.polls) - count(DISTINCT time_utc) AS missing FROM counters AS c
               JOIN (SELECT switch, count(DISTINCT time_utc) AS polls FROM counters GROUP BY ALL) AS s USING (switch)
               GROUP BY ALL ORDER BY missing DESC, c.switch, port LIMIT 10""",
            "a poll is one time of all ports of its switch (formats/port_counters.md)",
        ),
        Question(
            "Bytes of access ports that no sheet names",
            """SELECT sum(h.in_bytes + h.out_bytes) FROM metrics.port_hour AS h
               JOIN topology.ports AS p USING (cluster, switch, port)
               WHERE p.port_class = 'access' AND p.source <> 'workbook'""",
            """SELECT sum(in_bytes + out_bytes) FROM counters AS c ANTI JOIN sheet AS s
               ON regexp_extract(s.switchname, 'Leaf-[0-9]+') = c.switch AND s.accessport = c.port
               WHERE port LIKE 'TwoHundred%'""",
            "which ports are access ports (metrics/topology.md)",
        ),
    ]


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        _compare(given.data.absolute(), given.rounds, Path(folder))
    return 0


def _compare(release: Path, rounds: int, scratch: Path) -> None:
    data = fabric_of(release, scratch)
    files = port_csvs(data)
    views = scratch / "views.sql"
    sheet = _sheet(next(data.rglob("*.xlsx")), scratch / "sheet.csv")
    listed = [str(path) for path in files]
    views.write_text(VIEWS.format(files=listed, columns=COLUMNS, sheet=f"'{sheet}'"), encoding="utf-8")
    size = sum(path.stat().st_size for path in files)
    print(machine())
    print(f"{release}: {len(files):,} port CSVs, {size / 1e6:,.0f} MB; medians of {rounds} rounds in turn\n")

    target = scratch / "target"
    build = [sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(target), "--quiet"]
    built = run([*build, "--threads", "2"], env={"XDG_CACHE_HOME": str(scratch / "cache")})
    database = str(target / "warehouse.duckdb")
    print(f"{'':<4}{'warehouse s':>12}{'CSV s':>8}{'ratio':>7}  rows")
    ours, bare, same = [], [], 0
    asked = questions(*_subjects(database))
    for number, question in enumerate(asked, 1):
        ask = [sys.executable, "-c", ASK]
        cases = {
            "ours": [*ask, database, "", question.ours, str(scratch / "ours.json")],
            "bare": [*ask, ":memory:", str(views), question.bare, str(scratch / "bare.json")],
        }
        runs = in_turn(cases, rounds)
        ours.append(medians(runs["ours"]))
        bare.append(medians(runs["bare"]))
        is_same = _rows(scratch / "ours.json") == _rows(scratch / "bare.json")
        same += is_same
        ratio = bare[-1].wall / ours[-1].wall
        print(f"{number:<4}{ours[-1].wall:>12.2f}{bare[-1].wall:>8.2f}{ratio:>7.1f}  {'same' if is_same else 'others'}")
    _conclude(built, ours, bare)
    print(f"\n{same} of {len(asked)} SELECTs over the CSV files give the rows of the warehouse.")
    for number, question in enumerate(asked, 1):
        print(f"{number:>2}  {question.text}\n    to know: {question.know}")


def _conclude(built: Cost, ours: Sequence[Cost], bare: Sequence[Cost]) -> None:
    """Print what the questions cost together, and when the build has paid for itself."""
    with_us, without = sum(cost.wall for cost in ours), sum(cost.wall for cost in bare)
    print(f"\nbuild {built.wall:.1f} s (CPU {built.cpu:.1f} s), once, with models parsed for the first time")
    print(f"ten answers: {with_us:.1f} s from the warehouse, {built.wall + with_us:.1f} s with the build;")
    print(f"             {without:.1f} s from the CSV files (CPU {sum(cost.cpu for cost in bare):.1f} s)")
    saved = (without - with_us) / len(ours)
    print(f"the build has paid for itself after {math.ceil(built.wall / saved):,} questions")


def _rows(answer: Path) -> object:
    return json.loads(answer.read_text(encoding="utf-8"))


def _subjects(database: str) -> tuple[str, str, str]:
    """Return the server, the leaf and the access port that the questions ask about: the busiest that a sheet names."""
    import duckdb

    found = (
        duckdb.connect(database, read_only=True)
        .execute(
            """SELECT n.server, n.switch, n.port FROM topology.nic_ports AS n
           JOIN metrics.port_hour AS h USING (cluster, switch, port)
           WHERE n.status = 'resolved' ORDER BY h.in_bytes + h.out_bytes DESC, n.server, n.hca LIMIT 1"""
        )
        .fetchone()
    )
    assert found is not None, "no NIC with counters"
    return found


def _sheet(workbook: Path, path: Path) -> Path:
    """Write the topology sheet of a workbook as a CSV file."""
    import csv

    import openpyxl

    rows = openpyxl.load_workbook(workbook, read_only=True)["cluster topology"].iter_rows(values_only=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    return path


if __name__ == "__main__":
    raise SystemExit(main())
