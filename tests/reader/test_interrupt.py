"""Ctrl-C ends a query at once, at any time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing

import duckdb
import pytest

from warehouse.reader import interrupt
from warehouse.reader.interrupt import interruptible

ENDLESS = "SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(duckdb.connect()) as opened:
        yield opened


def test_results_are_returned_and_errors_raised(connection: duckdb.DuckDBPyConnection) -> None:
    assert interruptible(connection, lambda: 7) == 7
    with pytest.raises(duckdb.ParserException):
        interruptible(connection, lambda: connection.execute("SELEC 1"))


def test_a_query_ends_at_its_timeout(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(TimeoutError):
        interruptible(connection, lambda: connection.execute(ENDLESS), timeout=0.1)
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_ctrl_c_ends_a_query(connection: duckdb.DuckDBPyConnection) -> None:
    begun = threading.Event()

    def interrupt_it() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    def work() -> None:
        begun.set()
        connection.execute(ENDLESS)

    threading.Thread(target=interrupt_it).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(connection, work)
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_ctrl_c_while_the_thread_starts(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def start_and_be_interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupt._Work, "start", start_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        interruptible(connection, lambda: connection.execute(ENDLESS))
    assert connection.execute("SELECT 1").fetchall() == [(1,)]
