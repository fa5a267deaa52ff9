"""Model files: front matter, and errors with file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.base.errors import ModelError
from warehouse.ingest.schemas import FILES_COLUMNS
from warehouse.project.contract import Column
from warehouse.project.model import PARTITIONS, Model, read_model

GOOD = """\
/* ---
about: "What a port moved: in one hour."
partition: hour_utc
grain: [port, hour_utc]
columns:
  port: VARCHAR the port
  hour_utc: TIMESTAMP
  in_bytes: BIGINT [B] bytes that entered
  share: DECIMAL(9, 6) [1] of all
  tags: VARCHAR[] in order
checks:
  - in_bytes >= 0
  - warn: share between 0 and 1
  - none: "SELECT * FROM this WHERE port = 'a: b'"
  # a comment
sources: a book
--- */
SELECT 1
"""


def read(tmp_path: Path, text: str, name: str = "models/metrics/port_hour.sql") -> Model:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return read_model(path, tmp_path)


def test_a_model_file_is_parsed_completely(tmp_path: Path) -> None:
    model = read(tmp_path, GOOD)
    assert (model.name, model.layer, model.shown_path) == (
        "metrics.port_hour",
        "metrics",
        "models/metrics/port_hour.sql",
    )
    assert model.about == "What a port moved: in one hour."
    assert (model.partition, model.grain, model.materialize) == (("hour_utc",), ("port", "hour_utc"), "table")
    assert model.columns == (
        Column("port", "VARCHAR", None, "the port"),
        Column("hour_utc", "TIMESTAMP"),
        Column("in_bytes", "BIGINT", "B", "bytes that entered"),
        Column("share", "DECIMAL(9, 6)", "1", "of all"),
        Column("tags", "VARCHAR[]", None, "in order"),
    )
    assert model.sql.split("\n")[17] == GOOD.split("\n")[17] == "SELECT 1"
    assert model.columns[2].comment == "[B] bytes that entered"
    assert [(check.text, check.warn, str(check.place)) for check in model.checks] == [
        ("in_bytes >= 0", False, "models/metrics/port_hour.sql:12:5"),
        ("share between 0 and 1", True, "models/metrics/port_hour.sql:13:5"),
        ("none: SELECT * FROM this WHERE port = 'a: b'", False, "models/metrics/port_hour.sql:14:5"),
    ]


@pytest.mark.parametrize("text", [GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD], ids=["CRLF", "BOM"])
def test_bom_and_crlf_files_are_parsed_alike(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == read(tmp_path, GOOD)


MINIMAL = """\
/* ---
about: A model.
grain: [a]
columns:
  a: BIGINT
--- */
SELECT 1 AS a
"""
WRONG = {
    # change of the minimal model -> place and text of the error
    ("/* ---", "-- ---"): ":1:1: the file does not start with `/* ---`",
    ("--- */", "-- */"): ":1:1: the front matter has no end: `--- */` is missing",
    ("about: A model.", "about: A /* model"): ":2: `/*` cannot stand inside the front matter",
    ("SELECT 1 AS a\n", "\n"): ":6: no SELECT follows the front matter",
    ("about: A model.\n", ""): ":1: the front matter has no `about`",
    ("about: A model.", "about: [a]"): ":2:1: `about` is one line of text",
    ("about: A model.", "abuot: A model."): ":2:1: unknown key `abuot` in the front matter\nnearest: about",
    ("about: A model.", "about: x\nabout: y"): ":3:1: `about` stands twice in the front matter",
    ("  a: BIGINT", "  a: BIGINT\n  a: BIGINT"): ":6:3: `a` stands twice in the front matter",
    ("grain: [a]", "grain: [a"): ":4:8: the front matter is not valid YAML",
    ("grain: [a]", "grain: *a"): ":3:8: the front matter is not valid YAML: found undefined alias",
    ("about: A model.", "about: A\x07model"): ":1: the front matter is not valid YAML: unacceptable character",
    ("grain: [a]", "grain: &g [*g]"): ":1: the front matter contains itself",
    ("about: A model.\ngrain: [a]\ncolumns:\n  a: BIGINT\n", "- a\n"): ":1: the front matter is not a list of",
    ("grain: [a]\n", ""): ":1: the front matter has no `grain`: the columns that name a row",
    ("grain: [a]", "grain: a"): ":3:1: a list is expected here",
    ("grain: [a]", "grain: [[a]]"): ":3:9: a list of names is expected here",
    ("grain: [a]", "grain: [b]"): ":3:1: `b` of the grain or partition is not among the columns",
    ("grain: [a]", "grain: [a]\npartition: a"): (
        ":4:1: `partition` is a column of raw.files that names what a file holds, not a\n"
        "there are: format, cluster, hour_utc"
    ),
    ("grain: [a]", "grain: [a]\nmaterialize: never"): ":4:1: `materialize` is table or view",
    ("grain: [a]", "grain: [a]\npresorted: no"): ":4:1: `presorted` is true or left out",
    ("grain: [a]", "grain: [a]\nchecks:\n  - {x: y, z: 1}"): ":5:5: a check is one line: a condition, or",
    ("columns:\n  a: BIGINT", "columns: [a]"): ":4:1: `columns` lists each column",
    ("columns:\n  a: BIGINT\n", ""): ":1: `columns` lists each column as `name: TYPE [unit] meaning`",
    ("  a: BIGINT", "  a:"): ":5:3: column `a` is not `TYPE [unit] meaning`",
    ("  a: BIGINT", "  a: BIGNT"): ":5:3: column `a` has the type BIGNT, which models do not use\nnearest: BIGINT",
    ("  a: BIGINT", '  "a b": BIGINT'): ":5:3: column `a b` is not lower case letters, digits and _",
}  # fmt: skip


@pytest.mark.parametrize("change", WRONG, ids=range(len(WRONG)))
def test_a_wrong_front_matter_is_an_error_with_its_place(tmp_path: Path, change: tuple[str, str]) -> None:
    text = MINIMAL.replace(*change)
    assert text != MINIMAL
    with pytest.raises(ModelError) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith("models/metrics/port_hour.sql" + WRONG[change])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("models/marts/x.sql", "models stand in models/staging/, models/topology/, models/reference/, models/metrics/"),
        ("models/x.sql", "models stand in models/staging/"),
        ("models/metrics/Port-Hour.sql", "a model's name is lower case letters, digits and _"),
    ],
)
def test_a_model_has_a_layer_and_a_plain_name(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ModelError) as raised:
        read(tmp_path, MINIMAL, name)
    assert str(raised.value).startswith(f"{name}: {message}")


def test_a_file_that_is_not_utf8_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "models" / "metrics" / "x.sql"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"/* ---\nabout: caf\xe9\n--- */ SELECT 1")
    with pytest.raises(ModelError, match=r"models/metrics/x\.sql: the file is not UTF-8 text"):
        read_model(path, tmp_path)


def test_partition_columns_are_columns_of_raw_files() -> None:
    assert set(PARTITIONS) <= {column.name for column in FILES_COLUMNS}
