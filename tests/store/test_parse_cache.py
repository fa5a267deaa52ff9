"""Cache of parse, bind and inspection results, invalidated when an input changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tiny import Tiny
from warehouse.engine.duckdb import DuckDBEngine, DuckDBScratch
from warehouse.store import parse_cache as module
from warehouse.store.parse_cache import ParseCache

CACHE = "models.sqlite"

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
TOTAL = {"name": "VARCHAR", "speed": "BIGINT"}


@pytest.fixture
def asked(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Calls to the parser and the binder after a build."""
    found: list[str] = []
    parse, describe = DuckDBEngine.parse_all, DuckDBScratch.describe

    def parsing(engine: DuckDBEngine, selects: Sequence[str]) -> object:
        found.extend(f"parse {sql.strip()}" for sql in selects)
        return parse(engine, selects)

    def binding(scratch: DuckDBScratch, sql: str) -> object:
        found.append(f"bind {sql.strip()}")
        return describe(scratch, sql)

    monkeypatch.setattr(DuckDBEngine, "parse_all", parsing)
    monkeypatch.setattr(DuckDBScratch, "describe", binding)
    assert tiny.build().status == 0
    found.clear()
    return found


def test_only_changed_models_are_parsed_and_bound(tiny: Tiny, asked: list[str]) -> None:
    tiny.model("metrics.total", "SELECT 'all' AS name, max(speed) AS speed FROM staging.ports", TOTAL)
    assert tiny.made() == {"metrics.total"}
    assert {one for one in asked if "max(speed)" not in one} == set()
    assert {one.split()[0] for one in asked} == {"parse", "bind"}


def test_a_model_is_bound_again_when_an_upstream_contract_or_a_check_changes(tiny: Tiny, asked: list[str]) -> None:
    tiny.model("staging.ports", "SELECT port FROM reference.speeds", {"port": "VARCHAR"})
    said = tiny.build()
    assert said.status == 1
    assert "models/metrics/total.sql" in said.err
    tiny.model(
        "staging.ports",
        "SELECT port, CAST(speed AS VARCHAR) AS speed FROM reference.speeds",
        {"port": "VARCHAR", "speed": "VARCHAR"},
    )
    said = tiny.build()
    assert said.status == 1
    assert "models/metrics/total.sql" in said.err
    assert any(one.startswith("bind") and "sum(speed)" in one for one in asked)
    check = ("checks:", "  - speeed > 0")
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, *check)
    said = tiny.build()
    assert (said.status, "speeed" in said.err) == (1, True)


def test_a_changed_macro_is_expanded_again(tiny: Tiny) -> None:
    tiny.write("sql/macros/twice.sql", "{% macro twice(x) %}{{ x }} * 2{% endmacro %}")
    tiny.model("staging.ports", "SELECT port, {{ twice('speed') }} AS speed FROM reference.speeds", COLUMNS)
    assert tiny.build().status == 0
    assert tiny.ask("SELECT speed FROM metrics.total") == [(100,)]
    tiny.write("sql/macros/twice.sql", "{% macro twice(x) %}{{ x }} * 3{% endmacro %}")
    assert tiny.build().status == 0
    assert tiny.ask("SELECT speed FROM metrics.total") == [(150,)]


def test_a_new_engine_or_package_version_invalidates_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse_cache = ParseCache(tmp_path / CACHE, "duckdb 2")
    assert parse_cache.get(["a", 1], lambda: [1, None]) == [1, None]
    parse_cache.save()
    again = ParseCache(tmp_path / CACHE, "duckdb 2")
    assert again.contains(["a", 1])
    assert again.get(["a", 1], lambda: pytest.fail("it is known")) == [1, None]
    assert not ParseCache(tmp_path / CACHE, "duckdb 3").contains(["a", 1])
    assert not ParseCache(tmp_path / CACHE, "duckdb 2", paranoid=True).contains(["a", 1])
    monkeypatch.setattr(module, "environment_hash", module.environment_hash.__wrapped__)
    monkeypatch.setattr(module, "code_files", lambda _: {"a.py": [1, 2, 3, 4]})
    assert not ParseCache(tmp_path / CACHE, "duckdb 2").contains(["a", 1])


def test_unused_and_damaged_entries_count_as_missing(tmp_path: Path) -> None:
    for questions in (["a", "b"], ["b"]):
        parse_cache = ParseCache(tmp_path / CACHE)
        for question in questions:
            parse_cache.get(question, lambda: "right")
        parse_cache.save()
    assert ParseCache(tmp_path / CACHE).contains("b")
    assert not ParseCache(tmp_path / CACHE).contains("a")
    (tmp_path / CACHE).write_bytes((tmp_path / CACHE).read_bytes().replace(b"right", b"wrong"))
    assert not ParseCache(tmp_path / CACHE).contains("b")


def test_a_damaged_or_unwritable_cache_costs_only_time(tmp_path: Path) -> None:
    for content in (b"", b"{", b"\xff"):
        (tmp_path / CACHE).write_bytes(content)
        assert ParseCache(tmp_path / CACHE).get("a", lambda: 1) == 1
    parse_cache = ParseCache(tmp_path / CACHE / "below" / CACHE)
    assert parse_cache.get("a", lambda: 1) == 1
    parse_cache.save()
