"""Other runners of SQL models, each in a virtual environment of its own, with pinned packages (`bench/peers/`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
QUIET = {"DO_NOT_TRACK": "1", "PYTHONDONTWRITEBYTECODE": ""}
"""Environment without usage statistics and with cached bytecode, as for an installed program."""


@dataclass(frozen=True)
class Runner:
    """Program that builds tables from SQL files."""

    name: str
    layout: str
    """Key of `bench.chain_models.LAYOUTS`."""
    build: tuple[str, ...]
    """Command, run in the project's folder; its first word is a program in the environment's `bin/`."""
    lock: str | None = None
    """List of pinned packages; None for the Python that runs this benchmark."""
    engine: str = "duckdb 1.5.6"
    """Bare run to compare with."""

    def command(self, environments: Path) -> list[str]:
        """Return the command with the path of its program."""
        if self.lock is None:
            return [sys.executable, *self.build[1:]]
        return [str(environments / self.lock / "bin" / self.build[0]), *self.build[1:]]


OURS = Runner("warehouse", "warehouse", ("python", "-m", "warehouse", "build"), engine="ours")
BARE = Runner("bare SQL", "bare", ("python", str(HERE / "bare.py")), engine="ours")
BARE_PEERS = Runner("bare SQL", "bare", ("python", str(HERE / "bare.py")), lock="bare")
PEERS = (
    Runner("yato", "yato", ("yato", "run", "--db", "chain.duckdb", "sql"), lock="yato"),
    Runner("lea", "lea", ("lea", "run", "--production"), lock="lea"),
)


def install(runners: list[Runner], environments: Path) -> Mapping[str, str]:
    """Create missing environments; return the version of each runner, by lock file."""
    versions = {}
    for lock in {runner.lock for runner in runners if runner.lock}:
        pinned, folder = HERE / "peers" / f"{lock}.txt", environments / lock
        done = folder / "installed.txt"
        if not done.is_file() or done.read_bytes() != pinned.read_bytes():
            print(f"installing {lock} into {folder}", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--requirement", str(pinned)], check=True)
            done.write_bytes(pinned.read_bytes())
        lines = dict(line.split("==") for line in pinned.read_text(encoding="utf-8").split())
        versions[lock] = lines.get({"lea": "lea-cli", "yato": "yato-lib"}.get(lock, "duckdb"), "")
    return versions
