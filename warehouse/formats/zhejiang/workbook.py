"""The topology workbook `<cluster>.xlsx`: NICs on leaf ports, and the names of each server's NICs.

Docs: docs/formats/workbook.md. Two sheets feed two relations. They are not joined here, since they share no address. No
cell is filled in or repaired here. A row is rejected with its number if a cell lacks its published form. So is a row
that repeats a port or NIC of a row above. The models report other gaps and contradictions.

The release's document and its files disagree about names (`NIC name1`, `NIC name 2`, `server IP`). So names are
compared without case, blanks and underscores. A missing or repeated column is a problem; the reader never guesses.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from warehouse.base.errors import DataError, Place
from warehouse.base.hashing import open_regular
from warehouse.base.startup import regex
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.named_csv import COLUMNS_IGNORED
from warehouse.formats.zhejiang import ADDRESS, OCTET, PORT_NAME

MAX_ENTRIES = 2_000
MAX_BYTES = 256 * 2**20
MAX_RATIO = 200
RATIO_COUNTS_FROM = 2**20
LAST_ROW = 1_048_576
"""Maximum number of rows of a sheet; a file that claims more is forged."""
_DOCTYPES = ["<!DOCTYPE".encode(code) for code in ("ascii", "utf-16-le", "utf-16-be")]
"""Begin of a document type, which alone can declare entities: in ASCII and all that contains it, and in UTF-16."""

Columns = Mapping[str, Sequence[str]]
"""Column of a relation -> its spellings in headers."""
MOST_BAD = LAST_ROW // 100
"""Maximum number of rejected rows of a sheet: a million would fill the memory."""


def fold(name: str) -> str:
    """Return a name without case, blanks, hyphens and underscores, for comparison.

    >>> fold("NIC name 2") == fold("nic_name2")
    True
    """
    written = unicodedata.normalize("NFKC", name)  # Chinese input methods can write full-width letters
    return "".join(written.split()).replace("_", "").replace("-", "").casefold()


class _Form(NamedTuple):
    """Pattern that a whole cell must match. If it has a group `name`, only that group is compared."""

    pattern: re.Pattern[str]
    like: str
    may_be_blank: bool = False


@dataclass(frozen=True)
class _Sheet:
    relation: RawRelation
    titles: tuple[str, ...]
    """Accepted titles of the sheet, the published title first."""
    columns: Columns
    forms: Mapping[str, _Form]
    unique: Mapping[str, tuple[str, ...]]
    """Name of a thing -> its columns, which are unique in a sheet together. A row with one of them blank is exempt."""
    same: tuple[str, ...] = ()
    """Columns that must agree within a row."""

    def parsed(self, found: Sequence[tuple[str, Iterator[Line]]]) -> _Table:
        """Return the rows of the sheet with one of these titles, by the names in its header."""
        wanted = {fold(title) for title in self.titles}
        mine = [one for one in found if fold(one[0]) in wanted]
        if len(mine) != 1:
            both = " and ".join(repr(title) for title, _ in mine)
            named = f"sheets {both} both stand for" if mine else "no sheet"
            return _Table("", f"{named} {self.titles[0]!r}")
        [(title, lines)] = mine
        header = next(lines, None)
        if header is None:
            return _Table(title, f"sheet {title!r} is empty")
        if header.broken:
            return _Table(title, f"sheet {title!r}: {header.broken}")
        places, problem, ignored = self._matched(header.cells)
        if problem:
            return _Table(title, f"sheet {title!r}: {problem}")
        rejected: list[Rejected] = []
        return _Table(title, None, ignored, [*self._good(lines, places, title, rejected)], rejected)

    def _matched(self, names: Sequence[str | None]) -> tuple[Mapping[str, int], str, list[str]]:
        """Return the positions of the columns in a header, its missing or repeated columns, and all others."""
        column_of = {fold(spelling): column for column, known in self.columns.items() for spelling in known}
        places: dict[str, int] = {}
        repeated, ignored = [], []
        for at, name in enumerate(names):
            column = column_of.get(fold(name or ""))
            if name and fold(name) and not column:
                ignored.append(name.strip())
            elif name and column and places.setdefault(column, at) != at:
                repeated.append(name.strip())
        missing = [column for column in self.columns if column not in places]
        problems = [f"no column {', '.join(missing)}"] if missing else []
        problems += [f"column {', '.join(repeated)} stands twice"] if repeated else []
        return places, " and ".join(problems), ignored

    def _good(
        self, lines: Iterable[Line], places: Mapping[str, int], title: str, reject: list[Rejected]
    ) -> Iterator[Mapping[str, object]]:
        """Yield the good rows; append the others to `reject`."""
        seen: dict[tuple[str, ...], int] = {}
        for line in lines:
            cells = {name: line.cells[at] if at < len(line.cells) else None for name, at in places.items()}
            values = {name: (cell or "").strip() or None for name, cell in cells.items()}
            if problem := line.broken or self._problem(values, line.number, seen):
                text = ",".join(cell or "" for cell in line.cells)[:500]
                reject.append(Rejected("", line.number, f"{problem} (sheet {title!r})", text))
            else:
                yield {**values, "sheet_row": line.number}
            if len(reject) == MOST_BAD:
                reject.append(Rejected("", line.number + 1, "not read from here on: too many rows are bad", ""))
                return

    def _problem(self, values: Mapping[str, str | None], number: int, seen: dict[tuple[str, ...], int]) -> str | None:
        """Return the problem of a row, or record the row's keys in `seen` and return None."""
        names: dict[str, str] = {}
        for column, form in self.forms.items():
            value, header = values[column], self.columns[column][0]
            if value is None:
                if not form.may_be_blank:
                    return f"{header} is blank"
                continue
            found = form.pattern.fullmatch(value)
            if found is None:
                return f"{header} is {value[:60]!r}, not like {form.like}"
            names[column] = found.groupdict().get("name", value)
        if len({names[column] for column in self.same if column in names}) > 1:
            return " and ".join(f"{column} {names[column]}" for column in self.same) + " differ"
        keys = [
            (what, *(names[column] for column in columns))
            for what, columns in self.unique.items()
            if names.keys() >= {*columns}
        ]
        for what, *parts in keys:
            if (what, *parts) in seen:
                return f"the {what} {' '.join(parts)} stands in row {seen[what, *parts]} already"
        seen.update(dict.fromkeys(keys, number))
        return None


def _form(pattern: str, like: str, *, may_be_blank: bool = False) -> _Form:
    return _Form(regex(pattern, re.ASCII), like, may_be_blank)


_PORT = _form(PORT_NAME, "TwoHundredGigE1/0/1:1")
_NIC = _form(r"[A-Za-z][A-Za-z0-9_.-]{0,14}", "ens10np0")
_PUBLISHED = ("accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname")

_SHEETS = {
    sheet.relation.name: sheet
    for sheet in (
        _Sheet(
            RawRelation(
                "cluster_topology",
                "Leaf port of each server NIC, as published.",
                {**dict.fromkeys(_PUBLISHED, "VARCHAR"), "sheet_row": "INTEGER"},
                limited=True,
            ),
            titles=("cluster topology",),
            columns={name: (name,) for name in _PUBLISHED},
            forms={
                "accessport": _PORT,
                "portname": _PORT._replace(may_be_blank=True),
                "serverIP": _form(ADDRESS, "10.107.222.1", may_be_blank=True),
                "nicname": _NIC._replace(may_be_blank=True),
                "switchIP": _form(ADDRESS, "10.107.208.111", may_be_blank=True),
                "switchname": _form(
                    r"(?:[A-Za-z0-9._-]*-)?(?P<name>(?:ST-leaf|Leaf)-[0-9]{1,4})(?:[.][A-Za-z0-9._-]*)?",
                    "NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825",
                ),
                "sysname": _form(r".*(?P<name>GPU-[1-9][0-9]{0,5})", "NH-DC-NM129-A01-28U-GPU-1"),
            },
            unique={"port": ("switchname", "accessport"), "NIC": ("sysname", "nicname")},
            same=("accessport", "portname"),
        ),
        _Sheet(
            RawRelation(
                "gpu_nics",
                "Names of each server's NICs in logs (HCA) and in the operating system, as published.",
                {"gpu_ip": "VARCHAR", "nic_name1": "VARCHAR", "nic_name2": "VARCHAR", "sheet_row": "INTEGER"},
                limited=True,
            ),
            titles=("GPU NIC info", "server NIC info"),
            columns={
                "gpu_ip": ("GPU IP", "server IP"),
                "nic_name1": ("NIC name1",),
                "nic_name2": ("NIC name 2",),
            },
            forms={
                # GPU-n is 10.107.254.n, GPU-(240 + n) is 10.107.255.n: no number has two addresses
                "gpu_ip": _form(
                    r"10[.]107[.](?:254[.](?:240|2[0-3][0-9]|1[0-9]{2}|[1-9][0-9]?)|255[.](?!0)" + OCTET + ")",
                    "10.107.254.1 to .240, or 10.107.255.1 to .255",
                ),
                "nic_name1": _form(r"mlx5_[0-9]{1,3}", "mlx5_2"),
                "nic_name2": _NIC,
            },
            unique={"adapter": ("gpu_ip", "nic_name1"), "NIC": ("gpu_ip", "nic_name2")},
        ),
    )
}


class TopologyWorkbook:
    """Format `zhejiang.workbook`."""

    name = "zhejiang.workbook"
    version = 4
    relations: Sequence[RawRelation] = tuple(sheet.relation for sheet in _SHEETS.values())

    def claims(self, path: Path) -> bool:
        """Return True if the file is an `.xlsx` and not the lock file of an open workbook."""
        return path.suffix.lower() == ".xlsx" and not path.name.startswith("~$")

    def inspect(self, file: RawFile) -> RawFile:
        """Compare the headers of both sheets.

        With one good sheet the file is `partial`; with none it is not a topology workbook.
        """
        try:
            tables = list(_tables(file.path, file.bytes, file.mtime_ns).values())
        except DataError as error:
            return file.but(status=SKIPPED, reason=error.message)
        problems = [table.problem for table in tables if table.problem]
        if len(problems) == len(tables):
            return file.but(status=SKIPPED, reason=f"not a topology workbook: {', '.join(problems)}")
        read = [f"only sheet {table.title!r} is read" for table in tables if problems and not table.problem]
        extra = [name for table in tables if not table.problem for name in table.ignored]
        ignored = [f"{COLUMNS_IGNORED}{', '.join(extra)[:200]}"] if extra else []
        reason = "; ".join([*read, *problems, *ignored])
        return file.but(status=PARTIAL if problems else READ, reason=reason or None)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of one sheet of each file; a file without this sheet yields none.

        Raises
        ------
        DataError
            If a file cannot be opened, changed since it was inspected, or if two different workbooks of a cluster
            have this sheet.
        """
        file_of_cluster: dict[str | None, RawFile] = {}
        for file in files:
            table = _table(file, relation)
            if table is None:
                continue
            first = file_of_cluster.setdefault(file.cluster, file)
            if first is not file and first.digest == file.digest:
                reject.append(Rejected(file.release_path, 1, f"not read: the same file as {first.release_path}", ""))
                continue
            if first is not file:
                raise DataError(
                    f"two different workbooks of {file.cluster} have the sheet {table.title!r}",
                    details=[f"  {first.path}", f"  {file.path}"],
                    hint="Keep one of them: move the other out of the data folders.",
                )
            reject += (one._replace(file=file.release_path) for one in table.rejected)
            yield from ({**row, "filename": str(file.read_path)} for row in table.rows)


class _Table(NamedTuple):
    """Parsed sheet."""

    title: str
    problem: str | None
    ignored: Sequence[str] = ()
    rows: Sequence[Mapping[str, object]] = ()
    """Good rows."""
    rejected: Sequence[Rejected] = ()


def _table(file: RawFile, relation: str) -> _Table | None:
    """Return a sheet of a file; None if the file has only the other sheet."""
    try:
        now = file.path.stat()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error
    table = _tables(file.path, now.st_size, now.st_mtime_ns)[relation]
    if table.problem and file.status == READ:
        raise DataError(f"changed while it was read: {table.problem}", place=Place(file.path))
    return None if table.problem else table


@lru_cache(maxsize=2)
def _tables(path: Path, size: int, mtime_ns: int) -> Mapping[str, _Table]:
    """Parse both sheets at once: opening a workbook takes longer than parsing its few thousand rows.

    `size` and `mtime_ns` only invalidate the cache when the file changes.
    """
    with opened(path) as sheets:
        return {name: sheet.parsed(sheets) for name, sheet in _SHEETS.items()}


# Workbooks of unknown origin, opened safely. A workbook is a zip archive of XML files. Both zip and XML can be crafted
# to exhaust memory. So the sizes in the zip directory are checked first. Every part is then unpacked once within these
# sizes, which also proves that it is intact. A part that declares entities is refused. A formula is read as its text,
# which no form of a cell accepts.


class Line(NamedTuple):
    """Row of a sheet."""

    number: int
    cells: Sequence[str | None]
    """Text of each cell; None for a blank one."""
    broken: str | None = None
    """Why the sheet cannot be read from here on."""


@contextmanager
def opened(path: Path) -> Iterator[list[tuple[str, Iterator[Line]]]]:
    """Open a workbook after a safety check; yield title and rows of each sheet, which can be read while it is open.

    Raises
    ------
    DataError
        If the file is damaged, dangerous or not a workbook; `message` is the reason, without the path.
    """
    try:
        stream = open_regular(path)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", place=Place(path)) from error
    with stream:
        if problem := _package_problem(stream):
            raise DataError(problem, place=Place(path))
        try:
            from openpyxl import load_workbook  # most runs open no workbook

            # openpyxl warns about styles and extensions that it drops; these hold no data
            warnings.filterwarnings("ignore", module=r"openpyxl\.")
            book = load_workbook(stream, read_only=True, keep_links=False)
        except Exception as error:  # openpyxl has no common exception class
            raise DataError(f"not a readable workbook: {_first_line(error)}", place=Place(path)) from error
        yield [(sheet.title, _lines(sheet)) for sheet in book.worksheets]


def _lines(sheet: Any) -> Iterator[Line]:
    """Yield the rows of a sheet that are not blank. If the sheet is damaged, the last one says so in `broken`."""
    number = 0
    try:
        sheet.reset_dimensions()  # the stated size may be wrong: it could drop rows or add a million
        for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
            if number > LAST_ROW:
                yield Line(number, [], "it goes on below the last row that a sheet can have")
                return
            if any(texts := list(map(cell_text, cells))):
                yield Line(number, texts)
    except Exception as error:  # a damaged part can raise any exception
        yield Line(number + 1, [], f"it cannot be read from here on: {_first_line(error)}")


def cell_text(value: object) -> str | None:
    """Return a cell's value as text: whole numbers without a point, times in ISO format, None if blank.

    >>> cell_text(12.0), cell_text(1.826184052268872e16), cell_text(0.87), cell_text(" ")
    ('12', '18261840522688720', '0.87', None)
    """
    if value is None or isinstance(value, str):
        return value if value and not value.isspace() else None
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        # The digits as written: above 2^53, int() of a float has others.
        exact = Decimal(repr(value))
        return str(int(exact)) if abs(value) < 1e19 and exact == exact.to_integral_value() else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return "=" if hasattr(value, "ref") else str(value)  # formulas over several cells


def _package_problem(stream: IO[bytes]) -> str | None:
    """Return the reason why the zip must not reach a parser, or None."""
    start = stream.read(8)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        return "encrypted, or an old .xls workbook"
    if not start.startswith(b"PK"):
        return "empty file" if not start else "not a zip file, so not a workbook"
    try:
        with zipfile.ZipFile(stream) as package:
            parts = package.infolist()
            if len(parts) > MAX_ENTRIES:
                return f"{len(parts):,} parts, more than {MAX_ENTRIES:,}"
            if any(part.flag_bits & 0x1 for part in parts):
                return "encrypted"
            if sum(part.file_size for part in parts) > MAX_BYTES:
                return f"unpacks to more than {MAX_BYTES // 2**20} MB"
            for part in parts:
                if part.file_size > max(RATIO_COUNTS_FROM, MAX_RATIO * part.compress_size):
                    return f"part {part.filename[:100]!r} unpacks to more than {MAX_RATIO} times its size"
            for part in parts:
                with package.open(part) as content:
                    if _declares_entities(content):
                        return f"part {part.filename[:100]!r} declares a document type, and so entities"
    except Exception as error:  # a damaged part can raise any exception
        return f"truncated or damaged: {_first_line(error)}"
    return None


def _declares_entities(content: IO[bytes]) -> bool:
    """Read a part to its end; return True if it has a `<!DOCTYPE`."""
    before = b""
    while chunk := content.read(2**16):
        before += chunk
        if any(mark in before for mark in _DOCTYPES):
            return True
        before = before[-32:]  # a mark may lie across two pieces
    return False


def _first_line(error: Exception) -> str:
    """Return the first line of an error message."""
    return f"{error}".partition("\n")[0][:200] or type(error).__name__


WORKBOOK = TopologyWorkbook()
