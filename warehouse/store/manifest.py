"""Manifest of a build, `builds/<id>/manifest.json`: its parts, and the build id computed from parts and contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.store.layout import MANIFEST, build_folder, current_file, partition_value
from warehouse.store.part_records import Part
from warehouse.store.sealed import read_sealed, write_sealed
from warehouse.store.signatures import read_text

Entry = Mapping[str, Any]
"""Part in a manifest: model, partition, fingerprint, digest, rows, bytes, path, stamp."""


class Manifest(NamedTuple):
    """Content of a manifest."""

    build: str
    engine: str
    parts: Sequence[Entry]
    stale: Sequence[str]
    data: Sequence[str]
    published_utc: str
    linked: Sequence[str] = ()
    """Folders outside `data` that links in it lead to; only of a build with `--follow-links`."""
    number: int = 0
    """Sequence number, one more than that of the newest kept build. The order of builds does not depend on a clock."""
    keep_hours: str | None = None
    """The hours whose detail is kept, as `--keep-hours` gave them."""
    views: Mapping[str, Sequence[str]] = {}
    """Relations that each view reads."""
    copied: Sequence[str] = ()
    """Tables whose rows are in the catalog, not read from their parts."""

    def write(self, path: Path) -> None:
        """Write the file."""
        write_sealed(path, self._asdict())


def entry_of(part: Part, target: Path) -> Entry:
    """Return the manifest entry of a part."""
    return {
        "model": part.relation,
        "partition": partition_value(part.partition),
        "fingerprint": part.fingerprint,
        "digest": part.digest,
        "rows": part.rows,
        "bytes": part.bytes,
        "path": part.file.removeprefix(f"{target}/"),
        "stamp": part.stamp,
    }


def build_id(parts: Iterable[Part], contracts: object, engine: str) -> str:
    """Return the first 16 characters of the hash of all parts' digests and the contracts.

    The id is reproducible: it depends on the engine version, but not on machine, folder or number of threads.
    """
    rows = sorted((part.relation, part.partition, part.digest) for part in parts)
    return hashing.of([rows, contracts, engine])[:16]


def read_manifest(path: Path) -> Manifest:
    """Read `manifest.json`.

    Raises
    ------
    WarehouseError
        When the file is missing or damaged.
    """
    try:
        return Manifest(**read_sealed(path))
    except (OSError, ValueError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise WarehouseError(
            f"the manifest {path} cannot be read: {why}", hint="warehouse build makes a new one"
        ) from error


def last_manifest(target: Path) -> Manifest | None:
    """Return the manifest of the published build; None before the first build. Raises WarehouseError."""
    name = current_build(target)
    path = build_folder(target, name or "") / MANIFEST
    return read_manifest(path) if name and path.is_file() else None


def current_build(target: Path) -> str | None:
    """Return the id of the published build from `builds/current`; None if that file is missing or damaged."""
    try:
        return read_text(current_file(target)).strip()
    except (OSError, ValueError):
        return None


def kept_manifests(target: Path) -> list[Manifest]:
    """Return the readable manifests of all kept builds, the newest first. There is no rollback to any other build."""
    found = []
    for folder in build_folders(target):
        with suppress(WarehouseError):
            found.append(read_manifest(folder / MANIFEST))
    return sorted(found, key=lambda one: one.number, reverse=True)


def build_folders(target: Path) -> list[Path]:
    """Return the folders of finished builds."""
    try:
        return sorted(path for path in (target / "builds").iterdir() if path.is_dir() and path.name[0] != ".")
    except OSError:
        return []
