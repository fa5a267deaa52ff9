"""Atomicity of builds: tables of one generation, or a mix of two, after a build that failed half-way.

    python -m bench.torn                         ours, dbt-duckdb, yato, SQLMesh and lea
    python -m bench.torn --peers dbt,yato --kills 20

The 30 models of `bench.chain` are built. Then every root table gets other rows, and the build that should update all
tables fails. Either a model fails at run time, a check fails, or the build is killed (`kill -9`) at times spread over
its duration. Each table that readers then find is compared with the old and the new generation, as built by the bare
SQL.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import duckdb

from bench.chain import SCRATCH, environment
from bench.chain_models import FAULTS, LAYERS, MODELS, chain, write
from bench.measure import machine
from bench.peers import OURS, Runner, chosen, install

OLD, NEW = 10_000, 9_000
Digests = Mapping[str, tuple[object, ...]]


def main() -> int:
    """Print the tables; return 1 if our readers found anything but the old tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--peers", default="all", help="yato,lea,dbt,sqlmesh; all (default) or none")
    options.add_argument("--kills", type=int, default=10, help="moments of kill -9 (default 10)")
    options.add_argument("--scratch", type=Path, default=SCRATCH, help="for environments and projects")
    given = options.parse_args()
    runners = [OURS, *chosen(given.peers)]
    environments = given.scratch.absolute() / "environments"
    versions = install(runners, environments)
    print(machine())
    print(f"{MODELS} tables; rows at the root: {OLD:,} in the old generation, {NEW:,} in the new\n")
    print(f"{'':<22}{'the build that fails':<34}{'exit':>5}{'old':>5}{'new':>5}{'neither':>9}")
    torn_ours = False
    with tempfile.TemporaryDirectory(prefix="torn-", dir=given.scratch) as folder:
        generations = (_generation(OLD), _generation(NEW))
        for runner in runners:
            one = Trial(runner, runner.command(environments), Path(folder) / runner.layout, generations)
            name = f"{runner.name} {versions.get(runner.lock or '', '')}"
            for what, status, found in one.outcomes(given.kills):
                print(f"{name:<22}{what:<34}{status:>5}{found[0]:>5}{found[1]:>5}{found[2]:>9}", flush=True)
                torn_ours = torn_ours or (runner is OURS and (found[0] < MODELS or status == 0))
    return int(torn_ours)


class Trial:
    """Runner, and the generations to compare its tables with."""

    def __init__(self, runner: Runner, command: list[str], project: Path, generations: tuple[Digests, Digests]) -> None:
        self._runner = runner
        self._command = command
        self._project = project
        self._kept = project.with_name(f"{project.name}.old")
        self._generations = generations

    def outcomes(self, kills: int) -> list[tuple[str, int, tuple[int, int, int]]]:
        """Return (failing build, exit status, number of tables of the old, the new and no generation)."""
        self._write(OLD)
        if self._build():
            raise SystemExit(f"{self._runner.name}: the first build fails, see {self._log}")
        self._project.rename(self._kept)
        said = [self._failing(fault) for fault in FAULTS if self._runner.checks or fault != "check"]
        return [*said, *self._killed(kills)]

    def _failing(self, fault: str) -> tuple[str, int, tuple[int, int, int]]:
        self._restore()
        self._write(NEW, fault)
        status = self._build()
        return f"a {fault} fails", status, self._found()

    def _killed(self, kills: int) -> list[tuple[str, int, tuple[int, int, int]]]:
        """Return the worst outcome of the kills, and the number of kills that left a mix of generations."""
        self._restore()
        self._write(NEW)
        started = time.perf_counter()
        self._build()
        whole = time.perf_counter() - started
        worst, mixed, early = (MODELS, 0, 0), 0, 0
        for number in range(kills):
            self._restore()
            self._write(NEW)
            early += self._build(kill_after=whole * (number + 0.5) / kills) == 0
            found = self._found()
            mixed += MODELS not in found[:2]
            worst = min(worst, found, key=lambda one: max(one[:2]))
        ended = f", {early} after its end" if early else ""
        return [(f"{kills} x kill -9, {mixed} left a mix{ended}", -signal.SIGKILL, worst)]

    @property
    def _log(self) -> Path:
        return self._project.with_suffix(".log")

    def _write(self, rows: int, fault: str | None = None) -> None:
        write(self._runner.layout, self._project, chain(rows=rows, checked=True, fault=fault))

    def _restore(self) -> None:
        shutil.rmtree(self._project, ignore_errors=True)
        shutil.copytree(self._kept, self._project)

    def _build(self, kill_after: float | None = None) -> int:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._command, cwd=self._project, env={**os.environ, **environment(self._project)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
            try:
                return process.wait(kill_after)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # kill the session of the build
                return process.wait()

    def _found(self) -> tuple[int, int, int]:
        old, new = self._generations
        tables = _digests(self._project / self._runner.database, old)
        counts = [sum(tables.get(name) == one[name] for name in one) for one in (old, new)]
        return counts[0], counts[1], MODELS - sum(counts)


def _generation(rows: int) -> Digests:
    with tempfile.TemporaryDirectory() as folder:
        write("bare", Path(folder), chain(rows=rows))
        database = Path(folder) / "chain.duckdb"
        with duckdb.connect(str(database)) as connection:
            connection.execute((Path(folder) / "chain.sql").read_text(encoding="utf-8"))
        return _digests(database, {link.name: () for link in chain()})


def _digests(database: Path, names: Digests) -> Digests:
    """Return row count and an order-independent sum of row hashes for each readable table."""
    columns: dict[tuple[str, str], list[str]] = {}
    found: dict[str, tuple[object, ...]] = {}
    with duckdb.connect(str(database), read_only=True) as connection:
        listed = connection.execute(
            "SELECT schema_name, table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        )
        for schema, table, column in listed.fetchall():
            if table in names and not column.startswith("_"):  # lea adds columns
                columns.setdefault((schema, table), []).append(f'"{column}"')
        for schema, table in sorted(columns, key=lambda one: one[0] in LAYERS):  # yato uses a schema of its own
            hashed = ", ".join(columns[schema, table])
            try:
                rows = connection.execute(f'SELECT count(*), sum(hash({hashed})) FROM "{schema}"."{table}"').fetchall()
            except duckdb.Error:  # a view whose table is missing
                continue
            found[table] = rows[0]
    return found


if __name__ == "__main__":
    sys.exit(main())
