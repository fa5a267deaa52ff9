"""Manifest of a build: its parts, and the build id computed from parts and contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.store.layout import ALL, MANIFEST, PARTS, build_folder, current_file, partition_value
from warehouse.store.signatures import first_line, read_bytes, read_text

if TYPE_CHECKING:
    from warehouse.store.part_records import Part


_PARTS = b'"parts":[\n'
"""Begin of the parts in a manifest: the end of its first line, the head. Then each block of parts is a line."""
_BETWEEN, _END = b",\n", b"\n]}\n"
_DAY = len("2024-05-23")
_DEEP = ("parts", "blocks")


class Manifest(NamedTuple):
    """Content of `builds/<id>/manifest.json`: a head of one line, then lines of parts, those of one day each.

    The line of a day whose parts are as in the last manifest is copied from there.
    """

    build: str
    engine: str
    parts: tuple[Mapping[str, object], ...]
    """Entries of the parts; empty if only the head was read."""
    stale: tuple[str, ...]
    data: tuple[str, ...]
    published_utc: str
    linked: tuple[str, ...] = ()
    """Folders outside `data` that links in it lead to; only of a build with `--follow-links`."""
    number: int = 0
    """Sequence number, one more than that of the newest kept build. The order of builds does not depend on a clock."""
    keep_hours: str | None = None
    """The hours whose detail is kept, as `--keep-hours` gave them."""
    blocks: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Day, or `all` -> hash of its parts and hash of its line, in the order of the lines."""

    def write(self, path: Path, parts: Iterable[Part] = (), last: Path | None = None) -> None:
        """Write the JSON file with these parts; copy unchanged lines from the last one."""
        import msgspec

        days: dict[str, list[Part]] = {}
        for part in parts:
            days.setdefault(_day(part.partition), []).append(part)
        known = _lines(last) if last else {}
        blocks, lines = {}, []
        for day in sorted(days):
            inside = sorted(days[day], key=lambda part: (part.partition, part.relation))
            content = hashing.of_bytes("".join([one for part in inside for one in _identity(part)]).encode())
            line = known.get((day, content)) or b",".join(map(msgspec.json.encode, map(_entry, inside)))
            blocks[day] = content, hashing.of_bytes(line)
            lines.append(line)
        head = {name: value for name, value in self._asdict().items() if name not in _DEEP} | {"blocks": blocks}
        begin = msgspec.json.encode(head, order="sorted")[:-1] + b"," + _PARTS
        path.write_bytes(begin + _BETWEEN.join(lines) + _END)


def _day(partition: str) -> str:
    """Return the day of an hour; `all` for another partition."""
    return ALL if partition == ALL or "=" in partition else partition[:_DAY]


def _identity(part: Part) -> tuple[str, ...]:
    return part.relation, " ", part.partition, " ", part.fingerprint, part.digest


def _lines(path: Path) -> dict[tuple[str, str], bytes]:
    """Return the intact lines of a manifest by day and hash of their parts; none of a damaged or earlier one."""
    try:
        content = read_bytes(path)
        blocks = _head(content[: content.index(b"\n") + 1]).blocks
        return {
            (day, parts): line
            for (day, (parts, digest)), line in zip(blocks.items(), _split(content), strict=True)
            if hashing.of_bytes(line) == digest
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _split(content: bytes) -> list[bytes]:
    """Return the lines of parts of a manifest."""
    lines = content[content.index(b"\n") + 1 : -len(_END)]
    return lines.split(_BETWEEN) if lines else []


def _check(content: bytes, blocks: Mapping[str, Sequence[str]]) -> None:
    """Raise ValueError if a line of parts is missing, or not as it was written."""
    if [hashing.of_bytes(line) for line in _split(content)] != [digest for _, digest in blocks.values()]:
        raise ValueError("damaged")


def _head(line: bytes) -> Manifest:
    """Return the manifest without its parts, from its first line."""
    import msgspec

    if not line.endswith(_PARTS):
        raise ValueError("written by an earlier release, or damaged")
    return _from(msgspec.json.decode(line + b"]}"))


def _from(content: Mapping[str, Any]) -> Manifest:
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
        blocks=dict(content.get("blocks", ())),
    )


def build_id(parts: Sequence[Part], contracts: object, engine: str) -> str:
    """Return the first 16 characters of the hash of all parts' digests and the contracts.

    The id is reproducible: it depends on the engine version, but not on machine, folder or number of threads.
    """
    rows = sorted((part.relation, part.partition, part.digest) for part in parts)
    return hashing.of([rows, contracts, engine])[:16]


def _entry(part: Part) -> dict[str, object]:
    """Return the manifest entry of a part."""
    return {
        "model": part.relation,
        "partition": partition_value(part.partition),
        "fingerprint": part.fingerprint,
        "digest": part.digest,
        "rows": part.rows,
        "bytes": part.bytes,
        "path": "/".join((PARTS, *part.file.rsplit("/", 3)[1:])),
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
        content = read_bytes(path)
        found = _from(msgspec.json.decode(content))
        if found.blocks:
            _check(content, found.blocks)
        return found
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


def read_head(path: Path) -> Manifest:
    """Return a manifest without its parts, if it need not be read whole. Raises WarehouseError."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return _head(first_line(path))
    return read_manifest(path)


def last_head(target: Path) -> Manifest | None:
    """Return the head of the published build's manifest; None before the first build. Raises WarehouseError."""
    name = current_build(target)
    path = build_folder(target, name or "") / MANIFEST
    return read_head(path) if name and path.is_file() else None


def kept_builds(target: Path) -> list[tuple[int, str]]:
    """Return number and id of each kept build with a readable manifest, the newest first. Parts are not decoded."""
    found = []
    for folder in build_folders(target):
        with suppress(WarehouseError):
            one = read_head(folder / MANIFEST)
            found.append((one.number, one.build))
    return sorted(found, reverse=True)


def build_folders(target: Path) -> list[Path]:
    """Return the folders of finished builds."""
    try:
        return sorted(path for path in (target / "builds").iterdir() if path.is_dir() and path.name[0] != ".")
    except OSError:
        return []
