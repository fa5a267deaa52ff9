"""Long lists of files in views are one text; rows and their order stay, and unusual paths are listed as they are."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from warehouse.engine import duckdb_sql
from warehouse.engine.base import Parts
from warehouse.engine.duckdb_sql import source_sql
from warehouse.project.contract import Column

COUNT = 20
COLUMNS = (Column("number", "BIGINT"),)


def parts(folder: Path) -> Parts:
    """Write files of one row each."""
    paths = []
    for number in range(COUNT):
        path = folder / f"{number % 3}" / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        duckdb.sql(f"COPY (SELECT {number} AS number) TO '{str(path).replace(chr(39), 2 * chr(39))}'")
        paths.append(str(path))
    return Parts(COLUMNS, tuple(paths))


@pytest.mark.parametrize("name", ["target", "it's", "a, b", "one|two", "<", "*"])
def test_a_view_of_many_files_has_their_rows_in_order(tmp_path: Path, name: str) -> None:
    source = parts(tmp_path / name)
    sql = source_sql(source)
    assert duckdb.execute(sql).fetchall() == [(number,) for number in range(COUNT)]
    is_short = "|" not in name
    assert sql.count(tmp_path.name) == (1 if is_short else COUNT), "the folder is written once"


def test_few_files_are_listed(tmp_path: Path) -> None:
    source = parts(tmp_path)
    few = source._replace(paths=source.paths[: duckdb_sql._FEW_FILES])
    assert "string_split" not in source_sql(few)
    assert "string_split" in source_sql(source)
