"""What a build is made of: its parts and contracts, and the id that follows from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.store.signatures import read_text

if TYPE_CHECKING:
    from warehouse.store.part_records import Part


class Manifest(NamedTuple):
    """A build, as `builds/<id>/manifest.json` holds it."""

    build: str
    engine: str
    parts: tuple[Mapping[str, object], ...]
    stale: tuple[str, ...]
    data: tuple[str, ...]
    published_utc: str
    linked: tuple[str, ...] = ()
    """Folders outside of `data` that links there lead to, of a build that follows links."""
    number: int = 0
    """Greater than that of any build that was kept when it was made: which is the newest does not follow a clock."""

    def write(self, path: Path) -> None:
        """Write the JSON file."""
        said = json.dumps(self._asdict(), indent=1, sort_keys=True, ensure_ascii=False)
        path.write_text(said + "\n", encoding="utf-8")


def build_id(parts: Sequence[Part], contracts: object, engine: str) -> str:
    """The hash of all parts' digests and of the contracts, first 16 characters.

    Equal on any machine with the same engine version, in any folder, with any number of threads.
    """
    rows = sorted((part.relation, part.partition, part.digest) for part in parts)
    return hashing.of([rows, contracts, engine])[:16]


def entry(part: Part, target: Path) -> dict[str, object]:
    """A part as the manifest lists it; its path is relative to the target."""
    return {
        "model": part.relation,
        "partition": None if part.partition == "all" else part.partition,
        "fingerprint": part.fingerprint,
        "digest": part.digest,
        "rows": part.rows,
        "bytes": part.bytes,
        "path": part.path.relative_to(target).as_posix(),
    }


def read_manifest(path: Path) -> Manifest:
    """Read `manifest.json`.

    Raises
    ------
    WarehouseError
        When it is missing or damaged.
    """
    try:
        said = json.loads(read_text(path))
        return Manifest(
            build=said["build"],
            engine=said["engine"],
            parts=tuple(said["parts"]),
            stale=tuple(said["stale"]),
            data=tuple(said["data"]),
            published_utc=said["published_utc"],
            linked=tuple(said.get("linked", ())),
            number=said.get("number", 0),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise WarehouseError(
            f"the manifest {path} cannot be read: {why}", hint="warehouse build makes a new one"
        ) from error


def last_manifest(target: Path) -> Manifest | None:
    """The manifest of the published build, or None where there is none."""
    name = current_build(target)
    path = target / "builds" / (name or "") / "manifest.json"
    return read_manifest(path) if name and path.is_file() else None


def current_build(target: Path) -> str | None:
    """The id of the published build, by the target's own record; None where that is gone or damaged."""
    try:
        return read_text(target / "builds" / "current").strip()
    except (OSError, ValueError):
        return None


def kept_manifests(target: Path) -> list[Manifest]:
    """The manifests of all kept builds that can be read, the newest first."""
    found = []
    for folder in build_folders(target):
        try:
            found.append(read_manifest(folder / "manifest.json"))
        except WarehouseError:
            continue  # damaged: no build to go back to
    return sorted(found, key=lambda one: one.number, reverse=True)


def build_folders(target: Path) -> list[Path]:
    """The folders of finished builds."""
    try:
        return sorted(path for path in (target / "builds").iterdir() if path.is_dir() and path.name[0] != ".")
    except OSError:
        return []
