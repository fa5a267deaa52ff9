"""Tables as Excel workbooks: first a sheet that says what the columns mean, then the rows.

A spreadsheet holds 15 digits of a number, no times finer than a millisecond and 1,048,576 rows. What does not fit
is not rounded: a column with larger integers is text, and both the sheet and the header say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError
from warehouse.base.sql_text import identifier
from warehouse.reader.value_text import INTEGERS, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb
    from duckdb.sqltypes import DuckDBPyType

    from warehouse.reader.relation import Relation

MOST_ROWS = 1_048_575
"""Below the header."""
LONGEST_TEXT = 32_767
DIGITS = 15
"""Digits of a number that Excel keeps."""
_TEXT = "text: Excel keeps 15 digits of a number"
_CHUNK = 10_000
_MADE = datetime(2000, 1, 1)  # noqa: DTZ001 - the same for the same rows: no clock
_FIRST_DAY = "TIMESTAMP '1900-03-01'"


@dataclass(frozen=True)
class _Column:
    name: str
    select: str
    kind: str
    """`number`, `time`, `date`, `boolean` or `text`."""
    note: str = ""


def write_workbook(
    connection: duckdb.DuckDBPyConnection, relation: Relation, source: str, order: str, path: Path, build: str | None
) -> int:
    """Write a table and return the number of its rows.

    Parameters
    ----------
    relation
        What is known of it.
    source
        Its name in SQL, of which each row is called `rows`.
    order
        The columns to sort by, in SQL.

    Raises
    ------
    QueryError
        When xlsxwriter is missing, or the table has more rows than a sheet or a text longer than a cell.
    """
    try:
        import xlsxwriter
    except ImportError as error:
        raise QueryError(
            "an Excel file needs xlsxwriter, which is not installed", hint="pip install 'gpu-warehouse[excel]'"
        ) from error
    columns = _columns(connection, source)
    selected = ", ".join(f"{one.select} AS {identifier(one.name)}" for one in columns)
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(str(path), options)
    book.set_properties({"title": relation.table.name, "comments": f"warehouse build {build}", "created": _MADE})
    _about(book, relation, columns, build)
    count = _rows(
        connection.execute(f"SELECT {selected} FROM {source} AS rows ORDER BY {order}"), book, relation, columns
    )
    book.close()
    return count


def _columns(connection: duckdb.DuckDBPyConnection, source: str) -> list[_Column]:
    described = [(name, kind) for name, kind, *_ in connection.execute(f"FROM {source} LIMIT 0").description]
    tests = [_does_not_fit(identifier(name), kind) for name, kind in described]
    row = connection.execute(f"SELECT {', '.join(tests)} FROM {source}").fetchall()[0]
    return [_column(name, kind, fits=not too) for (name, kind), too in zip(described, row, strict=True)]


def _does_not_fit(name: str, kind: DuckDBPyType) -> str:
    """A SQL expression: whether a value of the column would not be what it is in a cell."""
    if kind.id in INTEGERS:
        return f"coalesce(max(abs({name}::HUGEINT)) >= 10::HUGEINT ** {DIGITS}, false)"
    if kind.id == "decimal":
        return f"coalesce(max(length(regexp_replace({name}::VARCHAR, '[-.]', '', 'g'))) > {DIGITS}, false)"
    if kind.id in ("double", "float"):
        return f"coalesce(bool_or(NOT isfinite({name})), false)"
    if kind.id.startswith("timestamp"):
        return f"coalesce(bool_or(epoch_us({name}) % 1000 <> 0 OR {name} < {_FIRST_DAY}), false)"
    return "false"


def _column(name: str, kind: DuckDBPyType, *, fits: bool) -> _Column:
    of = f"rows.{identifier(name)}"
    text = text_of(of, kind)
    if kind.id in INTEGERS or kind.id == "decimal":
        return _Column(name, of, "number") if fits else _Column(name, text, "text", _TEXT)
    if kind.id in ("double", "float"):
        return _Column(name, of, "number") if fits else _Column(name, text, "text", "text: some are not finite")
    if kind.id == "boolean":
        return _Column(name, of, "boolean")
    if kind.id == "date":
        return _Column(name, of, "date")
    if kind.id == "timestamp":
        note = "text: Excel keeps milliseconds"
        return _Column(name, of, "time") if fits else _Column(name, text, "text", note)
    return _Column(name, text, "text")


def _about(book: Any, relation: Relation, columns: Sequence[_Column], build: str | None) -> None:
    sheet, bold = book.add_worksheet("about"), book.add_format({"bold": True})
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    facts = [
        ("table", relation.table.name),
        ("a row is", relation.table.about),
        ("named by", ", ".join(relation.grain)),
        ("build", build or ""),
        ("to cite", f"warehouse build {build}, table {relation.table.name}; and the traces, see datapackage.json"),
        ("times", "UTC"),
        ("numbers", "16 digits of a fraction; the CSV and Parquet of the same export have all of them"),
    ]
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 2, 12)
    sheet.set_column(3, 3, 90, wrapped)
    for at, (name, said) in enumerate(facts):
        sheet.write_string(at, 0, name, bold)
        sheet.write_string(at, 3, said)
    start = len(facts) + 1
    for at, name in enumerate(("column", "type", "unit", "meaning", "in this file")):
        sheet.write_string(start, at, name, bold)
    notes = {one.name: one.note for one in columns}
    for at, column in enumerate(relation.columns, start=start + 1):
        texts = (column.name, column.type, column.unit or "", column.about, notes.get(column.name, ""))
        for place, text in enumerate(texts):
            sheet.write_string(at, place, text)


def _rows(cursor: duckdb.DuckDBPyConnection, book: Any, relation: Relation, columns: Sequence[_Column]) -> int:
    sheet, bold = book.add_worksheet("rows"), book.add_format({"bold": True})
    formats = {
        "time": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"}),
        "date": book.add_format({"num_format": "yyyy-mm-dd"}),
    }
    units = {column.name: column.unit for column in relation.columns}
    for at, one in enumerate(columns):
        unit = f" [{units[one.name]}]" if units.get(one.name) else ""
        sheet.write_string(0, at, f"{one.name}{unit}{' (text)' if one.note else ''}", bold)
        sheet.set_column(at, at, 24 if one.kind in ("time", "text") else 16)
    sheet.freeze_panes(1, 0)
    count = 0
    while rows := cursor.fetchmany(_CHUNK):
        for row in rows:
            count += 1
            if count > MOST_ROWS:
                raise QueryError(
                    f"{relation.table.name} has more rows than the {MOST_ROWS:,} of an Excel sheet",
                    hint="--format csv or parquet",
                )
            for at, (value, one) in enumerate(zip(row, columns, strict=True)):
                if value is not None:
                    _write(sheet, count, at, value, one, formats, relation)
    if count:
        sheet.autofilter(0, 0, count, len(columns) - 1)
    return count


def _write(
    sheet: Any, row: int, at: int, value: Any, column: _Column, formats: dict[str, Any], relation: Relation
) -> None:
    if column.kind == "number":
        sheet.write_number(row, at, value if not isinstance(value, Decimal) else float(value))
    elif column.kind == "boolean":
        sheet.write_boolean(row, at, value)
    elif column.kind in formats:
        sheet.write_datetime(row, at, value, formats[column.kind])
    elif len(value) > LONGEST_TEXT:
        raise QueryError(
            f"{relation.table.name} has a text in {column.name} that is longer than a cell of Excel holds",
            hint="--format csv or parquet",
        )
    else:
        sheet.write_string(row, at, value)
