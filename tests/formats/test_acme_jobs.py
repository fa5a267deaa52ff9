"""Acme job files: in any folder, with columns in any order; bad rows are named and rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

import warehouse
from tests.conftest import Command
from warehouse.project.project import Project
from warehouse.runner.result import Result
from warehouse.sample.acme import KALOS_HEADER, SEREN_HEADER, write_acme

MODELS = ("metrics.jobs", "metrics.job_totals", "staging.previous_jobs", "staging.rejected_rows")
pytestmark = pytest.mark.usefixtures("only_own_models")
SEREN = (
    "5778432,u5907,1,8,128,SFT,COMPLETED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0"
)
"""Example row of the release's README."""
KALOS = (
    "dlctk696s0jbvitv,uf794,8,64,960,1000.0,100.0,Pretrain,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
    "2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0"
)


def rows(count: int) -> list[str]:
    """Return good rows of Seren with distinct ids."""
    return [SEREN.replace("5778432", str(9_000_000 + number)) for number in range(count)]


def seren(folder: Path, *lines: str, name: str = "trace_seren.csv") -> Path:
    """Write a Seren file with these lines below its header."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join([SEREN_HEADER, *lines, ""]), encoding="utf-8")
    return folder / name


def query(target: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query on a built warehouse."""
    with warehouse.open(target) as connection:
        return connection.execute(sql).fetchall()


def test_the_rows_of_the_readme_have_its_values(tmp_path: Path) -> None:
    seren(tmp_path / "d", SEREN)
    (tmp_path / "d" / "trace_kalos.csv").write_text(f"{KALOS_HEADER}\n{KALOS}\n", encoding="utf-8")

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(
        tmp_path / "t",
        "SELECT cluster, run_seconds, published_duration_seconds, queue_seconds, gpu_seconds, published_gpu_seconds, "
        "strftime(submit_utc, '%Y-%m-%d %H:%M:%S') FROM metrics.jobs ORDER BY 1",
    ) == [
        ("kalos", 8, 18.0, 10, 512, 1152.0, "2023-05-17 11:00:58"),
        ("seren", 117, 117.0, 32, 936, 936.0, "2023-02-28 16:18:22"),
    ]


def test_two_carriage_returns_at_the_end_of_a_line_are_ignored(tmp_path: Path) -> None:
    """Two FTP transfers in text mode double the carriage return. A bad line makes the engine read a repaired copy."""
    path = seren(tmp_path / "d", *rows(150), "x")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\r\n"))
    warehouse.build(tmp_path / "d", tmp_path / "t")
    assert query(tmp_path / "t", "SELECT count(*), count(DISTINCT job_id) FROM metrics.jobs") == [(150, 150)]
    assert query(tmp_path / "t", "SELECT line, reason FROM staging.rejected_rows") == [(152, "1 fields instead of 13")]


BAD = {
    SEREN.replace("2023-03-01 00:18:22+08:00", "yesterday"): "submit_time is not a time with its offset",
    SEREN.replace("00:18:22+08:00", "00:18:22"): "submit_time is not a time with its offset",
    SEREN.replace("2023-03-01 00:20:51", "2023-02-30 00:20:51"): "end_time is not a time that exists",
    SEREN.replace("00:20:51+08:00", "00:17:51+08:00"): "end_time 2023-03-01 00:17:51+08:00 is before start_time",
    SEREN.replace(",117,", ",-117,"): "duration is not a number, 0 or more: '-117'",
    SEREN.replace(",8,128,", ",8.5,128,"): "gpu_num is not a whole number",
    SEREN.replace(",8,128,", ",1e9,128,"): "gpu_num is not a whole number below 1,000,000: '1e9'",
    SEREN.replace(",8,128,", ",1000000000,128,"): "gpu_num is not a whole number below 1,000,000",
    SEREN.replace(",117,", ",nan,"): "duration is not a number",
    SEREN.replace("5778432", "9000001"): "the same job_id as in line 3",
    f"{SEREN},1": "14 fields instead of 13",
    SEREN.rpartition(",")[0]: "12 fields instead of 13",
    SEREN.replace("SFT", '"S'): "a quoted field is not closed on this line",
    SEREN.replace("u5907", "=cmd|'/c calc'!A1"): "user is not a name",
    SEREN.replace("u5907", "@SUM(1)"): "user is not a name",
    SEREN.replace("u5907", "\x1b[31mu"): "user is not a name",
    SEREN.replace("u5907", "u\x00x"): "holds NUL bytes",
    SEREN.replace("u5907", "u" * 300): "user is not a name",
    SEREN.replace("5778432", ""): "job_id is blank",
    "": "blank line",
}


def with_its_id(line: str, number: int) -> str:
    """Return a line with an id of its own."""
    return line.replace("5778432", str(9_900_000 + number))


@pytest.fixture(scope="module")
def with_bad_rows(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Result:
    """Return a build of a file with each of these lines before a good one."""
    folder = tmp_path_factory.mktemp("bad-rows")
    pairs = [(with_its_id(line, 2 * at), with_its_id(SEREN, 2 * at + 1)) for at, line in enumerate(BAD)]
    seren(folder / "d", *rows(150), *(line for pair in pairs for line in pair))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        return warehouse.build(folder / "d", folder / "t", max_rejected=0.5)


@pytest.mark.parametrize("line", BAD)
def test_a_bad_row_is_named_and_rejected(with_bad_rows: Result, line: str) -> None:
    at = list(BAD).index(line)
    of_line = f"FROM staging.rejected_rows WHERE line = {152 + 2 * at}"
    [(file, reason, text)] = query(with_bad_rows.target, f"SELECT file, reason, text {of_line}")
    assert file == "acme/job_trace/trace_seren.csv"
    assert str(reason).startswith(BAD[line])
    assert text == with_its_id(line, 2 * at)[:500]


def test_the_rows_beside_bad_ones_are_read(with_bad_rows: Result) -> None:
    assert query(with_bad_rows.target, "SELECT count(*) FROM metrics.jobs") == [(150 + len(BAD),)]
    warned = [(key.model, one.failures) for key, one in with_bad_rows.checks() if one.failures]
    assert ("staging.rejected_rows", len(BAD)) in warned


def test_both_lines_of_a_field_over_two_lines_are_rejected(tmp_path: Path) -> None:
    seren(tmp_path / "d", *rows(300), SEREN.replace("SFT", '"SF\nT"'), SEREN)

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT line, reason FROM staging.rejected_rows ORDER BY 1") == [
        (302, "a quoted field is not closed on this line"),
        (303, "8 fields instead of 13"),
    ]
    assert query(tmp_path / "t", "SELECT count(*) FROM metrics.jobs") == [(301,)]


def test_too_many_bad_rows_stop_the_build_unless_more_are_allowed(tmp_path: Path, command: Command) -> None:
    path = seren(tmp_path / "d", *rows(60), f"{SEREN},1")

    completed = command("build", "-d", tmp_path / "d", "-t", tmp_path / "t")

    assert completed.status == 2
    assert f"{path}: 1 of 61 rows cannot be read, more than --max-rejected allows" in completed.err_text
    assert "line 62: 14 fields instead of 13" in completed.err_text
    assert command("build", "-d", tmp_path / "d", "-t", tmp_path / "t", "--max-rejected", "2%").status == 0
    assert command("doctor", "-d", tmp_path / "d").status == 0


@pytest.mark.parametrize("share", ["-1", "2", "x%", ""])
def test_an_invalid_share_is_refused(tmp_path: Path, command: Command, share: str) -> None:
    seren(tmp_path / "d", SEREN)

    completed = command("build", "-d", tmp_path / "d", "--max-rejected", share or "nan")

    assert completed.status == 2
    assert "--max-rejected" in completed.err_text


def test_a_torn_file_loses_its_last_line(tmp_path: Path) -> None:
    path = seren(tmp_path / "d", *rows(150))
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT line, reason FROM staging.rejected_rows") == [
        (151, "torn: the file ends without a final newline")
    ]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    names = SEREN_HEADER.split(",")
    shuffled = sorted(names)
    values = dict(zip(names, SEREN.split(","), strict=True))
    (tmp_path / "d").mkdir()
    lines = [",".join([*shuffled, "comment"]), ",".join([*(values[name] for name in shuffled), "hello"])]
    (tmp_path / "d" / "trace_seren.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT user_id, num_gpus, run_seconds FROM metrics.jobs") == [("u5907", 8, 117)]
    assert query(tmp_path / "t", "SELECT reason FROM raw.files") == [("columns ignored: comment",)]


@pytest.mark.parametrize(
    ("name", "header", "reason"),
    [
        ("trace_seren.csv", SEREN_HEADER.replace(",queue", ""), "without queue"),
        ("trace_seren.csv", SEREN_HEADER + ",queue", "with queue twice"),
        ("trace_kalos.csv", "a,b,c", "the header is not that of acme.jobs"),
        ("trace_kalos.csv", "", "empty file"),
        ("pai_trace.csv", "status,plan_gpu", "without duration"),
    ],
)
def test_a_file_of_other_columns_is_skipped_with_the_reason(
    tmp_path: Path, command: Command, name: str, header: str, reason: str
) -> None:
    seren(tmp_path / "d", SEREN, name="seren.csv")
    (tmp_path / "d" / name).write_text(f"{header}\n" if header else "", encoding="utf-8")

    output = command("doctor", "-d", tmp_path / "d").out

    assert f"\n  {name}\n" in output
    assert reason in output


@pytest.mark.parametrize(
    "layout",
    [
        "AcmeTrace-main/data/job_trace/trace_kalos.csv",
        "datasets--Qinghao--AcmeTrace/snapshots/0123abcd/data/job_trace/trace_kalos.csv",
    ],
)
def test_kalos_alone_gives_the_same_build_in_any_folder(tmp_path: Path, layout: str) -> None:
    made = tmp_path / "made"
    write_acme(made, 7, seren=10, kalos=80)
    path = tmp_path / "d" / layout
    path.parent.mkdir(parents=True)
    path.write_bytes((made / "data" / "job_trace" / "trace_kalos.csv").read_bytes())

    warehouse.build(tmp_path / "d", tmp_path / "t")
    again = warehouse.build(made / "data" / "job_trace" / "trace_kalos.csv", tmp_path / "again")

    assert query(tmp_path / "t", "SELECT cluster, count(*) FROM metrics.jobs GROUP BY 1") == [("kalos", 80)]
    assert query(tmp_path / "t", "FROM metrics.job_totals") == query(tmp_path / "again", "FROM metrics.job_totals")
    assert query(tmp_path / "t", "SELECT release_path FROM raw.files") == [("acme/job_trace/trace_kalos.csv",)]
    assert {one.name for one in (again.target).iterdir()}


def test_the_hugging_face_cache_is_read_once(tmp_path: Path) -> None:
    """In the cache, a file is a symbolic link to a file named after its hash."""
    hub = tmp_path / "datasets--Qinghao--AcmeTrace"
    path = hub / "snapshots" / "0123abcd" / "data" / "job_trace" / "trace_seren.csv"
    path.parent.mkdir(parents=True)
    (hub / "blobs").mkdir()
    stored = seren(hub / "blobs", *rows(3), name="3133535311d36ecc404d4446e129036a1057c6f2")
    path.symlink_to(stored)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text("0123abcd", encoding="utf-8")

    warehouse.build(tmp_path, tmp_path / "t")

    assert query(tmp_path / "t", "SELECT count(*) FROM metrics.jobs") == [(3,)]
    assert query(tmp_path / "t", "SELECT status, count(*) FROM raw.files GROUP BY 1 ORDER BY 1") == [
        ("ignored", 2),
        ("read", 1),
    ]


def test_two_releases_under_one_folder(tmp_path: Path, command: Command) -> None:
    seren(tmp_path / "d" / "one" / "data" / "job_trace", SEREN)
    second = seren(tmp_path / "d" / "two" / "data" / "job_trace", SEREN)
    assert command("build", "-d", tmp_path / "d", "-t", tmp_path / "t").status == 0
    assert query(tmp_path / "t", "SELECT count(*) FROM metrics.jobs") == [(1,)]

    seren(second.parent, SEREN.replace("5907", "5908"))

    for words in (("doctor",), ("build", "-t", tmp_path / "t")):
        completed = command(*words, "-d", tmp_path / "d")
        assert completed.status == 2
        assert "two different files hold acme/job_trace/trace_seren.csv" in completed.err_text
        assert str(second) in completed.err_text


HELIOS = ("job_id,user,vc,gpu_num,state,submit_time,duration", "{},u1,vc{},4,COMPLETED,2020-06-09 18:41:27,246")
PAI = ("job_name,task_name,status,plan_gpu,duration,wait_time", "{},{},Terminated,100,{},5")


def test_a_repeated_block_of_earlier_jobs_stops_the_build(tmp_path: Path, command: Command) -> None:
    """Ids of several clusters in one file may be equal, and a job may have several tasks: such rows are no repeats."""
    helios = [HELIOS[1].format(at, 1) for at in range(40)] + [HELIOS[1].format(7, 2)]
    pai = [PAI[1].format(f"j{at}", "worker", at) for at in range(40)] + [PAI[1].format("j7", "ps", 7)]
    (tmp_path / "d").mkdir()
    for name, lines in (("helios", [HELIOS[0], *helios]), ("pai", [PAI[0], *pai])):
        (tmp_path / "d" / f"{name}_trace.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    assert command("build", "-d", tmp_path / "d", "-t", tmp_path / "t").status == 0
    assert query(tmp_path / "t", "SELECT cluster, count(*) FROM staging.previous_jobs GROUP BY 1 ORDER BY 1") == [
        ("helios", 41), ("pai", 41),
    ]  # fmt: skip

    (tmp_path / "d" / "pai_trace.csv").write_text("\n".join([PAI[0], *pai, *pai[5:7], ""]), encoding="utf-8")

    said = command("build", "-d", tmp_path / "d", "-t", tmp_path / "t")
    assert said.status != 0
    assert "GROUP BY ALL HAVING count(*) > 1: 2 rows fail None j5 worker" in said.err_text


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    import gzip

    path = seren(tmp_path / "d", SEREN)
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT count(*) FROM metrics.jobs") == [(1,)]


def test_an_unknown_state_is_kept_and_known_ones_are_mapped_in_any_case(tmp_path: Path) -> None:
    states = ("completed", "Cancelled", "PREEMPT", "Exploded", "")
    lines = [row.replace("COMPLETED", state) for row, state in zip(rows(5), states, strict=True)]
    seren(tmp_path / "d", *lines)

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT state_raw, state FROM metrics.jobs ORDER BY job_id") == [
        ("completed", "COMPLETED"),
        ("Cancelled", "CANCELLED"),
        ("PREEMPT", "PREEMPTED"),
        ("Exploded", "Exploded"),
        (None, None),
    ]
