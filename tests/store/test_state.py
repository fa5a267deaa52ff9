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
from tests.conftest import Restored, call
from tests.tiny import HOURS, Tiny
from warehouse.store.state import FOLDER, LAST, NAME, PART, DamagedStateError, State, opened
from warehouse.store.up_to_date import forget

Rows = list[tuple[object, ...]]


@pytest.fixture
def hours(tiny: Tiny, restored: Restored) -> Tiny:
    """A part per hour, built; the rows of a check; the topology of nothing."""
    return tiny.restore(restored, "state", _write_hours)


def _write_hours(tiny: Tiny) -> None:
    tiny.model(
        "staging.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"},
        "partition: hour_utc",
        "checks:",
        "  - bytes > 0",
        "  - warn: bytes > 100",
    )
    tiny.model(
        "metrics.view", "SELECT hour_utc, bytes FROM staging.hour", {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"},
        "materialize: view", "checks:", "  - rows >= 1",
    )  # fmt: skip


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


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Return the bytes with another bit at one place."""
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


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
BUILT = (
    "gone", "cut in half", "random bytes in the middle", "another version", "no seals", "a pipe", "a folder with files",
    "a dangling link", "a link to a device",
)  # fmt: skip
"""One of each kind, for tests that build."""


@pytest.mark.parametrize("create", [False, True])
def test_every_damage_is_seen(hours: Tiny, create: bool) -> None:
    """`create` is how a build opens the file, which it sees is missing before."""
    whole = state_of(hours)
    for number, (name, damage) in enumerate(LOST.items()):
        folder = hours.base / f"damaged-{number}"
        (folder / "builds" / "one").mkdir(parents=True)
        damage(Path(shutil.copy(whole, folder)))
        if create and name in ("gone", "a dangling link"):
            continue
        with pytest.raises(DamagedStateError):
            State(folder / NAME, create=create).check()


@pytest.mark.parametrize("damage", BUILT)
def test_a_lost_state_is_made_again_from_the_kept_builds_and_no_part_is(hours: Tiny, damage: str) -> None:
    before, files = published(hours), files_of(hours)
    LOST[damage](state_of(hours))
    said = hours.build()
    assert said.status == 0, said
    assert said.err.count("state.sqlite") == 1
    assert "state.sqlite is missing or damaged: made again from 4 parts of the kept builds" in said.err_text
    assert published(hours) == before
    assert files_of(hours) == files
    assert os.path.lexists(hours.target / "damaged" / NAME) == (damage != "gone")
    again = hours.build()
    assert again.err.startswith("Up to date"), again
    assert state_of(hours).is_file()


LATER: dict[str, Callable[[Path], object]] = {
    "another content of parts": execute("""UPDATE entry SET content = '{"rows": 5}' WHERE kind = 'part'"""),
    "parts without seals": execute("UPDATE entry SET seal = '' WHERE kind = 'part'"),
    "parts of another name": execute("UPDATE entry SET key = key || '0' WHERE kind = 'part'"),
    "rows of another kind": execute("UPDATE entry SET kind = 'trap' WHERE kind = 'part'"),
}
"""What a comparison does not read, but a build does."""


@pytest.mark.parametrize("damage", LATER)
def test_damage_that_a_comparison_does_not_see_is_found_by_the_next_build(hours: Tiny, damage: str) -> None:
    before, files = published(hours), files_of(hours)
    LATER[damage](state_of(hours))
    assert hours.build().err.startswith("Up to date")
    hours.file(2, "1,7,2,200,0,0.5")
    said = hours.build()
    assert "state.sqlite is missing or damaged: made again from 4 parts of the kept builds" in said.err_text
    assert files.items() <= files_of(hours).items()
    assert len(files_of(hours)) == len(files) + 1
    assert hours.ask("FROM staging.hour ORDER BY ALL")[:2] == before[1]


WHOLE: dict[str, Callable[[Path], object]] = {
    "a journal of rubbish": lambda path: path.with_name(f"{NAME}-journal").write_bytes(noise(5000)),
    "an empty journal": lambda path: path.with_name(f"{NAME}-journal").touch(),
    "a link to the file": elsewhere,
    "a page of nothing at the end": execute("CREATE TABLE other (a)"),
    "in WAL mode": execute("PRAGMA journal_mode = WAL"),
    "vacuumed": execute("VACUUM"),
}
"""What does no harm."""


@pytest.mark.parametrize("change", WHOLE)
def test_a_whole_state_stays_and_nothing_is_said(hours: Tiny, change: str) -> None:
    before, files = published(hours), files_of(hours)
    WHOLE[change](state_of(hours))
    for options in ((), ("--paranoid",)):
        said = hours.build(*options)
        assert said.status == 0, said
        assert "state.sqlite" not in said.err
    assert published(hours) == before
    assert files_of(hours) == files


def test_a_file_that_cannot_be_written_is_made_again(hours: Tiny) -> None:
    """Root can write it all the same."""
    before = published(hours)
    state_of(hours).chmod(0o444)
    hours.file(2, "1,7,2,200,0,0.5")
    assert hours.made() == {"staging.hour 2024-05-23T18"}
    (hours.data / "c" / "trafficinfo" / "2024052402" / "x" / "Leaf-1_1_1.csv").unlink()
    assert hours.made() == set()
    assert published(hours)[:4] == before[:4]


def test_any_flipped_byte_costs_no_number(hours: Tiny) -> None:
    before, files = published(hours), files_of(hours)
    whole = state_of(hours).read_bytes()
    chance = random.Random(5)
    for _ in range(4):
        state_of(hours).write_bytes(flipped(whole, chance))
        assert hours.build().status == 0
        assert published(hours) == before
        assert files_of(hours) == files


def test_any_flipped_byte_is_found_or_changes_no_row(hours: Tiny, tmp_path: Path) -> None:
    whole = state_of(hours).read_bytes()
    path = tmp_path / "flipped"
    kinds = (PART, FOLDER, LAST)
    before = State(state_of(hours))
    rows = {kind: before.texts(kind) for kind in kinds}
    assert all(rows.values())
    chance = random.Random(7)
    found = 0
    for _ in range(500):
        path.write_bytes(flipped(whole, chance))
        try:
            state = State(path)
            state.check()
        except DamagedStateError:
            found += 1
        else:
            assert {kind: state.texts(kind) for kind in kinds} == rows
    assert found > 100


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


def test_a_plan_and_readers_do_without_a_state(hours: Tiny) -> None:
    for damage in ("gone", "random bytes", "a folder"):
        LOST[damage](state_of(hours))
        before = published(hours)
        said = call("plan", "-d", hours.data, "-t", hours.target, "--json", cwd=hours.base)
        assert said.status == 0, said
        actions = {part["action"] for part in json.loads(said.out)["parts"]}
        assert actions <= {"keep", "check"}, "results of checks are known to the state alone"
        assert published(hours) == before
        assert not (hours.target / "damaged").exists(), "a plan changes nothing"
        assert hours.build().status == 0
        shutil.rmtree(hours.target / "damaged", ignore_errors=True)


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


def test_a_lost_state_is_not_made_empty_by_another_command(hours: Tiny) -> None:
    state_of(hours).unlink()
    forget(hours.target)
    assert not state_of(hours).exists()
    for damage in ("random bytes in the middle", "another version", "a folder"):
        assert hours.made() == set()
        LOST[damage](state_of(hours))
        forget(hours.target)
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


@pytest.mark.parametrize("name", ["with space", "100%", "a?mode=rw", "a#b", "ü", "it's"])
def test_a_target_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    state = State(tmp_path / name / NAME, create=True)
    state.put(PART, {"a": 1})
    state.close()
    assert (tmp_path / name / NAME).is_file()
    assert State(tmp_path / name / NAME).get(PART, "a") == 1


def test_a_missing_state_is_not_created_by_readers(tmp_path: Path) -> None:
    with pytest.raises(DamagedStateError):
        State(tmp_path / NAME)
    assert list(tmp_path.iterdir()) == []
