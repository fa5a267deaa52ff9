"""SQL that reads the usual rows of an hour table with DuckDB's CSV scanner.

`hour_rows` is the definition of a valid row. The SELECT here takes the rows whose fields have the usual forms, with the
same result, in a tenth of the time. Every other line that is not blank is for Python: to be read there, or rejected
with the reason.

The scanner reads whole lines, so that each row has the number of its line, and SQL splits them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, literal
from warehouse.formats.base import COMPRESSIONS, RawFile, Scan
from warehouse.formats.compressed import open_bytes
from warehouse.formats.zhejiang.hour_columns import LINE, OTHERS, TIME, HourColumn, HourTable
from warehouse.formats.zhejiang.hour_lines import LONGEST_LINE
from warehouse.formats.zhejiang.hour_rows import HOUR, TOLERANCE, bound
from warehouse.formats.zhejiang.values import CHINA_SECONDS, TIME_PARTS, TIME_PATTERN

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from warehouse.formats.zhejiang.hour_header import HourHeader

_PIECE_BYTES = 4_000_000
"""Buffer size of the scanner. A longer line is an error, and Python reads the file."""
_CHUNK = 2**20
_EPOCH = "[0-9]{10}(?:[.][0-9]{1,9})?|[0-9]{13}|[0-9]{16}"
_ANY, _NOTHING = r'[^,"\x00]*', r"[^\s\S]"
"""Patterns of any field without quotes, and of a field that is never plain."""
_NO_BLANK, _PLAIN_NAME = r"\S+", r'[^\s,"\x00]+'
_HALVES = {"上午": 0, "下午": 12}
"""Word for the half of the day -> hours before it."""
_QUOTED = '(?:"[^",]*"|[^",]*)(?:,(?:"[^",]*"|[^",]*))*'
"""Line whose fields are quoted as a whole or not at all, without a comma or quote inside."""


def scan(file: RawFile, table: HourTable, header: HourHeader, hour: datetime, first_time: str) -> Scan | None:
    """Return the SELECTs for a file; None if the scanner may count its lines differently from Python.

    `first_time` is the time of the first row as written.
    """
    lines = count_lines(file.read_path)
    if lines is None:
        return None
    typed = _typed(file.read_path, table, header, hour, first_time)
    columns = [
        *(_text(c.name, c.name in header.positions, bool(c.form) or c.value == TIME) for c in table.columns.values()),
        _others(header),
        "time_utc",
        *(_number_name(column) + f" AS {identifier(column.typed)}" for column in table.measures),
        f"CAST(line AS INTEGER) AS {LINE}",
        f"{literal(file.release_path)} AS filename",
    ]
    return Scan(
        f"{typed} SELECT {', '.join(columns)} FROM typed WHERE is_usual",
        f"{typed} SELECT line, line_text FROM typed WHERE NOT is_usual ORDER BY line",
        lines - 1,
    )


def count_lines(path: Path) -> int | None:
    """Return the number of lines; None if their ends differ, or if one has a byte that the scanner takes as an end."""
    ends = returns = pairs = 0
    last = b""
    with open_bytes(path) as stream:
        while chunk := stream.read(_CHUNK):
            ends += chunk.count(b"\n")
            returns += chunk.count(b"\r")
            if returns:
                pairs += chunk.count(b"\r\n") + (last == b"\r" and chunk[:1] == b"\n")
            if b"\x01" in chunk:
                return None
            last = chunk[-1:]
    return ends if last == b"\n" and returns == pairs and pairs in (0, ends) else None


def _typed(path: Path, table: HourTable, header: HourHeader, hour: datetime, first_time: str) -> str:
    """Return the CTEs: lines, their fields, and the fields with their types."""
    width = header.width
    compression = COMPRESSIONS.get(path.suffix.lower(), "none")
    fields = [f"p[{at + 1}] AS {identifier(name)}" for name, at in header.positions.items()]
    fields += [f"p[{at + 1}] AS {_other_name(at)}" for at in header.others.values()]
    measures = [column for column in table.measures if column.name in header.positions]
    numbers = [f"{_number(column, header)} AS {_number_name(column)}" for column in measures]
    numbers += [f"CAST(NULL AS BIGINT) AS {_number_name(c)}" for c in table.measures if c not in measures]
    first, last = hour - TOLERANCE, hour + HOUR + TOLERANCE
    forms = [
        f"regexp_full_match(trim({identifier(column.name)}), {literal(column.form)})"
        for column in table.columns.values()
        if column.form and column.name in header.positions
    ]
    bounds = [f"(trim({identifier(c.name)}) = '' OR coalesce({_number_name(c)} < {bound(c)}, false))" for c in measures]
    is_valid = " AND ".join([*forms, *bounds]) or "true"
    return f"""
WITH lines AS (
    SELECT row_number() OVER () AS line, line_text
    FROM read_csv({literal(_escaped(path))}, auto_detect=false, header=false, skip=0, delim='\x01', quote='', escape='',
        columns={{'line_text': 'VARCHAR'}}, strict_mode=false, hive_partitioning=false, buffer_size={_PIECE_BYTES},
        compression={literal(compression)})
), split AS (
    SELECT line, line_text, string_split(
        CASE
            WHEN NOT contains(line_text, '"') THEN line_text
            WHEN regexp_full_match(line_text, {literal(_QUOTED)}) THEN replace(line_text, '"', '')
        END, ',') AS p
    FROM lines
    WHERE line > 1 AND trim(line_text) <> ''
), fields AS (
    SELECT
        line, line_text, {", ".join(fields)},
        strlen(line_text) < {LONGEST_LINE} AS is_short,
        len(p) = {width} OR (len(p) = {width + 1} AND trim(p[{width + 1}]) = '') AS is_whole,
        regexp_full_match(line_text, {literal(_plain(table, header))}) AS is_plain,
        {_quick(table, first_time)} AS quick
    FROM split
), counted AS (
    SELECT *, {_time(table, header, first_time)} AS time_utc{"".join(f", {number}" for number in numbers)}
    FROM fields
), typed AS (
    SELECT *, coalesce(
        is_short AND time_utc BETWEEN TIMESTAMP {literal(str(first))} AND TIMESTAMP {literal(str(last))}
        AND CASE WHEN is_plain THEN true ELSE is_whole AND NOT contains(line_text, chr(0)) AND {is_valid} END, false
    ) AS is_usual
    FROM counted
)"""


def _plain(table: HourTable, header: HourHeader) -> str:
    """Return the pattern of a line whose fields are all valid and whose numbers are plain integers.

    One pattern for the whole line takes a tenth of the time of a pattern for each field.
    """
    fields = [_ANY] * header.width
    for name, at in header.positions.items():
        column = table.columns[name]
        if column.is_measure:
            digits = len(str(bound(column))) - 1
            fields[at] = f" *(?:[0-9]{{1,{digits}}} *)?" if header.factors.get(name, 1) == 1 else _NOTHING
        elif column.value == TIME:
            fields[at] = f" *(?:{TIME_PATTERN}|{_EPOCH}) *"
        elif column.form:
            fields[at] = f" *(?:{column.form.replace('.*', _ANY).replace(_NO_BLANK, _PLAIN_NAME)}) *"
    return ",".join(fields)


def _quick(table: HourTable, first: str) -> str:
    """Return the clock of times with the first row's word for the half of the day, parsed without a pattern."""
    word = _half(first)
    written = f"trim({identifier(table.time.name)})"
    return f"try_strptime({written}, '%Y/%m/%d {word}%H:%M:%S')" if word else "CAST(NULL AS TIMESTAMP)"


def _half(first: str) -> str | None:
    return next((half for half in _HALVES if half in first), None)


def _time(table: HourTable, header: HourHeader, first: str) -> str:
    """Return the time as UTC; NULL if it is not a time of the usual forms."""
    name = table.time.name
    written = f"trim({identifier(name)})"
    ahead = header.factors.get(name, CHINA_SECONDS)
    added = _HALVES[_half(first) or "上午"] * 3600 - ahead
    quick = (
        f"WHEN is_plain AND hour(quick) = 12 THEN quick + to_seconds({added - 12 * 3600})"
        f" WHEN is_plain AND hour(quick) < 12 THEN quick + to_seconds({added})"
    )
    fraction = f"split_part({written}, '.', 2)"
    return (
        f"CASE {quick} WHEN regexp_full_match({written}, {literal(TIME_PATTERN)}) THEN {_local_time(written, ahead)}"
        f" WHEN regexp_full_match({written}, {literal(_EPOCH)})"
        f" THEN make_timestamp(CASE length(split_part({written}, '.', 1))"
        f" WHEN 10 THEN CAST(left({written}, 10) AS BIGINT) * 1000000 + CAST(rpad({fraction}, 6, '0') AS BIGINT)"
        f" WHEN 13 THEN CAST({written} AS BIGINT) * 1000 ELSE CAST({written} AS BIGINT) END) END"
    )


def _local_time(written: str, ahead: int) -> str:
    """Return the time of a text that matches the pattern; NULL if there is no such time."""
    parts = f"regexp_extract({written}, {literal(f'^{TIME_PATTERN}$')}, {list(TIME_PARTS)})"
    t = {part: f"{parts}.{part}" for part in TIME_PARTS}
    hour, half = f"CAST({t['hour']} AS BIGINT)", f"upper({t['half']} || {t['half_after']})"
    in_day = (
        f"CASE WHEN {half} = '' THEN CASE WHEN {hour} < 24 THEN {hour} END "
        f"WHEN {half} IN ('上午', 'AM') THEN CASE WHEN {hour} <= 12 THEN {hour} % 12 END "
        f"WHEN {hour} < 24 THEN CASE WHEN {hour} < 12 THEN {hour} + 12 ELSE {hour} END END"
    )
    zone = f"replace({t['zone']}, ':', '')"
    offset = (
        f"CASE {zone} WHEN '' THEN {ahead} WHEN 'Z' THEN 0 ELSE "
        f"CAST(left({zone}, 1) || '1' AS BIGINT) * (CAST(substr({zone}, 2, 2) AS BIGINT) * 3600"
        f" + CAST(substr({zone}, 4, 2) AS BIGINT) * 60) END"
    )
    seconds = (
        f"(({in_day}) * 60 + CAST({t['minute']} AS BIGINT)) * 60 + CAST('0' || {t['second']} AS BIGINT) - ({offset})"
    )
    day = f"try_cast(concat_ws('-', {t['year']}, {t['month']}, {t['day']}) AS DATE)"
    return (
        f"CAST({day} AS TIMESTAMP)"
        f" + to_microseconds(({seconds}) * 1000000 + CAST(rpad({t['fraction']}, 6, '0') AS BIGINT))"
    )


def _number(column: HourColumn, header: HourHeader) -> str:
    """Return a measure as an integer; NULL if it is blank or has another form."""
    written = f"trim({identifier(column.name)})"
    factor = header.factors.get(column.name, 1)
    if factor != 1:
        return (
            f"CASE WHEN regexp_full_match({written}, '[0-9]{{1,12}}(?:[.][0-9]{{0,9}})?') THEN"
            f" CAST(round(CAST({written} AS DECIMAL(24, 9)) * CAST({factor} AS DECIMAL(14, 0))) AS BIGINT) END"
        )
    return (
        f"CASE WHEN is_plain THEN try_cast({identifier(column.name)} AS BIGINT)"
        f" WHEN regexp_full_match({written}, '[0-9]{{1,18}}') THEN CAST({written} AS BIGINT)"
        f" WHEN regexp_full_match({written}, '[0-9]{{1,19}}(?:[.][0-9]{{0,17}})?(?:[eE][+]?[0-9]{{1,2}})?')"
        f" AND try_cast({written} AS DECIMAL(38, 18)) = trunc(try_cast({written} AS DECIMAL(38, 18)))"
        f" THEN try_cast(try_cast({written} AS DECIMAL(38, 18)) AS BIGINT) END"
    )


def _text(name: str, is_there: bool, is_named: bool) -> str:
    """Return a published column as written; NULL if it is blank. In a plain line, no name or time is blank."""
    column = identifier(name)
    is_filled = f"is_plain OR trim({column}) <> ''" if is_named else f"trim({column}) <> ''"
    value = f"CASE WHEN {is_filled} THEN {column} END" if is_there else "CAST(NULL AS VARCHAR)"
    return f"{value} AS {column}"


def _others(header: HourHeader) -> str:
    """Return the columns that the document does not name, as a JSON object of those that are not blank."""
    if not header.others:
        return f"CAST(NULL AS VARCHAR) AS {OTHERS}"
    pairs = ", ".join(
        f"{literal(name)}, CASE WHEN trim({_other_name(at)}) <> '' THEN {_other_name(at)} END"
        for name, at in header.others.items()
    )
    return f"nullif(CAST(json_merge_patch('{{}}', json_object({pairs})) AS VARCHAR), '{{}}') AS {OTHERS}"


def _other_name(at: int) -> str:
    return f"other_{at}"


def _number_name(column: HourColumn) -> str:
    return identifier(f"number of {column.typed}")


def _escaped(path: Path) -> str:
    """Return a path without the meaning of a glob."""
    return "".join(f"[{letter}]" if letter in "[*?" else letter for letter in str(path))
