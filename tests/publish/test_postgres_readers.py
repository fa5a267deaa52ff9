"""Concurrent readers and publishers: readers see whole publishes at each isolation level and never wait."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.publish.postgres_server import ask, put
from warehouse.base.errors import QueryError
from warehouse.publish.postgres.publisher import publish

psycopg = pytest.importorskip("psycopg")
SIX = [f"six_{letter}" for letter in "abcdef"]
NAMES = [f"metrics.{name}" for name in SIX]
JOINED = f"SELECT {', '.join(f'{letter}.n::text' for letter in 'abcdef')} FROM {NAMES[0]} a " + " ".join(
    f"JOIN {name} {letter} USING (k)" for letter, name in zip("bcdef", NAMES[1:], strict=True)
)
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
READERS = 6
FIRST, LAST = 3, 6
"""States of a test: the swap to the fifth one changes a column type."""
RESTLESS = 1
"""Readers without pauses. More would starve the publisher's thread."""
ROWS = 5


def change(target: Path, n: int) -> None:
    """Write one state into six tables; every fifth state changes a column type.

    Readers cast the column to text, since a prepared statement may not change its result types.
    """
    value = {0: f"'{n}'", 1: str(n), 2: f"{n}::DOUBLE"}[n // 5 % 3]
    put(target, ["k"], **dict.fromkeys(SIX, f"SELECT range AS k, {value} AS n FROM range({ROWS})"))


def state(rows: list[tuple[Any, ...]]) -> int:
    """Return the state shared by all rows of a join."""
    [found] = {int(float(value)) for row in rows for value in row}
    assert len(rows) == ROWS
    return found


class Reader(threading.Thread):
    """A reader that repeats joins over six tables, in transactions of one isolation level."""

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        super().__init__()
        self.url, self.number, self.stop = url, number, stop
        self.level = LEVELS[number % len(LEVELS)]
        self.reads, self.failures, self.newest = 0, list[str](), -1

    def run(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as reader:
            reader.execute(f"SET default_transaction_isolation = '{self.level}'")
            while not self.stop.is_set() and not self.failures:
                try:
                    self.look(reader)
                except (psycopg.Error, AssertionError, ValueError) as error:
                    self.failures.append(f"{self.level}: {error!r}")
                if self.number >= RESTLESS:
                    time.sleep(random.uniform(0, 0.03))

    def look(self, reader: Any) -> None:
        with reader.transaction():
            if self.number % 2:
                reader.execute("SELECT 1")  # a transaction's snapshot starts with its first query
            found = [state(reader.execute(JOINED).fetchall())]
            names = random.sample(NAMES, 2)  # at the higher levels all queries see one publish
            found += [state(reader.execute(f"SELECT n::text FROM {name}").fetchall()) for name in names]
            self.reads += 1
        assert found == sorted(found), f"went back: {found}"
        assert self.level == "READ COMMITTED" or len(set(found)) == 1, f"several: {found}"
        assert found[0] >= self.newest, f"{found} after {self.newest}"
        self.newest = found[-1]


@contextmanager
def readers(url: str, number: int) -> Iterator[list[Reader]]:
    """Run readers during the block; none may fail."""
    stop, usual = threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # gives the publisher's thread its share among the readers
    threads = [Reader(url, n, stop) for n in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(usual)
    assert [failure for thread in threads for failure in thread.failures] == []
    assert all(thread.reads for thread in threads)


def test_readers_of_six_tables_see_whole_publishes_at_every_level(own_target: Path, url: str) -> None:
    change(own_target, FIRST)
    publish(own_target, url, tables=NAMES)
    with readers(url, READERS) as threads:
        for n in range(FIRST + 1, LAST + 1):
            change(own_target, n)
            publish(own_target, url, tables=NAMES, lock_timeout=300)
            if any(thread.failures for thread in threads):
                break
    assert state(ask(url, JOINED)) == LAST


def test_a_killed_publisher_leaves_one_whole_publish_to_readers(
    own_target: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kill -9` at random statements: the process kills itself before the n-th statement."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    change(own_target, FIRST)
    publish(own_target, url, tables=NAMES)
    draw, before, ends = random.Random(7), FIRST, set[str]()
    with readers(url, 2):
        for n in range(FIRST + 1, LAST + 1):
            change(own_target, n)
            command = [sys.executable, "-c", KILL, str(own_target), url, str(draw.randint(1, 130)), *NAMES]
            ended = subprocess.run(command, env=os.environ.copy(), capture_output=True, text=True, check=False)
            assert ended.returncode in (0, -9), ended.stderr
            now = state(ask(url, JOINED))
            assert now in ((n,) if ended.returncode == 0 else (before, n))
            ends.add("whole" if ended.returncode == 0 else "new" if now == n else "old")
            before = now
    assert "old" in ends
    change(own_target, LAST)
    for left in tmp_path.iterdir():
        os.utime(left, (0, 0))  # a minute later, the next command removes them
    publish(own_target, url, tables=NAMES, lock_timeout=300)
    assert list(tmp_path.iterdir()) == []
    assert state(ask(url, JOINED)) == LAST


KILL = """
import os, signal, sys
import psycopg
from pathlib import Path
from warehouse.publish.postgres.publisher import publish

target, url, left, *tables = sys.argv[1:]
left, usual = int(left), psycopg.Connection.execute

def execute(self, *words, **more):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return usual(self, *words, **more)

psycopg.Connection.execute = execute
publish(Path(target), url, tables=tables, lock_timeout=300)
"""
"""Publishes, and kills itself before a given statement."""


def test_a_publisher_waits_for_readers_and_names_them_when_it_gives_up(own_target: Path, url: str, admin: str) -> None:
    change(own_target, 0)
    publish(own_target, url, tables=NAMES)
    change(own_target, 1)
    with psycopg.connect(admin, application_name="a dashboard") as reader:
        assert state(reader.execute(JOINED).fetchall()) == 0
        with pytest.raises(QueryError, match=r"gave up after 0\.1 s") as gave_up:
            publish(own_target, url, tables=NAMES, lock_timeout=0.1)
        said = gave_up.value.message
        pid = reader.info.backend_pid
        assert f"process {pid} (a dashboard, user postgres) holds metrics.six_a since at least 2" in said
        assert "--lock-timeout" in str(gave_up.value.hint)
        assert state(reader.execute(JOINED).fetchall()) == 0
        with psycopg.connect(url) as other:
            other.execute("SET statement_timeout = '10s'")
            assert state(other.execute(JOINED).fetchall()) == 0, "nobody waits behind the publisher"
    again = publish(own_target, url, tables=NAMES)
    assert [table.full_name for table in again.sent] == [], "what was sent is there"
    assert state(ask(url, JOINED)) == 1


def test_timeouts_and_deadlocks_of_the_publisher_are_retried(own_target: Path, url: str, admin: str) -> None:
    """Locks without NOWAIT on the catalog, and a lock on a view: the publisher retries."""
    change(own_target, 0)
    publish(own_target, url, tables=NAMES)
    change(own_target, 1)
    with psycopg.connect(admin) as holder:
        holder.execute(f"LOCK TABLE {NAMES[3]} IN ACCESS EXCLUSIVE MODE")
        ended: list[object] = []

        def work() -> None:
            ended.append(publish(own_target, url, tables=NAMES, lock_timeout=300))

        thread = threading.Thread(target=work)
        thread.start()
        while not ask(url, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):
            pass
        holder.rollback()
    thread.join()
    assert len(ended) == 1
    assert state(ask(url, JOINED)) == 1


def test_a_transaction_keeps_its_publish_through_many_others(own_target: Path, url: str) -> None:
    two = NAMES[:2]
    joined = f"SELECT a.n::text, b.n::text FROM {two[0]} a JOIN {two[1]} b USING (k)"
    change(own_target, FIRST)
    publish(own_target, url, tables=two)
    put(own_target, ["k"], beside="SELECT 1 AS k")
    publish(own_target, url, tables=["metrics.beside"])
    with psycopg.connect(url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        for n in range(FIRST + 1, LAST + 1):
            change(own_target, n)
            publish(own_target, url, tables=two)
        assert state(reader.execute(joined).fetchall()) == FIRST
        put(own_target, ["k"], later="SELECT 1 AS k")
        publish(own_target, url, tables=["metrics.later"])
        with pytest.raises(psycopg.errors.SerializationFailure, match=r"metrics\.later was published after"):
            reader.execute("TABLE metrics.later")
    assert state(ask(url, joined)) == LAST
    for n in range(LAST + 1, LAST + 3):
        change(own_target, n)
        publish(own_target, url, tables=two)
    kept = ask(url, "SELECT relation, count(*) FROM warehouse_data.versions JOIN warehouse_data.layouts USING (layout) "
               "WHERE relation ~ 'six' GROUP BY 1 ORDER BY 1")  # fmt: skip
    assert kept == [(name, 2) for name in two], "the older ones are gone, now that nobody can read them"
