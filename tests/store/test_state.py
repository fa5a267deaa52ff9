"""The state of a target is an index and a cache: lost or damaged in any way, it costs no part and no number."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import chdir, closing
from pathlib import Path
from typing import NoReturn

import pytest

import warehouse
from tests.conftest import call
from tests.tiny import HOURS, Tiny
from warehouse.store.state import FOLDER, LAST, NAME, PART, DamagedStateError, State, opened
from warehouse.store.up_to_date import forget

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


def execute(*statements: str) -> Callable[[Path], object]:
    """Return a damage by SQL."""

    def run(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    return run


def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return a damage that puts something else in the place of the file."""

    def run(path: Path) -> None:
        path.unlink()
        make(path)

    return run


def cut(share: float) -> Callable[[Path], object]:
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def other_bytes(begin: float, end: float, change: Callable[[int], bytes]) -> Callable[[Path], object]:
    """Return a damage that changes the bytes between two places, as shares of the length."""

    def run(path: Path) -> None:
        content = path.read_bytes()
        first, last = int(len(content) * begin), int(len(content) * end)
        path.write_bytes(content[:first] + change(last - first) + content[last:])

    return run


def noise(length: int) -> bytes:
    return random.Random(1).randbytes(length)


def bind_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, chdir(path.parent):  # the path of a socket is short
        one.bind(path.name)


def elsewhere(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


LOST: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: os.truncate(path, 0),
    "a byte": lambda path: os.truncate(path, 1),
    "half a header": lambda path: os.truncate(path, 50),
    "a header": lambda path: os.truncate(path, 100),
    "the first page": lambda path: os.truncate(path, 4096),
    "cut in half": cut(0.5),
    "without its last byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "without its last page": lambda path: os.truncate(path, path.stat().st_size - 4096),
    "zeros": other_bytes(0, 1, bytes),
    "zeros in the second half": other_bytes(0.5, 1, bytes),
    "zeros in the middle": other_bytes(0.4, 0.6, bytes),
    "random bytes": other_bytes(0, 1, noise),
    "random bytes in the middle": other_bytes(0.4, 0.6, noise),
    "random bytes as the header": other_bytes(0, 0.01, noise),
    "a text": instead(lambda path: path.write_text("{}", encoding="utf-8")),
    "another version": execute("PRAGMA user_version = 99"),
    "another database": instead(execute("CREATE TABLE entry (kind TEXT)", "PRAGMA user_version = 1")),
    "a database without the table": execute("DROP TABLE entry"),
    "a database of another table": execute("ALTER TABLE entry RENAME TO other"),
    "no seals": execute("UPDATE entry SET seal = NULL"),
    "bytes for text": execute("UPDATE entry SET content = x'ff00fe'"),
    "another content of parts": execute("""UPDATE entry SET content = '{"rows": 5}' WHERE kind = 'part'"""),
    "parts of another name": execute("UPDATE entry SET key = key || 'x' WHERE kind = 'part'"),
    "rows of another kind": execute("UPDATE entry SET kind = 'trap' WHERE kind = 'part'"),
    "no text at all": execute("UPDATE entry SET content = CAST(x'ff00fe' AS TEXT)"),
    "a pipe": instead(os.mkfifo),
    "a socket": instead(bind_socket),
    "a folder": instead(Path.mkdir),
    "a folder with files": instead(lambda path: shutil.copytree(path.parent / "builds", path)),
    "a dangling link": instead(lambda path: path.symlink_to("nowhere")),
    "a link to itself": instead(lambda path: path.symlink_to(path.name)),
    "a link to a folder": instead(lambda path: path.symlink_to("builds")),
    "a link to a device": instead(lambda path: path.symlink_to("/dev/null")),
}
"""How the file is lost or damaged."""
BUILT = ("gone", "random bytes in the middle", "a pipe", "a folder with files", "a dangling link")
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
    for name, damage in LOST.items():
        folder = shutil.copytree(whole.parent, tmp_path / name)
        damage(folder / NAME)
        if create and name in ("gone", "a dangling link"):
            continue
        with pytest.raises(DamagedStateError):
            State(folder / NAME, create=create).check()


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
        LOST[name](state_of(hours))
        said = hours.build()
        assert said.status == 0, said
        assert said.err.count("state.sqlite") == 1
        assert MADE_AGAIN in said.err_text
        assert published(hours) == before
        assert files_of(hours) == files
        assert os.path.lexists(hours.target / "damaged" / NAME) == (name != "gone")
        shutil.rmtree(hours.target / "damaged", ignore_errors=True)
        assert hours.build().err.startswith("Up to date"), name
        assert state_of(hours).is_file()


def test_damage_that_a_comparison_does_not_see_is_found_by_the_next_build(hours: Tiny) -> None:
    before, files = published(hours), files_of(hours)
    LOST["another content of parts"](state_of(hours))
    assert hours.build().err.startswith("Up to date")
    hours.file(2, "1,7,2,200,0,0.5")
    assert MADE_AGAIN in hours.build().err_text
    assert files.items() <= files_of(hours).items()
    assert len(files_of(hours)) == len(files) + 1
    assert hours.ask("FROM staging.hour ORDER BY ALL")[:2] == before[1]


WHOLE: dict[str, Callable[[Path], object]] = {
    "a journal of rubbish": lambda path: path.with_name(f"{NAME}-journal").write_bytes(noise(5000)),
    "an empty journal": lambda path: path.with_name(f"{NAME}-journal").touch(),
    "a page of nothing at the end": execute("CREATE TABLE other (a)"),
    "vacuumed": execute("VACUUM"),
    "in WAL mode": execute("PRAGMA journal_mode = WAL"),
    "a link to the file": elsewhere,
}
"""What does no harm."""


def test_a_whole_state_stays_and_nothing_is_said(hours: Tiny) -> None:
    before, files = published(hours), files_of(hours)
    for name, change in WHOLE.items():
        change(state_of(hours))
        for options in ((), ("--paranoid",)):
            said = hours.build(*options)
            assert said.status == 0, name
            assert "state.sqlite" not in said.err, name
        assert published(hours) == before, name
        assert files_of(hours) == files, name


def test_a_file_that_cannot_be_written_is_made_again(hours: Tiny) -> None:
    """Root can write it all the same."""
    before = published(hours)
    state_of(hours).chmod(0o444)
    hours.file(2, "1,7,2,200,0,0.5")
    assert hours.made() == {"staging.hour 2024-05-23T18"}
    assert hours.ask("FROM staging.hour ORDER BY ALL")[:2] == before[1]


def test_parts_of_all_kept_builds_are_known_again(hours: Tiny) -> None:
    path = hours.file(1, "1,100,2,200,0,0.5")
    before = path.read_bytes()
    hours.file(1, "1,7,2,200,0,0.5")
    assert hours.made() == {f"staging.hour {HOURS[1]}"}
    state_of(hours).unlink()
    path.write_bytes(before)
    files = files_of(hours)
    said = hours.build()
    assert files_of(hours) == files
    assert "made again from 5 parts of the kept builds" in said.err_text


def test_a_damaged_part_beside_a_lost_state_is_made_again_alone(hours: Tiny) -> None:
    before = published(hours)
    state_of(hours).unlink()
    next((hours.target / "parts" / "staging.hour").rglob("*.parquet")).write_bytes(b"PAR1")
    assert len(hours.made()) == 1
    assert published(hours) == before


def test_without_state_and_manifests_everything_is_made_again_with_equal_bytes(hours: Tiny) -> None:
    before = published(hours)
    state_of(hours).unlink()
    for path in hours.target.glob("builds/*/manifest.json"):
        path.write_text("{", encoding="utf-8")
    assert hours.made() == {"staging.ports", "metrics.total", *(f"staging.hour {hour}" for hour in HOURS)}
    assert published(hours) == before


def test_a_plan_and_readers_do_without_a_state_and_change_nothing(hours: Tiny) -> None:
    before = published(hours)
    for damage in ("random bytes", "a folder"):
        LOST[damage](state_of(hours))
        said = call("plan", "-d", hours.data, "-t", hours.target, "--json", cwd=hours.base)
        assert said.status == 0, said
        actions = {part["action"] for part in json.loads(said.out)["parts"]}
        assert actions <= {"keep", "check"}, "results of checks are known to the state alone"
        assert published(hours) == before
        assert not (hours.target / "damaged").exists()


def test_a_lost_state_is_not_made_empty_by_another_command(whole: Path) -> None:
    target = whole.parent
    for damage in ("random bytes in the middle", "another version", "a folder"):
        content = whole.read_bytes()
        LOST[damage](whole)
        forget(target)
        assert not os.path.lexists(whole)
        forget(target)
        assert not os.path.lexists(whole)
        whole.write_bytes(content)
    forget(target)
    assert State(whole).texts(PART)


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


def test_rows_are_read_as_written(tmp_path: Path) -> None:
    state = State(tmp_path / NAME, create=True)
    odd = {"": 1, "a\tb": [None, "ü"], os.fsdecode(b"caf\xe9"): {"x": 2**60}, 'a"b\\': True, "line\nbreak": 1.5}
    state.put(PART, odd)
    state.put(FOLDER, {"a": 1})
    state.close()
    again = State(tmp_path / NAME)
    again.check()
    assert {key: again.get(PART, key) for key in odd} == odd
    assert {key: opened(PART, key, row) for key, row in again.texts(PART).items()} == odd
    assert again.get(FOLDER, "b") is None
    assert opened(FOLDER, "b", None) is None


def test_rows_are_written_and_removed_in_one_step(tmp_path: Path) -> None:
    state = State(tmp_path / NAME, create=True)
    state.put(PART, {"a": 1, "b": 2})
    with pytest.raises(TypeError):
        state.put(PART, {"a": 3, "c": object()}, gone=["b"])
    assert {key: state.get(PART, key) for key in "abc"} == {"a": 1, "b": 2, "c": None}
    state.put(PART, {"a": 3}, gone=["b", "never there"])
    assert {key: state.get(PART, key) for key in "abc"} == {"a": 3, "b": None, "c": None}


def test_a_row_counts_for_its_kind_and_key_alone(tmp_path: Path) -> None:
    state = State(tmp_path / NAME, create=True)
    state.put(PART, {"a": 1})
    row = state.texts(PART)["a"]
    assert opened(PART, "a", row) == 1
    assert opened(PART, "b", row) is None
    assert opened(FOLDER, "a", row) is None
    assert opened(PART, "a", (row[0].replace("1", "2"), row[1])) is None


def test_a_target_may_have_any_name(tmp_path: Path) -> None:
    for name in ("with space", "100%", "a?mode=rw", "a#b", "ü", "it's"):
        (tmp_path / name).mkdir()
        state = State(tmp_path / name / NAME, create=True)
        state.put(PART, {"a": 1})
        state.close()
        assert State(tmp_path / name / NAME).get(PART, "a") == 1, name


def test_a_missing_state_is_not_created_by_readers(tmp_path: Path) -> None:
    with pytest.raises(DamagedStateError):
        State(tmp_path / NAME)
    assert list(tmp_path.iterdir()) == []
