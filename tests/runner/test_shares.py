"""Shares of a build: parts made apart, published together."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import Completed, call
from tests.runner.conftest import HOUR_COLUMNS
from tests.tiny import HOURS, Tiny
from warehouse.base import hashing
from warehouse.base.errors import SettingsError
from warehouse.ingest import content_hashes, known_folders
from warehouse.ingest.shares import Deal, Share, sizes_of_hours
from warehouse.store import folders
from warehouse.store.folders import walk_data
from warehouse.store.lock import hold


def digests(target: Path) -> dict[str, str]:
    """Return the hash of each part. The rows of raw.files hold the folder of the target."""
    paths = target.glob("parts/*/*/*.parquet")
    return {str(path.relative_to(target)): hashing.of_file(path) for path in paths if "raw.files" not in str(path)}


def share(tiny: Tiny, number: str, *options: str) -> Completed:
    said = tiny.build("--parts-only", "--share", number, *options)
    assert said.status == 0, said
    return said


def test_shares_of_the_sample_have_the_bytes_of_a_whole_build(sample: Path, built: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    dealt: Counter[str] = Counter()
    for number in ("1/3", "2/3", "3/3"):
        said = call("build", "-d", sample, "-t", target, "--parts-only", "--share", number, "--json", cwd=tmp_path)
        assert said.status == 0, said
        dealt.update(json.loads(said.out)["partitions"])
        assert not (target / "warehouse.duckdb").exists()
    assert set(dealt.values()) == {1}, "each partition is in one share"
    said = call("build", "-d", sample, "-t", target, "--json", cwd=tmp_path)
    result = json.loads(said.out)
    assert result["build"] == (built / "builds" / "current").read_text().strip()
    assert {one["partition"] for one in result["made"]} == {"all"}, "parts of hours are found"
    assert digests(target) == digests(built)
    assert not (target / "cache" / "shares").exists() or not list((target / "cache" / "shares").iterdir())


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_each_hour_is_in_one_share_and_shares_are_even_by_bytes(tmp_path: Path, count: int) -> None:
    sizes = {f"20240524{hour:02}": 1 + hour * hour * 17 % 101 for hour in range(12)}
    for name, size in sizes.items():
        (tmp_path / "c" / "trafficinfo" / name / "leaf").mkdir(parents=True)
        (tmp_path / "c" / "trafficinfo" / name / "leaf" / "x.csv").write_bytes(bytes(size))
    walk = walk_data([tmp_path], ())
    deals = [Deal.of(Share(number, count), sizes_of_hours(walk)) for number in range(1, count + 1)]
    assert sorted(hour for deal in deals for hour in deal.hours) == sorted(deals[0].all_hours)
    assert len(deals[0].all_hours) == len(sizes)
    loads = [deal.bytes for deal in deals]
    assert sum(loads) == sum(sizes.values())
    assert max(loads) - min(loads) <= max(sizes.values())


def test_a_share_opens_only_the_files_of_its_hours(hours: Tiny) -> None:
    assert "1 port counters (1 hour)" in share(hours, "1/2").err
    assert "1 port counters (1 hour)" in share(hours, "2/2").err
    assert "2 parts, 2 there already" not in share(hours, "3/3").err  # more shares than hours
    assert hours.made() == {"metrics.hours", "metrics.total", "staging.ports"}


def test_hashes_of_raw_files_come_from_the_shares(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "RACY_NS", 0)
    share(hours, "1/2")
    share(hours, "2/2")
    hashed: list[Path] = []
    monkeypatch.setattr(content_hashes, "of_content", lambda path, _: hashed.append(path))
    assert hours.build().status == 0
    assert hashed == []


def test_a_share_does_not_read_what_other_shares_know(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    share(hours, "1/2")
    read: list[str] = []

    def noting(path: Path) -> bytes:
        read.append(path.name)
        return path.read_bytes()

    monkeypatch.setattr(known_folders, "read_bytes", noting)
    share(hours, "2/2")
    share(hours, "2/2")
    assert {name for name in read if "-of-" in name} == {"2-of-2.msgpack"}


def test_a_model_of_hours_that_reads_all_hours_is_made_from_all_files(hours: Tiny) -> None:
    hours.model(
        "metrics.part_of_all",
        "SELECT h.hour_utc, h.bytes * 100 // a.bytes AS bytes FROM staging.hour h CROSS JOIN metrics.hours a",
        HOUR_COLUMNS,
        "partition: hour_utc",
    )
    for number in ("1/2", "2/2"):
        assert "2 port counters (2 hours)" in share(hours, number).err
    assert hours.made() == {"metrics.total", "staging.ports"}


def test_checks_that_need_other_hours_are_left_to_the_build_that_publishes(hours: Tiny) -> None:
    hours.model(
        "metrics.checked",
        "SELECT hour_utc, bytes FROM staging.hour",
        HOUR_COLUMNS,
        "partition: hour_utc",
        "checks:",
        "  - 'none: SELECT hour_utc FROM metrics.checked WHERE bytes * 2 > (SELECT bytes FROM metrics.hours)'",
    )
    share(hours, "1/2")
    share(hours, "2/2")
    assert hours.made() == {"metrics.hours", "metrics.total", "staging.ports"}
    hours.file(1, "1,999,2,200,0,0.5")
    share(hours, "1/1")
    said = hours.build()
    assert said.status == 1
    assert "metrics/checked.sql" in said.err


def test_shares_run_at_once_and_publishing_waits_for_them(hours: Tiny) -> None:
    with hold(hours.target, shared=True):
        share(hours, "1/1")
        said = hours.build()
        assert said.status == 3
        assert f"a share of a build holds {hours.target}" in said.err
    with hold(hours.target):
        assert hours.build("--parts-only").status == 3
    assert hours.build().status == 0


def test_parts_that_were_copied_are_compared_by_content(hours: Tiny) -> None:
    share(hours, "1/1")
    copy = hours.target.with_name("copy")
    shutil.copytree(hours.target, copy, copy_function=shutil.copyfile)
    shutil.rmtree(hours.target)
    copy.rename(hours.target)
    torn = next(hours.target.glob(f"parts/staging.hour/{HOURS[1]}/*.parquet"))
    content = torn.read_bytes()
    torn.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    alone = next(hours.target.glob("parts/staging.ports/*/*.json"), None)
    assert alone is None, "no hour needs it"
    said = hours.build("--json")
    assert {one["partition"] for one in json.loads(said.out)["made"]} == {"all", HOURS[1]}
    assert "damaged" not in hours.build("--paranoid").err


@pytest.mark.parametrize("torn", [b"", b"PAR1", None])
def test_a_part_that_a_crash_left_torn_is_not_taken(hours: Tiny, torn: bytes | None) -> None:
    share(hours, "1/1")
    (part,) = hours.target.glob(f"parts/staging.hour/{HOURS[0]}/*.parquet")
    whole = part.read_bytes()
    part.write_bytes(bytes(len(whole)) if torn is None else torn)
    assert f"staging.hour {HOURS[0]}" in hours.made()
    assert part.read_bytes() == whole


@pytest.mark.parametrize("skew", [-600, 600])
def test_a_clock_that_is_ten_minutes_off_hurts_nothing(hours: Tiny, monkeypatch: pytest.MonkeyPatch, skew: int) -> None:
    now, now_ns = time.time, time.time_ns
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(time, "time", lambda: now() + skew)
        elsewhere.setattr(time, "time_ns", lambda: now_ns() + skew * 10**9)
        share(hours, "1/2")
    share(hours, "2/2")
    assert hours.made() == {"metrics.hours", "metrics.total", "staging.ports"}
    apart, hours.target = hours.target, hours.target.with_name("apart")
    assert hours.build().status == 0
    assert digests(hours.target) == digests(apart)


def test_a_part_without_notes_is_not_taken(hours: Tiny) -> None:
    share(hours, "1/1")
    for notes in hours.target.glob(f"parts/staging.hour/{HOURS[0]}/*.json"):
        notes.unlink()
    assert f"staging.hour {HOURS[0]}" in hours.made()


def test_clean_keeps_parts_of_shares_for_two_weeks(hours: Tiny) -> None:
    assert hours.build().status == 0
    hours.file(2, "1,300,2,200,0,0.5")
    share(hours, "1/1")
    (part,) = hours.target.glob("parts/staging.hour/2024-05-23T18/*.parquet")
    assert call("clean", "-t", hours.target, "--yes", cwd=hours.base).status == 0
    assert part.exists()
    then = time.time() - 15 * 86_400
    os.utime(part.with_suffix(".json"), (then, then))
    assert call("clean", "-t", hours.target, "--yes", cwd=hours.base).status == 0
    assert not part.exists()


def test_an_hour_whose_detail_is_dropped_is_in_no_share(hours: Tiny) -> None:
    for keep in ("1", HOURS[1]):
        said = share(hours, "1/1", "--keep-hours", keep, "--json")
        assert json.loads(said.out)["partitions"] == [HOURS[1]]


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1", "a/b", "1/0", "-1/2"])
def test_a_share_is_a_number_of_a_number(text: str) -> None:
    with pytest.raises(SettingsError, match="not a share I/N"):
        Share.parse(text)


def test_options_of_publishing_are_refused(hours: Tiny) -> None:
    for text in ("1/2", ""):
        assert "--share publishes nothing" in hours.build("--share", text).err
    assert "not a share I/N" in hours.build("--parts-only", "--share", "").err
    assert "--select is for a build that publishes" in hours.build("--parts-only", "-s", "staging.hour").err


def test_a_share_of_an_empty_folder_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    said = call("build", "-d", data, "-t", tmp_path / "target", "--parts-only", "--share", "1/2", cwd=tmp_path)
    assert (said.status, said.err.splitlines()[0]) == (2, f"error: no files in {data}")
