from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from tests.conftest import PATIENCE
from warehouse.base.errors import QueryError
from warehouse.reader.named_queries import load_queries
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from collections.abc import Callable

QUERIES = load_queries([Path(__file__).parents[2] / "sql" / "queries"])
ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(target: Path, sql: str | None = None, stream: io.StringIO | None = None, **options: Any) -> str:
    sink = stream or io.StringIO()
    assert run_query(target, sql, stream=sink, **options) == 0
    return sink.getvalue()


def said(target: Path, sql: str | None = None, **options: Any) -> str:
    with pytest.raises(QueryError) as error:
        run_query(target, sql, stream=io.StringIO(), **options)
    return str(error.value)


def test_a_pipe_gets_csv_and_a_terminal_a_table(target: Path) -> None:
    sql = "SELECT switch FROM topology.switches LIMIT 1"
    assert run(target, sql) == "switch\nLeaf-1\n"
    assert run(target, sql, Terminal()) == "\x1b[1mswitch\x1b[0m\n──────\nLeaf-1\n"


def test_an_empty_answer_is_reported_on_stderr(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = "no rows: none meets the conditions of the query\n"
    for form in ("table", "lines", "csv", "json", "jsonl", "markdown"):
        assert "no rows" not in run(target, "SELECT 1 AS a WHERE false", format=form)
        assert capsys.readouterr().err == empty
    for name in ("a.parquet", "a.csv"):
        run(target, "SELECT 1 AS a WHERE false", output=tmp_path / name)
        assert capsys.readouterr().err == empty
    run(target, "SELECT 1 AS a")
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_forty_rows(target: Path) -> None:
    sql = "SELECT i FROM range(100) t(i)"
    assert run(target, sql, Terminal()).endswith("39\n100 rows, 40 shown\n")
    assert run(target, sql, Terminal(), limit=3).endswith("2\n100 rows, 3 shown\n")
    assert len(run(target, sql, Terminal(), limit=0).splitlines()) == 102
    assert len(run(target, sql).splitlines()) == 101
    assert len(run(target, sql, limit=5).splitlines()) == 6
    assert len(run(target, sql, format="table").splitlines()) == 102


def test_files_and_named_queries_run(target: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.sql"
    path.write_text("-- a file\nSELECT 1 AS a;\n", encoding="utf-8")
    assert run(target, file=path) == "a\n1\n"
    named = run(target, query=QUERIES["unresolved-nics"], parameters={"server": "GPU-2"})
    assert named.splitlines()[1] == "GPU-2,mlx5_0,ens24np0,10.2.0.3,no_topology_row,demo"
    assert "nowhere.sql cannot be read" in said(target, file=tmp_path / "nowhere.sql")


def test_the_limit_of_a_named_query_is_its_own(target: Path) -> None:
    assert len(run(target, query=QUERIES["busiest-ports"], limit=2, format="csv").splitlines()) == 3
    table = run(target, query=QUERIES["busiest-ports"], limit=2, format="table")
    assert "shown" not in table


def test_parameters_of_free_sql_are_text(target: Path) -> None:
    sql = "SELECT port FROM metrics.port_hour WHERE switch = $leaf AND in_bytes > $least"
    assert run(target, sql, parameters={"leaf": "Leaf-1", "least": "2000"}).splitlines()[1:] == [
        "TwoHundredGigE1/0/1:2"
    ]
    assert said(target, sql, parameters={"leaf": "x"}) == "no value is given for $least\ngive --param name=value"
    assert said(target, sql, parameters={"laef": "x"}) == "the query has no $laef\nnearest: leaf"


def test_bytes_that_are_not_utf8_are_an_error(target: Path) -> None:
    assert said(target, "SELECT '\udcff'") == "the query is not UTF-8 text"
    assert said(target, "SELECT $a", parameters={"a": "\udcff"}) == "the value of a is not UTF-8 text"


def test_statements_follow_each_other_in_a_table(target: Path) -> None:
    assert run(target, "SELECT 1 AS a; SELECT 2 AS b", format="table") == "a\n─\n1\n\nb\n─\n2\n"
    assert said(target, "SELECT 1; SELECT 2").startswith("2 statements, but a file or pipe takes the rows of one")
    assert said(target, " -- nothing\n").startswith("there is no query to run")


NEAR = "\nnearest: "
PORTS = "no column swtch in topology.ports"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select swtch from topology.ports", f"{PORTS}, at 1:8{NEAR}switch"),
        ("select 'é',\n  swtch from topology.ports", f"{PORTS}, at 2:3{NEAR}switch"),
        ("select 1; select swtch from topology.ports", f"{PORTS}, at 1:18{NEAR}switch"),
        ("explain select swtch from topology.ports", f"{PORTS}, at 1:16{NEAR}switch"),
        ("select h.swtch from metrics.port_hour h", f"no column swtch in h, at 1:8{NEAR}switch"),
        ("select t.swtch from topology.ports t", f"no column swtch in t, at 1:8{NEAR}switch"),
        ("select zzzzzz from topology.ports", "no column zzzzzz in topology.ports, at 1:8"),
        ("from metrics.prot_hour", f"no table metrics.prot_hour, at 1:6{NEAR}metrics.port_hour"),
        ("from port_hour", "no table port_hour, at 1:6\nwrite metrics.port_hour: a table is named with its schema"),
        ("from metric.port_hour", f"no table metric.port_hour, at 1:6{NEAR}metrics.port_hour"),
        ("from zzzzzzzz", "no table zzzzzzzz, at 1:6"),
        ("selec 1", 'syntax error at or near "selec", at 1:1'),
        ("select 1 +", 'syntax error at or near "+", at 1:10'),
        ("select 'abc", "unterminated string literal, at 1:8"),
        ("select abss(1)", f"no function abss, at 1:8{NEAR}abs"),
        ("select 1::intt", f"no type intt, at 1:11{NEAR}int"),
        ("select 'x'::integer", "Could not convert string 'x' to INT32"),
        ("select error('no luck')", "no luck"),
    ],
)
def test_errors_have_position_and_nearest_name(target: Path, sql: str, message: str) -> None:
    assert said(target, sql, format="table") == message
    if "; " not in sql:
        assert said(target, sql, format="json") == message


def test_files_outside_the_target_are_an_error(target: Path) -> None:
    assert said(target, "from read_csv('/etc/passwd')") == (
        "/etc/passwd is outside the target and the data folders\n"
        "-d DIR, in Python data=[DIR], lets files below DIR be read"
    )


def test_errors_in_a_file_name_the_file(target: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.sql"
    path.write_text("-- why\nSELECT\n    swtch\nFROM metrics.port_hour", encoding="utf-8")
    assert said(target, file=path) == f"{path}:3:5: no column swtch in metrics.port_hour\nnearest: switch"
    path.write_text("SELECT 1;\n COPY (SELECT 1) TO 'x'", encoding="utf-8")
    assert said(target, file=path, format="table").startswith(f"{path}:2:2: COPY is refused")


def test_a_moved_target_is_reported(own_target: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    own_target.rename(moved)
    message = said(moved, "FROM metrics.port_hour")
    assert message.endswith("was the target moved? `warehouse relocate` writes its paths anew")
    assert "metrics.port_hour.parquet" in message
    assert run(moved, "SELECT count(*) AS n FROM topology.ports") == "n\n5\n"


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "md", "txt", "parquet"])
def test_an_output_file_is_written_atomically(target: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    path.write_text("old", encoding="utf-8")
    assert run(target, "SELECT switch, role FROM topology.switches ORDER BY 1", output=path) == ""
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if suffix == "parquet":
        assert duckdb.execute(f"SELECT count(*), max(switch) FROM '{path}'").fetchall() == [(3, "spine-1")]
    else:
        assert "Leaf-1" in path.read_text(encoding="utf-8")


def test_parquet_keeps_every_digit(target: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    big = 10**38 - 1
    sql = f"""SELECT {big}::HUGEINT AS h, [{big}::HUGEINT] AS l, INTERVAL '1 month 1.000001 second' AS i,
        TIMESTAMP_NS '2024-01-01 00:00:00.123456789' AS t, 1 AS a, 2 AS a, $x AS x"""
    run(target, sql, output=path, parameters={"x": "é"})
    names = [name for name, *_ in duckdb.execute(f"FROM '{path}'").description]
    assert names == ["h", "l", "i", "t", "a", "a_1", "x"]
    row = duckdb.execute(f"SELECT h, l, i, t::VARCHAR, x FROM '{path}'").fetchone()
    assert row == (
        Decimal(big),
        [Decimal(big)],
        "1 month 00:00:01.000001",
        "2024-01-01 00:00:00.123456789",
        "é",
    )
    assert "could not cast value" in said(target, f"SELECT {10**38}::HUGEINT AS h", output=path).lower()
    run(target, "SELECT i FROM range(10) t(i)", output=path, limit=3)
    assert duckdb.execute(f"SELECT count(*) FROM '{path}'").fetchone() == (3,)


def test_a_failed_query_keeps_the_old_file(target: Path, tmp_path: Path) -> None:
    for name in ("out.csv", "out.parquet"):
        path = tmp_path / name
        path.write_text("old", encoding="utf-8")
        said(target, "SELECT CASE WHEN i = 5000 THEN error('no') ELSE i END FROM range(9000) t(i)", output=path)
        assert path.read_text(encoding="utf-8") == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.csv", "out.parquet"]


def test_invalid_outputs_are_refused(own_target: Path, tmp_path: Path, snapshot: Callable[[Path], object]) -> None:
    before = snapshot(own_target)
    inside = own_target / "parts" / "metrics.port_hour.parquet"
    (tmp_path / "link").symlink_to(own_target)
    assert "lies in the target" in said(own_target, "SELECT 1", output=inside)
    assert "lies in the target" in said(own_target, "SELECT 1", output=tmp_path / "link" / "x.csv")
    assert "lies in the target" in said(own_target, "SELECT 1", output=own_target / "x.csv")
    assert "is a folder" in said(own_target, "SELECT 1", output=tmp_path)
    assert "its folder does not exist" in said(own_target, "SELECT 1", output=tmp_path / "no" / "x.csv")
    assert "no format is known for x.foo" in said(own_target, "SELECT 1", output=tmp_path / "x.foo")
    assert said(own_target, "SELECT 1", format="parquet") == "Parquet is written to a file\n-o FILE.parquet"
    assert said(own_target, "SELECT 1", limit=-1).startswith("the limit is -1\n")
    assert said(own_target, "SELECT 1", format="cvs") == "no format cvs\nnearest: csv"
    assert "no table for Parquet" in said(own_target, "EXPLAIN SELECT 1", output=tmp_path / "x.parquet")
    assert snapshot(own_target) == before


def test_a_device_is_written_directly(target: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        run(target, "SELECT 1 AS a", output=pipe, format="csv")
        assert reader.communicate(timeout=PATIENCE)[0] == b"a\n1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_json_is_one_array(target: Path) -> None:
    told = json.loads(run(target, "SELECT port, flags, in_bytes FROM metrics.port_hour", format="json"))
    assert told[2] == {"port": "TwoHundredGigE1/0/1:2", "flags": ["gap", "wrapped"], "in_bytes": 3000}


CODE = "import sys; from warehouse.reader.user_query import run_query; from pathlib import Path; "


BEGUN = (
    "from warehouse.reader.interrupt import _Work as W; s = W.start; W.start = lambda w: (s(w), Path({!r}).touch()); "
)
"""Statements that create a file when the query starts."""


def start(target: Path, sql: str, *, begun: Path | None = None, **options: Any) -> subprocess.Popen[bytes]:
    code = f"{CODE}{BEGUN.format(str(begun)) if begun else ''}sys.exit(run_query(Path({str(target)!r}), {sql!r}))"
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, **options)


def test_a_closed_pipe_is_no_error(target: Path) -> None:
    with start(target, "SELECT i, repeat('x', 100) FROM range(1000000) t(i)", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(hash(i)) FROM range(1000000000000) t(i)",
        "SELECT i FROM range(1000000000000) t(i)",
    ],
)
def test_ctrl_c_ends_a_query(target: Path, sql: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with start(target, sql, begun=begun, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(120) == 130
        assert process.stderr.read() == b""
