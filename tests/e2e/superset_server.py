"""A Superset on loopback with the dashboard over several targets and connections."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

import warehouse
from bi.superset.bundle import bundle
from bi.superset.load import Superset as Session
from tests.environments import ROOT, environment
from tests.publish.postgres_server import free_port, server
from warehouse.publish.postgres.publisher import publish

REQUIREMENTS = ROOT / "bi" / "superset" / "requirements.txt"
BROWSE = Path(__file__).with_name("browse.py")


@dataclass(frozen=True)
class Connection:
    """A target and the server that holds its tables."""

    name: str
    target: Path
    uri: str


@dataclass(frozen=True)
class Superset:
    """A running Superset."""

    python: Path
    base: str
    metastore: str
    connections: Mapping[str, Connection]
    file: Path
    """DuckDB file of the first connection."""

    def load(self, name: str) -> None:
        """Create the bundle of a connection and load it."""
        one = self.connections[name]
        with warehouse.open(one.target) as opened:
            content = bundle(opened, one.uri, one.name)
        Session(self.base, "admin", "admin").load(content)

    def counts(self) -> list[int]:
        """Return the number of dashboards, charts, datasets and databases."""
        with psycopg.connect(self.metastore) as asked:
            tables = ("dashboards", "slices", "tables", "dbs")
            return [(asked.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,))[0] for name in tables]

    def titles(self) -> dict[int, str]:
        """Return the titles of the charts by id."""
        with psycopg.connect(self.metastore) as asked:
            return dict(asked.execute("SELECT id, slice_name FROM slices").fetchall())

    def rows_of(self, connection: str, table: str) -> int:
        """Return the number of rows of a dataset, requested as a chart does."""
        with psycopg.connect(self.metastore) as asked:
            found = asked.execute(
                "SELECT t.id FROM tables t JOIN dbs d ON d.id = t.database_id "
                "WHERE t.table_name = %s AND d.database_name = %s",
                [table, connection],
            ).fetchone()
        assert found
        query = {"metrics": ["rows"], "columns": [], "filters": [], "row_limit": 10}
        asked_for = {"datasource": {"id": found[0], "type": "table"}, "queries": [query]}
        session = Session(self.base, "admin", "admin")
        headers = session._headers | {"Content-Type": "application/json"}
        answer = session.ask("chart/data", json.dumps(asked_for).encode(), headers)
        return int(answer["result"][0]["data"][0]["rows"])

    def browse(self, slug: str, pictures: Path, settings: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Return what a browser saw of a dashboard."""
        done = subprocess.run(
            [self.python, BROWSE, self.base, slug, pictures, json.dumps(list(settings))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


@contextmanager
def superset(sample: Path, like_real: Path, scratch: Path) -> Iterator[Superset]:
    """Install, fill and start Superset; `scratch` holds its settings and log."""
    python = environment("superset", REQUIREMENTS.read_text(encoding="utf-8"))
    with server() as host:
        with psycopg.connect(f"{host}/postgres", autocommit=True) as made:
            made.execute("CREATE DATABASE traces")
            made.execute("CREATE DATABASE superset")
        file = scratch / "warehouse.duckdb"
        shutil.copyfile(sample / "warehouse.duckdb", file)  # its views name the parts by absolute path
        publish(sample, f"{host}/traces", readers=["dashboards"])
        with psycopg.connect(f"{host}/traces", autocommit=True) as made:
            made.execute("CREATE ROLE viewer LOGIN IN ROLE dashboards")
        alchemy = host.replace("postgresql://", "postgresql+psycopg2://")
        viewer = f"{alchemy.replace('postgres@', 'viewer@')}/traces"
        connections = {
            "DuckDB": Connection("warehouse in DuckDB", sample, f"duckdb:///{file}"),
            "PostgreSQL": Connection("warehouse in PostgreSQL", sample, viewer),
            "like real": Connection("published part", like_real, f"duckdb:///{like_real / 'warehouse.duckdb'}"),
        }
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
            "FLASK_APP": "superset",
            "SUPERSET_CONFIG_PATH": str(ROOT / "bi" / "superset" / "superset_config.py"),
            "SUPERSET_METASTORE": f"{alchemy}/superset",
            "SUPERSET_SECRET_KEY": os.urandom(32).hex(),
            "SUPERSET_HOME": str(scratch),
        }
        program = python.with_name("superset")
        with (scratch / "log.txt").open("w", encoding="utf-8") as log:

            def run(*words: str | Path) -> None:
                done = subprocess.run([program, *words], env=env, cwd=scratch, stdout=log, stderr=log, check=False)
                assert done.returncode == 0, (scratch / "log.txt").read_text(encoding="utf-8")[-3000:]

            run("db", "upgrade")
            run(
                *("fab", "create-admin", "--username", "admin", "--password", "admin"),
                *("--firstname", "A", "--lastname", "B", "--email", "a@example.org"),
            )
            run("init")
            port = free_port()
            command = [str(program), "run", "-h", "127.0.0.1", "-p", str(port), "--with-threads"]
            process = subprocess.Popen(command, env=env, cwd=scratch, stdout=log, stderr=log)
            try:
                _wait_for(f"http://127.0.0.1:{port}", process)
                started = Superset(python, f"http://127.0.0.1:{port}", f"{host}/superset", connections, file)
                for name in connections:
                    started.load(name)
                yield started
            finally:
                process.terminate()
                process.wait(30)


def _wait_for(base: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 900
    while True:
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=5) as answer:
                if answer.read() == b"OK":
                    return
        except (urllib.error.URLError, OSError):
            pass
        assert process.poll() is None, "Superset ended"
        assert time.monotonic() < until, "Superset does not answer"
        time.sleep(0.5)
