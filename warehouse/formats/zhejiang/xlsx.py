"""Workbooks of unknown origin: opened safely, read by the names of sheets and columns.

Docs: docs/formats/workbook.md. A workbook is a zip of XML files, and both kinds of file can be made to
burst when opened. So the zip's directory is weighed first, every part is unpacked once within what the
directory promised (which also proves it undamaged), and a part that declares entities is refused. Formulas
are never evaluated: a cell counts with the value that was stored with it.
"""

from __future__ import annotations

import warnings
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from xml.parsers import expat

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats.zhejiang.headers import NO_HEADER, Columns, Header, Row, fold, match_header

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

MAX_ENTRIES = 2_000
MAX_BYTES = 256 * 2**20
MAX_RATIO = 200
RATIO_COUNTS_FROM = 2**20
_FORMULA = regex(rb"<(?:\w+:)?f[ />]")
LAST_ROW = 1_048_576
"""No sheet has more rows; a file that says so is forged."""


def cell_text(value: object) -> str | None:
    """Write a cell's value as text: whole numbers without a point, times as in ISO, None for nothing.

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
    """Open a workbook after checking that it is safe to.

    Raises
    ------
    DataError
        When it is damaged, dangerous or no workbook at all; `message` is the reason, without the path.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", place=Place(path)) from error
    with stream:
        problem = _package_problem(stream)
        if problem:
            raise DataError(problem, place=Place(path))
        try:
            book = Book(stream)
        except Exception as error:  # the parser raises whatever its parts raise
            raise DataError(f"not a readable workbook: {_said(error)}", place=Place(path)) from error
        try:
            yield book
        finally:
            book.close()


class Book:
    """An open workbook."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._values = _load(stream, stored_values=True)
        self._formulas: Any = None

    def close(self) -> None:
        """Let go of the file."""
        self._values.close()
        if self._formulas is not None:
            self._formulas.close()

    @property
    def titles(self) -> tuple[str, ...]:
        """The sheets' names."""
        return tuple(sheet.title for sheet in self._values.worksheets)

    def table(self, titles: Sequence[str], columns: Columns, optional: Collection[str] = ()) -> Table:
        """Find the sheet of one of these names (the published one first) and match its header."""
        wanted = {fold(title) for title in titles}
        places = [at for at, title in enumerate(self.titles) if fold(title) in wanted]
        if not places:
            return Table((), f"no sheet {titles[0]!r}")
        if len(places) > 1:
            several = tuple(self.titles[at] for at in places)
            both = " and ".join(map(repr, several))
            return Table(several, f"sheets {both} both stand for {titles[0]!r}")
        title = self.titles[places[0]]
        lines = self._lines(places[0])
        first = next((line for line in lines if line.broken or any(line.cells)), None)
        if first is None:
            return Table((title,), f"sheet {title!r} is empty")
        if first.broken:
            return Table((title,), f"sheet {title!r}: {first.broken}")
        header = match_header(first.cells, columns, optional)
        return Table((title,), header.problem and f"sheet {title!r}: {header.problem}", header, lines)

    def _lines(self, place: int) -> Iterator[_Line]:
        """Give every row of the sheet; what breaks the sheet is its last line."""
        from openpyxl.cell.read_only import EMPTY_CELL

        sheet = self._values.worksheets[place]
        sheet.reset_dimensions()  # the stated size may be wrong, and cut rows off or add a million
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
        except Exception as error:  # a damaged part raises whatever the damage hits
            yield _Line(number + 1, [], {}, f"it cannot be read from here on: {_said(error)}")

    def _formula_cells(self, place: int) -> set[tuple[int, int]]:
        """Find the formulas of a sheet; asked for only when a cell is there but has no value."""
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
    """Position -> what is wrong with that cell."""
    broken: str | None = None


@dataclass
class Table:
    """A sheet with its header matched."""

    titles: tuple[str, ...]
    """The sheets of that name: one, if all is well."""
    problem: str | None
    """Why it cannot be read."""
    header: Header = NO_HEADER
    lines: Iterable[_Line] = ()

    @property
    def is_spoilt(self) -> bool:
        """Whether the sheet is there and yet cannot be read."""
        return bool(self.titles and self.problem)

    def rows(self) -> Iterator[Row]:
        """Give the rows below the header that hold anything; they can be asked for once."""
        for line in self.lines:
            if not (line.broken or line.odd or any(line.cells)):
                continue
            odd = (line.odd[at] for at in self.header.positions.values() if at in line.odd)
            text = ",".join(cell or "" for cell in line.cells)[:500]
            yield Row(line.number, self.header.pick(line.cells), line.broken or next(odd, None), text)


def _load(stream: IO[bytes], *, stored_values: bool) -> Any:
    """Parse the workbook; the library is imported here, since most runs open none."""
    from openpyxl import load_workbook

    # It warns of styles and extensions that it drops; none of them is data.
    warnings.filterwarnings("ignore", module=r"openpyxl\.")
    return load_workbook(stream, read_only=True, data_only=stored_values, keep_links=False)


def _has_formulas(stream: IO[bytes]) -> bool:
    """Tell whether any sheet holds a formula: looking for one costs less than a second parse."""
    with zipfile.ZipFile(stream) as package:
        sheets = (name for name in package.namelist() if "worksheets/" in name and name.endswith(".xml"))
        return any(_FORMULA.search(package.read(name)) for name in sheets)


def _package_problem(stream: IO[bytes]) -> str | None:
    """Say why the zip must not be handed on to a parser, or None."""
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
    except Exception as error:  # a damaged part raises whatever the damage hits
        return f"truncated or damaged: {_said(error)}"
    return None


def _declares_entities(content: IO[bytes]) -> bool:
    """Read a part to its end; tell whether it has a `<!DOCTYPE`, in whichever encoding it is written.

    Entities can be declared nowhere else, and it stands before the first element. A part that is not XML
    fails here as it would later, and is no danger.
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


def _said(error: Exception) -> str:
    """Cut an error down to a clause."""
    return f"{error}".partition("\n")[0][:200] or type(error).__name__
