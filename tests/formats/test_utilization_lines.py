"""Cells and lines of wide utilization files: each unusable one is named with its file and line."""

from __future__ import annotations

import csv
import random

import pytest

from tests.formats.wide import HEADER, ROWS, Wide, seen
from warehouse.formats import torn_lines
from warehouse.project.project import Project

MODELS = ("metrics.utilization_quality", "metrics.utilization_shares", "staging.utilization", "staging.rejected_rows")
pytestmark = pytest.mark.usefixtures("only_own_models")

CELLS = {
    "": None, "43.0": 43, "43": 43, "43.": 43, "0": 0, "-0.0": 0, "nan": None, "NaN": None, "1e-05": 1e-05, "007": 7,
    "238.871": 238.871, "999999999.999999": 999999999.999999, "0.1234567890123456": 0.1234567890123456,
}  # fmt: skip
NO_CELLS = [
    "1e400", "inf", "-inf", "Infinity", "1e5", "abc", " 43.0", "43.0 ", "+5", ".5", "0x10", "1_000", "4 3", "1.2.3",
    "--5", "1234567890", '"43.0"', "NULL", "true", "٣", "-", "1e-",
]  # fmt: skip


def test_valid_cells_are_read(wide: Wide) -> None:
    rows = [f"2023-07-01 08:00:{n:02}+08:00,{cell},1.0" for n, cell in enumerate(CELLS)]
    wide.lines("Time,10.0.0.1-0,10.0.0.1-1", *rows)
    wide.build()
    assert [row[2] for row in wide.values()] == [value for cell in CELLS.values() for value in (cell, 1.0)]
    assert wide.ask("SELECT sum(samples) FROM staging.utilization_values") == [(2 * len(CELLS),)]
    assert wide.rejected() == []


def test_a_cell_that_is_not_a_number_is_named_and_the_rest_of_its_line_is_read(wide: Wide) -> None:
    rows = [f"2023-07-01 08:00:{n:02}+08:00,1.0,{cell},2.0" for n, cell in enumerate(NO_CELLS)]
    wide.lines(HEADER, *rows, "2023-07-01 08:01:00+08:00,a,b,2.0", ROWS[2])
    wide.build()

    assert [row[2] for row in wide.values()] == [*[1.0, None, 2.0] * len(NO_CELLS), None, None, 2.0, 1, 2.125, -3.5]
    column = "10.140.1.10-1"
    assert wide.rejected() == [
        *(
            (line, f"a cell is no number, of {column}: {cell!r}; the rest of the line is read", row)
            for line, (cell, row) in enumerate(zip(NO_CELLS, rows, strict=True), start=2)
        ),
        (
            len(NO_CELLS) + 2,
            "2 cells are no numbers, the first, of 10.140.1.10-0: 'a'; the rest of the line is read",
            "2023-07-01 08:01:00+08:00,a,b,2.0",
        ),
    ]
    assert wide.file()[0] == "partial"


# lines --------------------------------------------------------------------------------------------

GOOD = "2023-07-01 09:00:00+08:00,5,5,5"
LINES = {
    "a cell less": (f"{GOOD[:25]},5,5", "3 fields instead of 4"),
    "a cell more": (f"{GOOD},5", "5 fields instead of 4"),
    "a time alone": (GOOD[:25], "1 fields instead of 4"),
    "the same time": (f"{ROWS[0][:25]},7,7,7", "the same time as in line 2"),
    "the same moment at another offset": ("2023-07-01 02:00:00+02:00,7,7,7", "the same time as in line 2"),
    "a time without offset": ("2023-07-01 09:00:00,5,5,5", "Time is no time with an offset: '2023-07-01 09:00:00'"),
    "a time in words": ("yesterday,5,5,5", "Time is no time with an offset: 'yesterday'"),
    "no time": (",5,5,5", "Time is no time with an offset: ''"),
    "a day that is none": ("2023-02-30 09:00:00+08:00,5,5,5", "Time is no time with an offset: '2023-02-30"),
    "an hour that no day has": ("2023-07-01 24:00:00+08:00,5,5,5", "Time is no time with an offset: '2023-07-01 24"),
    "an offset that no zone has": ("2023-07-01 09:00:00+25:00,5,5,5", "Time is no time with an offset: '2023-07-01 09"),
    "a time with slashes": ("2023/07/01 09:00:00+08:00,5,5,5", "Time is no time with an offset: '2023/07/01"),
    "a time after a blank": (" 2023-07-01 09:00:00+08:00,5,5,5", "Time is no time with an offset: ' 2023-07-01"),
    "a time in another form": ("2023-07-01T09:00:00+08:00,5,5,5", "Time is no time with an offset: '2023-07-01T"),
    "a blank line": ("", "blank line"),
    "a line of blanks": ("   ", "1 fields instead of 4"),
    "the header again": (HEADER, "the header again"),
    "a longer line": (f"{GOOD[:25]},{'5' * torn_lines.LINE_BYTES},5,5", f"longer than {torn_lines.LINE_BYTES:,} bytes"),
    "a byte that is no text": (f"{GOOD[:25]},5,\x01,5", "a cell is no number"),
}


METRICS = (
    "GPU_TEMP", "GPU_UTIL", "MEMORY_TEMP", "MEM_CLOCK", "MEM_COPY_UTIL", "FB_FREE", "FB_USED", "POWER_USAGE",
    "DRAM_ACTIVE", "SM_CLOCK",
)  # fmt: skip
NAMES = dict(zip(LINES, (f"{of}/{metric}.csv" for of in ("kalos", "seren") for metric in METRICS), strict=False))
"""A file for each of these lines."""


@pytest.fixture(scope="module")
def with_bad_lines(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Wide:
    """Return the build of a file for each of these lines."""
    wide = Wide(tmp_path_factory.mktemp("bad-lines"))
    for form, (line, _) in LINES.items():
        wide.lines(HEADER, ROWS[0], line, *ROWS[1:], name=NAMES[form])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        wide.build()
    return wide


@pytest.mark.parametrize("form", LINES)
def test_a_bad_line_is_named_and_the_others_are_read(with_bad_lines: Wide, form: str) -> None:
    _, reason = LINES[form]
    file = f"acme/utilization/{NAMES[form]}"
    ((line, said),) = with_bad_lines.ask(f"SELECT line, reason FROM staging.rejected_rows WHERE file = '{file}'")
    assert line == 3
    assert str(said).startswith(reason)
    values = 12 if reason == "a cell is no number" else 9
    assert with_bad_lines.ask(f"SELECT count(*) FROM staging.utilization WHERE file = '{file}'") == [(values,)]


def test_lines_below_another_header_are_rejected(wide: Wide) -> None:
    """Below another header, a column may be another server's."""
    wide.lines(HEADER, ROWS[0], "Time,10.0.0.1-0,10.0.0.2-0,10.0.0.3-0", *ROWS[1:])
    wide.build()
    assert [(line, reason) for line, reason, _ in wide.rejected()] == [
        (3, "another header"), (4, "below another header, in line 3"), (5, "below another header, in line 3"),
    ]  # fmt: skip
    assert len(wide.values()) == 3


def test_a_torn_file_is_read_without_its_last_line(wide: Wide) -> None:
    wide.write("\n".join([HEADER, *ROWS]))
    wide.build()
    assert wide.rejected() == [(4, torn_lines.TORN, ROWS[2])]
    assert len(wide.values()) == 6
    assert wide.file() == ("partial", "line 4: torn: the file ends without a final newline")


@pytest.mark.parametrize("ending", ["\r\n", "mixed"])
def test_other_line_ends_are_accepted(wide: Wide, ending: str) -> None:
    lines = [HEADER, *ROWS, ""]
    wide.write("\r\n".join(lines) if ending == "\r\n" else "\r\n".join(lines[:2]) + "\n" + "\n".join(lines[2:]))
    wide.build()
    assert [row[2] for row in wide.values()] == [43, 0, 100, 43.5, None, 99, 1, 2.125, -3.5]
    assert wide.rejected() == []


def test_lines_that_end_in_carriage_returns_alone_are_one_header(wide: Wide) -> None:
    file = seen(wide.write("\r".join([HEADER, *ROWS, ""]) + "\n" + "\n".join([HEADER, *ROWS, ""])))
    assert (file.status, file.reason) == ("skipped", "the header: holds a carriage return: lines end in LF or CRLF")


def test_a_line_with_a_carriage_return_inside_is_rejected(wide: Wide) -> None:
    wide.lines(HEADER, ROWS[0], ROWS[1].replace(",", ",\r", 1), ROWS[2])
    wide.build()
    assert [row[:2] for row in wide.rejected()] == [(3, "holds a carriage return: lines end in LF or CRLF")]


def test_a_byte_order_mark_is_no_part_of_the_header(wide: Wide) -> None:
    wide.write(("\ufeff" + "\n".join([HEADER, *ROWS, "x,1,1,1", ""])).encode())
    wide.build()
    assert len(wide.values()) == 9
    assert len(wide.rejected()) == 1


def test_invalid_text_rejects_only_its_line(wide: Wide) -> None:
    wide.write("\n".join([HEADER, ROWS[0], ""]).encode() + b"2023-07-01 09:00:00+08:00,\xff,5,5\n")
    wide.build()
    assert [(line, reason) for line, reason, _ in wide.rejected()] == [(3, "not UTF-8 text")]
    assert len(wide.values()) == 3


def test_every_line_is_a_row_or_is_rejected(wide: Wide) -> None:
    """With damage in random places, no line is lost or doubled."""
    chance = random.Random(11)
    lines = [f"2023-07-01 08:{n // 60:02}:{n % 60:02}+08:00,{n}.0,{n}.5,nan" for n in range(600)]
    for place in chance.sample(range(600), 120):
        line = lines[place]
        cut = chance.randrange(len(line))
        start, end = line[:cut], line[cut:]
        other = lines[chance.randrange(600)]
        lines[place] = chance.choice([start, f"{start},{end}", f"{start}x{end}", other, f"{line},", ""])
    wide.lines(HEADER, *lines)
    wide.build()

    rows = wide.ask("SELECT count(*) FROM staging.utilization_rows")[0][0]
    whole = wide.ask("SELECT count(*) FROM staging.rejected_rows WHERE reason NOT LIKE '%rest of the line is read'")[0][
        0
    ]
    assert (rows + whole) == 600  # type: ignore[operator]
    assert wide.ask("SELECT count(*) FROM staging.utilization") == [(rows * 3,)]  # type: ignore[operator]
    good = {cells[0] for cells in csv.reader(lines) if cells}
    assert rows <= len(good)  # type: ignore[operator]
