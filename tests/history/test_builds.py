"""Going back and cleaning up: a kept build can always be published again, and nothing that one needs ever goes."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import warehouse
from tests.conftest import Completed, Restored, call
from tests.tiny import Tiny
from warehouse.base.errors import LockedError, WarehouseError
from warehouse.history.builds import builds, rollback
from warehouse.history.clean import clean
from warehouse.store.atomic import hold
from warehouse.store.manifest import read_manifest

SPEEDS = {"port": "VARCHAR", "speed": "BIGINT"}
TOTAL = "SELECT speed FROM metrics.total"


@pytest.fixture
def three(tiny: Tiny, restored: Restored) -> Tiny:
    """With three builds, whose totals are 50, 52 and 54."""
    return tiny.restore(restored, "three-builds", _build_three, is_up_to_date=False)


def _build_three(tiny: Tiny) -> None:
    for extra in range(3):
        tiny.model("staging.ports", f"SELECT port, speed + {extra} AS speed FROM reference.speeds", SPEEDS)
        tiny.model(
            "metrics.polls",
            'SELECT f.hour_utc, c."SaveTimeUTC" AS ms '
            "FROM raw.port_counters AS c JOIN raw.files AS f ON f.read_path = c.filename",
            {"hour_utc": "TIMESTAMP", "ms": "BIGINT"},
            "partition: hour_utc",
            "grain: [hour_utc, ms]",
        )
        assert tiny.build().status == 0


def run(tiny: Tiny, *arguments: str | Path) -> Completed:
    return call(*arguments, "-t", tiny.target, cwd=tiny.base)


def ids(tiny: Tiny) -> list[str]:
    """The kept builds, the newest first."""
    return [one.build for one in builds(tiny.target)]


def files(tiny: Tiny) -> set[str]:
    return {path.relative_to(tiny.target).as_posix() for path in tiny.target.rglob("*") if not path.is_dir()}


# builds and rollback -----------------------------------------------------------------------------


def test_kept_builds_are_listed_the_newest_first(three: Tiny) -> None:
    kept = builds(three.target)
    assert [(one.current, one.parts) for one in kept] == [(True, 4), (False, 4), (False, 4)]
    for one in kept:
        assert one.bytes > (three.target / "builds" / one.build / "catalog.duckdb").stat().st_size
    said = run(three, "builds")
    assert [line.split()[0] for line in said.out.splitlines()[2:]] == ids(three)
    assert [line.endswith("published") for line in said.out.splitlines()[2:]] == [True, False, False]
    assert [one["build"] for one in json.loads(run(three, "builds", "--json").out)] == ids(three)
    assert run(three, "diff") == run(three, "diff", ids(three)[1]), "by default with the build before"


def test_commands_without_a_target_or_beside_a_build_are_a_sentence(tiny: Tiny, three: Tiny) -> None:
    for command in (["builds"], ["rollback"], ["clean"], ["verify"], ["diff", "1"]):
        said = call(*command, "-t", tiny.base / "none", cwd=tiny.base)
        assert (said.status, said.err.startswith("error: ")) == (2, True)
        assert not (tiny.base / "none").exists()
    with hold(three.target):
        for word in ("rollback", "clean", "verify"):
            said = run(three, word)
            assert (said.status, said.out) == (3, "")
            assert f"(process {os.getpid()})" in said.err
        with pytest.raises(LockedError):
            clean(three.target, dry_run=False)
    assert three.ask(TOTAL) == [(54,)]


def test_any_kept_build_can_be_published_and_the_next_build_publishes_what_data_and_models_say(three: Tiny) -> None:
    newest, middle, _ = ids(three)
    with warehouse.open(three.target) as before:
        said = run(three, "rollback")
        assert said.status == 0
        assert said.out.startswith(f"Published  {middle[:8]}, ")
        assert f"before it {newest[:8]}" in said.out
        assert three.ask(f"{TOTAL}, meta.build WHERE build_id = '{middle}'") == [(52,)]
        assert run(three, "rollback").status == 0
        assert three.ask(TOTAL) == [(50,)]
        said = run(three, "rollback")
        assert (said.status, "keeps no build before the published one" in said.err) == (2, True)
        assert before.execute(TOTAL).fetchall() == [(54,)], "readers keep what they opened"
        assert before.execute("SELECT count(*) FROM metrics.polls").fetchall() == [(2,)]
    for _ in range(2):  # the second time, nothing happens
        assert run(three, "rollback", newest[:6]).status == 0
    assert three.ask(TOTAL) == [(54,)]
    assert not list(three.target.glob(".*"))
    assert run(three, "rollback", "zz").status == 2
    rollback(three.target)
    assert three.build().status == 0
    assert three.ask(TOTAL) == [(54,)]
    assert (builds(three.target)[0].build, builds(three.target)[0].current) == (newest, True)


def test_a_build_whose_part_is_gone_or_cut_short_or_whose_catalog_is_damaged_is_refused(three: Tiny) -> None:
    _, middle, _ = ids(three)
    manifest = read_manifest(three.target / "builds" / middle / "manifest.json")
    part = next(three.target / one["path"] for one in manifest.parts if one["model"] == "metrics.total")
    content = part.read_bytes()
    for damage in (content[:-1], None):
        part.unlink()
        if damage is not None:
            part.write_bytes(damage)
        said = run(three, "rollback")
        assert said.status == 2
        assert said.err.startswith(f"error: 1 part of build {middle[:8]} is gone or cut short\n")
        assert part.relative_to(three.target).as_posix() in said.err
    part.write_bytes(content)
    catalog = three.target / "builds" / middle / "catalog.duckdb"
    whole = catalog.read_bytes()
    catalog.chmod(0o644)
    catalog.write_bytes(b"no database")
    said = run(three, "rollback")
    assert (said.status, "is no DuckDB file" in said.err) == (2, True)
    assert three.ask(TOTAL) == [(54,)]
    catalog.write_bytes(whole)
    assert run(three, "rollback").status == 0


# clean -------------------------------------------------------------------------------------------


def test_cleaning_removes_older_builds_and_the_parts_that_only_they_use_when_it_is_told_to(three: Tiny) -> None:
    leave(three, [*LEFT, *MINE[:-1], "cache/clean/0123456789abcdef0123456789abcdef-1/a.csv"])
    newest, middle, _ = ids(three)
    here = files(three)
    said = run(three, "clean", "--keep", "2")
    assert said.out.splitlines()[0].endswith(f"2 builds kept: {newest[:8]}, {middle[:8]}")
    again = f"warehouse clean -t {three.target}"
    assert said.out.splitlines()[-1] == f"Nothing was removed yet: {again} --keep 2 --yes"
    assert files(three) == here

    found = json.loads(run(three, "clean", "--keep", "2", "--yes", "--json").out)
    assert (found["removed"], found["kept"], ids(three)) == (True, [newest, middle], [newest, middle])
    kinds = [item["kind"] for item in found["items"]]
    assert [kinds.count(kind) for kind in ("build", "part", "cache")] == [2, 2, 1]  # with a folder that has no manifest
    assert not {name for name in files(three) if "99999999" in name or "cache/clean" in name}
    assert set(MINE[:-1]) <= files(three)
    assert run(three, "clean", "--keep", "2").out.startswith("Nothing to remove; 2 builds kept")
    for build, total in ((middle, 52), (newest, 54)):
        rollback(three.target, build)
        assert run(three, "verify", "--quick").status == 0, "every part and table of a kept build is there"
        assert three.ask(TOTAL) == [(total,)]
    assert three.build().status == 0
    assert clean(three.target, 1, dry_run=False)[0]
    assert three.build().err.startswith("Up to date")


def test_the_published_build_stays_however_old_it_is(three: Tiny) -> None:
    newest, _, oldest = ids(three)
    rollback(three.target, oldest)
    record = three.target / "builds" / "current"
    published = record.read_text(encoding="utf-8")
    record.write_text(newest + "\n", encoding="utf-8")  # killed between two renames
    assert clean(three.target, 1, dry_run=False)[1] == [newest, oldest]
    record.write_text(published, encoding="utf-8")
    assert clean(three.target, 0, dry_run=False)[1] == [newest, oldest]
    assert three.ask(TOTAL) == [(50,)]
    assert three.ask("SELECT count(*) FROM metrics.polls") == [(2,)]


LEFT = (
    ".warehouse.duckdb.99999999",
    "builds/.0123456789abcdef.gone.99999999/manifest.json",
    "builds/0123456789abcdef/.catalog.duckdb.99999999",
    "builds/.current.99999999",
    "tmp/0123456789abcdef.build/catalog.duckdb",
    "tmp/0123456789abcdef.parquet",
    "tmp/0123456789abcdef.spill/duckdb_temp_storage_DEFAULT-0.tmp",
    "tmp/verify/parts/x.parquet",
    "cache/clean/0123456789abcdef0123456789abcdef-1/.a.csv.99999999",
    "cache/unpacked/.0123456789abcdef0123456789abcdef.99999999/a.csv",
)
"""What processes that are gone left on its way."""
MINE = (
    "notes.txt", "parts/README", "parts/metrics.total/all/mine.parquet", "builds/note", ".hidden.txt",
    "cache/unpacked/0123456789abcdef0123456789abcdef/x/.a.csv.99999999",
)  # fmt: skip
"""What is of somebody else, or in an archive that calls it so."""


def leave(tiny: Tiny, names: Sequence[str]) -> None:
    for name in names:
        path = tiny.target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")


def test_the_next_build_removes_what_killed_ones_left(three: Tiny) -> None:
    leave(three, [*LEFT, *MINE])
    (three.target / "lock").write_text('{"pid": 99999999}', encoding="utf-8")  # as a killed build leaves it
    assert three.build("--paranoid").status == 0
    assert files(three) & {*LEFT, *MINE} == set(MINE)
    assert not [path for path in three.target.rglob("*") if "99999999" in path.name and path.name not in MINE[-1]]


def test_repaired_copies_and_unpacked_archives_stay_as_long_as_a_kept_build_reads_them(three: Tiny) -> None:
    three.file(1, "1,100,2,200,0,0.5", "torn")
    archive = three.base / "release.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in three.data.rglob("*.csv"):
            packed.write(path, path.relative_to(three.data))
    assert call("build", "-d", archive, "-t", three.target, cwd=three.base).status == 0
    shown = "SELECT count(*) FROM raw.port_counters"
    assert three.ask(shown) == [(2,)]
    cached = {name for name in files(three) if name.startswith(("cache/clean", "cache/unpacked"))}
    assert len(cached) == 4  # two files unpacked; one copy and its list of lines

    clean(three.target, 1, dry_run=False)
    assert cached <= files(three)
    assert three.ask(shown) == [(2,)]

    three.file(1, "1,100,2,200,0,0.5", "1,101,2,200,0,0.5")
    assert three.build().status == 0
    clean(three.target, 2, dry_run=False)
    assert cached <= files(three)
    clean(three.target, 1, dry_run=False)
    assert not cached & files(three)
    assert three.ask(shown) == [(3,)]


def test_tables_that_python_reads_stay_readable(tiny: Tiny, sample: Path) -> None:
    (workbook,) = sample.rglob("*.xlsx")
    shutil.copy(workbook, tiny.data / "c")
    tiny.model("staging.nics", "SELECT count(*) AS nics FROM raw.gpu_nics", {"nics": "BIGINT"})
    tiny.made()
    parts = set((tiny.target / "parts").glob("raw.[!f]*/*/*.parquet"))
    assert parts
    shutil.copy(min(parts), min(parts).with_name("0123456789abcdef0123456789abcdef.parquet"))
    clean(tiny.target, 1, dry_run=False)
    assert set((tiny.target / "parts").glob("raw.[!f]*/*/*.parquet")) == parts
    assert tiny.ask("SELECT count(*) > 0 FROM raw.gpu_nics") == [(True,)]


def test_nothing_goes_that_a_build_may_need_which_does_not_say_what_it_needs(three: Tiny) -> None:
    newest, middle, oldest = ids(three)
    copy = three.target / "cache" / "clean" / ("0" * 32 + "-1") / "a.csv"
    copy.parent.mkdir(parents=True)
    copy.write_text("x", encoding="utf-8")
    catalog = three.target / "builds" / middle / "catalog.duckdb"
    catalog.chmod(0o644)
    catalog.write_bytes(b"no database")
    clean(three.target, dry_run=False)
    assert copy.is_file()

    manifest = three.target / "builds" / newest / "manifest.json"
    content = manifest.read_text(encoding="utf-8")
    for damage in ("{}", None):
        manifest.unlink()
        if damage is not None:
            manifest.write_text(damage, encoding="utf-8")
        before = files(three)
        with pytest.raises(WarehouseError):
            clean(three.target, 1, dry_run=False)
        assert files(three) == before
    manifest.write_text(content, encoding="utf-8")

    (three.target / "builds" / middle / "manifest.json").write_text("{", encoding="utf-8")
    assert ids(three) == [newest, oldest]
    assert clean(three.target, 2, dry_run=False)[1] == [newest, oldest]
    assert not (three.target / "builds" / middle).exists()
    assert three.ask(TOTAL) == [(54,)]
