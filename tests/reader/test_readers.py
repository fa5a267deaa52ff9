"""Readers in other processes keep working while builds publish repeatedly, whatever they do to the file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import duckdb
import pytest

from tests.conftest import PATIENCE, call
from tests.tiny import Tiny
from warehouse.runner import catalog

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
BUILDS = 2

READER = """
import json, sys, time, duckdb, warehouse
from pathlib import Path
target, way, stop = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
ask = ('SELECT (SELECT sum(speed) FROM staging.ports), (SELECT speed FROM metrics.total), '
       '(SELECT count(*) FROM staging.hour)')
held = duckdb.connect(str(target / 'warehouse.duckdb'), read_only=True) if way == 'held' else None
seen = []
print('ready', flush=True)
while not stop.exists() or not seen:
    if way == 'warehouse':
        with warehouse.open(target) as connection:
            seen += connection.execute(ask).fetchall()
    elif way == 'duckdb':
        with duckdb.connect(str(target / 'warehouse.duckdb'), read_only=True) as connection:
            seen += connection.execute(ask).fetchall()
    else:
        seen += held.execute(ask).fetchall()
    time.sleep(0.03)
print(json.dumps(seen))
"""
"""Query the same number in three ways until stopped: table, dependent table, and a view over parts."""

WRITER = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
if sys.argv[2] == 'early':
    connection.execute('CREATE TABLE mine AS SELECT 1 AS x')
print('ready', flush=True)
sys.stdin.readline()
if sys.argv[2] == 'late':
    connection.execute('CREATE TABLE mine AS SELECT 1 AS x')
print('written', flush=True)
sys.stdin.readline()
connection.close()
"""
"""Open the file for writing, as root can despite its mode, and write before or after the next build."""


@pytest.fixture
def published(tiny: Tiny) -> Tiny:
    """Return a project with a model by hour, built."""
    tiny.by_hour()
    assert tiny.build().status == 0
    return tiny


def build(tiny: Tiny, step: int, *options: str) -> None:
    """Publish a build whose numbers and hours belong to this step."""
    tiny.reference("speeds", COLUMNS, "eth0,10", f"eth1,{40 + step}")
    tiny.file(1 + step, "1,7,2,200,0,0.5")
    said = tiny.build(*options)
    assert said.status == 0, said.err


@contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a script and wait for its first word."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        yield running


@pytest.mark.parametrize("small", [0, catalog.SMALL_BYTES], ids=["views over parts", "copies in the catalog"])
def test_readers_always_see_exactly_one_build(published: Tiny, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "SMALL_BYTES", small)
    keep = () if small else ("--keep", "9")  # the views of a build need its parts
    build(published, 0, *keep)
    stop = published.base / "stop"
    ways = ("warehouse", "duckdb", "held")
    with ExitStack() as running:
        readers = [running.enter_context(process(READER, published.target, way, stop)) for way in ways]
        running.callback(stop.touch)  # also if a build fails
        for step in range(1, BUILDS + 1):
            build(published, step, *keep)
        stop.touch()
        for way, reader in zip(ways, readers, strict=True):
            said, _ = reader.communicate(timeout=PATIENCE)
            assert reader.returncode == 0
            seen = [tuple(row) for row in json.loads(said)]
            assert set(seen) <= {(50 + step, 50 + step, 2 + step) for step in range(BUILDS + 1)}, "never parts of two"
            assert seen == sorted(seen), "and none goes back"
            assert len(set(seen)) == 1 or way != "held", "who holds a build open goes on reading it"


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_writer_breaks_neither_builds_nor_later_readers(published: Tiny, when: str) -> None:
    file = published.target / "warehouse.duckdb"
    with process(WRITER, file, when) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        build(published, 1)
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "written\n"
        assert published.ask("SELECT speed FROM metrics.total") == [(51,)]
        build(published, 2)
        with duckdb.connect(str(file), read_only=True) as reader:
            assert reader.execute("SELECT speed FROM metrics.total").fetchall() == [(52,)]
        writer.stdin.write("\n")
    assert published.ask("SELECT speed FROM metrics.total") == [(52,)]
    with duckdb.connect(str(file), read_only=True) as reader:
        assert reader.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'mine'").fetchall() == [(0,)]
    build(published, 3)


def test_a_writer_killed_while_writing_has_no_lasting_effect(published: Tiny) -> None:
    file = published.target / "warehouse.duckdb"
    with process(WRITER, file, "early") as writer:
        writer.kill()
    assert file.with_name("warehouse.duckdb.wal").exists()
    said = published.build()
    assert (said.status, said.err.startswith("Up to date")) == (0, False), "the log is noticed"
    assert not file.with_name("warehouse.duckdb.wal").exists()
    assert published.ask("SELECT speed FROM metrics.total") == [(50,)]
    assert call("verify", "-t", published.target, cwd=published.base).status == 0
