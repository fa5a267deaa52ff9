"""Shell: commands, completion, and a session in a terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from tests.conftest import PATIENCE
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.reader import interrupt
from warehouse.reader.connection import connect
from warehouse.reader.named_queries import load_queries
from warehouse.reader.shell.completion import Catalog, complete, read_catalog
from warehouse.reader.shell.session import COMMANDS, Session

Ask = Callable[[str], str]


@pytest.fixture
def session(target: Path) -> Iterator[Session]:
    connection = connect(target, json_errors=True)
    queries = load_queries(Project.open(None).query_folders)
    yield Session(connection, target, queries, lambda name: f"path of {name}", io.StringIO(), width=80)
    connection.close()


@pytest.fixture
def ask(session: Session) -> Ask:
    def run(text: str) -> str:
        session.out = io.StringIO()
        session.run(text)
        return session.out.getvalue()

    return run


def test_sql_prints_a_table(ask: Ask) -> None:
    assert ask("SELECT switch, role FROM topology.switches WHERE role = 'spine';").split() == [
        "switch", "role", "─" * 14, "spine-1", "spine",
    ]  # fmt: skip


def test_several_statements_are_answered_one_after_another(ask: Ask) -> None:
    assert ask("SELECT 1 AS a; SELECT 2 AS b;").split() == ["a", "─", "1", "b", "─", "2"]


def test_statements_that_write_are_refused(ask: Ask) -> None:
    with pytest.raises(QueryError, match="COPY"):
        ask("COPY topology.ports TO 'x.csv';")


def test_an_error_has_a_hint_and_the_session_goes_on(ask: Ask) -> None:
    with pytest.raises(QueryError, match="no column swtch") as told:
        ask("SELECT swtch FROM topology.ports;")
    assert told.value.hint == "nearest: switch"
    assert ask("SELECT 1 AS a;").split()[-1] == "1"


def test_tables_and_columns_are_described(ask: Ask) -> None:
    assert "metrics.port_hour" in ask("\\d")
    assert "topology.ports" not in ask("\\d metrics")
    said = ask("\\d metrics.leaf_hour")
    assert "access_in_bytes BIGINT B meaning of access_in_bytes" in " ".join(said.split())
    assert "in_utilization <= 1" in ask("\\d metrics.port_hour")
    with pytest.raises(QueryError, match=r"no table metrics\.port_hours"):
        ask("\\d metrics.port_hours")


def test_commands_with_arguments(ask: Ask, session: Session, tmp_path: Path) -> None:
    assert ask("\\lineage metrics.port_hour.in_bytes") == "path of metrics.port_hour.in_bytes\n"
    assert "suspect-links" in ask("\\queries")
    assert all(name in ask("\\?") for name in COMMANDS)
    ask("\\format csv")
    assert ask("SELECT 1 AS a;") == "a\n1\n"
    ask("\\format table")
    ask("\\limit 2")
    assert "5 rows, 2 shown" in ask("SELECT port FROM topology.ports;")
    ask("\\timing")
    assert ask("SELECT 1 AS a;").rstrip().endswith(" s")
    ask("\\x")
    assert "a  1\nbc  NULL" in ask("SELECT 1 AS a, NULL AS bc;").replace("a   1", "a  1")
    out = tmp_path / "rows.parquet"
    assert ask(f"\\o {out}") == ""
    assert f"written to {out}" in ask("SELECT 7 AS a;")
    assert duckdb.connect().execute(f"SELECT a FROM '{out}'").fetchall() == [(7,)]
    ask("\\q")
    assert session.done


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("\\quit", "no command"),
        ("\\format pdf", "no format pdf"),
        ("\\format parquet", "Parquet cannot be shown"),
        ("\\limit many", "not a number of rows"),
        ("\\run", "needs a name"),
        ("\\run suspect-link", "no query suspect-link"),
        ("\\run nic --server", "has no value"),
        ("\\run nic server", "is no parameter"),
        ("\\run nic --servr GPU-1", "has no parameter servr"),
        ("\\run nic --server 'GPU", "No closing quotation"),
        ("\\lineage", "needs a name"),
        ("\\cite", "no answer to cite"),
        ("\\o rows.docx", "no format is known"),
    ],
)
def test_a_wrong_line_is_one_sentence(ask: Ask, line: str, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        ask(line)


def test_values_of_a_named_query_are_bound_not_pasted(ask: Ask) -> None:
    assert "mlx5_0" in ask("\\run nic --server GPU-1")
    assert "no rows" in ask('\\run nic --server "x\' OR 1=1 --"')


def test_a_query_can_be_cancelled_and_the_session_goes_on(
    ask: Ask, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(interrupt._Work, "start", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        ask("SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11;")
    monkeypatch.setattr(interrupt._Work, "start", start)
    assert ask("SELECT 1 AS a;").split()[-1] == "1"
    assert session.is_whole("SELECT 1;")
    assert not session.is_whole("SELECT 1")


# completion -------------------------------------------------------------------------------------


@pytest.fixture
def names(session: Session) -> Catalog:
    return read_catalog(session.connection, session.queries, COMMANDS)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT * FROM metr", "metrics"),
        ("SELECT * FROM metrics.leaf", "leaf_hour"),
        ("SELECT * FROM port_h", "metrics.port_hour"),
        ("SELECT h.uplink_o FROM metrics.leaf_hour AS h WHERE h.uplink_i", "uplink_in_bytes"),
        ("FROM metrics.port_hour p JOIN topology.ports t ON t.line", "line_rate_bps"),
        ("FROM topology.ports SELECT line_r", "line_rate_bps"),
        ("WITH busy AS (SELECT 1) SELECT * FROM bu", "busy"),
        ("SELECT quantile_co", "quantile_cont"),
        ("SELECT 1 LIMI", "LIMIT"),
        ("\\li", "\\lineage"),
        ("\\d metrics.port_m", "metrics.port_minute"),
        ("\\lineage metrics.port_hour.in_u", "in_utilization"),
        ("\\run suspect", "suspect-links"),
        ("\\run nic --se", "--server"),
    ],
)
def test_the_likeliest_name_comes_first(names: Catalog, text: str, first: str) -> None:
    found = list(complete(text, names))
    assert found
    assert found[0].text == first


def test_columns_have_types_and_empty_input_has_no_candidates(names: Catalog) -> None:
    [found] = list(complete("SELECT p.line_r FROM topology.ports p WHERE p.line_r", names))
    assert (found.kind, found.about, found.start) == ("column", "BIGINT", 6)
    assert not list(complete("SELECT ", names))


# a terminal -------------------------------------------------------------------------------------


def test_a_session_in_a_terminal(target: Path, tmp_path: Path) -> None:
    """Type a statement over two lines, complete with Tab, get an answer; Ctrl-C clears a line, Ctrl-D leaves."""
    pytest.importorskip("prompt_toolkit")
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "COLUMNS": "80",
        "LINES": "30",
    }
    command = [sys.executable, "-m", "warehouse", "sql", "-t", str(target)]
    run = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True)
    os.close(theirs)
    said = ""

    def until(text: str) -> None:
        nonlocal said
        ends = time.monotonic() + 60
        while text not in said:
            assert time.monotonic() < ends, said
            if select.select([ours], [], [], 0.2)[0]:
                said += os.read(ours, 65536).decode(errors="replace")
        said = said.partition(text)[2]

    try:
        until("warehouse>")
        os.write(ours, b"SELECT 'was ' || 'found' AS it, count(*) AS n\r")
        os.write(ours, b"FROM topology.swit\t")
        until("ches")  # added by Tab
        os.write(ours, b";\r")
        until("was found  3")
        until("warehouse>")
        os.write(ours, b"SELECT nothing\x03")
        until("warehouse>")
        until("warehouse>")
        os.write(ours, b"SELECT nme FROM topology.ports;\r")
        until("no column nme")
        until("warehouse>")
        os.write(ours, b"\x04")
        assert run.wait(30) == 0
    finally:
        run.kill()
        run.wait()
        os.close(ours)
    assert "topology.switches" in (tmp_path / "warehouse" / "history").read_text(encoding="utf-8")


def test_input_from_a_pipe(target: Path) -> None:
    command = [sys.executable, "-m", "warehouse", "sql", "-t", str(target)]
    text = "SELECT 1 AS a\n;\n\\format csv\nSELECT 2 AS b"
    run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0
    assert run.stdout.split() == ["a", "─", "1", "b", "2"]
    run = subprocess.run(command, input="SELECT x;", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("error: ")


def test_exact_values_can_be_switched_on(ask: Ask) -> None:
    asked = "SELECT in_bytes FROM metrics.leaf_hour LIMIT 1;"
    assert "12.5 kB" in ask(asked)
    ask("\\raw")
    said = ask(asked)
    assert "12500" in said
    assert "kB" not in said
