"""Damaged targets: parts, and files replaced by pipes, folders, sockets or dangling links."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import warehouse
from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.base.errors import QueryError
from warehouse.runner import catalog

Break = Callable[[Path], None]


def rot(path: Path) -> None:
    """Change one byte without changing size or mtime."""
    about, content = path.stat(), path.read_bytes()
    path.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def listening(path: Path) -> None:
    path.unlink()
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name[:100])
    finally:
        os.chdir(before)


@pytest.fixture(autouse=True)
def views(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read tables from their parts: the catalog has no copy."""
    monkeypatch.setattr(catalog, "SMALL_BYTES", 0)


def part_of(hours: Tiny, name: str = "staging.hour") -> Path:
    return sorted((hours.target / "parts" / name).rglob("*.parquet"))[0]


@pytest.mark.parametrize("how", [rot, pipe, folder, nowhere, listening])
def test_a_damaged_part_is_not_served_and_is_rebuilt(hours: Tiny, command: Command, how: Break) -> None:
    hours.made()
    before = hours.ask("FROM staging.hour ORDER BY ALL")
    part = part_of(hours)
    content, name = part.read_bytes(), part.relative_to(hours.target).as_posix()
    how(part)

    with pytest.raises(QueryError, match="1 part that would be read is damaged") as refused:
        warehouse.open(hours.target)
    assert name in str(refused.value)
    said = command("sql", "FROM staging.hour", "-t", hours.target)
    assert said.status == 2
    assert "1 part that would be read is damaged" in said.err
    assert name in said.err
    assert command("sql", "FROM metrics.total", "-t", hours.target).status == 0  # it reads no damaged part
    assert command("export", hours.base / "out", "-t", hours.target, "-s", "staging.hour").status == 2

    said = hours.build()
    assert said.status == 0, said.err
    assert f"{name} is damaged" in said.err_text
    assert part.read_bytes() == content
    assert [path.name for path in (hours.target / "damaged").rglob("*.parquet")] == [part.name]
    assert hours.ask("FROM staging.hour ORDER BY ALL") == before


def test_damage_of_a_part_that_no_view_reads_is_ignored(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "SMALL_BYTES", 10**6)
    hours.made()
    rot(part_of(hours))
    assert len(hours.ask("FROM staging.hour")) == 2


def test_citations_and_descriptions_refuse_damaged_parts(hours: Tiny, command: Command) -> None:
    hours.made()
    assert command("sql", "FROM staging.hour", "-t", hours.target, "--cite").status == 0
    (cited,) = (hours.target / "citations").iterdir()
    assert command("cite", cited.stem, "-t", hours.target).status == 0
    rot(part_of(hours))
    for words in (("cite", cited.stem), ("show", "staging.hour"), ("docs", hours.base / "site")):
        said = command(*words, "-t", hours.target)
        assert (said.status, "1 part that would be read is damaged" in said.err) == (2, True), said


def file(path: Path) -> None:
    """Put a file in the place of a folder."""
    shutil.rmtree(path, ignore_errors=True)
    path.touch()


FILES = {
    "warehouse.duckdb": folder, "lock": pipe, "builds/current": pipe, "builds/*/manifest.json": pipe,
    "builds/*/catalog.duckdb": nowhere, "state.sqlite": listening, "tmp": file, "cache": file, "parts": file,
    "builds/*[0-9a-f]": file, "parts/metrics.total": file,
}  # fmt: skip
"""What is damaged, and how."""


def test_what_has_another_kind_in_a_target_is_replaced(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    before = tiny.ask("FROM metrics.total")
    for name, how in FILES.items():
        (path,) = tiny.target.glob(name)
        how(path)
        said = tiny.build("--paranoid")
        assert said.status == 0, said.err
        assert (path.is_file(), path.is_dir()) == (how is not file, how is file), name
        assert tiny.ask("FROM metrics.total") == before
    assert "Up to date" in tiny.build().err
