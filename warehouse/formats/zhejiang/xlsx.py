"""Workbooks of unknown origin, opened safely.

Docs: docs/formats/workbook.md. A workbook is a zip archive of XML files. Both zip and XML can be crafted to exhaust
memory. So the sizes in the zip directory are checked first. Every part is then unpacked once within these sizes, which
also proves that it is intact. A part that declares entities is refused. A formula is read as its text, which no form of
a cell accepts.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from warehouse.base.errors import DataError, Place
from warehouse.base.hashing import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_ENTRIES = 2_000
MAX_BYTES = 256 * 2**20
MAX_RATIO = 200
RATIO_COUNTS_FROM = 2**20
LAST_ROW = 1_048_576
"""Maximum number of rows of a sheet; a file that claims more is forged."""
_DOCTYPES = ["<!DOCTYPE".encode(code) for code in ("ascii", "utf-16-le", "utf-16-be")]
"""Begin of a document type, which alone can declare entities: in ASCII and all that contains it, and in UTF-16."""


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
    """Yield every row of a sheet. If the sheet is damaged, the last row says so in `broken`."""
    number = 0
    try:
        sheet.reset_dimensions()  # the stated size may be wrong: it could drop rows or add a million
        for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
            if number > LAST_ROW:
                yield Line(number, [], "it goes on below the last row that a sheet can have")
                return
            yield Line(number, list(map(cell_text, cells)))
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
