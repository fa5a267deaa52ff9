"""Time to answers: ten questions to a built warehouse, and to DuckDB over views of the same CSV files.

    python -m bench.answers DIR                a release, such as data/real/zhejiang
    python -m bench.answers DIR --rounds 5

Each question is asked by a process of its own, as a person asks it: it opens DuckDB, runs one SELECT and fetches all
rows; the two sides in turn. The CSV side gets the topology sheet as a CSV file, made before the clock starts. Its
SELECTs are what one writes at first; `rows` says if they give the rows of the warehouse. README lists what one has to
know to get them. The last lines say after how many questions the build has paid for itself.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tempfile
from pathlib import Path

import duckdb
import openpyxl

from bench.ingest import fabric_of, port_csvs
from bench.measure import Case, building, in_turn, machine, medians, run
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
CREATE VIEW sheet AS
SELECT regexp_extract(sysname, 'GPU-[0-9]+$') AS server, nicname AS nic,
    regexp_extract(switchname, 'Leaf-[0-9]+') AS switch, accessport AS port
FROM read_csv({sheet}, header=true, all_varchar=true);
"""
BUSIEST = """
SELECT n.server, n.switch, n.port FROM topology.nic_ports AS n
JOIN metrics.port_hour AS h USING (cluster, switch, port)
WHERE n.status = 'resolved' ORDER BY h.in_bytes + h.out_bytes DESC, n.server, n.hca LIMIT 1
"""
"""The server, leaf and access port that the questions ask about."""


UPLINK = """TRY_CAST(regexp_extract(port, 'FourHundredGigE1/0/([0-9]+)', 1) AS INTEGER) BETWEEN 33 AND 62
    AND switch LIKE 'Leaf%'"""
QUESTIONS = {
    "Which leaf ports does {server} use, and what went over each?": (
        """SELECT n.nic, n.switch, n.port, h.in_bytes, h.out_bytes FROM topology.nic_ports AS n
        JOIN metrics.port_hour AS h USING (cluster, switch, port) WHERE n.server = '{server}' ORDER BY ALL""",
        """SELECT nic, switch, port, sum(in_bytes), sum(out_bytes) FROM counters JOIN sheet USING (switch, port)
        WHERE server = '{server}' GROUP BY ALL ORDER BY ALL""",
    ),
    "The ten ports that moved most": (
        """SELECT switch, port, in_bytes + out_bytes AS bytes FROM metrics.port_hour
        ORDER BY bytes DESC, switch, port LIMIT 10""",
        """SELECT switch, port, sum(in_bytes + out_bytes) AS bytes FROM counters GROUP BY ALL
        ORDER BY bytes DESC, switch, port LIMIT 10""",
    ),
    "Bytes of {leaf} {port} by minute": (
        """SELECT minute_utc, in_bytes, out_bytes FROM metrics.port_minute
        WHERE switch = '{leaf}' AND port = '{port}' ORDER BY ALL""",
        """SELECT date_trunc('minute', time_utc) AS minute_utc, sum(in_bytes), sum(out_bytes) FROM counters
        WHERE switch = '{leaf}' AND port = '{port}' GROUP BY ALL ORDER BY ALL""",
    ),
    "How balanced are the uplinks of each leaf?": (
        """SELECT switch, round(cov, 6) FROM metrics.uplink_balance
        WHERE direction = 'out' AND switch LIKE 'Leaf%' ORDER BY ALL""",
        """SELECT switch, round(stddev_pop(bytes) / avg(bytes), 6) FROM (
        SELECT switch, port, sum(out_bytes) AS bytes FROM counters WHERE {uplink} GROUP BY ALL)
        GROUP BY ALL ORDER BY ALL""",
    ),
    "How balanced were the uplinks of {leaf} in each minute?": (
        """SELECT minute_utc, round(cov, 6) FROM metrics.uplink_balance_minute
        WHERE direction = 'out' AND switch = '{leaf}' ORDER BY ALL""",
        """SELECT minute_utc, round(stddev_pop(bytes) / avg(bytes), 6) FROM (
        SELECT date_trunc('minute', time_utc) AS minute_utc, port, sum(out_bytes) AS bytes FROM counters
        WHERE switch = '{leaf}' AND {uplink} GROUP BY ALL) GROUP BY ALL ORDER BY ALL""",
    ),
    "The five fullest seconds of any port": (
        """SELECT second_utc, switch, port, greatest(in_bytes, out_bytes) AS bytes FROM metrics.port_second
        ORDER BY bytes DESC, switch, port LIMIT 5""",
        """SELECT second_utc, switch, port, greatest(i, o) AS bytes FROM (
        SELECT date_trunc('second', time_utc) AS second_utc, switch, port,
        sum(in_bytes) AS i, sum(out_bytes) AS o FROM counters GROUP BY ALL)
        ORDER BY bytes DESC, switch, port LIMIT 5""",
    ),
    "The ten servers that moved most": (
        """SELECT server, rx_bytes + tx_bytes AS bytes FROM metrics.server_hour
        ORDER BY bytes DESC, server LIMIT 10""",
        """SELECT server, sum(in_bytes + out_bytes) AS bytes FROM counters JOIN sheet USING (switch, port)
        GROUP BY ALL ORDER BY bytes DESC, server LIMIT 10""",
    ),
    "Bytes that each spine sent to the leaves": (
        """SELECT u.spine, sum(h.in_bytes) AS bytes FROM metrics.port_hour AS h
        JOIN topology.uplinks AS u ON (u.cluster, u.leaf, u.leaf_port) = (h.cluster, h.switch, h.port)
        WHERE h.switch LIKE 'Leaf%' GROUP BY ALL ORDER BY ALL""",
        """SELECT 'spine-' || ((regexp_extract(port, '[0-9]+$')::INTEGER - 33) // 3 + 1) AS spine, sum(in_bytes)
        FROM counters WHERE {uplink} GROUP BY ALL ORDER BY ALL""",
    ),
    "The ten ports that lost most polls": (
        """SELECT switch, port, missing_polls FROM metrics.port_hour
        ORDER BY missing_polls DESC, switch, port LIMIT 10""",
        """SELECT c.switch, c.port, any_value(s.polls) - count(DISTINCT time_utc) AS missing FROM counters AS c
        JOIN (SELECT switch, count(DISTINCT time_utc) AS polls FROM counters GROUP BY ALL) AS s USING (switch)
        GROUP BY ALL ORDER BY missing DESC, c.switch, port LIMIT 10""",
    ),
    "Bytes of access ports that no sheet names": (
        """SELECT sum(h.in_bytes + h.out_bytes) FROM metrics.port_hour AS h
        JOIN topology.ports AS p USING (cluster, switch, port)
        WHERE p.port_class = 'access' AND p.source <> 'workbook'""",
        """SELECT sum(in_bytes + out_bytes) FROM counters ANTI JOIN sheet USING (switch, port)
        WHERE port LIKE 'TwoHundred%'""",
    ),
}
"""SQL for the warehouse and for the CSV files, by question."""


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        _compare(given.data.absolute(), given.rounds, Path(folder))


def _compare(release: Path, rounds: int, scratch: Path) -> None:
    data = fabric_of(release, scratch)
    files, views, sheet = port_csvs(data), scratch / "views.sql", scratch / "sheet.csv"
    book = openpyxl.load_workbook(next(data.rglob("*.xlsx")), read_only=True)
    with sheet.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(book["cluster topology"].iter_rows(values_only=True))
    views.write_text(VIEWS.format(files=list(map(str, files)), columns=COLUMNS, sheet=f"'{sheet}'"), encoding="utf-8")
    size = sum(path.stat().st_size for path in files)
    print(machine())
    print(f"{release}: {len(files):,} port CSVs, {size / 1e6:,.0f} MB; medians of {rounds} rounds in turn\n")
    build = building(data, scratch / "target", "--threads", "2")
    built = run(Case(build, env={"XDG_CACHE_HOME": str(scratch / "cache")})).wall
    database = str(scratch / "target" / "warehouse.duckdb")
    with duckdb.connect(database, read_only=True) as connection:
        server, leaf, port = connection.execute(BUSIEST).fetchall()[0]
    print(f"{'':<4}{'warehouse s':>12}{'CSV s':>8}{'ratio':>7}  rows")
    one = other = 0.0
    for number, (asked, both) in enumerate(QUESTIONS.items(), 1):
        text, of_ours, of_bare = (
            each.format(server=server, leaf=leaf, port=port, uplink=UPLINK) for each in (asked, *both)
        )
        # each question pays for the start of Python and DuckDB: people ask one at a time
        ask, ours, bare = [sys.executable, "-c", ASK], scratch / "ours.json", scratch / "bare.json"
        cases = {
            "ours": Case([*ask, database, "", of_ours, str(ours)]),
            "bare": Case([*ask, ":memory:", str(views), of_bare, str(bare)]),
        }
        with_us, without = (medians(runs).wall for runs in in_turn(cases, rounds).values())
        one, other = one + with_us, other + without
        rows = "same  " if json.loads(ours.read_bytes()) == json.loads(bare.read_bytes()) else "others"
        print(f"{number:<4}{with_us:>12.2f}{without:>8.2f}{without / with_us:>7.1f}  {rows}  {text}")
    print(f"\nbuild {built:.1f} s, once, with models parsed for the first time")
    said = f"{one:.1f} s from the warehouse, {built + one:.1f} s with the build"
    print(f"ten answers: {said}; {other:.1f} s from CSV files")
    print(f"the build has paid for itself after {math.ceil(built * 10 / (other - one)):,} questions")


if __name__ == "__main__":
    main()
