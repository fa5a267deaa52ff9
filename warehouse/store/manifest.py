"""Manifest of a build: its parts, and the build id computed from parts and contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NotRequired, TypedDict

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.store.layout import MANIFEST, build_folder, current_file, partition_value
from warehouse.store.signatures import read_text

if TYPE_CHECKING:
    from warehouse.store.part_records import Part


class _Head(TypedDict):
    """Fields of a manifest that tell builds apart."""

    build: str
    number: NotRequired[int]


class Manifest(NamedTuple):
    """Content of `builds/<id>/manifest.json`."""

    build: str
    engine: str
    parts: tuple[Mapping[str, object], ...]
    stale: tuple[str, ...]
    data: tuple[str, ...]
    published_utc: str
    linked: tuple[str, ...] = ()
    """Folders outside `data` that links in it lead to; only of a build with `--follow-links`."""
    number: int = 0
    """Sequence number, one more than that of the newest kept build. The order of builds does not depend on a clock."""
    keep_hours: str | None = None
    """The hours whose detail is kept, as `--keep-hours` gave them."""

    def write(self, path: Path) -> None:
        """Write the JSON file."""
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(self._asdict(), order="sorted"), indent=1)
        path.write_bytes(text + b"\n")


def build_id(parts: Sequence[Part], contracts: object, engine: str) -> str:
    """Return the first 16 characters of the hash of all parts' digests and the contracts.

    The id is reproducible: it depends on the engine version, but not on machine, folder or number of threads.
    """
    rows = sorted((part.relation, part.partition, part.digest) for part in parts)
    return hashing.of([rows, contracts, engine])[:16]


def part_entry(part: Part, target: Path) -> dict[str, object]:
    """Return the manifest entry of a part, with its path relative to the target."""
    return {
        "model": part.relation,
        "partition": partition_value(part.partition),
        "fingerprint": part.fingerprint,
        "digest": part.digest,
        "rows": part.rows,
        "bytes": part.bytes,
        "path": part.file[len(f"{target.as_posix()}/") :],
    }


def read_manifest(path: Path) -> Manifest:
    """Read `manifest.json`.

    Raises
    ------
    WarehouseError
        When the file is missing or damaged.
    """
    import msgspec

    try:
        content = msgspec.json.decode(read_text(path))
        return Manifest(
            build=content["build"],
            engine=content["engine"],
            parts=tuple(content["parts"]),
            stale=tuple(content["stale"]),
            data=tuple(content["data"]),
            published_utc=content["published_utc"],
            linked=tuple(content.get("linked", ())),
            number=content.get("number", 0),
            keep_hours=content.get("keep_hours"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError) as error:
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
    """Return the readable manifests of all kept builds, the newest first."""
    found = []
    for folder in build_folders(target):
        try:
            found.append(read_manifest(folder / MANIFEST))
        except WarehouseError:
            continue  # no rollback to a build with a damaged manifest
    return sorted(found, key=lambda one: one.number, reverse=True)


def kept_builds(target: Path) -> list[tuple[int, str]]:
    """Return number and id of each kept build with a readable manifest, the newest first. Parts are not decoded."""
    import msgspec

    found = []
    for folder in build_folders(target):
        with suppress(OSError, ValueError, msgspec.MsgspecError):
            one = msgspec.json.decode(read_text(folder / MANIFEST), type=_Head)
            found.append((one.get("number", 0), one["build"]))
    return sorted(found, reverse=True)


def build_folders(target: Path) -> list[Path]:
    """Return the folders of finished builds."""
    try:
        return sorted(path for path in (target / "builds").iterdir() if path.is_dir() and path.name[0] != ".")
    except OSError:
        return []
