"""Targets built by earlier releases, as fixtures: a project, its raw files, and the target."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import duckdb
import pytest

FIXTURES = Path(__file__).parent / "fixtures"
ENGINE = "2.0.0"
"""DuckDB that the fixtures count as built with: with another one, every part is rebuilt."""
with_its_engine = pytest.mark.skipif(
    duckdb.__version__ != ENGINE, reason=f"run by tests/history/test_old_engine.py, with DuckDB {ENGINE}"
)


def unpack(name: str, made_in: str, into: Path) -> Path:
    """Unpack `project`, `data` and `target` and replace recorded paths, as if the target had been built here.

    Parameters
    ----------
    name
        Folder of the fixture.
    made_in
        Folder in which the target was built.
    into
        Empty folder to unpack to; returned.
    """
    for folder in ("project", "data"):
        shutil.copytree(FIXTURES / name / folder, into / folder)
    with tarfile.open(FIXTURES / name / "target.tar.gz") as packed:
        packed.extractall(into, filter="data")
    target = into / "target"
    for path in (target / "builds").glob("*/*.json"):
        path.write_text(path.read_text(encoding="utf-8").replace(made_in, str(into)), encoding="utf-8")
    for catalog in (target / "warehouse.duckdb", *(target / "builds").glob("*/catalogue.duckdb")):
        catalog.chmod(0o644)
        with duckdb.connect(catalog) as connection:
            views = connection.execute("SELECT sql FROM duckdb_views() WHERE contains(sql, ?)", [made_in]).fetchall()
            for (sql,) in views:
                moved = sql.replace(made_in, str(into)).replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
                connection.execute(moved)
            said = connection.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = 'build'").fetchall()
            if ("target",) in said:
                connection.execute("UPDATE meta.build SET target = ?", [str(target)])
    return into
