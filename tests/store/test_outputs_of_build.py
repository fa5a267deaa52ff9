"""What a comparison has just seen of the outputs is used by the build after it, unless another process came between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import Tiny
from warehouse.store import outputs_of_build, snapshot
from warehouse.store.lock import hold
from warehouse.store.parts import Store
from warehouse.store.signatures import stamp


@pytest.fixture
def changed(tiny: Tiny) -> Tiny:
    """A build with a part, and a new raw file."""
    assert tiny.build().status == 0
    tiny.file(5, "1,1,2,200,0,0.5")
    return tiny


def compare(tiny: Tiny) -> None:
    found, why = snapshot.unchanged(snapshot._read(tiny.target)[0]["request"])
    assert found is None
    assert "files differ" in why or "has changed" in why, why


def part_of(tiny: Tiny) -> Path:
    return next((tiny.target / "parts" / "staging.ports").rglob("*.parquet"))


def test_outputs_are_known_after_a_comparison_once(changed: Tiny) -> None:
    compare(changed)
    with hold(changed.target) as held:
        seen = outputs_of_build.recent(held.before)
        assert seen[str(part_of(changed))] == stamp(part_of(changed).stat())
        assert seen.keys() == snapshot.output_paths(changed.target)
        assert outputs_of_build.recent(held.before) == {}


def test_another_holder_of_the_lock_in_between_counts_as_doubt(changed: Tiny) -> None:
    compare(changed)
    with hold(changed.target):
        pass
    with hold(changed.target) as held:
        assert outputs_of_build.recent(held.before) == {}


def test_an_old_comparison_counts_as_doubt(changed: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(changed)
    monkeypatch.setattr(outputs_of_build, "FRESH_NS", 0)
    with hold(changed.target) as held:
        assert outputs_of_build.recent(held.before) == {}


def test_nothing_is_known_of_outputs_if_one_has_changed(changed: Tiny) -> None:
    part_of(changed).write_bytes(b"")
    compare(changed)
    with hold(changed.target) as held:
        assert outputs_of_build.recent(held.before) == {}


def test_a_store_takes_known_parts_as_they_were_seen_and_written_ones_as_they_are(tmp_path: Path) -> None:
    store = Store(tmp_path)
    part = store.write("staging.a", "all", "f", lambda path: path.write_bytes(b"rows") and 1)
    other = store.file("staging.b", "all", "f")
    store.know_intact({part.file: [1, 2, 3, 4], other: [5, 6, 7, 8], str(tmp_path / "manifest.json"): [9, 9, 9, 9]})
    assert store.is_intact(other, [5, 6, 7, 8])
    assert not store.is_intact(store.file("staging.b", "all", "g"), [5, 6, 7, 8])
    assert store.signatures([part.file, other]) == {part.file: stamp(part.path.stat()), other: [5, 6, 7, 8]}
    with pytest.raises(FileNotFoundError):
        store.signature(str(tmp_path / "manifest.json"))  # no part: it may have been replaced
    paranoid = Store(tmp_path, paranoid=True)
    paranoid.know_intact({other: [5, 6, 7, 8]})
    assert not paranoid.is_intact(other, [5, 6, 7, 8])
