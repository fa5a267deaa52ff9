"""Numbers of named queries: against Python, findings, made tables, a release in part, and a reader of workloads."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

import warehouse
from tests.conftest import Command, call
from tests.environments import environment
from warehouse.project.project import Project
from warehouse.reader.named_queries import load_queries

FOLDERS = Project.open()
QUERIES = {
    f"{kind}/{name}": query.sql
    for kind, folders in (("queries", FOLDERS.query_folders), ("report", FOLDERS.report_folders))
    for name, query in load_queries(folders).items()
}


def ask(target: Path, sql: str) -> list[Any]:
    with warehouse.open(target) as connection:
        return connection.execute(sql).fetchall()


def test_lost_polls_stand_beside_the_traffic_at_that_time(built: Path) -> None:
    """Missing polls, and the utilization of the seconds that lost a poll beside that of the other seconds."""
    hour = "hour_utc = '2024-05-23 16:00:00'"
    found = warehouse.query("lost-polls", target=built, hour="2024-05-23 16:00:00", limit=1)
    first = dict(zip(found.columns, found.fetchall()[0], strict=True))
    assert [(first["missing_polls"],)] == ask(built, f"SELECT max(missing_polls) FROM metrics.port_hour WHERE {hour}")
    place = f"switch = '{first['switch']}' AND {hour}"
    [(key, rate)] = ask(
        built, f"SELECT file_key, line_rate_bps FROM staging.port_files WHERE {place} AND port = '{first['port']}'"
    )
    stored = set(ask(built, f"SELECT offset_ms FROM staging.port_readings WHERE file_key = {key} AND {hour}"))
    polls = ask(built, f"SELECT offset_ms FROM staging.switch_polls WHERE {place}")
    lost = {at // 1000 for (at,) in set(polls) - stored}
    by_loss: dict[bool, list[int]] = defaultdict(list)
    for second, moved in ask(
        built,
        "SELECT second, greatest(in_bytes, out_bytes) FROM staging.port_seconds "
        f"WHERE file_key = {key} AND {hour} AND longest_ms <= 10000",
    ):
        by_loss[second in lost].append(moved)
    for name, is_lost in (("at_lost", True), ("at_other", False)):
        values = by_loss[is_lost]
        assert first[name] == pytest.approx(sum(values) / len(values) * 8 / rate, abs=1e-4), name


def test_the_bytes_of_a_group_are_those_at_loaded_leaves(two_leaves: Path, command: Command) -> None:
    """Two of the four leaves that the servers of a job are plugged into are loaded."""
    found = json.loads(command("findings", "--json", "-t", two_leaves).out)
    said = {one["kind"]: one["sentence"] for one in found}
    assert " at their NICs on loaded leaves (2 of 4 per server), " in said["job_trades_most"]
    assert said["fullest_link"].startswith("Of the links observed (2 of 9 leaves), the fullest is ")


@pytest.mark.real
def test_two_servers_whose_ports_no_sheet_tells_apart_have_a_name_together(
    real_output: tuple[Path, str], tmp_path: Path
) -> None:
    said = call("sql", "-q", "nic", "--server", "GPU-123/124", "-t", real_output[0], cwd=tmp_path)
    assert "TwoHundredGigE1/0/2:2" in said.out


# rankings use values that are not rounded ---------------------------------------------------------


def rounded(tree: exp.Expr) -> set[tuple[str, str]]:
    """Return the columns that a query rounds, each with its CTE; '' for the outermost SELECT."""
    found = [(one.find_ancestor(exp.CTE), one.alias) for one in tree.find_all(exp.Alias) if one.find(exp.Round)]
    return {(cte.alias if cte else "", name) for cte, name in found}


def ranked_by(tree: exp.Expr) -> Iterator[tuple[str, str]]:
    """Yield the columns in every ORDER BY, including windows, each with all columns that it may refer to."""
    for order in tree.find_all(exp.Ordered):
        column, select, cte = order.this, order.find_ancestor(exp.Select), order.find_ancestor(exp.CTE)
        if isinstance(column, exp.Column) and select:
            tables = {one.alias_or_name: one.name for one in select.find_all(exp.Table)}
            of = [tables[column.table]] if column.table else [cte.alias if cte else "", *tables.values()]
            yield from ((one, column.name) for one in of)


def test_no_query_ranks_by_a_rounded_column() -> None:
    wrong = "WITH a AS (SELECT round(load) AS load FROM t) SELECT rank() OVER (ORDER BY b.load) FROM a AS b"
    for name, sql in {**QUERIES, "wrong": wrong}.items():
        tree = sqlglot.parse_one(sql, "duckdb") if "round" in sql else exp.Select()
        assert bool(rounded(tree) & set(ranked_by(tree))) == (name == "wrong"), name


def test_queries_of_capacity_weigh_by_time() -> None:
    """Node a: 8 GPUs, 6 held for 100 s, 2 for 300 s, then unknown; b is held in full. Free GPUs of both: 2 and 6."""
    with duckdb.connect() as made:
        made.execute("""
            CREATE SCHEMA metrics;
            CREATE TABLE metrics.node_allocation AS SELECT 't' AS trace, 'c' AS cluster, 'A100' AS gpu_model,
                8 AS node_gpus, * FROM (VALUES ('a', 0, 100, 6.0, 0), ('a', 100, 400, 2.0, 3), ('a', 400, NULL, 0.0, 0),
                ('b', 0, 400, 8.0, 0)) AS t(node, begin_seconds, end_seconds, gpus, sharing_jobs);
            CREATE TABLE metrics.idle_gpus AS SELECT 't' AS trace, 'c' AS cluster, 'A100' AS gpu_model, 16 AS gpus,
                * FROM (VALUES (0, 100, 2.0, 2, 2, 0.0, 0.0), (100, 400, 6.0, 3, 5, 1.0, 3.0),
                (400, NULL, 8.0, 8, 8, 0.0, 0.0)) AS t(begin_seconds, end_seconds, free_gpus, whole_gpus_min,
                whole_gpus_max, fragment_gpus_min, fragment_gpus_max);
        """)
        given = {"trace": None, "cluster": "c"}
        nodes = made.execute(QUERIES["queries/node-allocation"], {**given, "limit": 2}).fetchall()
        free = made.execute(QUERIES["queries/idle-gpus"], given).fetchall()
    assert nodes == [
        ("t", "c", "a", "A100", 8, 0.1, 5.0, 37.5, 6, 3),
        ("t", "c", "b", "A100", 8, 0.1, 0.0, 100.0, 8, 0),
    ]
    assert free == [("t", "c", "A100", 16, 5.0, 2.75, 4.25, 0.75, 2.25, 2, 0.1)]


FIELDS = 18
ACCASIM = """
import collections, collections.abc, json, sys
collections.Mapping = collections.abc.Mapping  # AccaSim 1.1.3 uses a name that moved in Python 3.10
from accasim.utils.reader_class import DefaultWorkloadParser
names = "job_number queued_time wait_time duration total_processors status user_id executable_number".split()
parser = DefaultWorkloadParser()
jobs = [parser.parse_line(line.rstrip("\\n")) for line in sys.stdin]
print(json.dumps([[int(job[name]) for name in names] for job in jobs if job]))
"""


def workload(built: Path, command: Command, *which: str) -> str:
    """Return what the command prints for a trace, or one of its clusters."""
    said = command("sql", "-q", "swf", *which, "--format", "text", "-t", built)
    assert (said.status, said.err) == (0, "")
    return said.out


def read_swf(text: str) -> tuple[dict[str, list[str]], list[list[int]]]:
    """Read the comments and jobs of a workload by the definition of the format; raise on violations."""
    comments: dict[str, list[str]] = defaultdict(list)
    assert text.isascii()
    lines = text.splitlines()
    jobs = [list(map(int, line.split())) for line in lines if not line.startswith(";")]
    for line in lines[: -len(jobs)]:  # header comments come first
        key, _, value = line.removeprefix(";").strip().partition(": ")
        comments[key].append(value)
    assert {len(job) for job in jobs} == {FIELDS}
    assert min(map(min, jobs)) >= -1
    assert [job[0] for job in jobs] == list(range(1, len(jobs) + 1)), "jobs are numbered from 1 on"
    submitted = [job[1] for job in jobs]
    assert submitted == sorted(submitted), "in the order of submission"
    assert submitted[0] == 0
    assert all(job[4] == job[7] > 0 and job[10] in (-1, 0, 1, 2, 3, 4, 5) for job in jobs)
    assert comments["Version"] == ["2.2"]
    assert comments["MaxJobs"] == comments["MaxRecords"] == [str(len(jobs))]
    return comments, jobs


def test_a_simulator_that_knows_the_format_finds_the_same_jobs(built: Path, command: Command) -> None:
    text = workload(built, command, "--trace", "acme", "--job-cluster", "seren")
    python = environment("accasim", "accasim==1.1.3\n")  # its reader needs none of AccaSim's simulation packages
    run = [str(python), "-I", "-c", ACCASIM]
    said = subprocess.run(run, input=text, text=True, check=True, stdout=subprocess.PIPE)
    status = "CASE outcome WHEN 'completed' THEN 1 WHEN 'failed' THEN 0 WHEN 'cancelled' THEN 5 ELSE -1 END"
    expected = ask(
        built,
        f"""
            SELECT row_number() OVER (ORDER BY submit_utc, job_id),
                epoch(submit_utc)::BIGINT - min(epoch(submit_utc)::BIGINT) OVER (),
                coalesce(queue_seconds, -1), coalesce(run_seconds, -1), num_gpus, {status},
                CASE WHEN user_id IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY user_id) END,
                CASE WHEN job_type IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY job_type) END
            FROM metrics.jobs WHERE trace = 'acme' AND cluster = 'seren' AND num_gpus > 0 ORDER BY 1
        """,
    )
    assert len(expected) > 20
    assert [tuple(job) for job in json.loads(said.stdout)] == expected


def test_a_trace_has_its_clusters_as_partitions_and_its_size_if_known(built: Path, command: Command) -> None:
    comments, jobs = read_swf(workload(built, command, "--trace", "acme"))
    assert comments["Partition"] == ["1 kalos", "2 seren"]
    assert comments["MaxProcs"] == [str(2288 + 2416)]
    assert any(note.endswith("jobs without GPUs are left out") for note in comments["Note"])
    assert "executable 2 is the type Eval" in comments["Note"]
    counts = ask(
        built,
        "SELECT count(*) FROM metrics.jobs WHERE trace = 'acme' AND num_gpus > 0 GROUP BY cluster ORDER BY cluster",
    )
    assert [(sum(job[15] == part for job in jobs),) for part in (1, 2)] == counts
    assert "MaxProcs" not in read_swf(workload(built, command, "--trace", "itp", "--job-cluster", "cluster01"))[0]
