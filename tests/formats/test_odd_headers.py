"""Odd headers of CSV files: no header costs a build, or a row of the file beside it, and each has a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import warehouse
from warehouse.formats import known_formats
from warehouse.formats.zhejiang.port_counters import HEADER
from warehouse.project.project import Project

MODELS = (
    *("staging.itp_jobs", "staging.server_power", "staging.utilization_rows"),
    *("staging.port_readings", "staging.rejected_rows"),
)
Case = Callable[[str, Sequence[str]], bytes]
"""Function from the header and the rows of a file to its content."""
Built = Mapping[str, tuple[str, str, int]]
"""Status, reason and rows of each file of a build, by path below the data folder."""


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogateescape")


def beside(header: str, row: str = "{}") -> Case:
    """Return a case with text beside the header, and beside each row."""
    return lambda names, rows: lines(header.format(names), *map(row.format, rows))


def each(change: Callable[[str], str]) -> Case:
    """Return a case in which the header and the rows are changed alike."""
    return lambda names, rows: lines(*map(change, (names, *rows)))


def whole(change: Callable[[bytes], bytes]) -> Case:
    """Return a case with other bytes."""
    return lambda names, rows: change(lines(names, *rows))


READ, SKIPPED, EMPTY = "read", "skipped", "empty"
ONE_MORE, IGNORED = "columns ignored: column {} without a name", "columns ignored: "
DIFFER, SEPARATOR = "the columns differ from the published ones: ", "the separator is "
NO_TEXT, NOT_THAT = "the header: not UTF-8 text", "the header is not that of "
WIDTHS = "the header has {names} columns, the row below it {}"
CASES: dict[str, tuple[Case, str, str]] = {
    "as published": (beside("{}"), READ, ""),
    "an index without a name": (beside(",{}", "7,{}"), READ, "columns ignored: column 1 without a name"),
    "an index that pandas named": (beside("Unnamed: 0,{}", "7,{}"), READ, "columns ignored: Unnamed: 0"),
    "an index of R, not in the header": (beside("{}", "7,{}"), SKIPPED, WIDTHS),
    "two commas at the end": (beside("{},,", "{},,"), READ, f"{ONE_MORE}, column"),
    "a comma at the end of the header": (beside("{},"), READ, ONE_MORE),
    "a comma at the end of the rows": (beside("{}", "{},"), READ, ""),
    "a known column twice": (
        each(lambda line: f"{line},{line.rpartition(',')[2]}"), SKIPPED, f"{DIFFER}with {{last}} twice",
    ),
    "SQL": (beside("{},x'); DROP TABLE y; --", "{},7"), READ, f"{IGNORED}x'); DROP TABLE y; --"),
    "a quoted comma in a name": (beside('{},"a,b"', "{},7"), READ, f"{IGNORED}a,b"),
    "an escape": (beside("{},\x1b[31mred", "{},7"), READ, f"{IGNORED}'\\x1b[31mred'"),
    "a byte order mark": (beside("\ufeff{}"), READ, ""),
    "CR only": (whole(lambda file: file.replace(b"\n", b"\r")), SKIPPED, "the header: holds a carriage return"),
    "CRLF": (beside("{}\r", "{}\r"), READ, ""),
    "CRLF in the header alone": (beside("{}\r"), READ, "its lines do not all end alike"),
    "UTF-16": (whole(lambda file: file.decode().encode("utf-16")), SKIPPED, NO_TEXT),
    "Latin-1": (beside("{},caf\udce9", "{},7"), SKIPPED, NO_TEXT),
    "NUL": (beside("{},a\0b", "{},7"), SKIPPED, "the header: holds NUL bytes"),
    "sep=,": (beside("sep=,\n{}"), SKIPPED, "the first line is `sep=,`, not the header: delete this line"),
    "semicolons": (each(lambda line: line.replace(",", ";")), SKIPPED, f"{SEPARATOR}`;`, not a comma"),
    "tabs": (each(lambda line: line.replace(",", "\t")), SKIPPED, f"{SEPARATOR}a tab, not a comma"),
    "upper case": (lambda names, rows: lines(names.upper(), *rows), SKIPPED, NOT_THAT),
    "a quote that is not closed": (beside('"{}'), SKIPPED, "the header: a quoted field is not closed"),
    "a blank line above": (beside("\n{}"), SKIPPED, "the first line is blank"),
    "no header": (lambda _, rows: lines(*rows), SKIPPED, NOT_THAT),
    "the header twice": (beside("{0}\n{0}"), "partial", "line 2: "),
    "a column less": (each(lambda line: line.rpartition(",")[0]), SKIPPED, f"{DIFFER}without {{last}}"),
    "in another order": (each(lambda line: ",".join(line.split(",")[::-1])), READ, ""),
    "no line below": (lambda names, _: lines(names), EMPTY, ""),
    "nothing": (lambda *_: b"", SKIPPED, "empty file"),
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


def rows_of(name: str, at: int) -> tuple[str, list[str]]:
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
    return header, [form.format(row) for row in range(1, COUNT + 1)]


@pytest.fixture(scope="module")
def built(own_models: Project, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the files of a build of all cases."""
    data, target = tmp_path_factory.mktemp("odd"), tmp_path_factory.mktemp("target")
    for name, place in PLACES.items():
        for at, make in enumerate((beside("{}"), *(case[0] for case in CASES.values()))):
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
        names = rows_of(name, at)[0].split(",")
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
        status, reason, rows = built[PLACES[name].format(at)]
        if status == SKIPPED:
            assert rows == 0, case
            assert any(word in reason for word in SAYS), (case, reason)
        else:
            assert rows == (0 if CASES[case][1] == EMPTY else COUNT), (case, reason)
