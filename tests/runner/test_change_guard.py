"""A build looks at every raw file when it begins, and when it ends once more at those that it may have read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import warehouse
from tests.conftest import call
from tests.tiny import Tiny
from warehouse.runner.change_guard import ChangeGuard
from warehouse.store.folders import Walk

SELECT = """
SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets)::BIGINT AS bytes
FROM raw.port_counters GROUP BY ALL"""
COLUMNS = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Number of looks at each folder."""
    found: Counter[str] = Counter()
    usual = Walk._listed

    def listed(walk: Walk, path: str, *given: Any) -> Any:
        found[path] += 1
        return usual(walk, path, *given)

    monkeypatch.setattr(Walk, "_listed", listed)
    return found


def of(looks: Counter[str], tiny: Tiny) -> dict[str, int]:
    """Looks at the folders with files."""
    inside = {
        Path(path).relative_to(tiny.data): count for path, count in looks.items() if path.startswith(f"{tiny.data}/")
    }
    return {path.parts[2]: count for path, count in inside.items() if path.name == "x"}


def test_a_build_shares_the_look_of_the_comparison_before_it(tiny: Tiny, looks: Counter[str], old: None) -> None:
    tiny.made()
    assert of(looks, tiny) == {"2024052400": 2, "2024052401": 2}
    looks.clear()
    tiny.file(2, "1,7,2,200,0,0.5")
    assert not tiny.build().err.startswith("Up to date")
    assert of(looks, tiny) == {"2024052400": 1, "2024052401": 1, "2024052402": 2}
    looks.clear()
    assert tiny.build().err.startswith("Up to date")
    assert set(of(looks, tiny).values()) == {1}


def test_an_hour_whose_files_are_read_again_is_looked_at_twice(tiny: Tiny, looks: Counter[str], old: None) -> None:
    tiny.model("staging.hour", SELECT, COLUMNS, "partition: hour_utc")
    tiny.made()
    looks.clear()
    tiny.model("staging.hour", SELECT.replace("sum", "max"), COLUMNS, "partition: hour_utc")
    assert tiny.made() == {"staging.hour 2024-05-23T16", "staging.hour 2024-05-23T17"}
    assert set(of(looks, tiny).values()) == {2}


def test_a_change_of_an_hour_that_is_not_read_is_the_next_build_s(
    tiny: Tiny, old: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build publishes the files as they were when it began."""
    tiny.model("staging.hour", SELECT, COLUMNS, "partition: hour_utc")
    tiny.made()
    tiny.file(2, "1,7,2,200,0,0.5")
    usual = ChangeGuard.refuse_changes

    def change_first(guard: ChangeGuard, *given: Any) -> None:
        tiny.file(0, "1,999,2,200,0,0.5")
        usual(guard, *given)

    with monkeypatch.context() as patched:
        patched.setattr(ChangeGuard, "refuse_changes", change_first)
        assert tiny.made() == {"staging.hour 2024-05-23T18"}
    assert tiny.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (100,), (7,)]
    assert tiny.made() == {"staging.hour 2024-05-23T16"}
    assert tiny.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(999,), (100,), (7,)]


def test_a_plan_looks_once(tiny: Tiny, looks: Counter[str], old: None) -> None:
    tiny.made()
    tiny.file(2, "1,7,2,200,0,0.5")
    looks.clear()
    assert call("plan", "-d", tiny.data, "-t", tiny.target, "--project", tiny.folder, cwd=tiny.base).status == 0
    assert set(of(looks, tiny).values()) == {1}


def test_a_build_without_a_comparison_looks_itself(tiny: Tiny, looks: Counter[str], old: None) -> None:
    """What an earlier comparison saw may be out of date."""
    tiny.made()
    assert tiny.build().err.startswith("Up to date")
    looks.clear()
    tiny.file(2, "1,7,2,200,0,0.5")
    assert warehouse.build(tiny.data, tiny.target, project=tiny.folder).inventory.count == 3
    assert of(looks, tiny) == {"2024052400": 1, "2024052401": 1, "2024052402": 2}
