"""Public names of the package: typed, documented and complete."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import warehouse
from tests.tiny import Tiny

PUBLIC = {"Warehouse", "WarehouseError", "__version__", "build", "open", "query"}


def test_the_public_names() -> None:
    assert set(warehouse.__all__) == PUBLIC
    assert all(hasattr(warehouse, name) for name in PUBLIC)
    assert (Path(warehouse.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no attribute 'publish_all'"):
        _ = warehouse.publish_all


def test_each_function_documents_parameters_and_errors() -> None:
    for function in (warehouse.build, warehouse.open, warehouse.query):
        documented = inspect.getdoc(function) or ""
        assert all(parameter in documented for parameter in inspect.signature(function).parameters)
        assert "Raises\n------\nWarehouseError" in documented


def test_query_takes_names_and_sql(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    said = "SELECT port, speed FROM staging.ports WHERE speed > $least"
    assert warehouse.query(said, tiny.target, least=20).fetchall() == [("eth1", 40)]
    assert warehouse.query(said, tiny.target, least=20).df()["speed"].tolist() == [40]
    tiny.write(
        "sql/queries/fast.sql",
        "/* ---\nabout: Fast ports.\nparams:\n  least: BIGINT the lowest speed\n--- */\n"
        "SELECT port FROM staging.ports WHERE speed >= $least ORDER BY port\n",
    )
    assert warehouse.query("fast", tiny.target, project=tiny.folder, least=10).fetchall() == [("eth0",), ("eth1",)]


def test_errors_are_one_sentence(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("DROP TABLE staging.ports", {}, "read"),
        ("SELECT 1", {"least": 1}, r"the query has no \$least"),
        ("no-such-query", {}, "no query no-such-query"),
    )
    for statement, parameters, message in cases:
        with pytest.raises(warehouse.WarehouseError, match=message):
            warehouse.query(statement, tiny.target, **parameters)
    with pytest.raises(warehouse.WarehouseError, match="no warehouse"):
        warehouse.query("SELECT 1", tiny.base / "nowhere")
    with pytest.raises(warehouse.WarehouseError, match=r"^Could not convert string 'eth0' to INT32"):
        warehouse.query("SELECT port::INTEGER FROM staging.ports", tiny.target).fetchall()


def test_python_follows_the_settings_of_the_commands(
    built: Path, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "SELECT target FROM meta.build"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(warehouse.WarehouseError, match="no warehouse in build/warehouse") as raised:
        warehouse.open()
    assert raised.value.hint == "warehouse build -d DIR"
    (tmp_path / "warehouse.toml").write_text("target = 'target'\nproject = 'project'\n", encoding="utf-8")
    assert warehouse.build(tiny.data).target == tiny.target
    assert warehouse.query(asked).fetchall() == [(str(tiny.target),)]
    monkeypatch.setenv("WAREHOUSE_TARGET", str(built))
    assert warehouse.query(asked).fetchall() == [(str(built),)]
    assert warehouse.query(asked, "target").fetchall() == [(str(tiny.target),)]
    with warehouse.open() as connection:
        assert connection.execute(asked).fetchall() == [(str(built),)]
