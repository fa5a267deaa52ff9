"""Job traces as CSV files: no text is read as another number or time, and each bad line is named and left out.

DuckDB alone reads `12.6` as 13 in a column of whole numbers, `0x10` as 16, and accepts `1_000`, ` 7` and `+5`. It reads
24:00:00 as the next day. So a column has a kind, which says what it may hold. The engine and the search for bad lines
apply the same kinds.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import Command
from warehouse.engine.sources import CsvFiles, source_sql
from warehouse.formats import known_formats
from warehouse.formats.base import CsvFormat, RawFile
from warehouse.formats.named_csv import CELLS, NamedCsv
from warehouse.formats.zhejiang.port_counters import HEADER, PORT_COUNTERS
from warehouse.project.project import Project
from warehouse.sample.traces import KALOS_HEADER, SEREN_HEADER

MODELS = (
    *("metrics.jobs", "staging.previous_jobs", "staging.itp_jobs", "staging.elasticflow_jobs"),
    *("staging.testbed_jobs", "staging.rejected_rows"),
)
Ask = Callable[[str], list[tuple[object, ...]]]

# kinds of columns ---------------------------------------------------------------------------------

NO_NUMBERS = [" 7", "7 ", "+5", "1_000", "0x10", "7L", "٣", "nan", "inf", "1e400", ".5", "5.", "1.2.3", "1;5", "--5"]
NOT_WHOLE = [*NO_NUMBERS, "12.6", "1e3", "1E3", "1e9", "-7"]
NO_TIMES = [
    "2023-05-17 24:00:00+08:00", "2023-05-17 11:60:00+08:00", "2023-05-17 11:00:60+08:00", "2023-05-17 11:00:58",
    "2023-05-17T11:00:58+08:00", "2023/05/17 11:00:58+08:00", " 2023-05-17 11:00:58+08:00", "2023-05-17", "1684292458",
    "2023-05-17 11:00:58 +08:00", "2023-5-17 11:00:58+08:00", "2023-05-17 11:00:58+25:00", "2023-05-17 11:00:58+8",
]  # fmt: skip
NO_CLOCKS = [
    "2023-05-17 24:00:00", "2023-05-17 11:60:00", "2023-05-17 11:00:60", "2023-05-17 11:00:58+08:00",
    "2023/05/17 11:00:58", " 2023-05-17 11:00:58", "2023-5-17 11:00:58", "2023-05-17", "1684292458", "now",
]  # fmt: skip
INVALID = {
    "integer": [*NOT_WHOLE, "12.0", "1" * 13],
    "devices": [*NOT_WHOLE, "12.0", "1000000"],
    "count": [*NOT_WHOLE, "1000000.0"],
    "whole": NOT_WHOLE,
    "number": [*NO_NUMBERS, "-7"],
    "signed": NO_NUMBERS,
    "time": NO_TIMES,
    "clock": NO_CLOCKS,
    "name": ["=cmd|'/c calc'!A1", "@SUM(1)", "u" * 101, "a b"],
    "word": ["7a", "=a"],
}
"""Kind of a column -> texts that it may not hold."""
VALID = {
    "integer": "600", "devices": "8", "count": "8.0", "whole": "600.0", "number": "1.5e3", "signed": "-17.25",
    "time": "2023-05-17 11:00:58.5+08:00", "clock": "2023-05-17 11:00:58", "name": "job-1", "word": "bert",
    "text": "any text",
}  # fmt: skip
ALL = NamedCsv(
    *("x.all", "x_all", "A column of each kind.", {kind: CELLS[kind] for kind in VALID}, re.compile(r".*csv")),
    *("x", "x/{name}"),
)
PORT_ROW = "2024/05/24 星期五 00:00:05.914,1716480005914,NH-DC-Leaf-1.GPU,TwoHundredGigE1/0/1:1,1,100,2,200,0,0.5"
CASES = [
    *((ALL, ",".join(VALID), ",".join(VALID.values()), kind, texts) for kind, texts in INVALID.items()),
    (PORT_COUNTERS, HEADER, PORT_ROW, "InOctets", [one for one in NOT_WHOLE if one != "-7"]),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.parametrize(("one", "header", "row", "column", "texts"), CASES, ids=[case[3] for case in CASES])
def test_an_invalid_text_is_rejected_with_its_line_and_refused_by_the_engine(
    tmp_path: Path,
    engine: duckdb.DuckDBPyConnection,
    one: CsvFormat,
    header: str,
    row: str,
    column: str,
    texts: list[str],
) -> None:
    at = header.split(",").index(column)
    fields = row.split(",")
    bad = [",".join([*fields[:at], text, *fields[at + 1 :]]) for text in texts]
    path = tmp_path / "Leaf-1_1_1.csv"

    def inspected(*rows: str) -> RawFile:
        path.write_text("".join(f"{line}\n" for line in (header, *rows)), encoding="utf-8")
        return one.inspect(RawFile(path, path.name, 1, 1))

    rejected = list(one.repair(inspected(row, *bad), tmp_path / "clean.csv"))
    assert [(line.line, line.reason.split()[0]) for line in rejected] == [
        (number, column) for number in range(3, len(bad) + 3)
    ]
    assert (tmp_path / "clean.csv").read_text(encoding="utf-8").splitlines() == [header, row]
    assert len(rows_of(engine, one, inspected(row))) == 1
    for line in bad:
        with pytest.raises(duckdb.Error, match=f"{column} has another form"):
            rows_of(engine, one, inspected(row, line))


def rows_of(engine: duckdb.DuckDBPyConnection, one: CsvFormat, file: RawFile) -> list[tuple[object, ...]]:
    """Return the rows as the engine reads them."""
    (relation,) = one.relations
    headers = {file.path: file.header} if file.header else {}
    source = CsvFiles(relation.columns, (file.path,), relation.quote, True, headers, relation.forms)
    return engine.execute(source_sql(source)).fetchall()


def test_what_becomes_of_a_text_does_not_depend_on_the_lines_beside_it(
    tmp_path: Path, engine: duckdb.DuckDBPyConnection
) -> None:
    """The engine reads a whole file; a file with a bad line is read line by line."""
    path, clean, good = tmp_path / "a.csv", tmp_path / "clean.csv", ",".join(VALID.values())
    texts = {"x" * 3_000: "x" * 3_000, "a\tb": "a\tb", '"a ""b"""': 'a "b"', "\x1b[0m\x7f": "\x1b[0m\x7f"}
    rows = "".join(good.replace(VALID["text"], text) + "\n" for text in texts)
    for bad in ("", good.replace(VALID["integer"], "many") + "\n"):
        path.write_text(f"{','.join(VALID)}\n{rows}{bad}", encoding="utf-8")
        file = ALL.inspect(RawFile(path, path.name, 1, 1))
        assert len(list(ALL.repair(file, clean))) == len(bad[:1])
        for read in (file.but(path=clean), *([] if bad else [file])):
            assert [row[-2] for row in rows_of(engine, ALL, read)] == list(texts.values())
    broken = good.replace(VALID["text"], '"a\nb"')
    path.write_text(f"{','.join(VALID)}\n{broken}\n", encoding="utf-8")
    with pytest.raises(duckdb.Error, match="text has another form"):
        rows_of(engine, ALL, file)
    assert len(list(ALL.repair(file, clean))) == 2


def test_every_number_and_time_of_a_shipped_format_has_a_form() -> None:
    relations = [one.relations[0] for one in known_formats() if isinstance(one, CsvFormat)]
    lacking = {
        (relation.name, column)
        for relation in relations
        for column, kind in relation.columns.items()
        if kind != "VARCHAR" and column not in relation.forms
    }
    assert not [
        (one.name, name)
        for one in relations
        for name, form in one.forms.items()
        if one.columns[name] == "BIGINT" and re.fullmatch(form, "12.6")  # the engine would round it
    ]
    assert lacking == {("port_counters", ratio) for ratio in ("InRatio", "OutRatio")}  # UniformLines sees odd ones


# a build of all kinds of files --------------------------------------------------------------------

SEREN = (
    "5778432,u5907,1,8,128,SFT,COMPLETED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0"
)
"""Example row of the release's README."""
KALOS = (
    "dlctk696s0jbvitv,uf794,8,64,960,1000.0,100.0,Pretrain,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
    "2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0"
)
BAD = {
    SEREN.replace("2023-03-01 00:18:22+08:00", "yesterday"): "submit_time is not a time with its offset",
    SEREN.replace("2023-03-01 00:20:51", "2023-02-30 00:20:51"): "end_time is not a time that exists",
    SEREN.replace("00:20:51+08:00", "00:17:51+08:00"): "end_time 2023-03-01 00:17:51+08:00 is before start_time",
    SEREN.replace(",8,128,", ",1e9,128,"): "gpu_num is not a whole number below 1,000,000: '1e9'",
    SEREN.replace("5778432", "9000001"): "the same job_id as in line 3",
    f"{SEREN},1": "14 fields instead of 13",
    SEREN.rpartition(",")[0]: "12 fields instead of 13",
    SEREN.replace("SFT", '"S'): "a quoted field is not closed on this line",
    SEREN.replace("u5907", "=cmd|'/c calc'!A1"): "user is not a name",
    SEREN.replace("u5907", "\x1b[31mu"): "user is not a name",
    SEREN.replace("u5907", "u\x00x"): "holds NUL bytes",
    SEREN.replace("5778432", ""): "job_id is blank",
    "": "blank line",
}
"""Line of a file of Seren -> begin of its reason."""
EARLIER = "job_id,gpu_num,state,duration"
FIELDS, QUOTED = "1 fields instead of 4", "a quoted field is not closed on this line"
FILES: dict[str, tuple[bytes, int, list[tuple[int, str]]]] = {
    "two carriage returns at each end": (f"{EARLIER}\na,8,PASS,1\nx\nb,8,PASS,2\n".replace("\n", "\r\r\n").encode(), 2,
                                         [(3, FIELDS)]),
    "a field over two lines": (f'{EARLIER}\na,8,"PA\nSS",1\nb,8,PASS,2\n'.encode(), 1,
                               [(2, QUOTED), (3, "2 fields instead of 4")]),
    "torn": (f"{EARLIER}\na,8,PASS,1\nb,8,PA".encode(), 1, [(3, "torn: the file ends without a final newline")]),
    "a line twice": (f"{EARLIER}\na,8,PASS,1\na,8,PASS,2\na,8,PASS,1\n,8,PASS,1\n,8,PASS,1\n".encode(), 4,
                     [(4, "the same cells as in line 2")]),
    "packed": (gzip.compress(f"{EARLIER}\na,8,PASS,1\n".encode()), 1, []),
    "other columns in another order": (b"duration,note,state,gpu_num\n1,x,PASS,8\n", 1, []),
}  # fmt: skip
"""File of earlier jobs -> content, rows, and lines that are rejected."""
RAW = b"job_id,submission_time,duration,num_gpu\na-1,10,600,4\na-2,20,700,1"
ELASTIC = (
    b"job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
    b"a-1,10,500,bert,700,64,4,600\na-2,20,500,gpt2,800,128,1,700"
)


def written(path: Path, *lines: str) -> Path:
    """Write a file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    """Write a tar.gz file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def seren(number: int, line: str = SEREN) -> str:
    """Return a line with an id of its own."""
    return line.replace("5778432", str(9_000_000 + number))


def place_of(case: str) -> str:
    return f"helios_trace_{list(FILES).index(case)}.csv{'.gz' * (case == 'packed')}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Iterator[Ask]:
    """Return a function that asks a build of all these files; each bad line stands before a good one."""
    data, target = tmp_path_factory.mktemp("jobs"), tmp_path_factory.mktemp("target")
    pairs = [(seren(1000 + 2 * at, line), seren(1001 + 2 * at)) for at, line in enumerate(BAD)]
    good = [seren(number) for number in range(150)]
    written(data / "trace_seren.csv", SEREN_HEADER, *good, *(line for pair in pairs for line in pair))
    written(data / "trace_kalos.csv", KALOS_HEADER, KALOS)
    for case, (content, _, _) in FILES.items():
        (data / place_of(case)).write_bytes(content)
    archive(data / "raw-traces.tar.gz", ("cluster01.csv", RAW))
    archive(data / "my-traces.tgz", ("195job.csv", ELASTIC), ("cluster01.csv", ELASTIC), ("LICENSE", b"MIT"))
    torn = archive(data / "torn-traces.tar.gz", ("195job.csv", ELASTIC * 500))
    torn.write_bytes(torn.read_bytes()[:-40])
    (data / "raw-traces").mkdir()
    (data / "raw-traces" / "cluster01.csv").write_bytes(RAW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        warehouse.build(data, target, max_rejected=0.9)
    with warehouse.open(target) as connection:
        yield lambda select: connection.execute(select).fetchall()


def test_a_bad_row_is_named_and_rejected_and_the_rows_beside_it_are_read(built: Ask) -> None:
    asked = "SELECT line, reason, text FROM staging.rejected_rows WHERE file LIKE '%/trace_seren.csv' ORDER BY line"
    for at, ((line, expected), (number, reason, text)) in enumerate(zip(BAD.items(), built(asked), strict=True)):
        assert (number, text) == (152 + 2 * at, seren(1000 + 2 * at, line)[:500])
        assert str(reason).startswith(expected)
    assert built("SELECT count(*) FROM metrics.jobs WHERE cluster = 'seren'") == [(150 + len(BAD),)]


def test_the_rows_of_the_readme_have_its_values(built: Ask) -> None:
    assert built(
        "SELECT cluster, run_seconds, published_duration_seconds, queue_seconds, gpu_seconds, published_gpu_seconds, "
        "strftime(submit_utc, '%Y-%m-%d %H:%M:%S') FROM metrics.jobs "
        "WHERE job_id IN ('dlctk696s0jbvitv', '9000000') ORDER BY 1"
    ) == [
        ("kalos", 8, 18.0, 10, 512, 1152.0, "2023-05-17 11:00:58"),
        ("seren", 117, 117.0, 32, 936, 936.0, "2023-02-28 16:18:22"),
    ]


def test_lines_of_a_file_are_read_or_rejected(built: Ask) -> None:
    for case, (_, rows, rejected) in FILES.items():
        end = f"'%/{place_of(case)}'"
        found = built(f"SELECT line, reason FROM staging.rejected_rows WHERE file LIKE {end} ORDER BY line")
        assert found == rejected, case
        read = "SELECT count(*) FROM raw.acme_previous_jobs JOIN raw.files ON filename = read_path"
        assert built(f"{read} WHERE path LIKE {end}") == [(rows,)], case


def test_a_cut_gzip_keeps_what_can_be_read(tmp_path: Path) -> None:
    path, clean = tmp_path / "helios_trace_1.csv.gz", tmp_path / "clean.csv"
    rows = "".join(f"{number},8,PASS,1\n" for number in range(40_000))
    path.write_bytes(gzip.compress(f"{EARLIER}\n{rows}".encode())[:-2_000])
    one = next(one for one in known_formats() if isinstance(one, NamedCsv) and one.claims(path))
    file = one.inspect(RawFile(path, path.name, 1, 1))
    assert (file.status, str(file.reason)[:32]) == ("partial", "the compressed stream is damaged")
    [damage] = one.repair(file, clean)
    assert damage.line == len(clean.read_text(encoding="utf-8").splitlines()) + 1 > 20_000


def test_members_of_archives_are_told_apart_by_their_headers_and_counted_once(built: Ask) -> None:
    asked = "SELECT cluster, job_id, run_seconds, gpu_seconds FROM metrics.jobs WHERE trace = 'itp' ORDER BY 2"
    assert built(asked) == [("cluster01", "a-1", 600, 2400), ("cluster01", "a-2", 700, 700)]
    for table in ("staging.elasticflow_jobs", "staging.testbed_jobs"):
        assert built(f"SELECT count(*) FROM {table}") == [(2,)]
    same = "SELECT count(*) FROM raw.files WHERE reason = 'the same content as itp/raw-traces/cluster01.csv'"
    assert built(same) == [(1,)]


def test_a_damaged_archive_is_skipped_with_a_reason(built: Ask) -> None:
    """`tests/ingest/test_archive_reader.py` has hostile ones."""
    found = built("SELECT parse_filename(release_path), reason FROM raw.files WHERE status = 'skipped' ORDER BY ALL")
    [(name, reason)] = found
    assert name == "torn-traces.tar.gz"
    assert "truncated or damaged" in str(reason)


# builds of their own ------------------------------------------------------------------------------


@pytest.mark.usefixtures("only_own_models")
def test_too_many_bad_rows_stop_the_build_unless_more_are_allowed(tmp_path: Path, command: Command) -> None:
    path = written(tmp_path / "d" / "trace_seren.csv", SEREN_HEADER, *map(seren, range(60)), f"{SEREN},1")
    build = ("build", "-d", tmp_path / "d", "-t", tmp_path / "t", "--max-rejected")

    completed = command(*build[:-1])

    assert completed.status == 2
    assert f"{path}: 1 of 61 rows cannot be read, more than --max-rejected allows" in completed.err_text
    assert "line 62: 14 fields instead of 13" in completed.err_text
    for share in ("-1", "2", "x%", "nan"):
        wrong = command(*build, share)
        assert (wrong.status, "--max-rejected" in wrong.err_text) == (2, True)
    assert command(*build, "2%").status == 0


@pytest.mark.usefixtures("only_own_models")
def test_a_release_is_read_once_wherever_it_lies_and_two_of_them_are_an_error(tmp_path: Path, command: Command) -> None:
    """In the cache of Hugging Face, a file is a symbolic link to a file named after its hash."""
    hub = tmp_path / "d" / "datasets--Qinghao--AcmeTrace"
    link = hub / "snapshots" / "0123abcd" / "data" / "job_trace" / "trace_seren.csv"
    link.parent.mkdir(parents=True)
    link.symlink_to(written(hub / "blobs" / "3133535311d36ecc404d4446e129036a1057c6f2", SEREN_HEADER, SEREN))
    second = written(tmp_path / "d" / "AcmeTrace-main" / "data" / "job_trace" / "trace_seren.csv", SEREN_HEADER, SEREN)
    build = ("build", "-d", tmp_path / "d", "-t", tmp_path / "t")

    assert command(*build).status == 0
    with warehouse.open(tmp_path / "t") as connection:
        assert connection.sql("SELECT count(*) FROM metrics.jobs").fetchall() == [(1,)]
        listed = connection.sql("SELECT DISTINCT release_path FROM raw.files WHERE status = 'read'").fetchall()
    assert listed == [("acme/job_trace/trace_seren.csv",)]

    written(second, SEREN_HEADER, SEREN.replace("5907", "5908"))
    for words in (("doctor", "-d", tmp_path / "d"), build):
        completed = command(*words)
        assert completed.status == 2
        assert "two different files hold acme/job_trace/trace_seren.csv" in completed.err_text
        assert str(second) in completed.err_text
