"""Model files: front matter, and errors with file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.base.errors import ModelError
from warehouse.ingest.reading import FILES_COLUMNS
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
    ("about: A model.\n", ""): ":1:1: the front matter has no `about`",
    ("about: A model.", "about: [a]"): ":2:1: `about` is not a text",
    ("about: A model.", "abuot: A model."): ":2:1: unknown key `abuot` in the front matter\nnearest: about",
    ("about: A model.", "about: x\nabout: y"): ":3:1: `about` stands twice in the front matter",
    ("grain: [a]", "grain: [a"): ":4:8: the front matter is not valid YAML",
    ("about: A model.\ngrain: [a]\ncolumns:\n  a: BIGINT\n", "- a\n"): ":1: the front matter is not a list of",
    ("grain: [a]", "grain:"): ":1:1: the front matter has no `grain`",
    ("grain: [a]", "grain: [[a]]"): ":3:9: `grain` is not a text",
    ("grain: [a]", "grain: [b]"): ":3:9: `grain` names b, which is no column of the model",
    ("grain: [a]", "grain: [a]\npartition: a"): ":4:1: `partition` is not one of format, cluster, hour_utc",
    ("grain: [a]", "grain: [a]\npartition: hour_utc"): ":4:1: `partition` names hour_utc, which is no column",
    ("grain: [a]", "grain: [a]\nmaterialize: never"): ":4:1: `materialize` is not one of table, view",
    ("grain: [a]", "grain: [a]\nchecks:\n  - {x: y, z: 1}"): ":5:6: unknown key `x` in a check",
    ("grain: [a]", "grain: [a]\nchecks:\n  - {warn: y, none: z}"): ":5:5: a check is one line: a condition,",
    ("columns:\n  a: BIGINT", "columns: [a]"): ":4:1: `columns` is not a list of `key: value`",
    ("  a: BIGINT", "  a:"): ":5:3: `a` is not `TYPE [unit] meaning`; types: BIGINT, ",
    ("  a: BIGINT", "  a: BIGNT"): ":5:3: `a` is not `TYPE [unit] meaning`; types: BIGINT, ",
    ("  a: BIGINT", '  "a b": BIGINT'): ":5:3: unknown key `a b` in `columns`\nit is lower case letters, digits and _",
}  # fmt: skip


@pytest.mark.parametrize("change", WRONG, ids=range(len(WRONG)))
def test_a_wrong_front_matter_is_an_error_with_its_place(tmp_path: Path, change: tuple[str, str]) -> None:
    text = MINIMAL.replace(*change)
    assert text != MINIMAL
    with pytest.raises(ModelError) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith("models/metrics/port_hour.sql" + WRONG[change])


def test_a_model_has_a_layer_a_plain_name_and_is_text(tmp_path: Path) -> None:
    for name, message in (
        ("models/marts/x.sql", "models stand in models/staging/, models/topology/, models/reference/, models/metrics/"),
        ("models/metrics/Port-Hour.sql", "a model's name is lower case letters, digits and _"),
    ):
        with pytest.raises(ModelError) as raised:
            read(tmp_path, MINIMAL, name)
        assert str(raised.value).startswith(f"{name}: {message}")
    path = tmp_path / "models" / "metrics" / "x.sql"
    path.write_bytes(b"/* ---\nabout: caf\xe9\n--- */ SELECT 1")
    with pytest.raises(ModelError, match=r"models/metrics/x\.sql: the file is not UTF-8 text"):
        read_model(path, tmp_path)


def test_partition_columns_are_columns_of_raw_files() -> None:
    assert set(PARTITIONS) <= {column.name for column in FILES_COLUMNS}
