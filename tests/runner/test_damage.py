"""Damaged targets: parts, and files replaced by pipes, folders, sockets or dangling links."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import warehouse
from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.base import hashing
from warehouse.base.errors import QueryError
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.runner import catalog_entries
from warehouse.store.manifest import read_manifest
from warehouse.store.signatures import stamp

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


ODD: dict[str, Break] = {"a pipe": pipe, "a folder": folder, "a dangling link": nowhere, "a socket": listening}


@pytest.fixture
def hours(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """`staging.hour` with a part per hour, read from the parts: the catalog has no copy."""
    monkeypatch.setattr(catalog_entries, "SMALL_BYTES", 0)
    tiny.model(
        "staging.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"},
        "partition: hour_utc",
    )
    return tiny


def part_of(hours: Tiny, name: str = "staging.hour") -> Path:
    return sorted((hours.target / "parts" / name).rglob("*.parquet"))[0]


@pytest.mark.parametrize("how", [rot, *ODD.values()])
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
    assert os.path.lexists(hours.target / "damaged" / name)
    assert hours.ask("FROM staging.hour ORDER BY ALL") == before


def test_damage_of_a_part_that_no_view_reads_is_ignored(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_entries, "SMALL_BYTES", 10**6)
    hours.made()
    rot(part_of(hours))
    assert len(hours.ask("FROM staging.hour")) == 2


def test_to_compare_a_thousand_parts_takes_less_than_50_ms(hours: Tiny) -> None:
    hours.made()
    part = part_of(hours)
    many = [part.with_name(f"{number:032x}.parquet") for number in range(1_000)]
    for one in many:
        one.touch()
    (path,) = hours.target.glob("builds/*/manifest.json")
    manifest = read_manifest(path)
    (entry,) = [one for one in manifest.parts if one["path"] == part.relative_to(hours.target).as_posix()]
    new = [{**entry, "path": one.relative_to(hours.target).as_posix(), "stamp": stamp(one.stat())} for one in many]
    manifest._replace(parts=[*manifest.parts, *new]).write(path)
    took = []
    for _ in range(3):
        started = time.process_time()
        refuse_damage(hours.target)
        took.append(time.process_time() - started)
    assert min(took) < 0.05


@pytest.mark.parametrize("how", [rot, pipe])
def test_citations_and_descriptions_refuse_damaged_parts(hours: Tiny, command: Command, how: Break) -> None:
    hours.made()
    assert command("sql", "FROM staging.hour", "-t", hours.target, "--cite").status == 0
    (cited,) = (hours.target / "citations").iterdir()
    assert command("cite", cited.stem, "-t", hours.target).status == 0
    how(part_of(hours))
    for words in (("cite", cited.stem), ("show", "staging.hour"), ("docs", hours.base / "site")):
        said = command(*words, "-t", hours.target)
        assert (said.status, "1 part that would be read is damaged" in said.err) == (2, True), said


@pytest.fixture
def digested(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files digested from here on."""
    found: list[Path] = []
    usual = hashing.of_file

    def of_file(path: Path, watch: hashing.Watch | None = None) -> str:
        found.append(path)
        return usual(path, watch)

    monkeypatch.setattr(hashing, "of_file", of_file)
    return found


def copied(part: Path) -> None:
    """Replace a part by a copy: another inode, equal content."""
    shutil.copy2(part, part.with_name("copy"))
    part.with_name("copy").replace(part)


def test_a_part_with_a_new_stamp_and_equal_content_is_digested_once(
    hours: Tiny, command: Command, digested: list[Path]
) -> None:
    hours.made()
    copied(part_of(hours))
    digested.clear()
    for _ in range(2):
        assert command("sql", "FROM staging.hour", "-t", hours.target).status == 0
    assert digested == [part_of(hours)]
    assert hours.made() == set()


def test_a_new_stamp_is_kept_in_the_state_folder_of_a_target_that_cannot_be_written(
    hours: Tiny, command: Command, digested: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    hours.made()
    copied(part_of(hours))

    def refuse(path: Path, text: str) -> None:
        if path.is_relative_to(hours.target):
            raise PermissionError(13, "Permission denied", str(path))
        path.write_text(text, encoding="utf-8")

    monkeypatch.setenv("XDG_STATE_HOME", str(hours.base / "state"))
    monkeypatch.setattr("warehouse.store.atomic.write_text", refuse)
    digested.clear()
    for _ in range(2):
        assert command("sql", "FROM staging.hour", "-t", hours.target).status == 0
    assert digested == [part_of(hours)]
    assert len(list((hours.base / "state" / "warehouse" / "stamps").iterdir())) == 1


FILES = ("warehouse.duckdb", "lock", "builds/current", "builds/*/manifest.json", "builds/*/catalog.duckdb",
         "state.sqlite")  # fmt: skip


@pytest.mark.parametrize(("name", "how"), [*((name, "a pipe") for name in FILES), *((FILES[0], how) for how in ODD)])
def test_non_files_in_a_target_are_replaced(tiny: Tiny, name: str, how: str) -> None:
    assert tiny.build().status == 0
    before = tiny.ask("FROM metrics.total")
    (path,) = tiny.target.glob(name)
    ODD[how](path)
    said = tiny.build("--paranoid")
    assert said.status == 0, said.err
    assert path.is_file()
    assert tiny.ask("FROM metrics.total") == before
    assert "Up to date" in tiny.build().err
