"""Raw files of a build: the relations of `raw`, their partitions, digests and sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from warehouse.base import hashing
from warehouse.base.errors import DataError, WarehouseError
from warehouse.base.settings import Settings
from warehouse.base.text import grouped
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.sources import JsonLines, Parts, Select, Source
from warehouse.formats.base import (
    READ,
    SKIPPED,
    ArchiveFormat,
    CsvFormat,
    Format,
    Inventory,
    RawFile,
    Rejected,
    TableFormat,
)
from warehouse.ingest.archive_reader import is_archive, unpack
from warehouse.ingest.look import Looker, check_roots, in_order, settle_duplicates
from warehouse.ingest.reading import (
    FILES,
    FILES_COLUMNS,
    REJECTED,
    REJECTED_COLUMNS,
    Changed,
    csv_source,
    file_identity,
    file_row,
    json_lines,
    refuse_too_many,
    repaired,
    rows_of,
    source_columns,
    why_refused,
)
from warehouse.project.contract import Column
from warehouse.project.model import PARTITIONS
from warehouse.store.atomic import sync
from warehouse.store.manifest import (
    ALL,
    HOUR,
    RAW_FILES,
    Part,
    build_folder,
    columns_of,
    partition_of,
    pieces,
    read_sealed,
    targets_above,
    write_sealed,
)
from warehouse.store.parts import Store, Written
from warehouse.store.signatures import changed, refuse_changed, stamp, walk

_FEW = 10
"""Bad rows that never stop a build: 1 % of a sheet as published, which has 1,012 or 1,040 rows."""
Beside = frozenset[str]
"""Relations whose files `raw.files` lists; empty for all files."""
EVERY: Beside = frozenset()


class RawFiles:
    """Raw files of one build.

    Parameters
    ----------
    formats
        Formats in order of precedence.
    environment
        Hash of the package and everything else that the rows of a file depend on.
    """

    def __init__(
        self, settings: Settings, formats: Sequence[Format], store: Store, environment: str, *, paranoid: bool = False
    ) -> None:
        self.formats = {one.name: one for one in formats}
        self._store = store
        self._cache = store.target / "cache"
        self._cache.mkdir(parents=True, exist_ok=True)
        self._max_rejected = settings.max_rejected
        self._paranoid = paranoid
        self._table_lines: dict[str, list[Rejected]] = {}
        """Rejected lines of the parts whose rows Python read, by their paths."""
        environment = hashing.of([environment, [(one.name, one.version) for one in formats]])
        self._looker = Looker(formats, environment, None if paranoid else store.state, settings.threads)
        self.archives = {str(root.absolute()): stamp(root.stat()) for root in settings.data if is_archive(root)}
        """Signatures of the archives that are given as data folders, from before any of them was read."""
        self._unpacked = self._cache / "unpacked"
        roots = [unpack(root, self._unpacked) if is_archive(root) else root for root in settings.data]
        check_roots(roots)
        self._members: dict[Path, RawFile] = {}
        # The store of a dry run is not in the target.
        left_out = [store.target, settings.target, *targets_above(settings.target)]
        self.inventory = Inventory(root.absolute() for root in roots)
        self._set(self._looker.look(walk(roots, left_out, follow_links=settings.follow_links), settings.cluster), [])
        self._unpack_members()
        self._set(settle_duplicates(self.inventory.files), [])
        self._looker.keep(store)
        self._change(self._repaired, [file for file in self.inventory.files if self._may_be_damaged(file)])

    def _set(self, files: Iterable[RawFile], rejected: Iterable[Rejected]) -> None:
        """Take in the rows of all files, and the lines of CSV files that are left out."""

        def place(file: RawFile) -> tuple[str, str, str, str]:
            return (*in_order(self._members.get(file.path, file)), *in_order(file))

        self.inventory = Inventory(self.inventory.roots, sorted(files, key=place), sorted(rejected))
        self._chosen: dict[tuple[str, Beside, tuple[str, ...]], dict[str | None, list[RawFile]]] = {}

    def _unpack_members(self) -> None:
        """Add the members of archives among the files."""
        files = {file.path: file for file in self.inventory.files}
        found = []
        for file in list(files.values()):
            one = self.formats.get(file.format or "")
            if not file.is_read or not isinstance(one, ArchiveFormat):
                continue
            try:
                folder = unpack(file.path, self._unpacked, max_bytes=one.max_bytes, max_members=one.max_members)
            except DataError as error:
                reason = error.message.removeprefix(f"{file.path}: ")
                files[file.path] = file.but(status=SKIPPED, reason=reason, digest=None)
                continue
            for member in self._looker.look(walk([folder], ()), None):
                below = f"{file.release_path}/{member.path.relative_to(folder).as_posix()}"
                found.append(member if member.is_read else member.but(cluster=file.cluster, release_path=below))
                self._members[member.path] = file
        self._set([*files.values(), *found], [])

    # damaged files ----------------------------------------------------------------------------------

    def _may_be_damaged(self, file: RawFile) -> bool:
        may_be = file.is_read and (file.is_odd or file.status != READ)
        return may_be and isinstance(self.formats.get(file.format or ""), CsvFormat)

    def repair(self, files: Sequence[RawFile], engine: DuckDBEngine) -> bool:
        """Leave out the bad lines of CSV files. If there are none, skip the files that the engine refuses.

        Return True if anything is left out. The next build checks files with bad lines before it reads them.
        """

        def unless_refused(file: RawFile) -> Changed:
            why = why_refused(file, self._csv(file), engine)
            reason = f"the engine refuses it: {why}"
            return (file.but(status=SKIPPED, reason=reason, digest=None, clean_path=None) if why else file), []

        unchecked = [file for file in files if not file.clean_path]
        if not self._change(self._repaired, unchecked):
            return self._change(unless_refused, files)
        now = {file.path: file for file in self.inventory.files}
        self._looker.mark_odd([file.path for file in unchecked if now[file.path] is not file])
        self._looker.keep(self._store)
        return True

    def _csv(self, file: RawFile) -> CsvFormat:
        one = self.formats[file.format or ""]
        assert isinstance(one, CsvFormat)
        return one

    def _repaired(self, file: RawFile) -> Changed:
        where = self._cache / "clean"
        return repaired(file, self._csv(file), where, max_rejected=self._max_rejected, paranoid=self._paranoid)

    def _change(self, change: Callable[[RawFile], Changed], files: Iterable[RawFile]) -> bool:
        """Replace the rows of the files that a function changes, and their rejected lines."""
        found = {file.path: seen for file in files if (seen := change(file))[0] is not file}
        if found:
            paths = {file.release_path for file, _ in found.values()}
            rejected = [one for one in self.inventory.rejected if one.file not in paths]
            rejected += (one for _, lines in found.values() for one in lines)
            rows = (found[file.path][0] if file.path in found else file for file in self.inventory.files)
            self._set(rows, rejected)
        return bool(found)

    def changed(self) -> list[str]:
        """Return the files that a format has opened and that have another signature now."""
        opened = {file.path: file.seen for file in self.inventory.files if file.format and file.seen}
        return changed(opened | {Path(path): seen for path, seen in self.archives.items()})

    # relations ------------------------------------------------------------------------------------

    def formats_of(self, relation: str) -> list[Format]:
        """Return the formats whose files have rows for a relation of `raw`."""
        return [one for one in self.formats.values() if any(fed.full_name == relation for fed in one.relations)]

    def is_csv(self, relation: str) -> bool:
        """Return True if the engine reads the files of a relation."""
        return any(isinstance(one, CsvFormat) for one in self.formats_of(relation))

    def files_of(self, relation: str, partition: str | None, beside: Beside = EVERY) -> list[RawFile]:
        """Return the files of a relation, all or of one partition. `beside` limits those of `raw.files`."""
        columns = columns_of(partition) if partition else ()
        key = relation, beside, columns
        if key not in self._chosen:
            files = self._files(relation, beside)
            self._chosen[key] = grouped((partition_of(file, columns) if columns else None, file) for file in files)
        return self._chosen[key].get(partition, [])

    def _files(self, relation: str, beside: Beside) -> Iterable[RawFile]:
        if relation == REJECTED:
            return ()
        if relation == FILES and not beside:
            return self.inventory.files
        formats = {one.name for other in beside or {relation} for one in self.formats_of(other)}
        return (file for file in self.inventory.files if file.format in formats and (beside or file.is_read))

    def feeds(self, relation: str) -> bool:
        """Return True if a relation has files or is written by the runner."""
        return relation in (FILES, REJECTED) or bool(self.files_of(relation, None))

    def partitions(self, relation: str, columns: Sequence[str]) -> set[str]:
        """Return the partitions of a relation's files by columns of `raw.files`."""
        files = (file for file in self._files(relation, EVERY) if file.is_read)
        return {name for file in files if (name := partition_of(file, columns))}

    def digest(self, relation: str, partition: str | None, beside: Beside = EVERY) -> str:
        """Return the digest of a relation of `raw`: of content hashes and release paths, not of absolute paths."""
        if relation == REJECTED:
            return hashing.of([one._asdict() for one in self.rejected()])
        contents = [
            file_identity(f)
            if relation == FILES
            # The reason tells a repaired file, which can have fewer rows, from an intact one.
            else (f.release_path, f.format, self.formats[f.format or ""].version, f.reason, f.digest)
            for f in self.files_of(relation, partition, beside)
        ]
        return hashing.of([relation, contents])

    def source(self, relation: str, partition: str | None, engine: DuckDBEngine, beside: Beside = EVERY) -> Source:
        """Return the source of a relation of `raw`."""
        if relation == FILES:
            return self._listing(FILES_COLUMNS, map(file_row, self.files_of(relation, partition, beside)))
        if relation == REJECTED:
            return self._listing(REJECTED_COLUMNS, (one._asdict() for one in self.rejected()))
        files, formats = self.files_of(relation, partition), self.formats_of(relation)
        if isinstance(formats[0], CsvFormat):
            return csv_source(formats[0], files)
        paths = tuple(part.file for part in self._tables(relation, partition, engine))
        return Parts(source_columns(formats[:1])[relation], paths)

    def _listing(self, columns: Sequence[Column], rows: Iterable[Mapping[str, object]]) -> JsonLines:
        """Return a list of the runner, in a temporary file named by its content."""
        content = b"".join(json_lines(rows))
        path = self._store.temporary("jsonl").with_name(f"{hashing.of_bytes(content)}.jsonl")
        if not path.exists():
            path.write_bytes(content)
        return JsonLines(tuple(columns), path)

    def read_tables(self, relations: Iterable[str], engine: DuckDBEngine) -> None:
        """Read the files that need Python, before models run: their rejected lines are known then."""
        for relation in sorted(relations):
            formats = self.formats_of(relation)
            if formats and isinstance(formats[0], TableFormat):
                self._tables(relation, None, engine)

    # rows by Python -------------------------------------------------------------------------------

    def _tables(self, relation: str, partition: str | None, engine: DuckDBEngine) -> list[Part]:
        """Return the parts of a relation whose rows Python reads."""
        files = self.files_of(relation, partition)
        by_partition = grouped(
            (partition_of(file, (HOUR,)) or partition_of(file, ("file_group",)) or ALL, file) for file in files
        )
        return [self._table(relation, where, own, engine) for where, own in sorted(by_partition.items())]

    def _table(self, relation: str, where: str, files: Sequence[RawFile], engine: DuckDBEngine) -> Part:
        """Return the part with the rows of these files of a partition. Raises DataError if too many of them are bad."""
        one = self.formats[files[0].format or ""]
        columns = source_columns([one])[relation]
        contents = [(f.release_path, f.format, self.formats[f.format or ""].version, f.digest) for f in files]
        fingerprint = hashing.of([relation, contents, [(c.name, c.type) for c in columns]])
        part = self._store.find(relation, where, fingerprint)
        # A state that was made again from manifests has parts without their rejected lines.
        if part is None or "rejected" not in part.notes:
            part = self._write_table(relation, where, fingerprint, files, columns, engine)
        lines = self._table_lines[part.file] = [Rejected(**one) for one in part.notes["rejected"]]
        for file in files if any(fed.limited for fed in one.relations) else ():
            bad = [one for one in lines if one.file == file.release_path and one.line > 1]  # line 1 stands for the file
            good = part.notes["read"].get(file.release_path, 0)
            refuse_too_many(file, bad, good + len(bad), self._max_rejected, _FEW)
        return part

    def _write_table(
        self,
        relation: str,
        where: str,
        fingerprint: str,
        files: Sequence[RawFile],
        columns: Sequence[Column],
        engine: DuckDBEngine,
    ) -> Part:
        """Read files and write their rows. Raises DataError if one of them changes meanwhile."""
        rejects, counts = list[Rejected](), Counter[str]()
        path, lines = self._store.temporary("parquet"), self._store.temporary("jsonl")
        try:
            with lines.open("wb") as stream:
                stream.writelines(json_lines(rows_of(relation, files, self.formats, rejects, counts)))
            with engine.scratch({relation: JsonLines(tuple(columns), lines)}) as scratch:
                count = scratch.write(Select(f"FROM {relation}", tuple(columns)), path, ())
            sync(path)
            # After the last byte was read: a file rewritten in place can end with the bytes that it had.
            refuse_changed({file.path: file.seen for file in files})
            notes = {"rejected": [one._asdict() for one in rejects], "read": dict(counts)}
            written = Written(path, count, hashing.of_file(path))
            return self._store.take_in(relation, where, fingerprint, written, notes)
        except EngineError as error:
            raise WarehouseError(
                f"{path} cannot be written: {error.message}", hint="if the engine lacks memory, raise --memory"
            ) from error
        finally:
            for unfinished in (path, lines):
                unfinished.unlink(missing_ok=True)

    def rejected(self) -> list[Rejected]:
        """Return all rejected lines, sorted by file, line, reason and text."""
        return sorted({*self.inventory.rejected, *(one for lines in self._table_lines.values() for one in lines)})


class Listed(NamedTuple):
    """Raw file in the list of a build."""

    content: str
    """Content hash; the status of a file that is not read."""
    feeds: tuple[str, ...]
    """Relations of `raw` that the file has rows for."""
    partitions: tuple[str, ...]
    """Pieces of the names of partitions that the file may be in."""


FileList = Mapping[str, Listed]
"""Raw files by release path. If two files have the same release path, the one that is read counts."""


class FileChange(NamedTuple):
    """Raw file that was added, removed or changed."""

    change: str
    """`added`, `removed` or `changed`."""
    release_path: str
    partitions: frozenset[str]
    """Pieces of the names of the file's partitions before and after the change."""

    def is_in(self, partition: str) -> bool:
        """Return True if the change can affect rows of a partition."""
        return partition == ALL or self.partitions.issuperset(pieces(partition).values())


def list_files(raw_files: RawFiles) -> dict[str, Listed]:
    """Return the list of a build's raw files."""
    fed = {one.name: tuple(relation.full_name for relation in one.relations) for one in raw_files.formats.values()}
    found: dict[str, Listed] = {}
    for file in raw_files.inventory.files:
        if file.is_read or file.release_path not in found:
            feeds = (FILES, *(fed[file.format or ""] if file.is_read else ()))
            named = (partition_of(file, (column,)) for column in PARTITIONS)
            found[file.release_path] = Listed(file.digest or file.status, feeds, tuple(filter(None, named)))
    return found


def changes(before: FileList, after: FileList, relation: str) -> Iterator[FileChange]:
    """Yield the added, removed and changed files of a relation."""
    for path in sorted({*before, *after}):
        old, new = (one if one and relation in one.feeds else None for one in (before.get(path), after.get(path)))
        if old == new:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        yield FileChange(change, path, frozenset((*(old.partitions if old else ()), *(new.partitions if new else ()))))


def write_listing(folder: Path, files: FileList) -> None:
    """Write the list of raw files to a build's folder."""
    write_sealed(folder / RAW_FILES, files)


def read_listing(target: Path, build: str) -> FileList | None:
    """Return the list of raw files of an earlier build; None if it is missing or damaged."""
    try:
        return msgspec.convert(read_sealed(build_folder(target, build) / RAW_FILES), dict[str, Listed])
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
