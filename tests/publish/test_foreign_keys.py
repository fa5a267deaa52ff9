"""Foreign keys of exports, from `references` checks: as constraints of the file and in the data package."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.models.test_star import KEYS
from warehouse.publish.export import export
from warehouse.publish.foreign_keys import ForeignKey, foreign_keys, required
from warehouse.reader.relation import Check, Relation, Table
from warehouse.reader.table_info import describe, list_tables

_SECONDS = {"metrics.port_second", "metrics.nic_second"}
"""Views with a row per second, whose checks would run in every build."""


def test_checks_that_passed_and_whose_table_is_there_give_keys() -> None:
    statuses = {
        "references(a, b) -> m.two(c, d)": "passed",
        "references(a) -> m.two(c)": "failed",
        "references(a) -> m.none(c)": "passed",
        "not null(b)": "passed",
    }
    checks = tuple(Check(text, "error", status, 0) for text, status in statuses.items())
    one = Relation(Table("m.one", "table", 1, 1, ""), ("a",), None, None, None, (), checks)
    assert foreign_keys(one, {"m.two"}, []) == [ForeignKey(("a", "b"), "m.two", ("c", "d"))]
    assert required(one) == {"a", "b"}


@pytest.fixture(scope="module")
def exported(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(built, tmp_path_factory.mktemp("star") / "out", formats=["duckdb", "csv"])


def test_the_duckdb_file_has_key_constraints_behind_the_usual_views(built: Path, exported: Path) -> None:
    """Each key of a check is a constraint, and views return the rows of the warehouse."""
    with duckdb.connect(exported / "tables.duckdb", read_only=True) as file, warehouse.open(built) as ours:
        found = {
            (table, tuple(columns), other, tuple(others))
            for table, columns, other, others in file.execute(
                "SELECT table_name, constraint_column_names, referenced_table, referenced_column_names "
                "FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY' AND schema_name = 'star'"
            ).fetchall()
        }
        names = [row[0] for row in file.execute("SELECT model FROM meta.models").fetchall()]
        relations = {name: describe(ours, name) for name in names}
        keys = {(name, *key) for name in names for key in foreign_keys(relations[name], names, relations.values())}
        said = {(name.partition(".")[2], mine, other.partition(".")[2], theirs) for name, mine, other, theirs in keys}
        assert found == said
        assert {other for _, _, other, _ in found} >= set(KEYS)
        assert len(found) > 80
        for table in list_tables(ours):
            if table.name in names and table.name not in _SECONDS:
                rows = file.execute(f"SELECT count(*) FROM {table.name}").fetchone()
                assert rows == ours.execute(f"SELECT count(*) FROM {table.name}").fetchone(), table.name
        views = dict(file.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
        assert views["leaf_hour"] == describe(ours, "metrics.leaf_hour").table.about
    with duckdb.connect(exported / "tables.duckdb") as file, pytest.raises(duckdb.ConstraintException):
        file.execute("INSERT INTO star.leaf_hour (cluster, switch) VALUES ('no such cluster', 'Leaf-1')")


def test_the_data_package_has_the_keys_of_non_null_columns(exported: Path) -> None:
    """Each fact table names its dimensions; keys with a nullable column are left out."""
    said = json.loads((exported / "datapackage.json").read_text(encoding="utf-8"))
    keys = {
        one["name"]: {(tuple(key["fields"]), key["reference"]["resource"]) for key in one["schema"]["foreignKeys"]}
        for one in said["resources"]
        if "foreignKeys" in one.get("schema", {})
    }
    assert keys["metrics.port_hour"] == {
        (("cluster", "switch", "port"), "reference.dim_port"),
        (("hour_utc",), "reference.dim_hour"),
    }
    assert keys["metrics.spine_hour"] >= {(("cluster", "spine"), "reference.dim_switch")}
    assert keys["metrics.suspect_links"] == {(("cluster", "switch", "port"), "reference.dim_port")}
    assert len(keys) > 40
