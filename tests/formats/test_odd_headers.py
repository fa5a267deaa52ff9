"""Odd headers of CSV files: no header costs a build, or a row of the file beside it, and each has a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import warehouse
from tests.formats.hour_examples import CSV, EXAMPLES
from warehouse.formats import known_formats
from warehouse.formats.base import RawFile
from warehouse.formats.zhejiang.port_counters import HEADER
from warehouse.project.project import Project

MODELS = (
    *("staging.itp_jobs", "staging.server_power", "staging.utilization_rows"),
    *("staging.port_readings", "staging.rejected_rows"),
)
Cells = Sequence[Sequence[str]]
Case = Callable[[Sequence[str], Cells], bytes]
"""Function from the names and rows of a file to its content."""
Built = Mapping[str, tuple[str, str, int]]
"""Status, reason and rows of each file of a build, by path below the data folder."""


def lines(*rows: Sequence[str], separator: str = ",") -> bytes:
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def begun(name: str) -> Case:
    """Return a case with one more column, at the begin, which counts the rows."""
    return lambda names, rows: lines([name, *names], *([str(at), *row] for at, row in enumerate(rows)))


def ended(*columns: str, value: str = "7") -> Case:
    """Return a case with more columns, at the end."""
    more = [value] * len(columns)
    return lambda names, rows: lines([*names, *columns], *([*row, *more] for row in rows))


def renamed(change: Callable[[str], str]) -> Case:
    """Return a case with other names."""
    return lambda names, rows: lines([change(name) for name in names], *rows)


def separated(separator: str, above: str = "") -> Case:
    """Return a case with another separator, and a line above the header."""
    return lambda names, rows: above.encode() + lines(names, *rows, separator=separator)


def encoded(change: Callable[[bytes], bytes]) -> Case:
    """Return a case with other bytes."""
    return lambda names, rows: change(lines(names, *rows))


def in_header(change: Callable[[bytes], bytes]) -> Case:
    """Return a case with other bytes in the header."""
    return lambda names, rows: change(lines(names)) + lines(*rows)


def after_first(name: bytes) -> Case:
    """Return a case with a column more, the second, whose name is given as bytes."""
    return lambda names, rows: (
        lines(names).replace(b",", b"," + name + b",", 1) + lines(*([row[0], "7", *row[1:]] for row in rows))
    )


READ, SKIPPED, EMPTY = "read", "skipped", "empty"
ONE_MORE, IGNORED = "columns ignored: column {} without a name", "columns ignored: "
DIFFER, SEPARATOR, OPEN = (
    "the columns differ from the published ones: ",
    "the separator is ",
    "a quoted field is not closed",
)
CASES: dict[str, tuple[Case, str, str]] = {
    "as published": (encoded(bytes), READ, ""),
    "an index without a name": (begun(""), READ, "columns ignored: column 1 without a name"),
    "an index that pandas named": (begun("Unnamed: 0"), READ, "columns ignored: Unnamed: 0"),
    "an index of R, not in the header": (
        lambda names, rows: lines(names, *([str(at), *row] for at, row in enumerate(rows, 1))),
        SKIPPED, "the header has {names} columns, the row below it {}",
    ),
    "two commas at the end": (ended("", "", value=""), READ, f"{ONE_MORE}, column"),
    "a comma at the end of the header": (in_header(lambda header: header[:-1] + b",\n"), READ, ONE_MORE),
    "a comma at the end of the rows": (
        lambda names, rows: lines(names, *([*row, ""] for row in rows)), READ, "",
    ),
    "a known column twice": (
        lambda names, rows: lines([*names, names[-1]], *([*row, row[-1]] for row in rows)),
        SKIPPED, f"{DIFFER}with {{last}} twice",
    ),
    "SQL": (ended("x'); DROP TABLE y; --"), READ, f"{IGNORED}x'); DROP TABLE y; --"),
    "a quoted comma in a name": (ended('"a,b"'), READ, f"{IGNORED}a,b"),
    "an escape": (ended("\x1b[31mred"), READ, f"{IGNORED}'\\x1b[31mred'"),
    "a byte order mark": (encoded(lambda content: b"\xef\xbb\xbf" + content), READ, ""),
    "CR only": (encoded(lambda content: content.replace(b"\n", b"\r")), SKIPPED, "the header: holds a carriage return"),
    "CRLF": (encoded(lambda content: content.replace(b"\n", b"\r\n")), READ, ""),
    "CRLF in the header alone": (
        in_header(lambda header: header.replace(b"\n", b"\r\n")), READ, "its lines do not all end alike",
    ),
    "UTF-16": (encoded(lambda content: content.decode().encode("utf-16")), SKIPPED, "the header: not UTF-8 text"),
    "Latin-1": (after_first(b"caf\xe9"), SKIPPED, "the header: not UTF-8 text"),
    "NUL": (after_first(b"a\0b"), SKIPPED, "the header: holds NUL bytes"),
    "sep=,": (separated(",", "sep=,\n"), SKIPPED, "the first line is `sep=,`, not the header: delete this line"),
    "semicolons": (separated(";"), SKIPPED, f"{SEPARATOR}`;`, not a comma"),
    "tabs": (separated("\t"), SKIPPED, f"{SEPARATOR}a tab, not a comma"),
    "upper case": (renamed(str.upper), SKIPPED, "the header is not that of "),
    "a quote that is not closed": (in_header(lambda header: b'"' + header), SKIPPED, f"the header: {OPEN}"),
    "a blank line above": (encoded(lambda content: b"\n" + content), SKIPPED, "the first line is blank"),
    "no header": (lambda names, rows: lines(*rows), SKIPPED, "the header is not that of "),
    "the header twice": (lambda names, rows: lines(names, names, *rows), "partial", "line 2: "),
    "a column less": (
        lambda names, rows: lines(names[:-1], *(row[:-1] for row in rows)), SKIPPED, f"{DIFFER}without {{last}}",
    ),
    "in another order": (lambda names, rows: lines(names[::-1], *(row[::-1] for row in rows)), READ, ""),
    "no line below": (lambda names, rows: lines(names), EMPTY, ""),
    "nothing": (lambda names, rows: b"", SKIPPED, "empty file"),
}  # fmt: skip
"""Case -> content, status of a file of jobs, and begin of its reason; `{}` is the place behind the last column."""
SAYS = (
    "header", "column", "separator", "first line", "carriage return", "text file", "row below", "rows below", "quoted",
    "UTF-16", "UTF-8", "NUL", "empty file",
)  # fmt: skip
"""Words of which the reason of any unread file has one."""
COUNT = 3
"""Rows of a file."""
PLACES = {
    "itp.jobs": "raw/cluster{:02}.csv",
    "acme.ipmi": "GPU_C_Power-2023-{:02}.csv",
    "acme.utilization": "seren/GPU_UTIL-2023-{:02}.csv",
    "zhejiang.port_counters": "c/trafficinfo/2024052400/x/Leaf-1_{}_1.csv",
}
"""Format -> name of the n-th file; the first is as published, beside those with the cases."""


def rows_of(name: str, at: int) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a file of a format, the `at`-th one."""
    match name:
        case "itp.jobs":
            header, form = "job_id,submission_time,duration,num_gpu", f"a{at}-{{}},10,600,4"
        case "acme.ipmi":
            header, form = "Time,Sys_Total_Power,node", f"2023-07-01 08:0{{}}:00+08:00,1.0,host{at}"
        case "acme.utilization":
            day = f"2023-{1 + at // 28:02}-{1 + at % 28:02}"
            header, form = "Time,10.140.0.1-0,10.140.0.1-1", f"{day} 08:00:0{{}}+08:00,1.0,2.0"
        case _:
            clock = "2024/05/24 星期五 00:00:0{0}.914,171648000{0}914"
            header, form = HEADER, f"{clock},NH-DC-Leaf-1.GPU,TwoHundredGigE1/0/{at}:1,1,100,2,200,0,0.5"
    return header.split(","), [form.format(row).split(",") for row in range(1, COUNT + 1)]


@pytest.fixture(scope="module")
def built(own_models: Project, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the files of a build of all cases."""
    data, target = tmp_path_factory.mktemp("odd"), tmp_path_factory.mktemp("target")
    for name, place in PLACES.items():
        for at, make in enumerate((encoded(bytes), *(case[0] for case in CASES.values()))):
            path = data / place.format(at)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(make(*rows_of(name, at)))
    relations = {one.name: one.relations[0] for one in known_formats() if one.name in PLACES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        warehouse.build(data, target, max_rejected=0.5)
    with warehouse.open(target) as connection:
        counts: dict[str, int] = {}
        for relation in relations.values():
            where = " WHERE NOT contains(line, 'Time')" if relation.whole_lines else ""
            asked = f"SELECT filename, count(*) FROM {relation.full_name}{where} GROUP BY 1"
            counts |= dict(connection.execute(asked).fetchall())
        files = connection.execute("SELECT path, status, coalesce(reason, ''), read_path FROM raw.files").fetchall()
    return {
        Path(path).relative_to(data).as_posix(): (status, reason, counts.get(read, 0))
        for path, status, reason, read in files
    }


def test_a_file_of_jobs_is_read_or_refused_by_name(built: Built) -> None:
    name = "itp.jobs"
    for at, (case, (_, status, begin)) in enumerate(CASES.items(), start=1):
        names, _ = rows_of(name, at)
        found, reason, rows = built[PLACES[name].format(at)]
        assert rows == (0 if status in (SKIPPED, EMPTY) else COUNT), case
        assert reason.startswith(begin.format(len(names) + 1, names=len(names), last=names[-1])) or status == EMPTY, (
            case
        )
        assert found == status or status == EMPTY, case


@pytest.mark.parametrize("name", PLACES)
def test_any_file_is_read_in_full_or_refused_with_a_reason(built: Built, name: str) -> None:
    assert built[PLACES[name].format(0)] == ("read", "", COUNT)
    for at, case in enumerate(CASES, start=1):
        refuse_silence(case, *built[PLACES[name].format(at)])


@pytest.mark.parametrize("table", EXAMPLES)
def test_an_hour_table_is_read_in_full_or_refused_with_a_reason(tmp_path: Path, table: str) -> None:
    columns = EXAMPLES[table]
    time = next(column for column in columns if column.endswith("Time"))
    rows = [list({**columns, time: f"2024/05/01 00:00:1{row}"}.values()) for row in range(COUNT)]
    path = tmp_path / f"2024050100_{table}.csv"
    for case, (make, _, _) in CASES.items():
        path.write_bytes(make(list(columns), [[value.strip() for value in row] for row in rows]))
        file = CSV[table].inspect(RawFile(path, path.name, 1, 1))
        found = list(CSV[table].read([file], table, [])) if file.is_read else []
        refuse_silence(case, file.status, file.reason or "", len(found))


def refuse_silence(case: str, status: str, reason: str, rows: int) -> None:
    """Fail if a file that is not read in full has no reason that names its header or separator."""
    if status == SKIPPED:
        assert rows == 0
        assert any(word in reason for word in SAYS), (case, reason)
    else:
        assert rows == (0 if CASES[case][1] == EMPTY else COUNT), (case, reason)
