"""Questions to a terminal, a pipe or a file, within limits; errors with place and nearest name; explanations."""

from __future__ import annotations

import io
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.cells import cell_len

from tests.conftest import PATIENCE, Command, answered
from tests.environments import ROOT
from warehouse.base.errors import QueryError
from warehouse.base.text import error_text
from warehouse.reader import user_query
from warehouse.reader.connection import connect, interruptible
from warehouse.reader.table_info import reasons_of

ENDLESS = "SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def error_of(target: Path, sql: str | None = None, **options: Any) -> QueryError:
    with pytest.raises(QueryError) as raised:
        answered(target, sql, **options)
    return raised.value


def said(target: Path, sql: str | None = None, **options: Any) -> str:
    return str(error_of(target, sql, **options))


def test_a_pipe_gets_csv_and_a_terminal_a_table_of_forty_rows(target: Path) -> None:
    sql = "SELECT i FROM range(100) t(i)"
    assert answered(target, "SELECT 'a' AS x", Terminal()) == "\x1b[1mx\x1b[0m\n─\na\n"
    assert answered(target, sql, Terminal()).endswith("39\n100 rows, 40 shown\n")
    assert answered(target, sql, Terminal(), limit=3).endswith("2\n100 rows, 3 shown\n")
    assert len(answered(target, sql, Terminal(), limit=0).splitlines()) == 102
    assert len(answered(target, sql).splitlines()) == 101
    assert len(answered(target, sql, limit=5).splitlines()) == 6
    assert len(answered(target, sql, format="table").splitlines()) == 102


def test_an_empty_answer_is_reported_on_stderr(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for asked in ({"format": "table"}, {"format": "json"}, {"output": tmp_path / "a.parquet"}):
        assert "no rows" not in answered(target, "SELECT 1 AS a WHERE false", **asked)
        assert capsys.readouterr().err == "no rows: none meets the conditions of the query\n"


def test_parameters_of_free_sql_are_text(target: Path) -> None:
    sql = "SELECT port FROM metrics.port_hour WHERE switch = $leaf AND in_bytes > $least"
    found = answered(target, sql, parameters={"leaf": "Leaf-1", "least": "2000"})
    assert found.splitlines()[1:] == ["TwoHundredGigE1/0/1:2"]
    assert said(target, sql, parameters={"leaf": "x"}).startswith("no value is given for $least\n--param least=VALUE")
    assert said(target, sql, parameters={"laef": "x"}) == "the query has no $laef\nnearest: leaf"
    assert said(target, "SELECT $a", parameters={"a": "\udcff"}) == "the value of a is not UTF-8 text"


# files and pipes ----------------------------------------------------------------------------------


def test_an_output_file_is_written_atomically(target: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "out.csv", tmp_path / "out.parquet"):
        path.write_text("old", encoding="utf-8")
        said(target, "SELECT CASE WHEN i = 5000 THEN error('no') ELSE i END FROM range(9000) t(i)", output=path)
        assert path.read_text(encoding="utf-8") == "old"
        assert answered(target, "SELECT switch FROM topology.switches ORDER BY 1", output=path) == ""
        assert duckdb.execute(f"SELECT count(*), max(switch) FROM '{path}'").fetchall() == [(3, "spine-1")]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.csv", "out.parquet"]


def test_invalid_outputs_are_refused(own_target: Path, tmp_path: Path, snapshot: Callable[[Path], object]) -> None:
    before = snapshot(own_target)
    (tmp_path / "link").symlink_to(own_target)
    for inside in (own_target / "parts" / "metrics.port_hour.parquet", own_target / "x.csv", tmp_path / "link/x.csv"):
        assert "lies in the target" in said(own_target, "SELECT 1", output=inside)
    asked: tuple[tuple[dict[str, Any], str], ...] = (
        ({"output": tmp_path}, "is a folder"),
        ({"output": tmp_path / "no" / "x.csv"}, "its folder does not exist"),
        ({"output": tmp_path / "x.foo"}, "no format is known for x.foo"),
        ({"output": tmp_path / "x.parquet"}, "no table for Parquet"),
        ({"format": "parquet"}, "Parquet is written to a file\n-o FILE.parquet"),
        ({"format": "cvs"}, "no format cvs\n"),
        ({"limit": -1}, "the limit is -1\n"),
    )
    for options, message in asked:
        assert message in said(own_target, "EXPLAIN SELECT 1", **options)
    assert snapshot(own_target) == before


def test_control_characters_do_not_reach_a_terminal(target: Path) -> None:
    odd = "\x1b[31mred\x1b]0;title\x07 \r\b \x9b2J \u202eright-to-left \u2028 tab\t[bold]x[/bold] :smile:"
    sql = f"SELECT '{odd}' AS \"\x1b[2J\""
    for form in ("table", "csv", "json", "agent"):
        shown = re.sub(r"\x1b\[[01]?m", "", answered(target, sql, Terminal(), format=form))  # bold headers
        assert all(letter.isprintable() or letter == "\n" for letter in shown), form
        assert "[31mred" in shown
        assert "[bold]x[/bold] :smile:" in shown
    assert odd in answered(target, sql, format="csv"), "pipes keep the bytes"


# limits -------------------------------------------------------------------------------------------


def test_a_timeout_ends_a_query_that_cannot_be_interrupted(target: Path, tmp_path: Path) -> None:
    deaf = f"SELECT 1 AS n UNION ALL SELECT {' + '.join(['len(range(400000000))'] * 9)}"
    assert said(target, deaf, output=tmp_path / "n.csv", timeout=0.3).startswith("the query took longer than 0.3 s")
    assert list(tmp_path.iterdir()) == []


def test_memory_is_bounded(target: Path) -> None:
    """One function call, during which the engine does not check for interrupts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    deaf = "SELECT len(range(400000000)) AS n"
    assert said(target, deaf, memory="200MB").startswith("the query needs more memory than --memory 200MB allows")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert largest == before or largest * 1024 <= 200e6 + 300e6


def test_answers_and_errors_within_limits_are_those_without(target: Path, command: Command) -> None:
    for sql in (
        "SELECT sum(i) AS s FROM range(3000000) t(i) GROUP BY i % 1000",
        "FROM metrics.leaf_hour WHERE switch = 'Leaf-99'",
        "SELECT x FROM metrics.port_hour",
    ):
        sql += " ORDER BY ALL"
        plain = command("sql", sql, "-t", target)
        assert command("sql", sql, "-t", target, "--timeout", "300", "--memory", "200MB") == plain


# Ctrl-C and closed pipes --------------------------------------------------------------------------

CODE = """
import sys, threading
from pathlib import Path
from warehouse.cli import main
from warehouse.reader import user_query
target, begun, *words = sys.argv[1:]
sys.argv[1:] = ["sql", "-t", target, *words]
start, threads = threading.Thread.start, []
def begin(work):
    start(work)
    threads.append(work)
    if len(threads) == 1 + ("--cite" in words):
        Path(begun).touch()
threading.Thread.start = begin
user_query._citation = lambda connection, *_: connection.execute("SELECT sum(hash(i)) FROM range(1000000000000) t(i)")
main()
"""
"""Run a query; create a file when it starts, or when its citation does, which never ends."""


@pytest.mark.parametrize(
    "words",
    [["SELECT sum(hash(i)) FROM range(1000000000000) t(i)"], ["FROM range(1000000000000)"], ["SELECT 1", "--cite"]],
)
def test_ctrl_c_ends_a_query_and_rows_are_streamed(target: Path, words: list[str], tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    command = [sys.executable, "-c", CODE, str(target), str(begun), *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read() in (b"", b"interrupted\n")


def test_a_connection_is_usable_after_a_timeout_or_ctrl_c() -> None:
    begun = threading.Event()

    def interrupt_it() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    with duckdb.connect() as engine:

        def work() -> None:
            begun.set()
            engine.execute(ENDLESS)

        with pytest.raises(TimeoutError):
            interruptible(engine, lambda: engine.execute(ENDLESS), timeout=0.1)
        threading.Thread(target=interrupt_it).start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(engine, work)
        assert engine.execute("SELECT 1").fetchall() == [(1,)]


WIDE = ", ".join(f"'{'漢字' * 4}' AS c{number}" for number in range(20))
NEAR = "\nnearest: "


ERRORS = [
    ("select swtch from topology.ports", f"no column swtch, at 1:8{NEAR}switch"),
    ("select 'é',\n  swtch from topology.ports", f"no column swtch, at 2:3{NEAR}switch"),
    ("explain select swtch from topology.ports", f"no column swtch, at 1:16{NEAR}switch"),
    ("from metrics.prot_hour", f"no table metrics.prot_hour, at 1:6{NEAR}metrics.port_hour"),
    ("from port_hour", "no table port_hour, at 1:6\nwrite metrics.port_hour: a table is named with its schema"),
    ('FROM "Nope" AS n', 'no table "Nope", at 1:6'),
    ("PRAGMA table_info('/x')", "no table /x"),
    ("selec 1", 'syntax error at or near "selec", at 1:1'),
    ("select 'abc", "unterminated string literal, at 1:8"),
    ("select abss(1)", f"no function abss, at 1:8{NEAR}abs"),
    ("select 1::intt", f"no type intt, at 1:11{NEAR}int"),
    ("select error('no luck')", "no luck"),
    (
        "from read_csv('/etc/passwd')",
        "/etc/passwd is outside the target and the data folders\n-d DIR, in Python data=[DIR], lets files",
    ),
    ("SELECT '\udcff'", "the query is not UTF-8 text"),
    (" -- nothing\n", "no query is given"),
    ("SELECT 1; SELECT 2", "2 statements, but an answer is of one"),
]


def test_errors_have_position_and_nearest_name(target: Path) -> None:
    for sql, message in ERRORS:
        for form in ("table", "json"):
            assert str(error_of(target, sql, format=form)).startswith(message)


def test_errors_in_a_file_name_the_file(target: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.sql"
    path.write_text("-- why\nSELECT\n    swtch\nFROM metrics.port_hour", encoding="utf-8")
    assert str(error_of(target, file=path)) == f"{path}:3:5: no column swtch\nnearest: switch"
    path.write_text("SELECT 1;\n COPY (SELECT 1) TO 'x'", encoding="utf-8")
    assert str(error_of(target, file=path, format="table")).startswith(f"{path}:2:2: COPY is refused")
    assert "nowhere.sql cannot be read" in str(error_of(target, file=tmp_path / "nowhere.sql"))


def test_a_moved_target_is_reported(own_target: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    own_target.rename(moved)
    message = str(error_of(moved, "FROM metrics.port_hour"))
    assert message.endswith("was the target moved? `warehouse relocate` writes its paths anew")
    assert "metrics.port_hour.parquet" in message
    assert answered(moved, "SELECT count(*) AS n FROM topology.ports")


def test_carets_are_below_the_wrong_word(target: Path) -> None:
    for sql, word in {
        "SELECT 1,\n  '漢字 é\x1b[31m', swtch\nFROM metrics.leaf_hour": "swtch",
        f"SELECT {WIDE}, swtch, {WIDE} FROM metrics.leaf_hour": "swtch",
        "SELECT switch FROM\n metrics.leaf_hours": "metrics.leaf_hours",
    }.items():
        error = error_of(target, sql, format="table")
        for width in (40, 80):
            lines = error_text(error, width).splitlines()
            assert max(map(cell_len, lines)) <= width
            carets = next(line for line in lines if line.strip("^ ") == "")
            line = lines[lines.index(carets) - 1]
            assert carets == " " * cell_len(line[: line.index(word)]) + "^" * cell_len(word)
            assert "\x1b" not in error_text(error, width)


# explanations below an answer ---------------------------------------------------------------------


def test_the_clock_of_a_query_stops_before_explanations(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def clocked(*arguments: Any, **named: Any) -> Any:
        answers = interruptible(*arguments, **named)
        order.append("clock stopped")
        return answers

    monkeypatch.setattr(user_query, "interruptible", clocked)
    monkeypatch.setattr(user_query, "explain", lambda *_, **__: order.append("explained"))
    assert answered(target, "SELECT 1 AS one WHERE false") == "one\n"
    assert order[:2] == ["clock stopped", "explained"]


def test_a_table_that_is_cut_says_how_many_rows_there_are(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(rows: int) -> str:
        return answered(target, f"FROM range({rows})", format="table", limit=2).splitlines()[-1]

    assert said(1_245) == "1,245 rows, 2 shown"
    assert said(10**12) == "more than 100,000 rows, 2 shown"

    def too_slow(*_: object) -> str:
        raise duckdb.InterruptException

    monkeypatch.setattr(user_query, "total", too_slow)
    assert said(1_245) == "more than 2 rows, 2 shown"


def test_a_reason_that_takes_too_long_is_left_out(
    target: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(connection: duckdb.DuckDBPyConnection, *_: object) -> str:
        return str(connection.execute("SELECT sum(range) FROM range(10000000000000)").fetchall())

    monkeypatch.setattr(user_query, "no_rows", slow)
    monkeypatch.setattr(user_query, "EXPLANATION_SECONDS", 0.1)
    assert answered(target, "SELECT 1 AS one WHERE false") == "one\n"
    assert capsys.readouterr().err == ""


def test_an_empty_answer_has_a_reason(command: Command, built: Path) -> None:
    reasons = {
        ("-q", "nic", "--server", "GPU-999"): "no server GPU-999; near: GPU-",
        ("-q", "hottest-uplinks", "--leaf", "leaf_1"): "no switch leaf_1; near: Leaf-1",
        ("-q", "busiest-servers", "--hour", "2020-01-01"): "the hour 2020-01-01 is not loaded; loaded",
        ("FROM metrics.jobs WHERE trace = 'borg'",): "no trace borg; there are acme, helios, itp, pai and 1 more",
        ("FROM metrics.leaf_hour WHERE switch = 'Leaf-99'", "--timeout", "300"): "no switch Leaf-99; near: Leaf-",
        ("FROM metrics.leaf_hour WHERE in_bytes < 0",): "none meets the conditions of the query",
    }
    for words, reason in reasons.items():
        said = command("sql", *words, "--format", "csv", "-t", built)
        assert (said.status, said.err.startswith(f"no rows: {reason}")) == (0, True), said.err


def test_an_empty_table_names_the_missing_files(command: Command, two_leaves: Path) -> None:
    files = "AcmeTrace, Alibaba GPU v2023, Helios, ITP, PAI or Philly in the data folders"
    assert command("sql", "-q", "jobs", "-t", two_leaves).err == (
        f"no rows: metrics.job_totals is empty: no files of {files} (warehouse doctor -t {two_leaves})\n"
    )
    shown = " ".join(command("show", "metrics.flow_locality_hour", "-t", two_leaves).out.split())
    assert "metrics.flow_locality_hour is empty: no files of flow" in shown
    with closing(connect(two_leaves)) as connection:
        assert reasons_of(connection, ["metrics.port_hour", "no.such"]) == {}
