"""What is known of raw files, folder by folder, in one file of the target's cache.

A folder whose packed names and signatures are those of the last build gives its rows without a look at its files: no
name is parsed, no file is opened. The rows stay encoded until somebody asks for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from warehouse.base import hashing
from warehouse.base.settings import renamed
from warehouse.formats.base import Format, RawFile
from warehouse.ingest.scan import Place, is_text, printable, subject
from warehouse.ingest.schemas import file_identity
from warehouse.store.atomic import write_bytes
from warehouse.store.folders import Folder, split_names
from warehouse.store.signatures import is_racy, read_bytes

if TYPE_CHECKING:
    from warehouse.store.signatures import Stamp

NAME = "folders.msgpack"
_SHARES = "shares"
"""Folder of the records that shares of a build leave for the next build."""
OLD_HASHES = "digests.json"
"""Content hashes of an earlier release, by path."""
OLD_NAMES = (OLD_HASHES, "memo.msgpack", "snapshot.json")
"""Caches of earlier releases, which this one replaces."""
DIGEST_BYTES = 16
_DIGEST_LENGTH = len(hashing.of(""))
_FIELDS = ("format", "cluster", "hour_utc", "switch", "device", "port", "file_group", "status", "reason", "header")
"""Fields of a row, besides its release path."""


class RowGroup(msgspec.Struct, array_like=True, frozen=True):
    """Files of a folder that are alike in everything but port, device and reason."""

    where: str
    """Folder in the release."""
    format: str | None
    status: str
    cluster: str | None
    hour_utc: str | None
    """Hour in ISO format."""
    switch: str | None
    file_group: str | None
    odd: bool
    """True if a line may be bad, although the engine can read the files."""
    count: int
    digest: str
    """Digest of names, statuses and content hashes of these files."""


class Record(msgspec.Struct, array_like=True):
    """Folder of raw files as a build saw it."""

    key: bytes
    place: bytes
    own: tuple[int, ...]
    looked_ns: int
    is_racy: bool
    """True if the files must be looked at again, since a signature may not show a change."""
    names: bytes
    numbers: bytes
    rest: bytes
    digests: bytes
    """Content hashes of the regular files, 16 bytes each; zeros for a file that is not read."""
    odd: bytes
    """1 for each regular file in which a line may be bad, else 0."""
    columns: bytes
    """The rows, encoded: for each field the values of all rows, or one value if they are equal."""
    groups: tuple[RowGroup, ...]
    repeats: bool
    """True if two files of the folder are about the same."""
    listed: bytes
    """The rows as they stand in the file list of a build."""
    suffix: str = ""
    """Ending of all names, if the files are alike: of one format, all read, with the columns of this format. No other
    entry of the folder has it."""

    def folder(self, root: str = "") -> Folder:
        """Return the names and signatures."""
        return Folder(os.fsdecode(self.key), root, (self.names, self.numbers, self.rest), self.own, self.looked_ns)

    def odd_names(self) -> list[str]:
        """Return the names of the files in which a line may be bad."""
        return [name for name, is_odd in zip(split_names(self.names), self.odd, strict=True) if is_odd]

    def digest_of(self) -> dict[str, str]:
        """Return the known content hashes by name."""
        parts = (self.digests[at : at + DIGEST_BYTES] for at in range(0, len(self.digests), DIGEST_BYTES))
        return {name: one.hex() for name, one in zip(split_names(self.names), parts, strict=True) if any(one)}


class _State(msgspec.Struct, array_like=True):
    environment: str
    records: list[Record]


_decode_state = msgspec.msgpack.Decoder(_State).decode
_decode_columns = msgspec.msgpack.Decoder().decode
_encode = msgspec.msgpack.Encoder().encode


class KnownFolders:
    """Cache of records.

    Parameters
    ----------
    path
        The cache file; it may be missing or damaged.
    environment
        Hash of what rows depend on besides the files: package, Python, engine, formats. If it changes, content hashes
        stay valid and rows do not.
    paranoid
        True to ignore the cached records.
    share
        The share of a build whose records these are: they go to a file of their own, which the next build reads, too.
        Shares do not read the files of other shares.
    names
        Names of folders in records of shares, each with the name of the same folder here.
    """

    def __init__(
        self,
        path: Path,
        environment: str,
        *,
        paranoid: bool = False,
        share: str | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._path, self._environment, self._names = path, environment, names
        shares = path.parent / _SHARES
        self._own = shares / f"{share.replace('/', '-of-')}.msgpack" if share else path
        self._records: dict[str, Record] = {}
        self._old_rows: set[str] = set()
        self._of_shares = [self._own] if share else sorted(shares.glob("*.msgpack"))
        self._is_new = True
        for file in () if paranoid else (path, *self._of_shares):
            self._read(file)
        self._older = {} if paranoid or self._records else _older_hashes(path.with_name(OLD_HASHES))

    def _read(self, path: Path) -> None:
        """Read the records of a file, the latest of each folder."""
        try:
            content = read_bytes(path)
            if content[:_DIGEST_LENGTH].decode() != hashing.of_bytes(content[_DIGEST_LENGTH:]):
                return
            state = _decode_state(memoryview(content)[_DIGEST_LENGTH:])
        except (OSError, ValueError):
            return  # missing or damaged: look at all files again
        is_old = state.environment != self._environment
        self._is_new = is_old or path != self._path
        for record in state.records:
            if self._names and path != self._path:
                record.key = os.fsencode(renamed(Path(os.fsdecode(record.key)), self._names))
            key = os.fsdecode(record.key)
            known = self._records.get(key)
            if known is None or known.looked_ns < record.looked_ns:
                self._records[key] = record
                (self._old_rows.add if is_old else self._old_rows.discard)(key)

    def folder(self, key: str) -> Folder | None:
        """Return a folder as the last build saw it."""
        record = self._records.get(key)
        return record.folder() if record is not None and not record.is_racy else None

    def looked_at(self, folder: Folder) -> Iterator[tuple[str, Stamp, str | None, bool]]:
        """Yield name, signature, content hash and oddness of the files of a folder, as the last build saw them.

        Only of files whose signature would show a later change.
        """
        record = self._records.get(folder.key)
        if record is not None:
            digests, odd = record.digest_of(), set(record.odd_names())
            for name, seen in record.folder().stamps().items():
                if not is_racy(seen, record.looked_ns):
                    yield name, seen, digests.get(name), name in odd
        elif self._older:
            for name in folder.stamps():
                *seen, digest = self._older.get(f"{folder.path}/{name}", [None])
                if digest:
                    yield name, seen, str(digest), False

    def unchanged(self, folder: Folder, place: Place) -> Record | None:
        """Return the record of a folder in which nothing changed; else None."""
        record = self._records.get(folder.key)
        if (
            record is None
            or folder.key in self._old_rows
            or record.is_racy
            or (record.names, record.numbers, record.rest) != folder.packed
            or record.place != packed_place(place)
        ):
            return None
        if record.own != folder.own:
            record.own, self._is_new = folder.own, True
        record.looked_ns = max(record.looked_ns, folder.looked_ns)
        return record

    def rows(self, folder: Folder, place: Place) -> dict[str, RawFile]:
        """Return the rows of the files of a changed folder that are still right but for changed files, by name.

        The row of a file depends on the names of the files beside it.
        """
        record = self._records.get(folder.key)
        is_same = record is not None and (record.names, record.rest) == (folder.names, folder.rest)
        if record is None or not is_same or folder.key in self._old_rows or record.place != packed_place(place):
            return {}
        files = decoded(record)[: folder.count]
        return dict(zip(split_names(folder.names), files, strict=True))

    def save(self, records: Sequence[Record]) -> None:
        """Write the records of this build; drop all others. A share leaves those of other shares."""
        is_share = self._own != self._path
        is_same = len(records) == len(self._records) and all(
            self._records.get(os.fsdecode(one.key)) is one for one in records
        )
        if is_same and not self._is_new and not is_share:
            return
        content = _encode(_State(self._environment, list(records)))
        self._own.parent.mkdir(exist_ok=True)
        write_bytes(self._own, hashing.of_bytes(content).encode() + content)
        for old in () if is_share else (*self._of_shares, *map(self._path.with_name, OLD_NAMES)):
            old.unlink(missing_ok=True)


def _older_hashes(path: Path) -> dict[str, list[Any]]:
    """Return the signatures and hashes in the cache of an earlier release, which had a list of files."""
    try:
        cached = msgspec.json.decode(read_bytes(path))
        looked_ns = int(cached["looked_ns"])
        return {name: one for name, one in dict(cached["files"]).items() if not is_racy(one, looked_ns)}
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return {}


def packed_place(place: Place) -> bytes:
    """Return a place as bytes; its names may not be UTF-8."""
    return os.fsencode("\0".join((place.cluster, place.begin, str(place.is_internal))))


def encoded(
    folder: Folder,
    place: Place,
    files: Sequence[RawFile],
    odd: Iterable[str],
    listed: bytes,
    *,
    is_racy: bool,
) -> Record:
    """Return the record of a folder, given its rows: the regular files in order, then the others."""
    names, begin = split_names(folder.names), place.begin
    known = dict(zip(names, files, strict=False))
    all_names = (*names, *(name for name, _ in folder.others()))
    paths = [
        None if file.release_path == begin + name else file.release_path
        for name, file in zip(all_names, files, strict=True)
    ]
    columns: list[list[object]] = [list(paths)]
    columns += ([_plain(getattr(file, field)) for file in files] for field in _FIELDS)
    odd_names = set(odd)
    read = [subject(file) for file in files if file.is_read]
    return Record(
        key=os.fsencode(folder.key),
        place=packed_place(place),
        own=folder.own,
        looked_ns=folder.looked_ns,
        is_racy=is_racy or folder.is_racy,
        names=folder.names,
        numbers=folder.numbers,
        rest=folder.rest,
        digests=b"".join(bytes.fromhex(known[name].digest or "") or bytes(DIGEST_BYTES) for name in names),
        odd=bytes(name in odd_names for name in names),
        columns=_encode([column[:1] if all(one == column[0] for one in column) else column for column in columns]),
        groups=groups_of(files, {known[name].path for name in odd_names}),
        repeats=len(read) > len(set(read)),
        listed=listed,
        suffix=_common_suffix(folder, files) if folder.own else "",
    )


def _common_suffix(folder: Folder, files: Sequence[RawFile]) -> str:
    """Return the ending of all names, from the first dot, if the files are alike; see `Record.suffix`."""
    names = split_names(folder.names)
    suffixes = {name[name.find(".") :] if "." in name else "" for name in names}
    kinds = {(file.format, file.header, file.is_read) for file in files}
    is_alike = len(suffixes) == len(kinds) == 1 and kinds == {(files[0].format, None, True)}
    suffix = suffixes.pop() if is_alike and all(map(is_text, (folder.key, *names))) else ""
    return "" if any(name.endswith(suffix) for name in folder.subfolders()) else suffix


def decoded(record: Record) -> list[RawFile]:
    """Return the rows of a record: the regular files in order, then the others."""
    _, begin, _ = os.fsdecode(record.place).split("\0")
    folder = record.folder()
    path = folder.path
    digests = record.digest_of()
    stamps: dict[str, Stamp] = folder.stamps() | {name: [0, 0] for name, _ in folder.others()}
    columns = _decode_columns(record.columns)
    columns = [column * len(stamps) if len(column) == 1 else column for column in columns]
    hours = {value: datetime.fromisoformat(value) if value else None for value in set(columns[3])}
    files = []
    for (name, seen), (release_path, *values) in zip(stamps.items(), zip(*columns, strict=True), strict=True):
        joined = f"{path}/{name}"
        size, mtime_ns = seen[:2]
        if not is_text(joined):
            joined, size, mtime_ns = printable(joined), 0, 0
        row = dict(zip(_FIELDS, values, strict=True))
        row |= {
            "hour_utc": hours[row["hour_utc"]],
            "header": tuple(row["header"]) if row["header"] is not None else None,
        }
        shown = release_path or begin + name
        files.append(RawFile(Path(joined), shown, size, mtime_ns, digest=digests.get(name), seen=seen, **row))
    return files


def groups_of(files: Iterable[RawFile], odd: Iterable[Path] = ()) -> tuple[RowGroup, ...]:
    """Return the groups of some files."""
    found: dict[tuple[object, ...], list[RawFile]] = {}
    odd = set(odd)
    for file in files:
        where = file.release_path.rpartition("/")[0]
        hour = file.hour_utc.isoformat() if file.hour_utc else None
        key = (where, file.format, file.status, file.cluster, hour, file.switch, file.file_group, file.path in odd)
        found.setdefault(key, []).append(file)
    return tuple(msgspec.convert((*key, len(mine), _digest(mine)), RowGroup) for key, mine in found.items())


def _digest(files: Iterable[RawFile]) -> str:
    return hashing.of_bytes(_encode(sorted((file_identity(file) for file in files), key=lambda one: str(one[0]))))


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def environment_of(formats: Sequence[Format], base: str) -> str:
    """Return the hash of formats and of everything else that rows depend on."""
    return hashing.of([base, [(one.name, one.version) for one in formats]])
