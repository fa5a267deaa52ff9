"""Workbooks of unknown origin: opened safely, read by the names of sheets and columns.

Docs: docs/formats/workbook.md. A workbook is a zip archive of XML files. Both zip and XML can be crafted to exhaust
memory. So the sizes in the zip directory are checked first. Every part is then unpacked once within these sizes, which
also proves that it is intact. A part that declares entities is refused. Formulas are never evaluated: the value stored
with the cell is used.

The release's document and its files disagree about names (`NIC name1`, `NIC name 2`, `server IP`). So names are
compared without case, blanks and underscores. A missing or repeated column is a problem; the reader never guesses.
"""

from __future__ import annotations

import unicodedata
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from xml.parsers import expat

from warehouse.base.errors import DataError, Place
from warehouse.base.regular_files import open_regular
from warehouse.base.startup import regex
from warehouse.formats.base import Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Columns = Mapping[str, Sequence[str]]
"""Column of a relation -> its spellings in headers."""


class Row(NamedTuple):
    """Row below the header."""

    number: int
    """Row of the sheet; the header is usually 1."""
    values: Mapping[str, str | None]
    """Column -> text; None for a blank cell."""
    problem: str | None
    """Why the row is unusable, or None."""
    text: str
    """Text of the row, unchanged, for the report of a rejected row."""


@dataclass(frozen=True)
class Header:
    """Positions of the columns in a header."""

    positions: Mapping[str, int]
    problem: str | None
    """Missing or repeated columns, or None."""
    ignored: tuple[str, ...]
    """Names in the header that match no column."""

    def pick(self, cells: Sequence[str | None]) -> dict[str, str | None]:
        """Return the value of each column; None if it is blank or missing from a short row."""
        values = {name: cells[at] if at < len(cells) else None for name, at in self.positions.items()}
        return {name: value if value and not value.isspace() else None for name, value in values.items()}


def fold(name: str) -> str:
    """Return a name without case, blanks, hyphens and underscores, for comparison.

    >>> fold("NIC name 2") == fold("nic_name2")
    True
    """
    written = unicodedata.normalize("NFKC", name)
    return "".join(written.split()).replace("_", "").replace("-", "").casefold()


def match_header(names: Sequence[str | None], columns: Columns) -> Header:
    """Return the positions of the columns in a header. A missing or repeated column is a problem."""
    column_of = {fold(spelling): column for column, known in columns.items() for spelling in known}
    found = [(at, (name or "").strip(), column_of.get(fold(name or ""))) for at, name in enumerate(names)]
    positions: dict[str, int] = {}
    for at, _, column in found:
        if column:
            positions.setdefault(column, at)
    repeated = [name for at, name, column in found if column and positions[column] != at]
    ignored = [name for _, name, column in found if not column and fold(name)]
    missing = [column for column in columns if column not in positions]
    problems = [f"no column {', '.join(missing)}"] if missing else []
    problems += [f"column {', '.join(repeated)} stands twice"] if repeated else []
    return Header(positions, " and ".join(problems) or None, tuple(ignored))


MAX_ENTRIES = 2_000
MAX_BYTES = 256 * 2**20
MAX_RATIO = 200
RATIO_COUNTS_FROM = 2**20
_FORMULA = regex(rb"<(?:\w+:)?f[ />]")
LAST_ROW = 1_048_576
"""Maximum number of rows of a sheet; a file that claims more is forged."""
MOST_BAD = LAST_ROW // 100
"""Maximum number of rejected rows of a sheet: a million would fill the memory."""


class Rejects(list[Rejected]):
    """Rejected rows of a sheet. Raises DataError for too many of them, so that the rest of the sheet is not parsed."""

    def __init__(self, path: Path, title: str) -> None:
        super().__init__()
        self._path = path
        self._title = title

    def append(self, one: Rejected) -> None:
        """Add a row."""
        if len(self) == MOST_BAD:
            raise DataError(
                f"more than {MOST_BAD:,} rows of sheet {self._title!r} cannot be read",
                place=Place(self._path),
                details=[f"  row {bad.line}: {bad.reason}" for bad in self[:3]],
                hint="repair the workbook, or move it out of the data folders",
            )
        super().append(one)


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
        exact = Decimal(repr(value))
        return str(int(exact)) if abs(value) < 1e19 and exact == exact.to_integral_value() else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value)


@contextmanager
def opened(path: Path) -> Iterator[Book]:
    """Open a workbook after a safety check.

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
        problem = _package_problem(stream)
        if problem:
            raise DataError(problem, place=Place(path))
        try:
            book = Book(stream)
        except Exception as error:  # openpyxl has no common exception class
            raise DataError(f"not a readable workbook: {_first_line(error)}", place=Place(path)) from error
        try:
            yield book
        finally:
            book.close()


class Book:
    """Open workbook."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._values = _load(stream, stored_values=True)
        self._formulas: Any = None

    def close(self) -> None:
        """Close the workbook."""
        self._values.close()
        if self._formulas is not None:
            self._formulas.close()

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the sheets."""
        return tuple(sheet.title for sheet in self._values.worksheets)

    def table(self, titles: Sequence[str], columns: Columns) -> Table:
        """Return the sheet with one of these titles (the published one first), its header matched."""
        wanted = {fold(title) for title in titles}
        positions = [at for at, title in enumerate(self.titles) if fold(title) in wanted]
        if not positions:
            return Table((), f"no sheet {titles[0]!r}")
        if len(positions) > 1:
            several = tuple(self.titles[at] for at in positions)
            both = " and ".join(map(repr, several))
            return Table(several, f"sheets {both} both stand for {titles[0]!r}")
        title = self.titles[positions[0]]
        lines = self._lines(positions[0])
        first = next((line for line in lines if line.broken or any(line.cells)), None)
        if first is None:
            return Table((title,), f"sheet {title!r} is empty")
        if first.broken:
            return Table((title,), f"sheet {title!r}: {first.broken}")
        header = match_header(first.cells, columns)
        return Table((title,), header.problem and f"sheet {title!r}: {header.problem}", header, lines)

    def _lines(self, place: int) -> Iterator[_Line]:
        """Yield every row of the sheet. If the sheet is damaged, the last row says so in `broken`."""
        from openpyxl.cell.read_only import EMPTY_CELL

        sheet = self._values.worksheets[place]
        sheet.reset_dimensions()  # the stated size may be wrong: it could drop rows or add a million
        formulas: set[tuple[int, int]] | None = None
        number = 0
        try:
            for number, cells in enumerate(sheet.iter_rows(), start=1):
                if number > LAST_ROW:
                    yield _Line(number, [], {}, "it goes on below the last row that a sheet can have")
                    return
                odd: dict[int, str] = {}
                for at, cell in enumerate(cells):
                    if cell.data_type == "e":
                        odd[at] = f"cell {cell.coordinate} holds the error {cell.value}"
                    elif cell.value is None and cell is not EMPTY_CELL:
                        formulas = self._formula_cells(place) if formulas is None else formulas
                        if (cell.row, cell.column) in formulas:
                            odd[at] = f"cell {cell.coordinate} holds a formula without a stored value"
                yield _Line(number, [cell_text(cell.value) for cell in cells], odd)
        except Exception as error:  # a damaged part can raise any exception
            yield _Line(number + 1, [], {}, f"it cannot be read from here on: {_first_line(error)}")

    def _formula_cells(self, place: int) -> set[tuple[int, int]]:
        """Return (row, column) of the sheet's formulas. Called only when a present cell has no value."""
        if self._formulas is None:
            if not _has_formulas(self._stream):
                return set()
            self._formulas = _load(self._stream, stored_values=False)
        sheet = self._formulas.worksheets[place]
        sheet.reset_dimensions()
        cells = (cell for row in sheet.iter_rows() for cell in row)
        return {(cell.row, cell.column) for cell in cells if cell.data_type == "f"}


class _Line(NamedTuple):
    number: int
    cells: list[str | None]
    odd: dict[int, str]
    """Position -> problem of that cell."""
    broken: str | None = None


@dataclass
class Table:
    """Sheet with its header matched."""

    titles: tuple[str, ...]
    """Matching sheets of the workbook: exactly one in a good workbook."""
    problem: str | None
    """Why the sheet is unreadable, or None."""
    header: Header | None = None
    lines: Iterable[_Line] = ()

    @property
    def matched(self) -> Header:
        """The header of a good sheet."""
        assert self.header is not None
        return self.header

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header that are not blank. The iterator can be consumed only once."""
        for line in self.lines:
            if not (line.broken or line.odd or any(line.cells)):
                continue
            odd = (line.odd[at] for at in self.matched.positions.values() if at in line.odd)
            text = ",".join(cell or "" for cell in line.cells)[:500]
            yield Row(line.number, self.matched.pick(line.cells), line.broken or next(odd, None), text)


def _load(stream: IO[bytes], *, stored_values: bool) -> Any:
    """Parse the workbook. openpyxl is imported here, since most runs open no workbook."""
    from openpyxl import load_workbook

    # openpyxl warns about styles and extensions that it drops; these hold no data.
    warnings.filterwarnings("ignore", module=r"openpyxl\.")
    return load_workbook(stream, read_only=True, data_only=stored_values, keep_links=False)


def _has_formulas(stream: IO[bytes]) -> bool:
    """Return True if any sheet holds a formula. This search is cheaper than parsing the workbook again."""
    with zipfile.ZipFile(stream) as package:
        sheets = (name for name in package.namelist() if "worksheets/" in name and name.endswith(".xml"))
        return any(_FORMULA.search(package.read(name)) for name in sheets)


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
    """Read a part to its end; return True if it has a `<!DOCTYPE`, in any encoding.

    Only a `<!DOCTYPE` can declare entities, and it precedes the first element. A part that is not XML also fails to
    parse later; it is harmless.
    """
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = _done
    undecided = True
    while chunk := content.read(2**16):
        try:
            if undecided:
                parser.Parse(chunk, False)
        except _RefusedError:
            return True
        except (_DoneError, expat.ExpatError):
            undecided = False
    return False


class _RefusedError(Exception):
    pass


class _DoneError(Exception):
    pass


def _refuse(*_: object) -> None:
    raise _RefusedError


def _done(*_: object) -> None:
    raise _DoneError


def _first_line(error: Exception) -> str:
    """Return the first line of an error message."""
    return f"{error}".partition("\n")[0][:200] or type(error).__name__
