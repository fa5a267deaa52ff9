"""Tables as Excel workbooks: one sheet with the meaning of each column, one with the rows.

A worksheet holds 1,048,576 rows, numbers of 15 digits and times in milliseconds. Values beyond these limits are
written as text, never rounded. The header and the first sheet mark such columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from warehouse.base.sql_text import identifier
from warehouse.publish.parquet_metadata import TIME_ZONE
from warehouse.reader.units import SHARE, unit_of
from warehouse.reader.value_text import INTEGERS, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb
    from duckdb.sqltypes import DuckDBPyType

    from warehouse.reader.relation import Relation

MOST_ROWS = 1_048_575
"""Rows of a worksheet, without the header."""
LONGEST_TEXT = 32_767
DIGITS = 15
"""Significant digits that Excel keeps."""
_TEXT = "text: Excel keeps 15 digits of a number"
_CHUNK = 10_000
_WIDEST = 60
_WHOLE, _TIME, _DATE = "#,##0", "yyyy-mm-dd hh:mm:ss", "yyyy-mm-dd"
_LARGE = ("B", "B/s", "bit/s", "FLOP/s")
"""Units shown without decimals."""
_MADE = datetime(2000, 1, 1)  # noqa: DTZ001 - the same for the same rows: no clock
_ODD_TIME = "bool_or(epoch_us({0}) % 1000 <> 0 OR {0} < TIMESTAMP '1900-03-01')"
_FORMS = {
    "integer": (f"max(abs({{0}}::HUGEINT)) >= 10::HUGEINT ** {DIGITS}", "number", _TEXT),
    "decimal": (f"max(length(regexp_replace({{0}}::VARCHAR, '[-.]', '', 'g'))) > {DIGITS}", "number", _TEXT),
    "double": ("bool_or(NOT isfinite({0}))", "number", "text: some are not finite"),
    "float": ("bool_or(NOT isfinite({0}))", "number", "text: some are not finite"),
    "timestamp": (_ODD_TIME, "time", "text: Excel keeps milliseconds"),
}
"""Of each type: SQL that is true if Excel would alter a value, what a cell holds, and the note if it is text."""


class DoesNotFitError(Exception):
    """A table with more rows than a sheet, or a text longer than a cell; the message is the reason."""


@dataclass(frozen=True)
class _Column:
    name: str
    select: str
    kind: str
    """`number`, `time`, `date`, `boolean` or `text`."""
    note: str = ""
    form: str = ""
    """Number format of Excel."""
    width: int = 12
    """Column width in characters."""


def write_workbook(
    connection: duckdb.DuckDBPyConnection, relation: Relation, source: str, order: str, path: Path, build: str | None
) -> int:
    """Write a table and return the number of its rows.

    Parameters
    ----------
    relation
        Name, columns and units of the table.
    source
        The table's name in SQL; the query aliases the table as `rows`.
    order
        The columns to sort by, in SQL.

    Raises
    ------
    DoesNotFitError
        When the table has more rows than a sheet or a text longer than a cell. Nothing is written.
    """
    import xlsxwriter

    columns = _columns(connection, source, relation)
    selected = ", ".join(f"{one.select} AS {identifier(one.name)}" for one in columns)
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(str(path), options)
    book.set_properties({"title": relation.table.name, "comments": f"warehouse build {build}", "created": _MADE})
    _about(book, relation, columns, build)
    count = _rows(
        connection.execute(f"SELECT {selected} FROM {source} AS rows ORDER BY {order}"), book, relation, columns
    )
    try:
        book.close()
    except xlsxwriter.exceptions.FileCreateError as error:
        raise error.args[0] from error  # an OSError
    return count


def _columns(connection: duckdb.DuckDBPyConnection, source: str, relation: Relation) -> list[_Column]:
    described = [(name, kind) for name, kind, *_ in connection.execute(f"FROM {source} LIMIT 0").description]
    units = {one.name: unit_of(one.name, one.type, one.unit) for one in relation.columns}
    shown = {one.name: one.unit for one in relation.columns}
    expressions = [
        part for name, kind in described for part in (_does_not_fit(identifier(name), kind), *_sizes(name, kind))
    ]
    *row, rows = connection.execute(f"SELECT {', '.join([*expressions, 'count(*)'])} FROM {source}").fetchall()[0]
    if rows > MOST_ROWS:
        raise DoesNotFitError(f"{rows:,} rows, more than the {MOST_ROWS:,} of an Excel sheet")
    found = []
    for at, (name, kind) in enumerate(described):
        does_not_fit, *sizes = row[4 * at : 4 * at + 4]
        column = _column(name, kind, fits=not does_not_fit)
        if column.kind == "text" and (sizes[2] or 0) > LONGEST_TEXT:
            raise DoesNotFitError(f"a text in {name} is longer than the {LONGEST_TEXT:,} characters of an Excel cell")
        form, width = _shown(column, kind, units.get(name), *sizes)
        head = len(_head(column, shown.get(name))) + 4  # room for the filter button
        found.append(replace(column, form=form, width=min(max(width + 2, head), _WIDEST)))
    return found


def _sizes(name: str, kind: DuckDBPyType) -> tuple[str, str, str]:
    """Return SQL for a column's largest absolute value, its smallest nonzero one, and its longest text."""
    of = identifier(name)
    size = f"abs({of}::DOUBLE)"
    longest = f"max(length({text_of(of, kind)}))"
    if kind.id not in (*INTEGERS, "decimal", "double", "float"):
        return "NULL", "NULL", longest
    return f"max({size})", f"min({size}) FILTER (WHERE {size} > 0)", longest


def _shown(
    column: _Column, kind: DuckDBPyType, unit: str | None, most: float | None, least: float | None, longest: int | None
) -> tuple[str, int]:
    """Return the number format and width of a column.

    Large numbers are shown in full, never as 6.9E+14.
    """
    if column.kind == "time":
        return (_TIME, 19) if (longest or 0) <= 19 else (f"{_TIME}.000", 23)
    if column.kind == "date":
        return _DATE, 10
    if column.kind != "number":
        return "", longest or 0
    if kind.id in INTEGERS:
        return (_WHOLE if unit else "0"), len(f"{most or 0:,.0f}") + 1
    if unit == SHARE:
        return ("0.0%" if (most or 0) >= 0.01 else "0.0000%"), 9
    if unit in _LARGE or (most or 0) >= 1e9:
        form = _WHOLE if (most or 0) >= 1000 else "#,##0.0"
    elif (least or 1) < 0.001:
        return ("0.000E+00" if (most or 0) < 0.01 else "General"), 12
    else:
        form = "#,##0.000"
    return form, len(f"{most or 0:,.3f}") + 1


def _does_not_fit(name: str, kind: DuckDBPyType) -> str:
    """Return a SQL expression that is true if Excel would alter a value of the column."""
    test, *_ = _FORMS.get(_form(kind), ("false",))
    return f"coalesce({test.format(name)}, false)"


def _column(name: str, kind: DuckDBPyType, *, fits: bool) -> _Column:
    of = f"rows.{identifier(name)}"
    _, cell, note = _FORMS.get(_form(kind), ("", kind.id if kind.id in ("boolean", "date") else "text", ""))
    return _Column(name, text_of(of, kind), "text", note) if cell == "text" or not fits else _Column(name, of, cell)


def _form(kind: DuckDBPyType) -> str:
    return "integer" if kind.id in INTEGERS else kind.id


def _about(book: Any, relation: Relation, columns: Sequence[_Column], build: str | None) -> None:
    sheet, bold = book.add_worksheet("about"), book.add_format({"bold": True})
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    _one_page_wide(sheet)
    facts = [
        ("table", relation.table.name),
        ("a row is", relation.table.about),
        ("named by", ", ".join(relation.grain)),
        ("build", build or ""),
        ("to cite", f"warehouse build {build}, table {relation.table.name}; and the traces, see datapackage.json"),
        ("times", TIME_ZONE),
        ("numbers", "16 digits of a fraction; the CSV and Parquet of the same export have all of them"),
    ]
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 2, 12)
    sheet.set_column(3, 3, 90, wrapped)
    sheet.set_column(4, 4, 36)
    for at, (name, value) in enumerate(facts):
        sheet.write_string(at, 0, name, bold)
        sheet.write_string(at, 3, value)
    start = len(facts) + 1
    for at, name in enumerate(("column", "type", "unit", "meaning", "in this file")):
        sheet.write_string(start, at, name, bold)
    notes = {one.name: one.note for one in columns}
    for at, column in enumerate(relation.columns, start=start + 1):
        texts = (column.name, column.type, column.unit or "", column.about, notes.get(column.name, ""))
        for place, text in enumerate(texts):
            sheet.write_string(at, place, text)


def _rows(cursor: duckdb.DuckDBPyConnection, book: Any, relation: Relation, columns: Sequence[_Column]) -> int:
    sheet = book.add_worksheet("rows")
    heads = {side: book.add_format({"bold": True, "bottom": 1, "align": side}) for side in ("left", "right")}
    formats = {
        one.form: book.add_format({"num_format": one.form, "align": "right" if one.kind == "number" else "left"})
        for one in columns
        if one.form
    }
    units = {column.name: column.unit for column in relation.columns}
    for at, one in enumerate(columns):
        head = heads["right" if one.kind == "number" else "left"]
        sheet.write_string(0, at, _head(one, units.get(one.name)), head)
        sheet.set_column(at, at, one.width)
    sheet.freeze_panes(1, 0)
    sheet.repeat_rows(0)
    _one_page_wide(sheet)
    count = 0
    while rows := cursor.fetchmany(_CHUNK):
        for row in rows:
            count += 1
            for at, (value, one) in enumerate(zip(row, columns, strict=True)):
                if value is not None:
                    _write(sheet, count, at, value, one, formats)
    if count:
        sheet.autofilter(0, 0, count, len(columns) - 1)
    return count


def _one_page_wide(sheet: Any) -> None:
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)


def _head(column: _Column, unit: str | None) -> str:
    return column.name + (f" [{unit}]" if unit and unit != "1" else "") + (" (text)" if column.note else "")


def _write(sheet: Any, row: int, at: int, value: Any, column: _Column, formats: dict[str, Any]) -> None:
    form = formats.get(column.form)
    if column.kind == "number":
        sheet.write_number(row, at, value if not isinstance(value, Decimal) else float(value), form)
    elif column.kind == "boolean":
        sheet.write_boolean(row, at, value)
    elif column.kind in ("time", "date"):
        sheet.write_datetime(row, at, value, form)
    else:
        sheet.write_string(row, at, value)
