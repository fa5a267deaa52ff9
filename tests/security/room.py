"""Folder with a project, a data folder, a built target, and a secret beside them, for hostile input.

Every hostile input ends in one sentence, or in a file that is listed with the reason why it is not read.
Nothing outside the target may change.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Completed, call
from tests.tiny import Tiny
from warehouse.project.project import Project

SECRET = "nobody may read this"
Files = dict[str, bytes]


class Room:
    """Folder with a project, a data folder, a built target, and a secret beside them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.tiny = Tiny(base)
        self.secret = base / "secret.csv"
        self.target = self.tiny.target
        self.rows = self.tiny.ask("FROM metrics.total")

    def outside(self) -> Files:
        """Return all files except those of the target."""
        paths = (path for path in self.base.rglob("*") if self.target not in path.parents)
        return {str(path): path.read_bytes() for path in paths if path.is_file() and not path.is_symlink()}

    def parts(self) -> Files:
        """Return the published parts and the catalog."""
        files = [self.target / "warehouse.duckdb", *self.target.glob("parts/**/*.parquet")]
        return {str(path): path.read_bytes() for path in files}

    def run(self, *arguments: str | Path) -> Completed:
        return call(*arguments, cwd=self.base)

    def sql(self, text: str, *options: str) -> Completed:
        return self.run("sql", "-t", self.target, *options, text)


def make(base: Path) -> None:
    """Write the project, the data and the secret, and build."""
    tiny = Tiny(base)
    tiny.model(
        "staging.seen",
        "SELECT f.path, p.PortName AS port, t.accessport AS access, a.value FROM raw.files AS f "
        "LEFT JOIN raw.port_counters AS p ON p.filename = f.read_path "
        "LEFT JOIN raw.cluster_topology AS t ON t.filename = f.release_path "
        "LEFT JOIN raw.acme_published AS a ON a.filename = f.release_path "
        "QUALIFY row_number() OVER (PARTITION BY f.path ORDER BY p.SaveTimeUTC) = 1",
        {"path": "VARCHAR", "port": "VARCHAR", "access": "VARCHAR", "value": "DOUBLE"},
    )
    (base / "secret.csv").write_text(f"{SECRET}\n", encoding="utf-8")
    with _project_of(base):
        assert tiny.build().status == 0


@contextlib.contextmanager
def opened(base: Path) -> Iterator[Room]:
    """Open a room whose project replaces the shipped one."""
    with _project_of(base):
        yield Room(base)


@contextlib.contextmanager
def _project_of(base: Path) -> Iterator[None]:
    project = base / "project"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: Project((project,)))
        yield


def is_one_sentence(said: Completed, case: str = "") -> None:
    """Check that the command ended with a status and one sentence, at most followed by a hint."""
    assert said.status in (1, 2), (case, said)
    first, *rest = said.err[said.err.index("error: ") :].splitlines()
    assert len(first) > len("error: "), (case, said)
    assert all(line.startswith("       ") for line in rest), (case, said)
    assert len(rest) <= 8, (case, said)
    is_quiet(said)


def is_quiet(said: Completed) -> None:
    """Check that the output has no part of the secret and no cursor movement."""
    assert SECRET not in said.out + said.err
    assert "\x1b" not in said.out + said.err
    assert "Traceback" not in said.err


def is_as_before(room: Room, before: Files, parts: Files | None = None) -> None:
    assert room.outside() == before
    assert room.parts().items() >= (parts or {}).items()
    assert room.tiny.ask("FROM metrics.total") == room.rows


def zipped(parts: dict[str, bytes]) -> bytes:
    """Return a ZIP file of these members: an archive or a workbook."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as book:
        for name, part in parts.items():
            book.writestr(name, part)
    return content.getvalue()
