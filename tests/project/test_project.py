"""The shipped folders, and a user's folder that overrides them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.base.errors import ModelError, SettingsError
from warehouse.base.settings import shipped_root
from warehouse.project.project import Project

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}


@pytest.fixture
def mine(tmp_path: Path) -> Tiny:
    """A project of two models and a table that override nothing."""
    return Tiny(tmp_path / "it's [1] {{ x }} 100%")


def test_a_folder_adds_to_the_shipped_models_tables_and_queries_and_overrides_them(mine: Tiny) -> None:
    path = mine.folder / mine.model("metrics.port_hour", "SELECT 1 AS port", {"port": "BIGINT"})
    project = Project.open(mine.folder)
    assert Project.open() == Project.open(shipped_root()) == Project((shipped_root(),))
    assert project.models["metrics.port_hour"].path == path
    assert {"metrics.leaf_hour", "staging.ports", "metrics.total"} <= set(project.models)
    assert {"reference.clusters", "reference.speeds"} <= set(project.references)
    assert project.query_folders == [shipped_root() / "sql" / "queries", mine.folder / "sql" / "queries"]


def test_a_folder_can_stand_alone_and_needs_no_data_folder_for_models_that_read_no_raw_file(
    mine: Tiny, command: Command
) -> None:
    mine.write("warehouse.toml", "shipped = false\n")
    project = Project.open(mine.folder)
    assert project.folders == (mine.folder,)
    assert list(project.models) == ["metrics.total", "staging.ports"]
    with pytest.raises(SettingsError, match="no such project folder: "):
        Project.open(mine.folder / "none")
    said = command("build", "--project", mine.folder, "-t", mine.target)
    assert said.status == 0, said
    assert said.err.startswith("Build  2 models, 2 parts ")
    assert mine.ask("SELECT speed FROM metrics.total") == [(50,)]
    mine.model("metrics.files", "SELECT path FROM raw.files", {"path": "VARCHAR"})
    said = command("build", "--project", mine.folder, "-t", mine.target)
    assert said.status == 2
    assert "error: no data folder given" in said.err


TABLES = "speeds:\n  about: A table.\n  columns:\n    port: VARCHAR\n    speed: BIGINT\n"
WRONG = {
    # content of data/tables.yaml -> place and text of the error
    "speeds:\n  about: [": "data/tables.yaml:3:1: the front matter is not valid YAML",
    "speeds:\n  about: x\n": "data/tables.yaml:1:1: `speeds` has no `columns`",
    "speeds:\n  about: x\n  columns:\n    port: TEXT\n": "data/tables.yaml:4:5: `port` is not `TYPE [unit] meaning`",
    TABLES.replace("speed:", "rate:"): "data/speeds.csv:1: the header is port,speed, data/tables.yaml says port,rate",
    TABLES.replace("speeds:", "rates:"): "data/rates.csv: the file cannot be read: No such file or directory",
    "Speeds:\n  about: x\n": "data/tables.yaml:1:1: unknown key `Speeds`",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_an_error_in_the_list_of_tables_names_its_place(mine: Tiny, text: str) -> None:
    mine.write("data/tables.yaml", text)
    with pytest.raises(ModelError) as raised:
        _ = mine.project.references
    assert str(raised.value).startswith(WRONG[text])


def test_an_invalid_row_is_an_error_that_names_file_and_line(tiny: Tiny) -> None:
    """A model reads the table, or only the catalog does."""
    tiny.reference("speeds", COLUMNS, "eth9,9", "eth0,fast")
    for select in ("SELECT port, speed FROM reference.speeds", "SELECT 'x' AS port, 1 AS speed"):
        tiny.model("staging.ports", select, COLUMNS)
        said = tiny.build()
        assert said.status == 1
        assert f'{tiny.folder / "data" / "speeds.csv"}:3: Error when converting column "speed"' in said.err
    (tiny.folder / "data" / "speeds.csv").write_bytes(b"port,speed\ncaf\xe9,1\n")
    assert "data/speeds.csv: the file is not UTF-8 text" in tiny.build().err


def test_the_macros_that_are_hashed_are_those_that_are_rendered(tiny: Tiny) -> None:
    """A macro file that changes between the two gives no SELECT under the hash of another."""
    tiny.write("sql/macros/one.sql", "{% macro one() %}1{% endmacro %}")
    tiny.model("metrics.one", "SELECT {{ one() }} AS n", {"n": "INTEGER"})
    project = tiny.project
    assert list(project._macros.values()) == [b"{% macro one() %}1{% endmacro %}"]
    tiny.write("sql/macros/one.sql", "{% macro one() %}2{% endmacro %}")
    assert project.render(project.models["metrics.one"]).strip() == "SELECT 1 AS n"
