"""Walks over data folders: each file once, and a signature per folder that differs if anything in it differs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from warehouse.store.signatures import walk


@pytest.fixture
def release(tmp_path: Path) -> Path:
    for name in ("a/1.csv", "a/2.csv", "b/c/3.csv", "b/4.csv"):
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return tmp_path / "release"


def signatures(release: Path) -> dict[str, str]:
    return {os.path.relpath(key, release): folder.signature for key, folder in walk([release], []).items()}


def relink(path: Path) -> None:
    """Let a link lead elsewhere and back."""
    goal = path.readlink()
    path.unlink()
    path.symlink_to(goal)


def into_folder(a: Path) -> None:
    (a / "1.csv").unlink()
    (a / "1.csv").mkdir()


CHANGES: dict[str, Callable[[Path], object]] = {
    "new": lambda a: (a / "3.csv").touch(),
    "gone": lambda a: (a / "1.csv").unlink(),
    "touched": lambda a: os.utime(a / "1.csv", (1, 1)),
    "other mode": lambda a: (a / "1.csv").chmod(0o600),
    "replaced by an equal file": lambda a: (a / "new").write_text("a/1.csv") and (a / "new").replace(a / "1.csv"),
    "two names swapped": lambda a: [
        (a / old).rename(a / new) for old, new in (("1.csv", "x"), ("2.csv", "1.csv"), ("x", "2.csv"))
    ],
    "link": lambda a: (a / "3").symlink_to("nowhere"),
    "a link that leads back": lambda a: relink(a / "link"),
    "pipe": lambda a: os.mkfifo(a / "3"),
    "a file that became a folder": into_folder,
    "a name that is no text": lambda a: (a / os.fsdecode(b"caf\xe9")).touch(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_in_its_folder_alone(release: Path, change: str) -> None:
    (release / "a" / "link").symlink_to("2.csv")
    before = signatures(release)
    assert signatures(release) == before
    os.sync()  # the next change has another time
    CHANGES[change](release / "a")
    after = signatures(release)
    assert {key for key in before if before[key] != after[key]} == {"a"}
