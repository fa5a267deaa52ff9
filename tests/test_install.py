"""An ordinary install: the wheel, in an environment of its own without extras, outside the clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

import warehouse
from tests.conftest import PATIENCE, SETTINGS, MadeOnce
from tests.release import lay_out_project

ROOT = Path(__file__).parents[1]
FOLDERS = ("warehouse", "models", "sql", "docs", "data")
"""Folders whose files are in the wheel."""
TREE = (*FOLDERS, "tests", "bench", "bi", ".gitignore", "LICENSE", "README.md", "pyproject.toml")
"""Files and folders that are in the sdist."""
RAW = ("real/zhejiang/a.csv", "sample/x.csv", "other_release/y.csv", "other_release/deep/z.yaml")
"""Raw files that people keep in folders of data/."""


class Dist(NamedTuple):
    """A wheel, an sdist, and the files that they were made of."""

    wheel: Path
    sdist: Path
    files: frozenset[str]


class Installed(NamedTuple):
    """Programs of the environment, and a folder to run them in."""

    programs: Path
    folder: Path

    def run(self, program: str, *arguments: str | Path, stdin: int = subprocess.DEVNULL) -> str:
        """Run a program; return its output if it ends well, else its error."""
        done = subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.folder,
            env=_environment(),
            stdin=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr if done.returncode else done.stdout

    def warehouse(self, *arguments: str | Path) -> str:
        """Run a command of warehouse that must end well; return its output."""
        said = self.run("warehouse", *arguments)
        assert not said.startswith("error: "), said
        return said


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in (*SETTINGS, "PYTHONPATH")}


def _is_raw(path: Path) -> bool:
    """Return True for a folder of data/ that people keep raw files in."""
    return path.parent == ROOT / "data" and path.is_dir() and path.name != "traces"


def pip(*arguments: str | Path) -> None:
    """Run pip; skip the test if pip reaches no index."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--retries=1", *arguments],
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "connection broken by" in done.stderr:
        pytest.skip("pip reaches no index of packages: run the tests with a network")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def dist(made_once: MadeOnce) -> Dist:
    """Return what a release publishes, made of a copy of the clone with raw files below its data folder."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        place = Path(folder)
        if place == ROOT:
            return [name for name in names if name not in TREE]
        return [name for name in names if name == "__pycache__" or _is_raw(place / name)]

    def make(base: Path) -> None:
        clone, raw = base / "clone", base / "raw"
        shutil.copytree(ROOT, clone, ignore=left_out)
        for name in RAW:
            (raw / name).parent.mkdir(parents=True, exist_ok=True)
            (raw / name).write_text("a,b\n1,2\n", encoding="utf-8")
        (clone / "data" / "real").symlink_to(raw / "real")
        for name in ("sample", "other_release"):
            shutil.copytree(raw / name, clone / "data" / name)
        pip("install", "--target", base / "tools", "hatchling")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", base / "dist"],
            cwd=clone,
            env=_environment() | {"PYTHONPATH": str(base / "tools")},
            capture_output=True,
            check=True,
        )

    base = made_once("dist", make)
    clone = base / "clone"
    files = (path.relative_to(clone).as_posix() for path in clone.rglob("*") if path.is_file())
    [wheel], [sdist] = (base / "dist").glob("*.whl"), (base / "dist").glob("*.tar.gz")
    return Dist(wheel, sdist, frozenset(name for name in files if not re.match(r"data/(?!traces/).+/", name)))


@pytest.fixture(scope="session")
def installed(dist: Dist, made_once: MadeOnce) -> Installed:
    """Return an environment with the wheel and what it requires without extras, linked to the packages of the tests."""

    def make(base: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", base / "env"], check=True)
        python = f"--python={base / 'env' / 'bin' / 'python'}"
        pip(python, "install", "--no-deps", "--no-index", dist.wheel)
        [site] = (base / "env" / "lib").glob("python*/site-packages")
        _link_requirements(Distribution.at(next(site.glob("gpu_warehouse-*.dist-info"))), site)
        pip(python, "check")
        (base / "elsewhere").mkdir()

    base = made_once("installed", make)
    return Installed(base / "env" / "bin", base / "elsewhere")


def _link_requirements(package: Distribution, site: Path) -> None:
    for required in map(Requirement, package.requires or ()):
        if required.marker is None or required.marker.evaluate({"extra": ""}):
            found = distribution(required.name)
            for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                if not (site / name).exists():
                    (site / name).symlink_to(Path(str(found.locate_file(name))))
            _link_requirements(found, site)


def test_wheel_and_sdist_have_whole_folders_without_raw_files(dist: Dist) -> None:
    sources = {name for name in dist.files if name.startswith(tuple(f"{one}/" for one in FOLDERS))}
    wanted = {name if name.startswith("warehouse/") else f"warehouse/shipped/{name}" for name in sources}
    with zipfile.ZipFile(dist.wheel) as opened:
        names = set(opened.namelist())
        [path] = [name for name in names if name.endswith("/METADATA")]
        found = Metadata.from_email(opened.read(path), validate=True)
        about = {name for name in names if ".dist-info/" in name}
        assert names - about == wanted
        clone = {name: ROOT / name.removeprefix("warehouse/shipped/") for name in wanted}
        assert [name for name in wanted if opened.read(name) != clone[name].read_bytes()] == []
    assert {name.partition(".dist-info/")[2] for name in about} >= {"entry_points.txt", "licenses/LICENSE"}
    assert (found.name, str(found.version)) == ("gpu-warehouse", warehouse.__version__)
    assert {"postgres", "cluster", "mcp", "dev"} == set(found.provides_extra or ())
    with tarfile.open(dist.sdist) as unpacked:
        names = {one.name.partition("/")[2] for one in unpacked.getmembers() if one.isfile()}
    assert names == dist.files | {"PKG-INFO"}


def test_parts_are_those_of_the_clone(installed: Installed, two_leaves: Path) -> None:
    """Of a few models; the wheel has all files of the clone."""
    data, target, project = two_leaves.parent / "data", installed.folder / "target", installed.folder / "few"
    project.mkdir()
    lay_out_project(project, ["metrics.port_hour", "topology.nic_ports"])
    (project / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    installed.warehouse("build", "-d", data, "-t", target, "--project", project)
    parts = [path.relative_to(target) for path in (target / "parts").rglob("*.parquet")]
    assert any("metrics.port_hour" in path.parts for path in parts)
    assert [path for path in parts if (target / path).read_bytes() != (two_leaves / path).read_bytes()] == []


def test_a_build_is_asked_and_handed_on(installed: Installed, built: Path) -> None:
    at = ("-t", built)
    assert " warnings\n\nlink silent one way: The uplink Leaf-7 1/0/37 " in installed.warehouse("findings", *at)
    assert installed.warehouse("sql", "SELECT count(*) AS leaves FROM metrics.leaf_hour", *at) == "leaves\n18\n"
    assert "mlx5_2" in installed.warehouse("sql", "-q", "nic", "--server", "GPU-1", *at)
    assert "bytes" in installed.warehouse("show", "metrics.port_hour", *at)


def test_a_project_is_started(installed: Installed, two_leaves: Path) -> None:
    """The next steps of one with a sample are run by tests/cli/test_commands.py."""
    data = two_leaves.parent / "data"
    assert "Next   cd study && " in installed.warehouse("init", "study", "-d", data)
    assert "zhejiang.port_counters: " in installed.warehouse("doctor", "-d", data)


EXTRAS = {
    "postgres": "publish postgresql://me@localhost/traces -s metrics.leaf_hour",
    "cluster": "build -d . --scheduler local:2",
    "mcp": "mcp",
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_command_names_the_extra_that_it_needs(extra: str, installed: Installed, built: Path) -> None:
    said = installed.run("warehouse", *EXTRAS[extra].split(), "-t", built)
    assert re.search(rf"^error: [^\n]+\n +pip install 'gpu-warehouse\[{extra}\]'\n\Z", said, re.MULTILINE), said


def test_the_python_lines_of_the_readme_run(installed: Installed, built: Path) -> None:
    [lines] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    target = f"import os\nos.environ['WAREHOUSE_TARGET'] = {str(built)!r}\n"
    shown = installed.run("python", "-c", target + lines)
    assert "mlx5_2" in shown
    assert "rx_bytes" in shown
