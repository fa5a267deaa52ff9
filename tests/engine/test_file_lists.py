"""Views of many files: all rows, in the order of the files, whatever their paths are."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

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
    rows = duckdb.execute(source_sql(parts(tmp_path / name))).fetchall()
    assert rows == [(number,) for number in range(COUNT)]
