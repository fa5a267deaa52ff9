"""Odd headers of CSV files: no header costs a build, or a row of the file beside it, and each has a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import warehouse
from tests.formats.hour_examples import EXAMPLES
from tests.formats.odd_headers import CASES
from tests.formats.test_strict import ROWS
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats import known_formats
from warehouse.formats.base import CsvFormat, RawFile, TableFormat
from warehouse.ingest.schemas import csv_source
from warehouse.project.project import Project

MODELS = (
    "staging.itp_jobs",
    "staging.elasticflow_jobs",
    "staging.previous_jobs",
    "staging.server_power",
    "staging.utilization_rows",
    "staging.port_readings",
    "staging.rejected_rows",
)
Built = Mapping[str, tuple[str, str, int]]
"""Status, reason and rows of each file of a build, by path below the data folder."""
COUNT = 3
"""Rows of a file."""
AT_THE_END = {
    "a comma at the end": "column {} without a name",
    "two commas at the end": "column {} without a name, column",
    "a comma at the end of the header alone": "column {} without a name",
    "a value without a name": "column {} without a name",
    "another column twice": "x, x",
    "a column filename": "filename",
    "a column in another case": "",
    "a reserved word": "select",
    "another reserved word": "order by",
    "names of the reader": "field_1, column0, line, row_number",
    "quotes in a name": 'a"b',
    "a quote within a name": 'a"b',
    "an apostrophe": "it's",
    "SQL": "x'); DROP TABLE y; --",
    "braces": "{{{{ name }}}} %s $1",
    "a semicolon in a name": "a;b",
    "a quoted comma in a name": "a,b",
    "300 characters": "x" * 60,
    "emoji": "🚀",
    "right to left": "'\\u202edcba\\u200b'",
    "a blank": "column {} without a name",
    "a blank that does not break": "column {} without a name",
    "an escape": "'\\x1b[31mred'",
    "500 columns more": "extra 0, extra 1,",
}
"""Case -> the ignored columns in the reason of a file of jobs, `{}` for the place of the first."""
READ = {
    **{case: f"columns ignored: {names}" for case, names in AT_THE_END.items()},
    "an index without a name": "columns ignored: column 1 without a name",
    "an index that pandas named": "columns ignored: Unnamed: 0",
    "the header twice": "line 2: ",
    **dict.fromkeys(
        (
            "as published", "a comma at the end of the rows alone", "a byte order mark", "CRLF",
            "all names quoted", "in another order",
        ),
        "",
    ),
    "CRLF in the header alone": "its lines do not all end alike",
}  # fmt: skip
"""Case -> begin of the reason of a file of jobs that is read in full."""
SKIPPED = {
    "an index of R, not in the header": "the header has {} columns, the row below it {}",
    "a known column twice": "the columns differ from the published ones: with {last} twice",
    "a column less": "the columns differ from the published ones: without {last}",
    "CR only": "the header: holds a carriage return",
    "UTF-16": "the header: not UTF-8 text",
    "Latin-1": "the header: not UTF-8 text",
    "NUL": "the header: holds NUL bytes",
    "sep=,": "the first line is `sep=,`, not the header: delete this line",
    "sep=; quoted": "the separator is `;`, not a comma",
    "semicolons": "the separator is `;`, not a comma",
    "tabs": "the separator is a tab, not a comma",
    "bars": "the separator is `|`, not a comma",
    "upper case": "the header is not that of ",
    "blanks before names": "the header is not that of ",
    "a quote that is not closed": "the header: a quoted field is not closed on this line",
    "a name over two lines": "the header: a quoted field is not closed on this line",
    "a blank line above": "the first line is blank, not the header",
    "a comment above": "the header is not that of ",
    "no header": "the header is not that of ",
    "nothing": "empty file",
}
"""Case -> begin of the reason of a file of jobs that is not read."""
REPAIRED = ("the header twice", "CRLF in the header alone")
WITHOUT_ROWS = ("no line below", "the header without its end")
SAYS = (
    "header", "column", "separator", "first line", "carriage return", "text file", "row below", "rows below", "quoted",
    "UTF-16", "UTF-8", "NUL",
)  # fmt: skip
"""Words of which the reason of any unread file has one, unless the file is empty."""


def rows_of(name: str, at: int) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a file of a format, the `at`-th one."""
    if name == "acme.ipmi":
        times = [f"2023-07-01 08:0{row}:00+08:00" for row in range(COUNT)]
        return ["Time", "Sys_Total_Power", "node"], [[time, "1.0", f"host{at}"] for time in times]
    if name == "acme.utilization":
        times = [f"2023-{1 + at // 28:02}-{1 + at % 28:02} 08:00:{15 * row:02}+08:00" for row in range(COUNT)]
        return ["Time", "10.140.0.1-0", "10.140.0.1-1"], [[time, "1.0", "2.0"] for time in times]
    if (table := name.removeprefix("zhejiang.")) in EXAMPLES:
        columns = EXAMPLES[table]
        time = next(column for column in columns if column.endswith("Time"))
        hour = f"2024/05/{1 + at // 24:02} {at % 24:02}"
        rows = [{**columns, time: f"{hour}:00:1{row}"} for row in range(COUNT)]
        return list(columns), [[value.strip() for value in row.values()] for row in rows]
    _, header, line = ROWS[name]
    row = line.replace(",user,", ",u1,").split(",")
    if name == "zhejiang.port_counters":
        row[3] = f"TwoHundredGigE1/0/{at}:1"
        clocks = [(row[0].replace("05.914", f"0{5 + n}.914"), f"{int(row[1]) + 1000 * n}") for n in range(COUNT)]
        return header.split(","), [[clock, utc, *row[2:]] for clock, utc in clocks]
    return header.split(","), [[f"{row[0]}{at}-{n}", *row[1:]] for n in range(COUNT)]


PLACES = {
    "itp.jobs": "raw/cluster{:02}.csv",
    "itp.elasticflow_jobs": "ef/cluster{:02}.csv",
    "acme.previous_jobs": "helios_trace_{:02}.csv",
    "acme.ipmi": "GPU_C_Power-2023-{:02}.csv",
    "acme.utilization": "seren/GPU_UTIL-2023-{:02}.csv",
    "zhejiang.port_counters": "c/trafficinfo/2024052400/x/Leaf-1_{}_1.csv",
}
"""Format -> name of the n-th file, for the formats of which one build reads many files."""
ALONE = {
    "acme.jobs": "trace_kalos.csv",
    "acme.cluster_summary": "cluster_summary.csv",
    "itp.testbed_jobs": "195job.csv",
}
"""Format -> file, for those with one file of a name in a build."""
HOURS = [f"zhejiang.{table}" for table in EXAMPLES]
JOBS = ("itp.jobs", "itp.elasticflow_jobs", "acme.previous_jobs")
GOOD = 0
"""Number of the file as published, beside those with the cases."""


def place(name: str, at: int) -> str:
    return PLACES[name].format(at)


@pytest.fixture(scope="module")
def built(own_models: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """Return the files of a build of all cases."""
    data, target = tmp_path_factory.mktemp("odd"), tmp_path_factory.mktemp("target")
    for name in PLACES:
        for at, make in enumerate((CASES["as published"], *CASES.values())):
            path = data / place(name, at)
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
        yield {
            Path(path).relative_to(data).as_posix(): (status, reason, counts.get(read, 0))
            for path, status, reason, read in files
        }


@pytest.mark.parametrize("name", PLACES)
def test_the_file_beside_all_odd_ones_is_read_in_full(built: Built, name: str) -> None:
    assert built[place(name, GOOD)] == ("read", "", COUNT)


@pytest.mark.parametrize("name", JOBS)
def test_a_file_of_jobs_is_read_or_refused_by_name(built: Built, name: str) -> None:
    for at, case in enumerate(CASES, start=1):
        names, _ = rows_of(name, at)
        status, reason, rows = built[place(name, at)]
        assert rows == (COUNT if case in READ else 0), case
        if case in READ:
            assert reason.startswith(READ[case].format(len(names) + 1)), case
            assert status == ("partial" if case == "the header twice" else "read"), case
        elif case in SKIPPED:
            assert reason.startswith(skipped(case, names))
            assert status == "skipped", case
        else:
            assert case in WITHOUT_ROWS


def skipped(case: str, names: Sequence[str]) -> str:
    """Return the begin of the reason of a file with such a header."""
    return SKIPPED[case].format(len(names), len(names) + 1, last=names[-1])


@pytest.mark.parametrize("name", [name for name in PLACES if name not in JOBS])
def test_another_file_is_read_in_full_or_refused_with_a_reason(built: Built, name: str) -> None:
    for at, case in enumerate(CASES, start=1):
        status, reason, rows = built[place(name, at)]
        refuse_silence(case, status, reason, rows)


def refuse_silence(case: str, status: str, reason: str, rows: int) -> None:
    """Fail if a file that is not read in full has no reason that names its header or separator."""
    if status == "skipped":
        assert rows == 0
        assert any(word in reason for word in SAYS) or (case, reason) == ("nothing", "empty file"), (case, reason)
    else:
        assert rows == (0 if case in WITHOUT_ROWS else COUNT), (case, reason)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    opened = DuckDBEngine(memory_bytes=10**9, spill=tmp_path_factory.mktemp("spill"))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", HOURS)
def test_an_hour_table_is_read_in_full_or_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    one = next(one for one in known_formats() if one.name == name)
    assert isinstance(one, TableFormat)
    path = tmp_path / f"2024050100_{one.relations[0].name}.csv"
    for case, make in CASES.items():
        path.write_bytes(make(*rows_of(name, 0)))
        file = one.inspect(RawFile(path, path.name, 1, 1, format=name))
        rows = list(one.read([file], one.relations[0].name, [])) if file.is_read else []
        refuse_silence(case, file.status, file.reason or "", len(rows))


@pytest.mark.parametrize("name", ALONE)
def test_a_file_of_one_name_is_read_or_refused_by_name(tmp_path: Path, engine: DuckDBEngine, name: str) -> None:
    path = tmp_path / ALONE[name]
    one = next(one for one in known_formats() if one.name == name)
    assert isinstance(one, CsvFormat)
    names, lines = rows_of(name, 1)
    for case, make in CASES.items():
        path.write_bytes(make(names, lines))
        file = one.inspect(RawFile(path, path.name, 1, 1, format=name))
        if case in SKIPPED:
            assert (file.reason or "").startswith(skipped(case, names)), case
        if case in REPAIRED:
            continue  # the engine refuses such a file; the tests of builds show its repair
        with engine.scratch({"raw.jobs": csv_source(one, [file] if file.is_read else [])}) as scratch:
            ((rows, _),) = scratch.rows("SELECT count(*), bit_xor(hash(one)) FROM raw.jobs AS one")
        assert rows == (COUNT if case in READ else 0), case
