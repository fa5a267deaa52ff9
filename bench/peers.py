"""Other runners of SQL models, each in a virtual environment of its own, with pinned packages (`bench/peers/`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / "build" / "bench" / "environments"
QUIET = {
    "DO_NOT_TRACK": "1",
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
    "PYTHONDONTWRITEBYTECODE": "",
}
"""No usage statistics; compiled modules are kept, as they are for a program that is installed."""


@dataclass(frozen=True)
class Runner:
    """A program that makes tables of SQL files."""

    name: str
    layout: str
    """A key of `bench.chain_models.LAYOUTS`."""
    build: tuple[str, ...]
    """The command, run in the project's folder; the first word is looked for in the environment's `bin/`."""
    database: str = "chain.duckdb"
    """What readers open, relative to the project."""
    lock: str | None = None
    """The list of pinned packages; None for the Python that runs this bench."""
    engine: str = "duckdb 1.5.6"
    """Which bare run it is compared with."""
    checks: bool = True
    """Whether it knows checks."""

    def command(self, environments: Path) -> list[str]:
        """The command with the path of its program."""
        if self.lock is None:
            return [sys.executable, *self.build[1:]]
        return [str(environments / self.lock / "bin" / self.build[0]), *self.build[1:]]


OURS = Runner(
    "warehouse", "warehouse", ("python", "-m", "warehouse", "build"), "build/warehouse/warehouse.duckdb", engine="ours"
)
BARE = Runner("bare SQL", "bare", ("python", str(HERE / "bare.py")), engine="ours")
BARE_PEERS = Runner("bare SQL", "bare", ("python", str(HERE / "bare.py")), lock="bare")
PEERS = (
    Runner("yato", "yato", ("yato", "run", "--db", "chain.duckdb", "sql"), lock="yato", checks=False),
    Runner("lea", "lea", ("lea", "run", "--production"), lock="lea"),
    Runner("dbt-duckdb", "dbt", ("dbt", "build", "--quiet"), lock="dbt"),
    Runner("SQLMesh", "sqlmesh", ("sqlmesh", "plan", "--auto-apply", "--no-prompts"), lock="sqlmesh"),
)


def chosen(names: str) -> list[Runner]:
    """The peers of a comma-separated list; `all`, or `none`."""
    if names == "all":
        return list(PEERS)
    known = {runner.layout: runner for runner in PEERS}
    wanted = [name for name in names.split(",") if name and name != "none"]
    for name in wanted:
        if name not in known:
            raise SystemExit(f"no peer {name}: one of {', '.join(known)}, or all, or none")
    return [known[name] for name in wanted]


def install(runners: list[Runner], environments: Path) -> Mapping[str, str]:
    """Make the environments that are not there yet; the version of what each runs, by lock."""
    versions = {}
    for lock in {runner.lock for runner in runners if runner.lock}:
        lines = dict(line.split("==") for line in install_lock(lock, environments).split())
        versions[lock] = lines.get({"dbt": "dbt-core", "lea": "lea-cli", "yato": "yato-lib"}.get(lock, lock), "")
    return versions


def install_lock(lock: str, environments: Path) -> str:
    """Make one environment, unless it is there; its list of packages."""
    pinned, folder = HERE / "peers" / f"{lock}.txt", environments / lock
    done = folder / "installed.txt"
    if not done.is_file() or done.read_bytes() != pinned.read_bytes():
        print(f"installing {lock} into {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--requirement", str(pinned)], check=True)
        done.write_bytes(pinned.read_bytes())
    return pinned.read_text(encoding="utf-8")
