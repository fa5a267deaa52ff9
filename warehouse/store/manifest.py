"""Files of a target, names of partitions, and what a build consists of, as `builds/<id>/manifest.json` lists it.

The build id is computed from parts and contracts. A manifest has a hash of its content: a damaged one is not read. It
also has size, times and inode of each part: only a part with another signature is hashed.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.base.text import filled
from warehouse.store.signatures import read_text, stamp

if TYPE_CHECKING:
    from warehouse.formats.base import RawFile

PARTS = "parts"
"""Folder of the parts of all builds."""
PUBLISHED = "warehouse.duckdb"
"""The published catalog, which readers open."""
MACROS = "query"
"""Schema of the named queries in the published file, where each is a table macro."""
CATALOG = "catalog.duckdb"
"""A build's copy of the catalog, in its folder."""
MANIFEST = "manifest.json"
"""The list of files that a build, an export or a site consists of."""
RAW_FILES = "files.json"
"""The list of raw files of a build."""
EXPORT, SITE = "warehouse export", "warehouse docs"
"""Kinds of output folders, as their manifests name them."""
ALL = "all"
"""Partition of a relation that is not partitioned."""
HOUR = "hour_utc"
_BEGIN, _BETWEEN, _END = '{"hash":"', '","content":', "}\n"


def current_file(target: Path) -> Path:
    """Return the file with the id of the published build."""
    return target / "builds" / "current"


def targets_above(target: Path) -> list[Path]:
    """Return the targets that a folder lies in: `verify` builds inside the target that it examines."""
    return [folder for folder in target.absolute().parents if current_file(folder).is_file()]


def build_folder(target: Path, build: str) -> Path:
    """Return the folder of a build: its manifest, its copy of the catalog, its list of raw files."""
    return target / "builds" / build


def catalog_of(target: Path, build: str) -> Path:
    """Return the catalog of a build, which stays when a later build is published."""
    return build_folder(target, build) / CATALOG


# partitions ---------------------------------------------------------------------------------------
# The name of a partition has a piece for each column of `raw.files`: `2024-05-23T16` for an hour,
# `2024-05-23T16/switch=Leaf-1` for a switch in it, `file_group=seren.GPU_UTIL` for another column.


def partition_value(partition: str) -> str | None:
    """Return the value of the partition column of a part; None if its relation is not partitioned."""
    return None if partition == ALL else partition


def partition_name(value: object) -> str:
    """Return the name of a part's partition, from the value of the partition column; the inverse of partition_value."""
    return str(value or ALL)


def partition_of(file: RawFile, columns: Sequence[str]) -> str | None:
    """Return the partition of a file by columns of `raw.files`; None if it has no value for one of them."""
    values = [getattr(file, column) for column in columns]
    return None if None in values else "/".join(map(_piece, columns, values))


@cache  # many files share few values
def _piece(column: str, value: object) -> str:
    # quote() leaves `/` as it is unless told: it would begin another piece.
    return f"{value:%Y-%m-%dT%H}" if column == HOUR else f"{column}={quote(str(value), safe=' ')}"


@cache
def pieces(partition: str) -> Mapping[str, str]:
    """Return the pieces of a partition's name by column; none of `all`.

    >>> dict(pieces("2024-05-23T16/switch=Leaf-1"))
    {'hour_utc': '2024-05-23T16', 'switch': 'switch=Leaf-1'}
    """
    names = [] if partition == ALL else partition.split("/")
    return {column if equals else HOUR: name for name in names for column, equals, _ in [name.partition("=")]}


def columns_of(partition: str) -> tuple[str, ...]:
    """Return the columns of a partition's name; none of `all`."""
    return tuple(pieces(partition))


def narrowed(partition: str, columns: Iterable[str]) -> str:
    """Return a partition's name with these columns alone.

    >>> narrowed("2024-05-23T16/switch=Leaf-1", ["hour_utc"])
    '2024-05-23T16'
    """
    named = pieces(partition)
    return "/".join(named[column] for column in columns)


def hour_of(partition: str) -> str:
    """Return the hour in a partition's name; empty if it has none."""
    return pieces(partition).get(HOUR, "")


@cache
def values_of(partition: str) -> Mapping[str, str]:
    """Return the values of a partition's columns, as DuckDB writes them.

    >>> dict(values_of("2024-05-23T16/switch=Leaf-1"))
    {'hour_utc': '2024-05-23 16:00:00', 'switch': 'Leaf-1'}
    """
    return {
        column: f"{datetime.fromisoformat(piece):%Y-%m-%d %H:%M:%S}"
        if column == HOUR
        else unquote(piece.partition("=")[2])
        for column, piece in pieces(partition).items()
    }


@cache
def folder_of(partition: str) -> str:
    """Return the folder of a partition's parts, in Hive's form: `hour_utc=2024-05-23%2016%3A00%3A00`.

    Source: https://duckdb.org/docs/stable/data/partitioning/hive_partitioning
    """
    return "/".join(f"{column}={quote(value, safe='')}" for column, value in values_of(partition).items()) or ALL


# manifests ----------------------------------------------------------------------------------------


def write_sealed(path: Path, content: object) -> None:
    """Write a JSON-able value with its hash."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"{_BEGIN}{hashing.of_bytes(text.encode())}{_BETWEEN}{text}{_END}", encoding="utf-8")


def read_sealed(path: Path) -> Any:
    """Return the value. Raises OSError, or ValueError if the file is damaged."""
    text = read_text(path)
    head, between, rest = text.partition(_BETWEEN)
    content = rest.removesuffix(_END)
    if not between or content == rest or head != f"{_BEGIN}{hashing.of_bytes(content.encode())}":
        raise ValueError(f"{path} is damaged")
    return json.loads(content)


INPUTS = "made_of"
"""Note of a part: what it was made from; its fingerprint is the hash of this."""


class CheckResult(NamedTuple):
    """Result of a check on one part."""

    check: str
    warn: bool
    failures: int
    key: str = ""
    """Hash of the check and of the rows that it read."""
    rows: Sequence[str] = ()
    """First failing rows, as JSON objects."""
    not_checked: str = ""
    """Reason why the check did not run, such as `metrics.port_minute is stale`."""
    says: str = ""
    """Sentence template of the check. Not stored with the part, since it can change while the part stays valid."""

    @property
    def sentences(self) -> list[str]:
        """Sentence for each of the first failing rows; empty if the check has no template."""
        return [filled(self.says, json.loads(row)) for row in self.rows] if self.says else []

    @property
    def status(self) -> str:
        """`passed`, `warned`, `failed`, or `not checked: ` with the reason."""
        if self.not_checked:
            return f"not checked: {self.not_checked}"
        return "passed" if not self.failures else "warned" if self.warn else "failed"


class Part(NamedTuple):
    """Part of a relation: one Parquet file."""

    relation: str
    partition: str
    """`2024-05-23T16`, or `all`."""
    fingerprint: str
    digest: str
    rows: int
    bytes: int
    file: str
    """Path of the file."""
    stamp: list[int]
    """Signature of the file."""
    notes: dict[str, Any]
    """JSON-able values: inputs, check results, rejected lines."""

    @property
    def path(self) -> Path:
        """Path of the file."""
        return Path(self.file)


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


def readable_manifest(target: Path, build: str | None = None) -> Manifest | None:
    """Return the manifest of a build, by default of the published one; None if it is missing or damaged."""
    with suppress(WarehouseError):
        return read_manifest(build_folder(target, build or current_build(target) or "") / MANIFEST)
    return None


def current_build(target: Path) -> str | None:
    """Return the id of the published build from `builds/current`; None if that file is missing or damaged."""
    try:
        return read_text(current_file(target)).strip()
    except (OSError, ValueError):
        return None


def kept_manifests(target: Path) -> list[Manifest]:
    """Return the readable manifests of all kept builds, the newest first. There is no rollback to any other build."""
    found = (readable_manifest(target, folder.name) for folder in build_folders(target))
    return sorted(filter(None, found), key=lambda one: one.number, reverse=True)


def build_folders(target: Path) -> list[Path]:
    """Return the folders of finished builds."""
    try:
        # A folder that is being removed begins with a dot.
        return sorted(path for path in (target / "builds").iterdir() if path.is_dir() and path.name[0] != ".")
    except OSError:
        return []


def damages(target: Path, tables: Iterable[str] | None, *, digests: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the damaged parts of tables of the published build: path relative to the target, and the problem.

    Missing parts are not reported here: the target may have been moved, and a query that reads the part fails. Without
    a readable manifest, as of a catalog that was copied alone, nothing is known.

    Parameters
    ----------
    tables
        Full names; unknown names are ignored. None for all tables.
    digests
        True to hash every part, even if its signature is unchanged.
    """
    manifest = readable_manifest(target)
    if manifest is None:
        return
    wanted = None if tables is None else with_tables_of_views(tables, manifest.views)
    # Their rows are read from the catalog.
    left_out = set() if digests else {name.lower() for name in manifest.copied}
    for part in manifest.parts:
        name, path = part["model"].lower(), target / part["path"]
        if name in left_out or (wanted is not None and name not in wanted):
            continue
        try:
            seen = stamp(path.stat())
        except OSError:
            if path.is_symlink():
                yield part["path"], "it is a broken link"
            continue
        problem = problem_of(path, part["bytes"], part["digest"]) if digests or seen != part["stamp"] else None
        if problem:
            yield part["path"], problem


def with_tables_of_views(tables: Iterable[str], views: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the tables and, recursively, the tables that views read, in lower case."""
    reads = {name.lower(): below for name, below in views.items()}

    def below(name: str) -> Iterator[str]:
        yield name.lower()
        for read in reads.get(name.lower(), ()):
            yield from below(read)

    return {name for table in tables for name in below(table)}


def problem_of(path: Path, size: int, digest: str | None) -> str | None:
    """Return the problem of a part by its file type, size and content hash; None for an intact part."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            return "it is not a file"
        if about.st_size != size:
            return f"{about.st_size:,} bytes, not {size:,}"
        if hashing.of_file(path) != digest:
            return "its content is not what was written"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None
