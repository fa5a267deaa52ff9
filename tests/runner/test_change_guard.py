"""A build looks at every raw file twice: when it begins and when it ends."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import warehouse
from tests.conftest import call
from tests.tiny import Tiny
from warehouse.store.folders import Walk


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


def of(looks: Counter[str], tiny: Tiny) -> set[int]:
    return {count for path, count in looks.items() if path.startswith(str(tiny.data))}


def test_a_build_shares_the_look_of_the_comparison_before_it(tiny: Tiny, looks: Counter[str]) -> None:
    tiny.made()
    assert of(looks, tiny) == {2}
    looks.clear()
    tiny.file(2, "1,7,2,200,0,0.5")
    assert not tiny.build().err.startswith("Up to date")
    assert of(looks, tiny) == {2}
    looks.clear()
    assert tiny.build().err.startswith("Up to date")
    assert of(looks, tiny) == {1}


def test_a_plan_looks_once(tiny: Tiny, looks: Counter[str]) -> None:
    tiny.made()
    tiny.file(2, "1,7,2,200,0,0.5")
    looks.clear()
    assert call("plan", "-d", tiny.data, "-t", tiny.target, "--project", tiny.folder, cwd=tiny.base).status == 0
    assert of(looks, tiny) == {1}


def test_a_build_without_a_comparison_looks_itself(tiny: Tiny, looks: Counter[str]) -> None:
    """What an earlier comparison saw may be out of date."""
    tiny.made()
    assert tiny.build().err.startswith("Up to date")
    looks.clear()
    tiny.file(2, "1,7,2,200,0,0.5")
    assert warehouse.build(tiny.data, tiny.target, project=tiny.folder).inventory.count == 3
    assert of(looks, tiny) == {2}
