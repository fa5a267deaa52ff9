"""Named queries are table macros of the published file: `FROM query.nic('GPU-1')`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import duckdb

import warehouse
from tests.conftest import Command
from tests.reader.test_versions import VERSIONS, engine
from tests.tiny import Tiny
from warehouse.project.named_queries import load_queries
from warehouse.project.project import Project
from warehouse.reader.named_queries import bind

REQUIRED = {"leaf": "Leaf-1", "server": "GPU-1", "spine": "spine-1"}
FASTER = "/* ---\nabout: Ports faster than this.\nparams:\n  speed: BIGINT = 20 bit/s\n--- */\n{}\n"
SELECT = "SELECT port, speed FROM staging.ports WHERE speed > $speed ORDER BY ALL -- $speed"


def faster(tiny: Tiny, select: str = SELECT) -> None:
    tiny.write("sql/queries/faster-ports.sql", FASTER.format(select))


def test_every_shipped_query_is_a_macro_with_the_rows_of_the_query(built: Path) -> None:
    with duckdb.connect(str(built / "warehouse.duckdb"), read_only=True) as asked:
        for query in load_queries(Project.open().query_folders).values():
            given = {one.name: REQUIRED[one.name] for one in query.parameters.values() if one.required}
            values = {name: value for name, value in bind(query, given).items() if f"${name}" in query.sql}
            macro = f"FROM query.{query.name.replace('-', '_')}({', '.join(map(repr, given.values()))})"
            ours, theirs = asked.execute(macro).fetchall(), asked.execute(query.sql, values).fetchall()
            assert sorted(ours, key=str) == sorted(theirs, key=str), query.name


def test_a_parameter_is_told_from_a_column_and_a_changed_query_makes_no_new_part(tiny: Tiny) -> None:
    faster(tiny)
    assert tiny.build().status == 0
    assert tiny.ask("SELECT * FROM query.faster_ports()") == [("eth1", 40)]
    assert len(tiny.ask("FROM query.faster_ports(speed_ := '5')")) == 2
    with warehouse.open(tiny.target) as opened:
        [about] = opened.sql("SELECT comment FROM duckdb_functions() WHERE schema_name = 'query'").fetchall()
    assert about == ("Ports faster than this.",)

    faster(tiny, SELECT.replace(">", "<="))
    assert tiny.made() == set()
    assert tiny.ask("FROM query.faster_ports()") == [("eth0", 10)]


def test_queries_that_are_no_macro_are_named_and_the_others_are_macros(tiny: Tiny) -> None:
    faster(tiny, "SELECT sped FROM staging.ports")
    of_parameter = FASTER.format("SELECT speed AS speed_ FROM staging.ports WHERE speed > $speed")
    tiny.write("sql/queries/same-name.sql", of_parameter)
    tiny.write("sql/queries/all-ports.sql", "/* ---\nabout: All.\n--- */\nSELECT port FROM staging.ports")
    said = tiny.build()
    assert said.status == 0
    why = "is no macro of the file:"
    assert f'the named query faster-ports {why} Referenced column "sped" not found' in said.err_text
    assert f"the named query same-name {why} speed_ is the name of a parameter" in said.err_text
    assert len(tiny.ask("FROM query.all_ports()")) == 2


def test_the_guard_looks_into_macros(tiny: Tiny, command: Command) -> None:
    faster(tiny, "SELECT name FROM duckdb_secrets()")
    assert tiny.build().status == 0
    said = command("sql", "FROM query.faster_ports()", "-t", tiny.target)
    assert said.status == 2
    assert "the function duckdb_secrets is refused" in said.err


READ = """
import sys, duckdb
opened = duckdb.connect(sys.argv[1], read_only=True)
rows = opened.execute("FROM query.nic('GPU-1')").fetchall()
names = opened.execute("SELECT count(*) FROM duckdb_functions() WHERE schema_name = 'query'").fetchone()
opened = duckdb.connect()
opened.execute(f"ATTACH '{sys.argv[1]}' AS traces (READ_ONLY)")
try:
    opened.execute("FROM traces.query.nic('GPU-1')")
except duckdb.CatalogException:
    opened.execute("USE traces")
assert opened.execute("FROM query.nic('GPU-1')").fetchall() == rows
print(len(rows), *names)
"""
"""A macro in the file itself, and in the file attached under another name, which needs USE."""


def test_macros_run_in_the_oldest_version_of_duckdb(built: Path) -> None:
    said = subprocess.run(
        [str(engine(min(VERSIONS))), "-I", "-c", READ, str(built / "warehouse.duckdb")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.split() == ["4", str(len(load_queries(Project.open().query_folders)))]
