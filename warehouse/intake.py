"""From data folders to what models can read: inventory, content hashes, mended copies, relations of `raw`.

The runner's side of raw files. Which formats there are, and what their files mean, is in `warehouse.formats`.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

from warehouse import fingerprint
from warehouse.aside import aside, write_text
from warehouse.digests import Digests
from warehouse.engines.base import CsvFiles, Engine, EngineError, Parts, Source
from warehouse.errors import DataError, WarehouseError
from warehouse.formats.base import (
    PARTIAL,
    READ,
    SKIPPED,
    ArchiveFormat,
    CsvFormat,
    Format,
    Inventory,
    RawFile,
    Rejected,
    TableFormat,
    WatchedFormat,
)
from warehouse.formats.scan import scan, settle_duplicates
from warehouse.memo import Memo
from warehouse.model import Column
from warehouse.report import plural
from warehouse.rim import FILES, FILES_COLUMNS, REJECTED, REJECTED_COLUMNS, rim
from warehouse.snapshot import is_racy, stamp
from warehouse.store import ALL, Part, Store


class Intake:
    """The raw files of one build."""

    def __init__(
        self,
        roots: Sequence[Path],
        formats: Sequence[Format],
        store: Store,
        *,
        cluster: str | None = None,
        leave_out: Sequence[Path] = (),
        progress: Callable[[int], None] | None = None,
        paranoid: bool = False,
        max_rejected: float = 1,
        memo: Memo | None = None,
    ) -> None:
        self.formats = {one.name: one for one in formats}
        self._of_csv = {one.name for one in formats if isinstance(one, CsvFormat)}  # asked of every file
        self._archives = {one.name: one for one in formats if isinstance(one, ArchiveFormat)}
        self._store = store
        self._paranoid = paranoid
        self._started_ns = time.time_ns()
        self._max_rejected = max_rejected
        self._cache = store.target / "cache"
        self._cache.mkdir(parents=True, exist_ok=True)
        folders = [_folder(root, self._cache / "unpacked") for root in roots]
        self._memo = memo or Memo(None)
        self._beside: dict[Path, str] = {}
        self._groups: dict[tuple[str, str | None], dict[str | None, list[RawFile]]] = {}
        listed = scan(
            folders,
            formats,
            cluster=cluster,
            leave_out=[store.target, *leave_out],
            progress=progress,
            inspect=self._inspect,
        )
        self._odd: set[Path] = set()
        files = tuple(itertools.chain.from_iterable(self._with_members(file) for file in listed.files))
        hashed = Inventory(listed.roots, tuple(self._with_digests(files)))
        settled = settle_duplicates(hashed)
        self.inventory = settled
        self.mend([file for file in settled.files if self._is_csv(file) and self._is_doubtful(file)])
        self._mend_remembered()
        self._table_rejects: dict[tuple[str, str], list[Rejected]] = {}

    def _is_csv(self, file: RawFile) -> bool:
        return file.format in self._of_csv

    def _with_members(self, file: RawFile) -> list[RawFile]:
        """The file itself and, where it is an archive, what its members were taken for."""
        one = self._archives.get(file.format or "")
        if one is None or not file.is_read:
            return [file]
        from warehouse.formats.archive import unpack_members

        try:
            members = unpack_members(
                file.path, self._cache / "unpacked", max_bytes=one.max_bytes, max_members=one.max_members
            )
        except DataError as error:
            return [file.but(status=SKIPPED, reason=error.message.removeprefix(f"{file.path}: "))]
        found = [file]
        for member in scan([members.folder], list(self.formats.values()), inspect=self._inspect).files:
            below = f"{file.release_path}/{member.path.relative_to(members.folder).as_posix()}"
            found.append(member if member.is_read else member.but(cluster=file.cluster, release_path=below))
        for name, why in members.refused:
            found.append(file.but(release_path=f"{file.release_path}/{name}", bytes=0, status=SKIPPED, reason=why))
        return found

    def _inspect(self, one: Format, file: RawFile) -> RawFile:
        """What a format says of a file: as before, where the file and the names beside it are as they were."""
        seen, folder = stamp(file.path.stat()), file.path.parent
        if is_racy(seen, self._started_ns):
            return one.inspect(file)
        beside = self._beside.get(folder) or fingerprint.of(sorted(os.listdir(folder)))
        self._beside[folder] = beside
        question = [one.name, one.version, str(file.path), file.release_path, file.cluster, seen, beside]

        def find_out() -> dict[str, object]:
            before, said = file._asdict(), one.inspect(file)._asdict()
            return {name: value for name, value in said.items() if value != before[name]}

        said = dict(self._memo.ask(question, find_out))
        hour = said.get("hour_utc")
        return file.but(**(said | {"hour_utc": datetime.fromisoformat(hour)} if isinstance(hour, str) else said))

    def _is_doubtful(self, file: RawFile) -> bool:
        return file.status == PARTIAL or (file.is_read and file.path in self._odd)

    def _with_digests(self, files: Iterable[RawFile]) -> Iterator[RawFile]:
        """Content hashes of the files that are read."""
        digests = Digests(self._cache / "digests.json", paranoid=self._paranoid)
        watched = {one.name: one for one in self.formats.values() if isinstance(one, WatchedFormat)}
        for file in files:
            if not file.is_read:
                yield file
                continue
            one = watched.get(file.format or "") if file.status == READ else None
            watch = one.watch() if one else None
            try:
                digest = digests.of(file.path, watch)
            except OSError as error:
                yield file.but(status=SKIPPED, reason=f"cannot be read: {error.strerror}")
                continue
            if watch is not None and watch.is_odd():
                self._odd.add(file.path)
                digests.forget(file.path)
            yield file.but(digest=digest)
        digests.save()

    def unmended(self, relation: str, partition: str | None) -> list[RawFile]:
        """The files of a relation that are read as they are."""
        return [file for file in self.files_of(relation, partition) if file.clean_path is None]

    def _mend_remembered(self) -> None:
        """Mend at once the files that an earlier build looked through when a model had failed over them.

        Just those together: what is mended follows from what is there, not from what was there before.
        """
        if not (self._cache / "clean").is_dir():
            return
        for one in (one for one in self.formats.values() if isinstance(one, CsvFormat)):
            relation = f"raw.{one.relations[0].name}"
            for partition in (None, *sorted(self.partitions(relation))):
                files = self.unmended(relation, partition)
                if self._mark_of(files).is_file():
                    self.mend(files)

    def _mark_of(self, files: Sequence[RawFile]) -> Path:
        """What says that these files were looked through and had bad lines."""
        said = [(file.release_path, file.digest, self.formats[file.format or ""].version) for file in files]
        return self._cache / "clean" / f"{fingerprint.of(said)}.mended"

    def mend(self, files: Sequence[RawFile], *, remember: bool = False) -> bool:
        """Look through CSV files line by line; those with bad lines are read from a mended copy.

        Returns whether any file turned out to need it; `remember` has the next build know at once.
        """
        mended: dict[Path, RawFile] = {}
        rejected: list[Rejected] = []
        for file in files:
            found, lines = self._mend_one(file)
            if found is not file:
                mended[file.path] = found
                rejected += lines
        if mended:
            if remember:
                self._mark_of(files).touch()
            kept = [one for one in self.inventory.rejected if one.file not in {f.release_path for f in mended.values()}]
            self._groups.clear()
            self.inventory = Inventory(
                self.inventory.roots,
                tuple(mended.get(file.path, file) for file in self.inventory.files),
                tuple(sorted([*kept, *rejected], key=lambda one: (one.file, one.line))),
            )
        return bool(mended)

    def _mend_one(self, file: RawFile) -> tuple[RawFile, list[Rejected]]:
        """The file to read instead, and the lines that are not in it; the file itself where nothing is wrong."""
        clean, lines, changed = self._look_through(file)
        if not changed:
            return file, []
        if not lines:
            return file.but(reason="its lines do not all end alike: read from a mended copy", clean_path=clean), []
        self._not_too_many(file, clean, lines)
        first = lines[0]
        more = f" and {plural(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
        return file.but(status=PARTIAL, reason=f"line {first.line}: {first.reason}{more}", clean_path=clean), lines

    def _not_too_many(self, file: RawFile, clean: Path, lines: list[Rejected]) -> None:
        """Refuse a file of a relation that limits its bad lines when it has more. Raises DataError."""
        one = self.formats[file.format or ""]
        with clean.open("rb") as stream:
            rows = len(lines) + sum(1 for _ in stream) - 1
        if one.relations[0].limited and len(lines) > self._max_rejected * rows:
            raise DataError(
                f"{file.path}: {len(lines):,} of {plural(rows, 'row')} cannot be read, more than --max-rejected allows"
                f" ({self._max_rejected:.3g} of them)",
                details=[f"  line {bad.line}: {bad.reason}" for bad in lines[:3]],
                hint="mend the file, or set the rows aside with a larger --max-rejected",
            )

    def _look_through(self, file: RawFile) -> tuple[Path, list[Rejected], bool]:
        """(mended copy, bad lines, whether the copy differs); remembered, since it takes seconds for a large hour."""
        one = self.formats[file.format or ""]
        assert isinstance(one, CsvFormat)
        folder = self._cache / "clean" / f"{file.digest}-{one.version}"
        name = file.path.name.removesuffix(file.path.suffix) if file.path.suffix != ".csv" else file.path.name
        clean, noted = folder / name, folder / "lines.json"
        try:
            said = json.loads(noted.read_text(encoding="utf-8"))
            lines = [Rejected(file.release_path, *line) for line in said["lines"]]
            if not self._paranoid and (clean.is_file() or not said["changed"]):
                return clean, lines, said["changed"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not looked through yet
        folder.mkdir(parents=True, exist_ok=True)
        mended = aside(clean)
        try:
            lines = list(one.mend(file, mended))
            changed = bool(lines) or fingerprint.of_file(mended) != file.digest
            if changed:
                mended.replace(clean)
        finally:
            mended.unlink(missing_ok=True)
        said = {"changed": changed, "lines": [(line.line, line.reason, line.text) for line in lines]}
        write_text(noted, json.dumps(said))
        return clean, lines, changed

    def formats_of(self, relation: str) -> list[Format]:
        """The formats that feed a relation of `raw`."""
        return [one for one in self.formats.values() if any(f"raw.{fed.name}" == relation for fed in one.relations)]

    def files_of(self, relation: str, partition: str | None) -> tuple[RawFile, ...]:
        """The files that feed a relation, all or those of one partition."""
        if partition is not None:
            return tuple(self._by(relation, column_of(partition)).get(partition, ()))
        if relation == FILES:
            return self.inventory.files
        if relation == REJECTED:
            return ()
        return self.inventory.of(one.name for one in self.formats_of(relation))

    def _by(self, relation: str, column: str | None) -> Mapping[str | None, Sequence[RawFile]]:
        """The files that feed a relation by `partition_of`; each model that reads it asks for that."""
        groups = self._groups.get((relation, column))
        if groups is None:
            groups = {}
            for file in self.files_of(relation, None):
                groups.setdefault(partition_of(file, column), []).append(file)
            self._groups[relation, column] = groups
        return groups

    def feeds(self, relation: str) -> bool:
        """Whether any file, or the runner itself, gives rows of a relation."""
        return relation in (FILES, REJECTED) or bool(self.files_of(relation, None))

    def digest(self, relation: str, partition: str | None) -> str:
        """What a relation of `raw` counts as in a fingerprint: content and release paths, never where it lies."""
        if relation == REJECTED:
            return fingerprint.of([one._asdict() for one in self.rejected()])
        said = [
            (
                f.release_path,
                f.format,
                f.cluster,
                f.hour_utc,
                f.switch,
                f.device,
                f.port,
                f.file_group,
                f.status,
                f.reason,
                f.digest,
            )
            if relation == FILES
            else (f.release_path, f.format, self.formats[f.format or ""].version, f.reason, f.digest)
            for f in self.files_of(relation, partition)
        ]
        return fingerprint.of([relation, said])

    def source(self, relation: str, partition: str | None, engine: Engine) -> Source:
        """Where an engine reads a relation of `raw`."""
        if relation == FILES:
            rows = (_file_row(file) for file in self.files_of(relation, partition))
            return self._written(relation, partition or ALL, FILES_COLUMNS, rows, engine)
        if relation == REJECTED:
            return self._written(relation, ALL, REJECTED_COLUMNS, (one._asdict() for one in self.rejected()), engine)
        files = self.files_of(relation, partition)
        formats = self.formats_of(relation)
        if isinstance(formats[0], CsvFormat):
            known = formats[0].relations[0]
            ordered = sorted(files, key=_in_order)
            headers = {file.read_path: file.header for file in ordered if file.header is not None}
            paths = tuple(file.read_path for file in ordered)
            return CsvFiles(known.columns, paths, quote=known.quote, headers=headers, whole_lines=known.whole_lines)
        parts = self.table_parts(relation, partition, engine)
        return Parts(_table_columns(formats[0], relation), tuple(part.path for part in parts))

    def read_tables(self, relations: Iterable[str], engine: Engine) -> None:
        """Have Python read what it has to, before any model asks: then all rejected lines are known."""
        for relation in sorted(relations):
            formats = self.formats_of(relation)
            if formats and isinstance(formats[0], TableFormat):
                self.table_parts(relation, None, engine)

    def table_parts(self, relation: str, partition: str | None, engine: Engine) -> list[Part]:
        """The cached parts of a relation that Python reads, one a partition; made where not there yet."""
        groups: dict[str, list[RawFile]] = {}
        for file in self.files_of(relation, partition):
            groups.setdefault(partition_of(file) or ALL, []).append(file)
        return [self._table_part(relation, where, groups[where], engine) for where in sorted(groups)]

    def _table_part(self, relation: str, where: str, files: list[RawFile], engine: Engine) -> Part:
        columns = _table_columns(self.formats_of(relation)[0], relation)
        said = [(f.release_path, f.format, self.formats[f.format or ""].version, f.digest) for f in files]
        mark = fingerprint.of([relation, said, [(c.name, c.type) for c in columns]])
        part = self._store.find(relation, where, mark)
        if part is None:
            rejects: list[Rejected] = []
            rows = self._table_rows(relation, files, rejects)
            notes: dict[str, object] = {}

            def make(path: Path) -> int:
                count = self._write(rows, columns, path, engine)
                notes["rejected"] = [one._asdict() for one in rejects]
                return count

            part = self._store.write(relation, where, mark, make, notes)
        noted = part.notes.get("rejected", [])
        assert isinstance(noted, list)
        self._table_rejects[relation, where] = [Rejected(**one) for one in noted]
        return part

    def _table_rows(
        self, relation: str, files: Sequence[RawFile], rejects: list[Rejected]
    ) -> Iterator[Mapping[str, object]]:
        for name in sorted({file.format or "" for file in files}):
            one = self.formats[name]
            assert isinstance(one, TableFormat)
            mine = [file for file in files if file.format == name]
            shown = {str(file.path): file.release_path for file in mine}
            for row in one.read(mine, relation.removeprefix("raw."), rejects):
                known = shown.get(str(row["filename"]))
                yield {**row, "filename": known} if known else row

    def rejected(self) -> list[Rejected]:
        """All lines that could not be read, in order of file and line."""
        tables = [one for lines in self._table_rejects.values() for one in lines]
        return sorted({*self.inventory.rejected, *tables}, key=lambda one: (one.file, one.line, one.reason))

    def partitions(self, relation: str, column: str | None = None) -> set[str]:
        """The partitions that files of a relation belong to, by a column of `raw.files`, else by their own."""
        groups = self._by(relation, column)
        return {value for value, files in groups.items() if value and any(file.is_read for file in files)}

    def _written(
        self,
        relation: str,
        partition: str,
        columns: Sequence[Column],
        rows: Iterable[Mapping[str, object]],
        engine: Engine,
    ) -> Parts:
        """The runner's own listing as a part."""
        items = [dict(row) for row in rows]
        mark = fingerprint.of([items, [(column.name, column.type) for column in columns]])
        part = self._store.find(relation, partition, mark)
        if part is None:
            part = self._store.write(relation, partition, mark, lambda path: self._write(items, columns, path, engine))
        return Parts(tuple(columns), (part.path,))

    def _write(
        self, rows: Iterable[Mapping[str, object]], columns: Sequence[Column], path: Path, engine: Engine
    ) -> int:
        """Write rows as Parquet."""
        import msgspec

        encode = msgspec.json.Encoder(enc_hook=str).encode
        lines = aside(self._cache / "rows")
        try:
            with lines.open("wb") as stream:
                for row in rows:
                    stream.write(encode(row))
                    stream.write(b"\n")
            return engine.write_rows({column.name: column.type for column in columns}, lines, path)
        except EngineError as error:
            raise WarehouseError(
                f"{path} cannot be written: {error.message}",
                hint="--memory gives the engine more, if that is what it lacks",
            ) from error
        finally:
            lines.unlink(missing_ok=True)


def _folder(root: Path, into: Path) -> Path:
    """A data folder; of an archive, the one that it is unpacked to."""
    from warehouse.formats.archive import is_archive, unpack

    return unpack(root, into) if is_archive(root) else root


HOUR = "hour_utc"


def partition_of(file: RawFile, column: str | None = None) -> str | None:
    """The name of the partition that a file belongs to among those by a column of `raw.files`.

    Hours are named as they are, `2024-05-23T16`, all others with their column, `file_group=seren.GPU_UTIL`.
    Without a column it is the file's hour, or the group that it is read with.
    """
    if column is None:
        return partition_of(file, HOUR) or partition_of(file, "file_group")
    value = getattr(file, column)
    return None if value is None else _named(column, value)


@cache
def _named(column: str, value: object) -> str:
    """The name of a partition: the many files have few values."""
    return f"{value:%Y-%m-%dT%H}" if column == HOUR else f"{column}={quote(str(value), safe=' ')}"


def column_of(partition: str) -> str:
    """The column of `raw.files` that a partition is one value of."""
    column, equals, _ = partition.partition("=")
    return column if equals else HOUR


def _in_order(file: RawFile) -> tuple[str, ...]:
    """Files in the order of what they hold, so that rows read one file after another need no sorting."""
    return (
        file.cluster or "",
        str(file.hour_utc or file.file_group or ""),
        file.switch or "",
        file.port or "",
        file.release_path,
    )


def _table_columns(one: Format, relation: str) -> tuple[Column, ...]:
    return rim([one])[relation]


def _file_row(file: RawFile) -> dict[str, object]:
    mtime = datetime.fromtimestamp(file.mtime_ns / 1e9, UTC)
    return {
        "path": str(file.path),
        "release_path": file.release_path,
        "bytes": file.bytes,
        "mtime_utc": f"{mtime:%Y-%m-%d %H:%M:%S}",
        "format": file.format,
        "cluster": file.cluster,
        "hour_utc": str(file.hour_utc) if file.hour_utc else None,
        "switch": file.switch,
        "device": file.device,
        "port": file.port,
        "file_group": file.file_group,
        "status": file.status,
        "reason": file.reason,
        "read_path": str(file.read_path),
    }


def nothing_to_read(inventory: Inventory) -> DataError:
    """The error of data folders without a single readable file."""
    where = ", ".join(str(root) for root in inventory.roots)
    seen = plural(len(inventory.files), "file")
    return DataError(
        f"nothing readable in {where}: {seen}, none recognised" if inventory.files else f"no files in {where}",
        hint="see what was found: warehouse doctor -d DIR",
    )
