"""The state of a target is an index and a cache: lost or damaged in any way, it costs no part and no number."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

import warehouse
from tests.conftest import call
from tests.tiny import HOURS, Tiny
from warehouse.store.state import FOLDER, LAST, NAME, PART, DamagedStateError, State

Rows = list[tuple[object, ...]]
KINDS = (PART, FOLDER, LAST)
MADE_AGAIN = "state.sqlite is missing or damaged: made again from 4 parts of the kept builds"


def published(tiny: Tiny) -> tuple[Rows, ...]:
    """Return everything that readers see of a build, but when it was published."""
    with warehouse.open(tiny.target) as connection:
        return tuple(
            connection.execute(sql).fetchall()
            for sql in (
                "SELECT build_id FROM meta.build",
                "FROM staging.hour ORDER BY ALL",
                "FROM metrics.total",
                "FROM metrics.view ORDER BY ALL",
                "SELECT path, status, reason FROM raw.files ORDER BY ALL",
                "SELECT * EXCLUDE (rows) FROM meta.models ORDER BY ALL",
                "SELECT model, check_text, severity, status, failures FROM meta.checks ORDER BY ALL",
            )
        )


def files_of(tiny: Tiny) -> dict[Path, tuple[int, int]]:
    """Return inode and time of each part."""
    found = {path: path.stat() for path in (tiny.target / "parts").rglob("*.parquet")}
    return {path: (about.st_ino, about.st_mtime_ns) for path, about in found.items()}


def state_of(tiny: Tiny) -> Path:
    return tiny.target / NAME


def noise(content: bytes) -> bytes:
    return random.Random(1).randbytes(len(content))


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut in half": lambda content: content[: len(content) // 2],
    "zeros in the middle": lambda content: (
        content[: len(content) // 3].ljust(len(content) * 2 // 3, b"\0") + content[len(content) * 2 // 3 :]
    ),
    "random bytes": noise,
}
SQL = {
    "another version": "PRAGMA user_version = 99",
    "a database without the table": "DROP TABLE entry",
    "no seals": "UPDATE entry SET seal = NULL",
    "bytes for text": "UPDATE entry SET content = x'ff00fe'",
    "another content of parts": """UPDATE entry SET content = '{"rows": 5}' WHERE kind = 'part'""",
    "parts of another name": "UPDATE entry SET key = key || 'x' WHERE kind = 'part'",
}
INSTEAD: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: None,
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a folder with files": lambda path: shutil.copytree(path.parent / "builds", path),
    "a dangling link": lambda path: path.symlink_to("nowhere"),
}


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.commit()


def damage(path: Path, name: str) -> None:
    if name in BYTES:
        path.write_bytes(BYTES[name](path.read_bytes()))
    elif name in SQL:
        execute(path, SQL[name])
    else:
        path.unlink()
        INSTEAD[name](path)


BUILT = ("gone", "zeros in the middle", "a folder with files")
"""One of each kind, for the test that builds."""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A state of several pages."""
    (tmp_path / "whole" / "builds" / "one").mkdir(parents=True)
    state = State(tmp_path / "whole" / NAME, create=True)
    for kind in KINDS:
        state.put(kind, {f"{kind} {number}": {"rows": number, "notes": "x" * 300} for number in range(30)})
    state.close()
    return tmp_path / "whole" / NAME


@pytest.mark.parametrize("create", [False, True])
def test_every_damage_is_seen(whole: Path, tmp_path: Path, create: bool) -> None:
    """`create` is how a build opens the file, which it sees is missing before."""
    for name in {*BYTES, *SQL, *INSTEAD} - ({"gone", "a dangling link"} if create else set()):
        folder = shutil.copytree(whole.parent, tmp_path / name)
        damage(folder / NAME, name)
        with pytest.raises(DamagedStateError):
            State(folder / NAME, create=create).check()
        assert name != "gone" or not (folder / NAME).exists()


def test_any_flipped_bit_is_found_or_changes_no_row(whole: Path) -> None:
    content = whole.read_bytes()
    before = State(whole)
    rows = {kind: before.texts(kind) for kind in KINDS}
    assert all(rows.values())
    chance = random.Random(7)
    found = 0
    for _ in range(500):
        place = chance.randrange(len(content))
        whole.write_bytes(content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :])
        try:
            state = State(whole)
            state.check()
        except DamagedStateError:
            found += 1
        else:
            assert {kind: state.texts(kind) for kind in KINDS} == rows
    assert found > 100


def test_a_lost_state_is_made_again_from_the_kept_builds_and_no_part_is(hours: Tiny) -> None:
    before, files = published(hours), files_of(hours)
    for name in BUILT:
        damage(state_of(hours), name)
        said = hours.build()
        assert said.status == 0, said
        assert said.err.count("state.sqlite") == 1
        assert MADE_AGAIN in said.err_text
        assert published(hours) == before
        assert files_of(hours) == files
        assert (hours.target / "damaged").exists() == (name != "gone")
        shutil.rmtree(hours.target / "damaged", ignore_errors=True)
        assert hours.build().err.startswith("Up to date"), name
        assert state_of(hours).is_file()


def test_damage_that_a_comparison_does_not_see_is_found_by_the_next_build(hours: Tiny) -> None:
    before, files = published(hours), files_of(hours)
    damage(state_of(hours), "another content of parts")
    assert hours.build().err.startswith("Up to date")
    hours.file(2, "1,7,2,200,0,0.5")
    assert MADE_AGAIN in hours.build().err_text
    assert files.items() <= files_of(hours).items()
    assert len(files_of(hours)) == len(files) + 1
    assert hours.ask("FROM staging.hour ORDER BY ALL")[:2] == before[1]


def test_parts_of_all_kept_builds_are_known_again(hours: Tiny) -> None:
    path = hours.file(1, "1,100,2,200,0,0.5")
    before = path.read_bytes()
    hours.file(1, "1,7,2,200,0,0.5")
    assert hours.made() == {f"staging.hour {HOURS[1]}"}
    state_of(hours).unlink()
    path.write_bytes(before)
    files = files_of(hours)
    assert "made again from 5 parts of the kept builds" in hours.build().err_text
    assert files_of(hours) == files


def test_without_state_and_manifests_everything_is_made_again_with_equal_bytes(hours: Tiny) -> None:
    before = published(hours)
    state_of(hours).unlink()
    next((hours.target / "parts" / "staging.hour").rglob("*.parquet")).write_bytes(b"PAR1")
    assert len(hours.made()) == 1, "beside a damaged part the others are known again"
    assert published(hours) == before
    state_of(hours).unlink()
    for path in hours.target.glob("builds/*/manifest.json"):
        path.write_text("{", encoding="utf-8")
    assert hours.made() == {"staging.ports", "metrics.total", *(f"staging.hour {hour}" for hour in HOURS)}
    assert published(hours) == before


def test_a_plan_and_readers_do_without_a_state_and_change_nothing(hours: Tiny) -> None:
    before = published(hours)
    for name in ("random bytes", "a folder"):
        damage(state_of(hours), name)
        said = call("plan", "-d", hours.data, "-t", hours.target, "--json", cwd=hours.base)
        assert said.status == 0, said
        actions = {part["action"] for part in json.loads(said.out)["parts"]}
        assert actions <= {"keep", "check"}, "results of checks are known to the state alone"
        assert published(hours) == before
        assert not (hours.target / "damaged").exists()


def test_a_build_that_is_killed_while_it_makes_the_state_again_leaves_none(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_of(hours).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(State, "put", killed)
        with pytest.raises(KilledError):
            hours.build()
    assert not state_of(hours).exists()
    assert hours.made() == set()


def test_a_journal_of_a_lost_state_is_not_played_back_on_the_new_one(hours: Tiny) -> None:
    before = published(hours)
    with closing(sqlite3.connect(state_of(hours))) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE entry SET content = content || ' ', seal = seal || ' '")
        left = state_of(hours).with_name(f"{NAME}-journal").read_bytes()
        writer.rollback()
    assert left
    state_of(hours).unlink()
    state_of(hours).with_name(f"{NAME}-journal").write_bytes(left)
    assert hours.made() == set()
    assert published(hours) == before
    assert hours.build().err.startswith("Up to date")


def test_what_a_build_has_seen_that_did_not_end_is_not_taken_for_what_is_published(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours.file(1, "1,7,2,200,0,0.5")
    with monkeypatch.context() as patch:
        patch.setattr("warehouse.runner.build.plan", killed)
        with pytest.raises(KilledError):
            hours.build()
    said = hours.build()
    assert not said.err.startswith("Up to date"), said
    assert [row[1] for row in hours.ask("FROM staging.hour ORDER BY ALL")] == [100, 7]
    assert hours.build().err.startswith("Up to date")


def test_a_check_that_fails_fails_again_although_nothing_has_changed(hours: Tiny) -> None:
    before = published(hours)
    hours.file(1, "1,0,2,200,0,0.5")
    for _ in range(2):
        said = hours.build()
        assert said.status == 1, said
        assert "bytes > 0: 1 row fails" in said.err_text
    assert published(hours) == before


class KilledError(BaseException):
    """End of a process."""


def killed(*_: object, **__: object) -> NoReturn:
    raise KilledError


# rows ---------------------------------------------------------------------------------------------


def test_rows_are_read_as_written_in_one_step_for_their_kind_and_key_alone(tmp_path: Path) -> None:
    for name in ("100%", "a?mode=rw", "a#b", "ü"):  # names that mean something in SQLite's URI
        (tmp_path / name).mkdir()
        state = State(tmp_path / name / NAME, create=True)
        odd = {"": 1, "a\tb": [None, "ü"], os.fsdecode(b"caf\xe9"): {"x": 2**60}, 'a"b\\': True, "line\nbreak": 1.5}
        state.put(PART, odd)
        with pytest.raises(TypeError):
            state.put(PART, {"": 3, "c": object()}, gone=["a\tb"])
        state.close()
        again = State(tmp_path / name / NAME)
        again.check()
        assert {key: json.loads(row) for key, row in again.texts(PART).items()} == odd
        assert {key: again.get(PART, key) for key in odd} == odd
        assert again.get(FOLDER, "") is None
