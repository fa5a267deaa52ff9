"""Recipes of docs/recipes, run as written: each cell must equal the answer of `warehouse sql`."""

from __future__ import annotations

import csv
import json
import math
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pytest

from tests.conftest import call
from tests.environments import ROOT, environment
from tests.publish.postgres_server import server
from warehouse.publish.postgres.publisher import publish

RECIPES = ROOT / "docs" / "recipes"
TABLES = ("metrics.leaf_hour", "metrics.task_traffic", "metrics.port_hour", "metrics.task_summary")
"""Tables with NULLs among integers, floats, times and lists of texts."""
SUMS = "(SELECT switch, sum(in_bytes) * 1000000007 AS large FROM metrics.port_hour GROUP BY switch)"
"""Integers too large for a double."""
JDBC = Path("/usr/share/java/postgresql.jar")
NULL = "\\N"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")
Rows = list[list[Any]]


@pytest.fixture(scope="module")
def url(built: Path) -> Iterator[str]:
    """Start a PostgreSQL with these tables."""
    pytest.importorskip("psycopg")
    with server() as host:
        publish(built, f"{host}/postgres", tables=TABLES)
        yield f"{host}/postgres"


def said(target: Path, sql: str) -> Rows:
    """Return the answer of `warehouse sql`."""
    answer = call("sql", sql, "-t", target, "--format", "json", cwd=target.parent)
    assert answer.status == 0, answer.err
    return [list(row.values()) for row in json.loads(answer.out)]


def assert_same(found: Sequence[Sequence[Any]], expected: Rows) -> None:
    """Compare rows in any order: servers sort texts differently."""
    assert len(found) == len(expected)
    assert len(expected) > 1
    for one, other in zip(_ordered(found), _ordered(expected), strict=True):
        assert all(_same(a, b) for a, b in zip(one, other, strict=True)), (one, other)


def _ordered(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sort by text columns, which no client changes; those of a table's grain are unique."""
    return sorted((list(row) for row in rows), key=lambda row: [str(c) for c in row if isinstance(c, str | datetime)])


def _same(found: object, expected: object) -> bool:
    """Compare a client's value with that of `warehouse sql`."""
    if isinstance(expected, list):
        items = found.strip("{}").split(",") if isinstance(found, str) else found
        return [one for one in items if one] == expected  # type: ignore[attr-defined]
    if isinstance(expected, str) and TIME.fullmatch(expected):
        return datetime.fromisoformat(str(found)) == datetime.fromisoformat(expected)
    return found == expected


CLIENTS = {
    "psql": (("{url}", "--csv", "--tuples-only", "-P", f"null={NULL}", "-c"), "postgresql-client"),
    "java": (
        ("-cp", str(JDBC), str(RECIPES / "Table.java"), "jdbc:postgresql://{host}:{port}/postgres?user={user}"),
        "default-jdk-headless libpostgresql-jdbc-java",
    ),
    "Rscript": ((str(RECIPES / "table.R"), "{host}", "{port}", "postgres", "{user}"), "r-cran-rpostgresql"),
}
"""Clients of PostgreSQL: words before the query, and packages of Debian."""


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_postgresql_reads_equal_cells(client: str, url: str, built: Path) -> None:
    given, packages = CLIENTS[client]
    if shutil.which(client) is None or (client == "java" and not JDBC.is_file()):
        pytest.skip(f"no {client}: apt-get install {packages}")
    where = urlsplit(url)
    words = [one.format(url=url, host=where.hostname, port=where.port, user=where.username) for one in given]
    for table in TABLES[:2] if client == "Rscript" else TABLES:  # data frames of R do not support lists
        done = subprocess.run([client, *words, f"SELECT * FROM {table}"], capture_output=True, text=True, check=False)
        if "there is no package" in done.stderr:
            pytest.skip("R without its driver: apt-get install r-cran-dbi r-cran-rpostgresql")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()[client == "Rscript" :]
        rows = [line.split("\t") for line in lines] if client == "java" else list(csv.reader(lines))
        types = [row[1] for row in said(built, f"DESCRIBE {table}")]
        numbers = {"BIGINT": int, "INTEGER": int, "DOUBLE": float}  # so that both sides sort alike
        cells = [
            [None if cell == NULL else numbers.get(kind, str)(cell) for cell, kind in zip(row, types, strict=True)]
            for row in rows
        ]
        assert_same(cells, said(built, f"FROM {table}"))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library: str, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    for table in (*TABLES, SUMS):
        monkeypatch.setattr(sys, "argv", ["recipe", str(built), table])
        frame = runpy.run_path(str(RECIPES / f"with_{library}.py"))["frame"]
        rows = frame.rows() if library == "polars" else [list(row) for row in frame.itertuples(index=False)]
        assert_same([[_plain(cell) for cell in row] for row in rows], said(built, f"FROM {table}"))


def _plain(cell: Any) -> Any:
    """Convert a pandas value to plain Python."""
    if type(cell).__name__ == "NAType" or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell.to_pydatetime() if hasattr(cell, "to_pydatetime") else cell


def test_the_notebook_runs_and_agrees_with_sql(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair")
    monkeypatch.setenv("WAREHOUSE_TARGET", str(built))
    notebook = json.loads((RECIPES / "first_look.ipynb").read_text(encoding="utf-8"))
    there: dict[str, Any] = {}
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        exec(compile(cell, "first_look.ipynb", "exec"), there)  # run cell by cell, as a reader would
    there["connection"].close()
    [asked] = re.findall(r'frame = connection\.sql\("""(.*?)"""\)', "\n".join(code), re.DOTALL)
    assert_same(there["frame"].rows(), said(built, asked))
    assert there["chart"].to_dict()["mark"]["type"] == "bar"
    assert not any(cell.get("outputs") for cell in notebook["cells"]), "outputs are of one warehouse"


def test_the_settings_for_harlequin_leave_two_folders(built: Path, sample: Path) -> None:
    [text] = re.findall(r"```sql\n(SET allowed.*?)```", (RECIPES / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    text = text.replace("/srv/traces/build/warehouse", str(built)).replace("/srv/traces/release", str(sample))
    with duckdb.connect(str(built / "warehouse.duckdb"), read_only=True) as opened:
        opened.execute(text)
        for sql in ("FROM query.nic('GPU-1')", "FROM metrics.port_second LIMIT 1", "FROM raw.port_counters LIMIT 1"):
            assert opened.execute(sql).fetchall()
        for sql in ("FROM read_text('/etc/hostname')", f"COPY (SELECT 1) TO '{built.parent}/other.csv'"):
            with pytest.raises(duckdb.PermissionException):
                opened.execute(sql)
        with pytest.raises(duckdb.InvalidInputException, match="locked"):
            opened.execute("SET enable_external_access = true")


ALCHEMY = """\
duckdb==2.0.0
duckdb-engine==0.17.0
greenlet==3.5.6
packaging==26.3
sqlalchemy==2.0.44
typing-extensions==4.16.0
"""
HOURS = "SELECT count(*) FROM {}metrics.leaf_hour"
CONNECTED = f"""
with engine.connect() as one:
    counts = [one.exec_driver_sql("{HOURS.format("")}").scalar()]
counts += [beside.execute("{HOURS.format("warehouse.")}").fetchall()[0][0]]
counts += [same.execute("{HOURS.format("")}").fetchall()[0][0]]
"""


def test_an_engine_of_sqlalchemy_reads_the_file(built: Path) -> None:
    page = (RECIPES / "README.md").read_text(encoding="utf-8").partition("\n## Notebooks\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = f"file = {str(built / 'warehouse.duckdb')!r}\n{block}{CONNECTED}print(counts)"
    run = [str(environment("sqlalchemy", ALCHEMY)), "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == said(built, HOURS.format(""))[0] * 3
