"""Moved and copied targets: small tables are in the catalog, large ones are not read from a wrong place."""

from __future__ import annotations

import shutil
import warnings

import duckdb
import pytest

import warehouse
from tests.conftest import call
from tests.tiny import HOURS, Tiny
from warehouse.base.errors import QueryError
from warehouse.history.builds import builds, rollback
from warehouse.runner import catalog
from warehouse.store.manifest import last_manifest
from warehouse.store.signatures import stamp

HOUR = {"hour_utc": "TIMESTAMP the hour", "n": "BIGINT a number", "t": "VARCHAR a text"}
ASKED = "SELECT hour_utc::VARCHAR, n::VARCHAR, t FROM metrics.hour ORDER BY ALL"


@pytest.fixture
def partitioned(tiny: Tiny) -> Tiny:
    """A table of two hours, not built yet."""
    tiny.model(
        "metrics.hour",
        "SELECT hour_utc, range AS n, md5(range::VARCHAR) AS t FROM raw.files CROSS JOIN range(2000) "
        "WHERE hour_utc IS NOT NULL",
        HOUR,
        "grain: [hour_utc, n]",
        "partition: hour_utc",
    )
    tiny.model("metrics.last", "SELECT max(n) AS n FROM metrics.hour", {"n": "BIGINT"}, "materialize: view")
    return tiny


@pytest.fixture
def outgrown(partitioned: Tiny, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """A build in which all tables but the one of two hours are small."""
    monkeypatch.setattr(catalog, "SMALL_BYTES", 20_000)
    assert partitioned.build().status == 0
    return partitioned


def kinds(tiny: Tiny) -> dict[str, str]:
    return {str(row[0]): str(row[1]) for row in tiny.ask("SELECT model, kind FROM meta.models")}


def test_a_target_with_small_tables_only_works_where_it_is_moved_to_and_large_tables_answer_alike(
    partitioned: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert partitioned.build().status == 0
    assert kinds(partitioned)["metrics.hour"] == "table"
    answer, types = partitioned.ask(ASKED), partitioned.ask("DESCRIBE metrics.hour")
    assert len(answer) == 2000 * len(HOURS)
    moved = partitioned.target.rename(partitioned.base / "moved")
    with duckdb.connect(str(moved / "warehouse.duckdb"), read_only=True) as plain:
        assert plain.execute(ASKED).fetchall() == answer
    with pytest.warns(UserWarning, match="was published as .*target: `warehouse relocate -t"):
        warehouse.open(moved).close()
    for words in (("sql", "FROM metrics.last"), ("doctor", "-d", partitioned.data)):
        said = call(*words, "-t", moved, cwd=partitioned.base)
        assert said.status == 0
        assert "warehouse relocate" in said.out + said.err
    moved.rename(partitioned.target)
    monkeypatch.setattr(catalog, "SMALL_BYTES", 20_000)
    assert partitioned.build("--paranoid").status == 0
    found = kinds(partitioned)
    assert (found["metrics.hour"], found["metrics.total"]) == ("partitioned", "table")
    assert (partitioned.ask(ASKED), partitioned.ask("DESCRIBE metrics.hour")) == (answer, types)


def test_a_target_that_was_moved_or_copied_is_one_sentence_until_all_its_builds_are_relocated(outgrown: Tiny) -> None:
    first, answer = builds(outgrown.target)[0].build, outgrown.ask(ASKED)
    outgrown.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10")
    assert outgrown.build().status == 0
    for n, place in enumerate(("a copy", "it's [here]")):
        there = outgrown.base / place
        shutil.copytree(outgrown.target, there) if n == 0 else outgrown.target.rename(there)
        with pytest.raises(QueryError, match=r"was moved or copied: it still reads metrics\.hour in") as refused:
            warehouse.open(there)
        assert "warehouse relocate -t" in str(refused.value.hint)
        assert refused.value.__cause__ is None
        for words in (("sql", "FROM metrics.total"), ("ls",), ("show", "metrics.hour"), ("verify", "--quick")):
            said = call(*words, "-t", there, cwd=outgrown.base)
            assert said.status != 0
            assert "was moved or copied" in " ".join((said.out + said.err).split()), words
        assert "warehouse relocate" in call("doctor", "-d", outgrown.data, "-t", there, cwd=outgrown.base).out
        if n == 0:  # a part that no table of the catalog reads
            turned = max((there / "parts" / "metrics.total").rglob("*.parquet"), key=lambda part: part.stat().st_mtime)
            turned.write_bytes(turned.read_bytes()[::-1])
        said = call("relocate", "-t", there, cwd=outgrown.base)
        assert (said.status, said.out.startswith("Moved  2 builds of ")) == (0, True), said
        manifest = last_manifest(there)
        assert manifest is not None
        signed = [one["stamp"] == stamp((there / one["path"]).stat()) for one in manifest.parts]
        assert signed.count(False) == (n == 0), "what was copied whole is not hashed by each query"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with warehouse.open(there) as opened:
                assert opened.execute(ASKED).fetchall() == answer
        assert call("verify", "--quick", "-t", there, cwd=outgrown.base).status == 1 - n
        assert call("relocate", "-t", there, cwd=outgrown.base).out.startswith("Nothing to do")
    shutil.rmtree(outgrown.base / "a copy")
    rollback(there, first)
    with duckdb.connect(str(there / "warehouse.duckdb"), read_only=True) as plain:
        assert plain.execute("SELECT build_id FROM meta.build").fetchall() == [(first,)]
        assert plain.execute(ASKED).fetchall() == answer
        rows = plain.execute("SELECT comment FROM duckdb_columns() WHERE table_name = 'hour' AND comment IS NOT NULL")
        assert len(rows.fetchall()) == 3
    assert (there / "warehouse.duckdb").read_bytes()[12:20] == (67).to_bytes(8, "little"), "storage version of v1.4.0"


def test_a_folder_that_would_be_taken_for_a_column_and_a_missing_part_are_refused(outgrown: Tiny) -> None:
    moved = outgrown.base / "n=7" / "moved"
    moved.parent.mkdir()
    outgrown.target.rename(moved)
    before = (moved / "warehouse.duckdb").read_bytes()
    said = call("relocate", "-t", moved, cwd=outgrown.base)
    assert (said.status, "has `=` in its path" in said.err_text) == (2, True)
    gone = next((moved / "parts" / "metrics.hour").rglob("*.parquet"))
    gone.unlink()
    said = call("relocate", "-t", moved, cwd=outgrown.base)
    assert (said.status, gone.name in said.err_text) == (2, True)
    assert (moved / "warehouse.duckdb").read_bytes() == before
    outgrown.target = moved
    assert outgrown.build().status == 0
    assert outgrown.ask("SELECT count(DISTINCT n) FROM metrics.hour") == [(2000,)]
