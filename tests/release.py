"""Release of five ports, for tests that damage it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import warehouse
from tests.conftest import Completed, call
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import load_graph
from warehouse.project.model import relations_of
from warehouse.project.project import Project

LEAF = "NH-DC-NM129-B03-ROCE-Leaf-1_GPU_S9825"
STORAGE = "NH-DC-NM224-J05-ROCE-ST-leaf-1_GPU_S9825"
HOUR = "2024052400"
PORTS = {LEAF: ("Leaf-1_0", "Leaf-1_1_1", "Leaf-1_33"), STORAGE: ("leaf-1_0", "leaf-1_55")}
HEADER = b"SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
MODELS = (
    "metrics.leaf_hour", "metrics.port_hour", "metrics.sampling_quality", "metrics.suspect_links",
    "staging.port_counters", "staging.rejected_rows", "topology.nic_ports", "topology.switches", "topology.uplinks",
)  # fmt: skip
Rows = list[tuple[object, ...]]
Spoil = Callable[[list[bytes]], list[bytes]]
"""Function from the lines of a CSV, header first and each with its newline, to their replacement."""


AFTER_BUILD = """\
/* ---
about: The lines that a build ends with. The shipped query reads tables that this project leaves out.
--- */
SELECT count(*) || ' lines rejected' AS line FROM staging.rejected_rows HAVING count(*) > 0
"""


def lay_out_project(base: Path, models: Iterable[str] = MODELS) -> Project:
    """Create a project of some models and all dependencies, with the shipped macros and reviewed tables.

    It has no named queries: most of them read other models, and each that is no macro costs every build.
    """
    shipped = Project.open()
    (home,) = shipped.folders
    for name in _with_all_they_read(shipped, models):
        file = base / shipped.models[name].path.relative_to(home)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped.models[name].path, file)
    shutil.copytree(home / "sql" / "macros", base / "sql" / "macros")
    (base / "sql" / "queries").mkdir()
    (base / "sql" / "queries" / "after-build.sql").write_text(AFTER_BUILD, encoding="utf-8")
    (base / "data").mkdir()
    for path in (*(home / "data").glob("*.csv"), home / "data" / "tables.yaml"):
        shutil.copy(path, base / "data")
    return Project((base,))


@contextmanager
def only(base: Path, *models: str) -> Iterator[None]:
    """Let builds make these models and all dependencies alone, in a project below `base`, beside those of a project."""
    base.mkdir(parents=True)
    project = lay_out_project(base, models)
    with pytest.MonkeyPatch.context() as patch:
        instead_of_shipped(project, patch)
        yield


def instead_of_shipped(project: Project, patch: pytest.MonkeyPatch) -> None:
    """Replace the shipped project."""
    patch.setattr(Project, "open", lambda own=None: Project((*project.folders, own.resolve())) if own else project)


def _with_all_they_read(shipped: Project, models: Iterable[str]) -> set[str]:
    with closing(DuckDBEngine(memory_bytes=2**30, spill=Path("spill"))) as engine:
        nodes = load_graph(shipped, engine).nodes
    found, ahead = set[str](), set(models)
    while ahead:
        found |= ahead
        checked = {read for name in ahead for check in nodes[name].model.checks for read in relations_of(check.text)}
        ahead = ({read for name in ahead for read in nodes[name].reads} | checked) & nodes.keys() - found
    return found


class Release:
    """Small release, its target, and the commands to run on them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "release"
        self.cluster = self.root / "cluster"
        self.hour = self.cluster / "trafficinfo" / HOUR
        self.access = self.hour / LEAF / "Leaf-1_1_1.csv"
        self.uplink = self.hour / LEAF / "Leaf-1_33.csv"
        self.workbook = self.cluster / "cluster.xlsx"
        self.target = base / "target"

    def build(self, *options: str | Path, data: Path | None = None) -> Completed:
        return call("build", "-d", data or self.root, "-t", self.target, "--threads", "1", *options, cwd=self.base)

    def doctor(self, data: Path | None = None) -> Completed:
        return call("doctor", "--all", "-d", data or self.root, "-t", self.target, cwd=self.base)

    def ask(self, sql: str) -> Rows:
        with warehouse.open(self.target) as connection:
            return connection.execute(sql).fetchall()

    def listed(self, path: Path) -> tuple[object, ...]:
        """Return (status, reason) of a file in `raw.files`."""
        (row,) = self.ask(f"SELECT status, reason FROM raw.files WHERE path = '{path}'")
        return row

    def rows(self) -> Rows:
        """Return the rows of the ports in the warehouse."""
        return self.ask("SELECT switch, port, polls, in_bytes, out_bytes FROM metrics.port_hour ORDER BY ALL")

    def state(self) -> Rows:
        """Return the state that a reader sees: build and rows."""
        return self.ask("SELECT build_id, published_utc::VARCHAR FROM meta.build") + self.rows()


def lay_out(sample: Path, base: Path) -> Release:
    found = Release(base)
    cluster = sample / "zhejiang" / "cluster_sample"
    for switch, ports in PORTS.items():
        (found.hour / switch).mkdir(parents=True)
        for port in ports:
            shutil.copy(cluster / "trafficinfo" / HOUR / switch / f"{port}.csv", found.hour / switch)
    shutil.copy(cluster / "cluster_sample.xlsx", found.workbook)
    return found


def keep_switches(hour: Path, *names: str) -> None:
    """Remove the switches of an hour whose folders have none of these names."""
    for folder in hour.iterdir():
        if folder.is_dir() and not any(name in folder.name for name in names):
            shutil.rmtree(folder)


def spoil(path: Path, change: Spoil) -> int:
    """Change the lines of a CSV; return its previous number of rows."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(list(lines))))
    return len(lines) - 1


def done(said: Completed) -> Completed:
    assert said.status == 0, said
    return said


def fails(said: Completed, *words: str, status: int = 2) -> None:
    """Check that the command ended with this status and one sentence with these words."""
    assert said.status == status, said
    assert said.out == ""
    assert said.err.count("error: ") == 1
    told = said.err[said.err.index("error: ") :]
    for word in words:
        assert word in told
