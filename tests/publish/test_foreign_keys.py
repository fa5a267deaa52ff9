"""Foreign keys of exports, from `references` checks: as constraints of the file and in the data package."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.environments import environment
from tests.models.test_star import KEYS
from warehouse.project.check_language import relations_of
from warehouse.project.project import Project
from warehouse.publish.export import export
from warehouse.publish.foreign_keys import ForeignKey, foreign_keys, others_first, required
from warehouse.reader.relation import Check, Column, Relation, Table
from warehouse.reader.table_info import describe, list_tables

ERALCHEMY = """\
duckdb==2.0.0
duckdb-engine==0.17.0
eralchemy==1.7.0
greenlet==3.5.6
packaging==26.3
sqlalchemy==2.0.44
typing-extensions==4.16.0
"""
"""SQLAlchemy 1.4 and 2.1 do not find the foreign keys."""
_SECONDS = {"metrics.port_second", "metrics.nic_second"}
"""Views with a row per second, whose checks would run in every build."""


def relation(name: str, *checks: tuple[str, str]) -> Relation:
    """Return a table with checks and their results."""
    found = tuple(Check(text, "error", status, 0) for text, status in checks)
    return Relation(
        Table(name, "table", 1, 1, ""), ("a",), None, None, None, (Column("a", "VARCHAR", None, ""),), found
    )


def test_keys_come_from_passed_checks() -> None:
    """Skip checks that failed or whose referenced table is missing."""
    one = relation(
        "m.one",
        ("references(a, b) -> m.two(c, d)", "passed"),
        ("references(a) -> m.two(c)", "failed"),
        ("references(a) -> m.none(c)", "passed"),
        ("not null(b)", "passed"),
    )
    two = relation(
        "m.two",
        ("referenced(d) by m.one(b)", "passed"),
        ("referenced(c) by m.one(a)", "failed"),
        ("referenced(c) by m.other(a)", "passed"),
    )
    own, from_two = ForeignKey(("a", "b"), "m.two", ("c", "d")), ForeignKey(("b",), "m.two", ("d",))
    assert foreign_keys(one, {"m.two"}, []) == [own]
    assert foreign_keys(one, {"m.two"}, [two]) == [own, from_two]
    assert foreign_keys(one, {}, [two]) == []
    assert required(one) == {"a", "b"}
    ordered = others_first({"m.one": one, "m.two": two})
    assert [(found.table.name, len(keys)) for found, keys in ordered] == [("m.two", 0), ("m.one", 2)]


def test_keys_of_every_dimension_of_a_metric_are_checked() -> None:
    """A check proves the keys of each finest dimension that the columns of a metric name."""
    models = Project.open().models
    checks = {
        name: [check for check in model.checks if check.text.startswith("referenced(")]
        for name, model in models.items()
    }
    for name, model in models.items():
        columns = {column.name for column in model.columns}
        if model.layer != "metrics" or name in (*_SECONDS, "metrics.own_findings"):
            continue
        wanted = {"dim_hour"} if "hour_utc" in columns else set()
        if "switch" in columns:
            wanted.add("dim_port" if "port" in columns else "dim_switch")
        if "server" in columns:
            wanted.add("dim_server")
        if not {"switch", "server", "spine"} & columns and "cluster" in columns and name != "metrics.findings":
            wanted.add("dim_cluster")
        said = {
            dimension.removeprefix("reference.")
            for dimension, found in checks.items()
            for check in found
            if name in relations_of(check.text)
        }
        assert wanted <= said, name


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


def test_a_tool_that_draws_schemas_finds_every_key(built: Path, tmp_path: Path) -> None:
    """ERAlchemy reads the keys through SQLAlchemy; a line names the tables that a key joins."""
    names = ["metrics.leaf_hour", "metrics.port_hour", "metrics.server_hour", *(f"reference.{name}" for name in KEYS)]
    exported = export(built, tmp_path / "out", tables=names, formats=["duckdb"])
    python = environment("eralchemy", ERALCHEMY)
    drawn = tmp_path / "star.md"
    file = f"duckdb:///{exported / 'tables.duckdb'}"
    run: list[str | Path] = [python, "-m", "eralchemy.main", "-i", file, "-s", "star", "-m", "mermaid_er", "-o", drawn]
    said = subprocess.run(run, capture_output=True, text=True, check=False)
    assert drawn.is_file(), said.stderr
    lines = re.findall(r"^\s*star_(\w+) .*--.* star_(\w+) : has", drawn.read_text(encoding="utf-8"), re.MULTILINE)
    with duckdb.connect(exported / "tables.duckdb", read_only=True) as opened:
        expected = opened.execute(
            "SELECT DISTINCT referenced_table, table_name FROM duckdb_constraints() "
            "WHERE constraint_type = 'FOREIGN KEY' AND schema_name = 'star'"
        ).fetchall()
    assert set(lines) == set(expected)
    assert len(expected) > len(KEYS)


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
