"""Parts of two engines, cell by cell."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from warehouse.diff.cells import Cells, compare_cells

ROWS = (
    "VALUES (1, 'a', 1.5::DOUBLE, [1, NULL]), (2, NULL, 'nan'::DOUBLE, NULL), "
    "(3, 'c', NULL::DOUBLE, []), (4, 'd', 0::DOUBLE, [3])"
)


def cells(tmp_path: Path, ours: str, theirs: str) -> Cells:
    with duckdb.connect() as connection:
        for name, select in (("ours", ours), ("theirs", theirs)):
            connection.execute(
                f"COPY (SELECT * FROM ({select}) AS t (n, s, d, l)) TO '{tmp_path / name}' (FORMAT parquet)"
            )
        return compare_cells(connection, tmp_path / "ours", tmp_path / "theirs")


def test_equal_rows_are_equal(tmp_path: Path) -> None:
    assert cells(tmp_path, ROWS, ROWS) == Cells(16)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'a'", "'b'"),
        ("'a'", "NULL"),
        ("1.5", "1.5000001"),
        ("'nan'", "0"),
        ("NULL::DOUBLE", "1"),
        ("[3]", "[4]"),
        ("0::D", "1e-300::D"),
    ],
)
def test_another_cell_is_another(tmp_path: Path, old: str, new: str) -> None:
    assert cells(tmp_path, ROWS, ROWS.replace(old, new, 1)) == Cells(16, different=1)


def test_last_digits_are_counted_apart(tmp_path: Path) -> None:
    found = cells(tmp_path, ROWS, ROWS.replace("1.5", "1.5000000000000002"))
    assert (found.cells, found.close, found.different) == (16, 1, 0)
    assert found.worst == pytest.approx(1.48e-16, rel=0.01)


def test_a_row_more_or_another_type_is_all_other(tmp_path: Path) -> None:
    more = f"{ROWS}, (5, 'e', 0::DOUBLE, [3])"
    assert cells(tmp_path, ROWS, more).different == 20
    assert cells(tmp_path, ROWS, f"SELECT n::BIGINT, s, d, l FROM ({ROWS}) AS t (n, s, d, l)").different == 16


def test_sums_of_parts(tmp_path: Path) -> None:
    assert Cells(3, 1, 1e-16, 0) + Cells(4, 0, 0.0, 2) == Cells(7, 1, 1e-16, 2)
