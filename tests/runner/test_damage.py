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


HOWS = (rot, pipe, folder, nowhere, listening)


def parts_of(hours: Tiny) -> list[Path]:
    return sorted((hours.target / "parts" / "staging.hour").rglob("*.parquet"))


def test_damaged_parts_are_not_served_and_are_rebuilt(hours: Tiny, command: Command) -> None:
    for hour in range(2, len(HOWS)):
        hours.file(hour, "1,100,2,200,0,0.5")
    hours.made()
    before = hours.ask("FROM staging.hour ORDER BY ALL")
    assert command("sql", "FROM staging.hour", "-t", hours.target, "--cite").status == 0
    (cited,) = (hours.target / "citations").iterdir()
    assert command("cite", cited.stem, "-t", hours.target).status == 0
    contents = {part: part.read_bytes() for part in parts_of(hours)}
    for part, how in zip(contents, HOWS, strict=True):
        how(part)
    with pytest.raises(QueryError, match="5 parts that would be read are damaged"):
        warehouse.open(hours.target)
    asked = ("sql", "FROM staging.hour"), ("cite", cited.stem), ("show", "staging.hour")
    sent = ("export", hours.base / "out", "-s", "staging.hour"), ("docs", hours.base / "site")
    for words in (*asked, *sent):
        said = command(*words, "-t", hours.target)
        assert (said.status, "5 parts that would be read are damaged" in said.err) == (2, True), said
    assert command("sql", "FROM metrics.total", "-t", hours.target).status == 0, "it reads no damaged part"

    said = hours.build()
    assert said.status == 0, said.err
    moved = {path.name for path in (hours.target / "damaged").rglob("*.parquet")}
    for part, content in contents.items():
        assert f"{part.relative_to(hours.target)} is damaged" in said.err_text
        assert part.read_bytes() == content
        assert part.name in moved
    assert hours.ask("FROM staging.hour ORDER BY ALL") == before


def test_damage_of_a_part_that_no_view_reads_is_ignored(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "SMALL_BYTES", 10**6)
    hours.made()
    rot(parts_of(hours)[0])
    assert len(hours.ask("FROM staging.hour")) == 2


def file(path: Path) -> None:
    """Put a file in the place of a folder."""
    shutil.rmtree(path, ignore_errors=True)
    path.touch()


ROUNDS: tuple[dict[str, Callable[[Path], None]], ...] = (
    {
        "warehouse.duckdb": folder,
        "lock": pipe,
        "builds/*/manifest.json": pipe,
        "state.sqlite": listening,
        "cache": file,
    },
    {"tmp": file, "parts/metrics.total": file},
    {"builds/current": pipe, "builds/*/catalog.duckdb": nowhere, "parts": file},
    {"builds/*[0-9a-f]": file},
)
"""What is damaged before a build, and how."""


def test_what_has_another_kind_in_a_target_is_replaced(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    before = tiny.ask("FROM metrics.total")
    for damages in ROUNDS:
        paths = {path: how for name, how in damages.items() for path in tiny.target.glob(name)}
        assert len(paths) == len(damages)
        for path, how in paths.items():
            how(path)
        assert tiny.build("--paranoid").status == 0
        for path, how in paths.items():
            assert path.is_dir() if how is file else path.is_file(), path
        assert tiny.ask("FROM metrics.total") == before
    assert "Up to date" in tiny.build().err
