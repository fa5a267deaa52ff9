"""Time and memory limits of queries; control characters do not reach a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command
from warehouse.base.errors import QueryError
from warehouse.reader.user_query import run_query

LONG = "SELECT len(range(400000000)) AS n"
"""One function call, during which the engine does not check for interrupts."""


def test_a_timeout_ends_a_query_that_cannot_be_interrupted(target: Path) -> None:
    with pytest.raises(QueryError, match=r"the query took longer than 0\.3 s"):
        run_query(target, f"SELECT {' + '.join(['len(range(400000000))'] * 9)}", timeout=0.3, stream=io.StringIO())


def test_memory_is_bounded(target: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with pytest.raises(QueryError, match="more memory than --memory 200MB allows"):
        run_query(target, LONG, memory="200MB", stream=io.StringIO())
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert largest == before or largest * 1024 <= 200e6 + 300e6


def test_ordinary_queries_run_within_limits(target: Path, command: Command) -> None:
    sql = (
        "SELECT count(*) AS n, sum(i) AS s FROM range(3000000) AS t (i) WHERE i % 7 < 3 GROUP BY i % 1000 ORDER BY ALL"
    )
    plain = command("sql", sql, "-t", target)
    bounded = command("sql", sql, "-t", target, "--timeout", "300", "--memory", "200MB")
    assert bounded.status == 0, bounded.err
    assert bounded.out == plain.out
    assert len(bounded.out.splitlines()) > 500


def test_an_error_in_the_child_has_the_same_message(target: Path, command: Command) -> None:
    plain = command("sql", "SELECT nothing FROM metrics.port_hour", "-t", target)
    bounded = command("sql", "SELECT nothing FROM metrics.port_hour", "-t", target, "--timeout", "300")
    assert (bounded.status, bounded.err) == (plain.status, plain.err)


def test_an_answer_that_cannot_be_written_is_one_sentence(target: Path) -> None:
    words = [sys.executable, "-m", "warehouse", "sql", "SELECT 1", "--timeout", "300", "-t", str(target)]
    with Path("/dev/full").open("w") as full:
        said = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (said.returncode, said.stderr) == (2, "error: No space left on device\n")


def test_a_partial_output_file_is_removed(target: Path, tmp_path: Path) -> None:
    sql = "SELECT 1 AS n UNION ALL " + LONG
    with pytest.raises(QueryError):
        run_query(target, sql, output=tmp_path / "n.csv", timeout=0.3)
    assert list(tmp_path.glob(".*")) + list(tmp_path.glob("n.csv")) == []


# terminals ----------------------------------------------------------------------------------------

ODD = "SELECT 'a' || chr(27) || '[2J' || chr(155) AS x"


@pytest.mark.parametrize("form", ["table", "lines", "csv", "json", "jsonl", "markdown"])
def test_control_characters_do_not_reach_a_terminal(target: Path, form: str) -> None:
    leader, follower = pty.openpty()
    try:
        with os.fdopen(follower, "w", encoding="utf-8") as terminal:
            assert run_query(target, ODD, format=form, stream=terminal) == 0
            terminal.flush()
            said = os.read(leader, 4096).decode()
    finally:
        os.close(leader)
    assert "[2J" in said
    said = re.sub(r"\x1b\[[0-9;]*m", "", said)  # bold headers
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", said)


def test_pipes_keep_the_bytes(target: Path) -> None:
    out = io.StringIO()
    run_query(target, ODD, format="csv", stream=out)
    assert out.getvalue() == "x\na\x1b[2J\x9b\n"


# listing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", ["SHOW TABLES", "show  tables;"])
def test_show_tables_lists_the_tables_of_all_schemas(target: Path, command: Command, sql: str) -> None:
    names = command("sql", sql, "-t", target).out.splitlines()
    assert names[0] == "name"
    assert {"meta.build", "metrics.port_hour"} <= set(names)
