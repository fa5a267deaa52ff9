"""SQL that reads an hour table with DuckDB's CSV scanner.

`hour_rows` is the definition of a valid row. A SELECT takes a row from each line, with guesses of the typed columns.
Conditions on the rows that were written, and on each different text, then find the lines whose fields do not have the
usual forms. Python reads these lines, or rejects them with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.sql_text import identifier, literal
from warehouse.base.startup import regex
from warehouse.formats.base import COMPRESSIONS, RawFile, Scan
from warehouse.formats.compressed import open_bytes
from warehouse.formats.zhejiang.hour_columns import LINE, OTHERS, TIME, HourColumn, HourTable
from warehouse.formats.zhejiang.hour_lines import LONGEST_LINE
from warehouse.formats.zhejiang.hour_rows import HOUR, TOLERANCE, bound, has_identity
from warehouse.formats.zhejiang.values import (
    BLANKS,
    CHINA_SECONDS,
    EPOCH_PATTERN,
    TIME_PARTS,
    TIME_PATTERN,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from warehouse.formats.zhejiang.hour_header import HourHeader

_PIECE_BYTES = 4_000_000
"""Buffer size of the scanner."""
_CHUNK = 2**20
_HALVES = {"上午": 0, "下午": 12}
"""Word for the half of the day -> hours before it."""
_NONE = "\x01"
"""Text of a missing field, so that a blank one differs; a file that has it is repaired first."""
_DIGITS, _BLANK_OR_DIGITS = " *[0-9]{1,18} *", regex(r" *[0-9]{0,18} *")
_QUEUE_PAIR = " *[0-9]{1,10} *"
_CLOCK = regex(
    r"[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}([T ])((?:星期|周)[一二三四五六日天] )?(上午|下午|)"
    r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
)
"""Time that a format of `strptime` describes."""


class Source(NamedTuple):
    """One file."""

    file: RawFile
    copy: Path | None
    """Level copy, which is read instead of the file and has no header."""
    header: HourHeader
    hour: datetime
    rows: Sequence[Mapping[str, str | None]]
    """First rows."""
    has_quotes: bool
    """True if the first rows have quotes."""


def scan(source: Source, table: HourTable, lines: int) -> Scan:
    """Return the SELECTs for a file with so many lines below the header."""
    header = source.header
    measures = [column for column in table.measures if column.name in header.positions]
    typed = {column.typed: _number(column, source) for column in measures}
    columns = [
        *(_text(column, header) for column in table.columns.values()),
        _others(header),
        f"CASE WHEN is_whole THEN {_time(table, source)} END AS time_utc",
        *(identifier(c.typed) if c in measures else f"CAST(NULL AS BIGINT) AS {c.typed}" for c in table.measures),
        f"CAST(number + {header.line} AS INTEGER) AS {LINE}",
        f"{literal(source.file.release_path)} AS filename",
    ]
    pattern = literal(f"^{TIME_PATTERN}$")
    numbers = "".join(f", {number} AS {identifier(name)}" for name, number in typed.items())
    return Scan(
        f"""
WITH fields AS (
    SELECT *, row_number() OVER () AS number, {_is_whole(header)} AS is_whole,
        trim({_field(header.positions[table.time.name])}) AS written
    FROM {_csv(source)}
), typed AS (
    SELECT *, {_quick(table, source)} AS quick{numbers} FROM fields
), timed AS (
    SELECT *, CASE WHEN quick IS NULL THEN regexp_extract(written, {pattern}, {list(TIME_PARTS)}) END AS parts
    FROM typed
)
SELECT {", ".join(columns)} FROM timed""",
        _unusual(source, table, measures),
        dict(_bad_texts(source, table)),
        lines,
        (*map(identifier, table.columns), OTHERS) if has_identity(table, header) else (),
    )


def count_lines(path: Path) -> int | None:
    """Return the number of lines; None if their ends differ, or if one has a byte that the scanner would misread."""
    ends = returns = pairs = 0
    last = b""
    with open_bytes(path) as stream:
        while chunk := stream.read(_CHUNK):
            ends += chunk.count(b"\n")
            if b"\r" in chunk or last == b"\r":
                returns += chunk.count(b"\r")
                pairs += chunk.count(b"\r\n") + (last == b"\r" and chunk[:1] == b"\n")
            if b"\x01" in chunk or b"\0" in chunk:
                return None
            last = chunk[-1:]
    return ends if last == b"\n" and returns == pairs and pairs in (0, ends) else None


def _csv(source: Source) -> str:
    """Return the call of the scanner: all fields as text, and one more, which a comma at the end fills."""
    header, path = source.header, source.copy or source.file.read_path
    names = ", ".join(f"{literal(_field(at))}: 'VARCHAR'" for at in range(header.width + 1))
    compression = "none" if source.copy else COMPRESSIONS.get(path.suffix.lower(), "none")
    return (
        f"read_csv({literal(_escaped(path))}, auto_detect=false, header=false,"
        f" skip={0 if source.copy else header.line},"
        f" delim={literal(header.separator)}, quote={_quote(source)}, escape={_quote(source)}, columns={{{names}}},"
        f" nullstr='{_NONE}', null_padding=true, max_line_size={LONGEST_LINE}, buffer_size={_PIECE_BYTES},"
        f" hive_partitioning=false, compression={literal(compression)})"
    )


def _quote(source: Source) -> str:
    return "'\"'" if source.has_quotes else "''"


def _is_whole(header: HourHeader) -> str:
    """Return the condition that a line has as many fields as the header, apart from a comma at its end."""
    return f"{_field(header.width - 1)} IS NOT NULL AND coalesce(trim({_field(header.width)}), '') = ''"


def _field(at: int) -> str:
    return f"field_{at}"


def _text(column: HourColumn, header: HourHeader) -> str:
    """Return a published column as written; NULL if it is blank. A blank name or time makes the line doubtful."""
    name = identifier(column.name)
    if column.name not in header.positions:
        return f"CAST(NULL AS VARCHAR) AS {name}"
    value = _field(header.positions[column.name])
    if (column.form and not column.may_be_blank) or column.value == TIME:
        return f"{value} AS {name}"
    if column.is_measure:
        return f"CASE WHEN {identifier(column.typed)} IS NOT NULL OR NOT {_is_blank(value)} THEN {value} END AS {name}"
    return f"CASE WHEN NOT {_is_blank(value)} THEN {value} END AS {name}"


def _is_blank(value: str) -> str:
    return f"(lower(trim({value})) IN ({', '.join(map(literal, sorted(BLANKS)))}))"


def _others(header: HourHeader) -> str:
    """Return the columns that the document does not name, as a JSON object of those that are not blank."""
    if not header.others:
        return f"CAST(NULL AS VARCHAR) AS {OTHERS}"
    pairs = ", ".join(
        f"{literal(name)}, CASE WHEN NOT {_is_blank(_field(at))} THEN {_field(at)} END"
        for name, at in header.others.items()
    )
    return f"nullif(CAST(json_merge_patch('{{}}', json_object({pairs})) AS VARCHAR), '{{}}') AS {OTHERS}"


def _number(column: HourColumn, source: Source) -> str:
    """Return a measure as an integer; NULL if it is blank or has another form."""
    header = source.header
    field = _field(header.positions[column.name])
    written = f"trim({field})"
    factor = header.factors.get(column.name, 1)
    if factor != 1:
        return (
            f"CASE WHEN regexp_full_match({written}, '[0-9]{{1,12}}(?:[.][0-9]{{0,9}})?') THEN"
            f" try_cast(round(CAST({written} AS DECIMAL(24, 9)) * CAST({factor} AS DECIMAL(14, 0))) AS BIGINT) END"
        )
    if _has_digits(column, source):
        return f"try_cast({field} AS BIGINT)"
    return (
        f"CASE WHEN regexp_full_match({written}, '[0-9]{{1,18}}') THEN CAST({written} AS BIGINT)"
        f" WHEN regexp_full_match({written}, '[0-9]{{1,19}}(?:[.][0-9]{{0,17}})?(?:[eE][+]?[0-9]{{1,2}})?')"
        f" AND try_cast({written} AS DECIMAL(38, 18)) = trunc(try_cast({written} AS DECIMAL(38, 18)))"
        f" THEN try_cast(try_cast({written} AS DECIMAL(38, 18)) AS BIGINT) END"
    )


def _has_digits(column: HourColumn, source: Source) -> bool:
    """Return True if the first rows have plain integers, so that a cast is enough."""
    if source.header.factors.get(column.name, 1) != 1:
        return False
    return all(_BLANK_OR_DIGITS.fullmatch(row[column.name] or "") for row in source.rows)


def _unusual(source: Source, table: HourTable, measures: Sequence[HourColumn]) -> str:
    """Return the condition on a row whose typed columns or queue pairs are wrong."""
    first, last = source.hour - TOLERANCE, source.hour + HOUR + TOLERANCE
    return " OR ".join(
        (
            f"time_utc IS NULL OR time_utc NOT BETWEEN TIMESTAMP '{first}' AND TIMESTAMP '{last}'",
            *(f"{c.typed} >= {bound(c)} OR ({c.typed} IS NULL AND {identifier(c.name)} IS NOT NULL)" for c in measures),
            *(f"NOT regexp_full_match({identifier(c.name)}, '{_QUEUE_PAIR}')" for c in _queue_pairs(source, table)),
        )
    )


def _queue_pairs(source: Source, table: HourTable) -> list[HourColumn]:
    """Return the columns of which each row may have a text of its own: they are tested row by row."""
    return [c for c in table.columns.values() if c.value == "queue_pair" and c.name in source.header.positions]


def _bad_texts(source: Source, table: HourTable) -> Iterator[tuple[str, str]]:
    """Yield the columns whose texts Python may read differently, with the condition on such a text."""
    for column in table.columns.values():
        if column.name not in source.header.positions or column.value in (TIME, "queue_pair"):
            continue
        if column.form:
            bad = f"NOT regexp_full_match(trim(value), {literal(column.form)})"
            bad += " OR contains(value, '\"')" if column.may_be_blank else f" OR {_is_blank('value')}"
        elif column.is_measure and _has_digits(column, source):
            bad = f"NOT regexp_full_match(value, '{_DIGITS}')"
        else:
            bad = "contains(value, '\"')"
        yield identifier(column.name), bad
    if source.header.others:
        yield OTHERS, "contains(value, '\\\"')"


def _quick(table: HourTable, source: Source) -> str:
    """Return the local time in the form of the first row, without a pattern; NULL if the scanner has no such form."""
    first = (source.rows[0].get(table.time.name) or "").strip() if source.rows else ""
    found = _CLOCK.fullmatch(first)
    if found is None:
        return "CAST(NULL AS TIMESTAMP)"
    mark, between, weekday, half = found[1], found[2], found[3] or "", found[4]
    return f"try_strptime(written, '%Y{mark}%m{mark}%d{between}{weekday}{half}%H:%M:%S')"


def _half(source: Source, table: HourTable) -> str | None:
    first = (source.rows[0].get(table.time.name) or "") if source.rows else ""
    return next((half for half in _HALVES if half in first), None)


def _time(table: HourTable, source: Source) -> str:
    """Return the time as UTC; NULL if it is not a time of the usual forms."""
    ahead = source.header.factors.get(table.time.name, CHINA_SECONDS)
    half = _half(source, table)
    if half:
        added = _HALVES[half] * 3600 - ahead
        quick = (
            f"WHEN hour(quick) = 12 THEN quick + to_seconds({added - 12 * 3600})"
            f" WHEN hour(quick) < 12 THEN quick + to_seconds({added})"
        )
    else:
        quick = f"WHEN quick IS NOT NULL THEN quick - to_seconds({ahead})"
    whole, fraction = "split_part(written, '.', 1)", "split_part(written, '.', 2)"
    return (
        f"CASE {quick} WHEN parts.year <> '' THEN {_local_time(ahead)}"
        f" WHEN regexp_full_match(written, {literal(EPOCH_PATTERN)})"
        f" THEN make_timestamp(CASE length({whole})"
        f" WHEN 10 THEN CAST({whole} AS BIGINT) * 1000000 + CAST(rpad({fraction}, 6, '0') AS BIGINT)"
        f" WHEN 13 THEN CAST({whole} AS BIGINT) * 1000 ELSE CAST(left({whole}, 16) AS BIGINT) END) END"
    )


def _local_time(ahead: int) -> str:
    """Return the time of `parts`, those of a text that matches the pattern; NULL if there is no such time."""
    t = {part: f"parts.{part}" for part in TIME_PARTS}
    hour, half = f"try_cast({t['hour']} AS BIGINT)", f"upper({t['half']} || {t['half_after']})"
    in_day = (
        f"CASE WHEN {half} = '' THEN CASE WHEN {hour} < 24 THEN {hour} END "
        f"WHEN {half} IN ('上午', 'AM') THEN CASE WHEN {hour} <= 12 THEN {hour} % 12 END "
        f"WHEN {hour} < 24 THEN CASE WHEN {hour} < 12 THEN {hour} + 12 ELSE {hour} END END"
    )
    zone = f"rpad(replace({t['zone']}, ':', ''), 5, '0')"
    offset = (
        f"CASE {t['zone']} WHEN '' THEN {ahead} WHEN 'Z' THEN 0 ELSE "
        f"try_cast(left({zone}, 1) || '1' AS BIGINT) * (try_cast(substr({zone}, 2, 2) AS BIGINT) * 3600"
        f" + try_cast(substr({zone}, 4, 2) AS BIGINT) * 60) END"
    )
    minute, second = f"try_cast({t['minute']} AS BIGINT)", f"try_cast('0' || {t['second']} AS BIGINT)"
    seconds = f"(({in_day}) * 60 + {minute}) * 60 + {second} - ({offset})"
    day = f"try_cast(concat_ws('-', {t['year']}, {t['month']}, {t['day']}) AS DATE)"
    return (
        f"CAST({day} AS TIMESTAMP)"
        f" + to_microseconds(({seconds}) * 1000000 + try_cast(rpad({t['fraction']}, 6, '0') AS BIGINT))"
    )


def _escaped(path: Path) -> str:
    """Return a path without the meaning of a glob."""
    return "".join(f"[{letter}]" if letter in "[*?" else letter for letter in str(path))
