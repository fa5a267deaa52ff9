"""Cache of parse and bind results, invalidated when an input changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tiny import Tiny
from warehouse.engine.duckdb import DuckDBEngine, DuckDBScratch
from warehouse.store import state as module
from warehouse.store.state import ParseCache

CACHE = "models.sqlite"
COLUMNS, TOTAL = {"port": "VARCHAR", "speed": "BIGINT"}, {"name": "VARCHAR", "speed": "BIGINT"}
PORTS = "SELECT port, speed FROM reference.speeds"


def test_only_changed_models_are_parsed_and_bound(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    parse, describe = DuckDBEngine.parse_all, DuckDBScratch.describe

    def parsing(engine: DuckDBEngine, selects: Sequence[str]) -> object:
        asked.extend(f"parse {sql}" for sql in selects)
        return parse(engine, selects)

    def binding(scratch: DuckDBScratch, sql: str) -> object:
        asked.append(f"bind {sql}")
        return describe(scratch, sql)

    assert tiny.build().status == 0
    monkeypatch.setattr(DuckDBEngine, "parse_all", parsing)
    monkeypatch.setattr(DuckDBScratch, "describe", binding)
    tiny.model("metrics.total", "SELECT 'all' AS name, max(speed) AS speed FROM staging.ports", TOTAL)
    assert tiny.made() == {"metrics.total"}
    assert {one.split()[0] for one in asked if "max(speed)" in one} == {"parse", "bind"}
    assert all("max(speed)" in one for one in asked)


def test_a_model_is_bound_again_when_an_upstream_contract_or_a_check_or_a_macro_changes(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    text = {"port": "VARCHAR", "speed": "VARCHAR"}
    tiny.model("staging.ports", "SELECT port, CAST(speed AS VARCHAR) AS speed FROM reference.speeds", text)
    said = tiny.build()
    assert (said.status, "models/metrics/total.sql" in said.err) == (1, True)
    tiny.model("staging.ports", PORTS, COLUMNS, "checks:", "  - speeed > 0")
    said = tiny.build()
    assert (said.status, "speeed" in said.err) == (1, True)
    tiny.model("staging.ports", "SELECT port, {{ times('speed') }} AS speed FROM reference.speeds", COLUMNS)
    for factor in (2, 3):
        tiny.write("sql/macros/times.sql", f"{{% macro times(x) %}}{{{{ x }}}} * {factor}{{% endmacro %}}")
        assert tiny.build().status == 0
        assert tiny.ask("SELECT speed FROM metrics.total") == [(50 * factor,)]


def test_a_new_engine_or_package_version_invalidates_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse_cache = ParseCache(tmp_path / CACHE, "duckdb 2")
    assert parse_cache.get(["a", 1], lambda: [1, None]) == [1, None]
    parse_cache.save()
    again = ParseCache(tmp_path / CACHE, "duckdb 2")
    assert again.get(["a", 1], lambda: pytest.fail("it is known")) == [1, None]
    assert not ParseCache(tmp_path / CACHE, "duckdb 3").contains(["a", 1])
    assert not ParseCache(tmp_path / CACHE, "duckdb 2", paranoid=True).contains(["a", 1])
    monkeypatch.setattr(module, "environment_hash", module.environment_hash.__wrapped__)
    monkeypatch.setattr(module, "code_files", lambda _: {"a.py": [1, 2, 3, 4]})
    assert not ParseCache(tmp_path / CACHE, "duckdb 2").contains(["a", 1])


def test_unused_and_damaged_entries_count_as_missing_and_a_damaged_file_costs_only_time(tmp_path: Path) -> None:
    path = tmp_path / CACHE
    for questions in (["a", "b"], ["b"]):
        parse_cache = ParseCache(path)
        for question in questions:
            parse_cache.get(question, lambda: "right")
        parse_cache.save()
    assert (ParseCache(path).contains("b"), ParseCache(path).contains("a")) == (True, False)
    path.write_bytes(path.read_bytes().replace(b"right", b"wrong"))
    assert not ParseCache(path).contains("b")
    for content in (b"", b"\xff"):
        path.write_bytes(content)
        assert ParseCache(path).get("a", lambda: 1) == 1
    parse_cache = ParseCache(path / "below" / CACHE)
    assert parse_cache.get("a", lambda: 1) == 1
    parse_cache.save()
