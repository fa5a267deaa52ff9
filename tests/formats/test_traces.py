"""Mappings of job traces: that of a project lands in the tables; a wrong mapping is named with its line."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import Command
from tests.release import lay_out_project, only
from warehouse.base.errors import ModelError
from warehouse.formats.base import RawFile
from warehouse.formats.traces import TARGETS, shipped_traces, traces_in
from warehouse.project.project import Project
from warehouse.reader.citations import source_lines

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
MAPPING = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
LINES = re.findall(r"```\n(instance,.*?)```", PAGE, re.DOTALL)[0]


def test_the_trace_of_the_page_lands_in_jobs(tmp_path: Path) -> None:
    project, data = tmp_path / "study", tmp_path / "release"
    tables = ("metrics.jobs", "metrics.gpu_allocation", "metrics.job_totals", "metrics.published_claims")
    lay_out_project(project, [*tables, "staging.rejected_rows"])
    (project / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    (project / "data" / "traces").mkdir(parents=True, exist_ok=True)
    data.mkdir()
    good = "".join(f"p-{at},app,0.5,,{at},{at},{at + 10}\n" for at in range(200))
    (data / "pods_2025.csv").write_text(f"{LINES}{good}i-3,a,1,,9,8,7\ni-4,a,x,,1,2,3\n", encoding="utf-8")
    mapping = project / "data" / "traces" / "mine.yaml"
    mapping.write_text(MAPPING.replace("value: 2,", "value: 203,"), encoding="utf-8")

    models = ("metrics.jobs", "metrics.gpu_allocation", "metrics.job_totals", "metrics.published_claims")
    with only(tmp_path / "shipped", *models, "staging.rejected_rows"):
        warehouse.build(data, tmp_path / "t", project=project)

    with warehouse.open(tmp_path / "t") as connection:
        assert connection.execute(
            "SELECT job_id, user_id, num_gpus, start_seconds, run_seconds, gpu_seconds, start_utc, "
            "extra ->> 'rdma_request' "
            "FROM metrics.jobs WHERE trace = 'mine' AND job_id LIKE 'i-%' ORDER BY 1"
        ).fetchall() == [
            ("i-1", "app_0", 1, 5, 3595, 3595, None, "25.0"),
            ("i-2", "app_0", 2, None, None, None, None, None),
        ]
        assert connection.execute("SELECT jobs, gpu_seconds FROM metrics.job_totals").fetchall() == [(202, 4595.0)]
        assert connection.execute("SELECT sum(gpu_seconds)::DOUBLE FROM metrics.gpu_allocation").fetchall() == [
            (4595.0,)
        ]
        assert source_lines(connection, ["metrics.job_totals"]) == [
            "data: Pods of my cluster, none stated, no DOI known, https://example.org/pods"
        ]
        assert connection.execute("SELECT line, reason FROM staging.rejected_rows ORDER BY 1").fetchall() == [
            (204, "scheduled_time 8 is before creation_time 9"),
            (205, "gpu_request is not a number, 0 or more: 'x'"),
        ]
        assert connection.execute(
            "SELECT source, place, published_value, our_value, unit, verdict, independent "
            "FROM metrics.published_claims WHERE claim = 'totals/mine/jobs'"
        ).fetchall() == [("Pods of my cluster", "README, first table", 203, 202, "jobs", "differs", True)]
        assert connection.execute(
            "SELECT sentence FROM meta.failures WHERE model = 'metrics.published_claims'"
        ).fetchall() == [
            ("Pods of my cluster: 203 jobs are published (README, first table), the loaded files have 202",)
        ]


@pytest.mark.parametrize(
    ("wrong", "line", "message"),
    [
        (("instance: text!", "instance: txt!"), 11, "`instance` is not `KIND [unit] meaning`"),
        (("from: mine_pods", "from: pods"), 19, "`from` names one of the files: mine_pods"),
        (("job_id: instance", "job: instance"), 20, "unknown key `job` in `jobs`"),
        (("cluster: mine", 'cluster: "{zone}"'), 8, "`cluster` has a group that `name` lacks: 'zone'"),
        ((r"pods_\d+\.csv", "pods_("), 7, "the pattern is not valid"),
        (("title: Pods of my cluster\n", ""), 1, "a mapping has no `title`"),
        (("quantity: jobs", "quantity: job"), 29, "`quantity` is not one of jobs, clusters, gpu_seconds, gpu_hours"),
        (
            ("extra:\n    rdma_request: rdma_request", "extra: [rdma_request]"),
            26,
            "`extra` is not a list of `key: value`",
        ),
        (("license: none stated", "license: MIT\ntime unit: hours"), 4, "`time unit` is not one of seconds, millisec"),
    ],
)
def test_a_wrong_mapping_is_named_with_its_line(
    tmp_path: Path, wrong: tuple[str, str], line: int, message: str
) -> None:
    assert MAPPING.count(wrong[0]) == 1
    (tmp_path / "mine.yaml").write_text(MAPPING.replace(*wrong), encoding="utf-8")
    with pytest.raises(ModelError, match=re.escape(message)) as raised:
        traces_in([tmp_path / "mine.yaml"])
    assert raised.value.place is not None
    assert (str(raised.value.place.path), raised.value.place.line) == ("data/traces/mine.yaml", line)


@pytest.mark.parametrize(
    ("wrong", "line", "message"),
    [
        (("num_gpus: gpu_request", "num_gpus: gpus"), 22, "no column gpus"),
        (("i-1,    1, ", "i-1,    2, "), 35, "num_gpus is 1.000, expected 2.000"),
    ],
)
def test_a_wrong_expression_or_example_is_named_with_its_line(
    tmp_path: Path, command: Command, wrong: tuple[str, str], line: int, message: str
) -> None:
    assert MAPPING.count(wrong[0]) == 1
    (tmp_path / "data" / "traces").mkdir(parents=True)
    (tmp_path / "data" / "traces" / "mine.yaml").write_text(MAPPING.replace(*wrong), encoding="utf-8")

    said = command("test", "staging.trace_jobs", "--project", tmp_path)

    assert said.status == 1
    assert f"data/traces/mine.yaml:{line}" in said.err_text
    assert message in said.err_text


def test_examples_of_the_shipped_mappings(command: Command) -> None:
    said = command("test", "staging.trace_jobs", "staging.trace_nodes")
    assert (said.status, said.err_text) == (0, "")
    assert [one.name for one in shipped_traces() if one.tables and not set(one.tables) <= set(one.examples)] == []


def test_examples_of_the_shipped_mappings_are_not_run_on_models_of_a_project_without_them(
    tmp_path: Path, command: Command
) -> None:
    (tmp_path / "models" / "staging").mkdir(parents=True)
    (tmp_path / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    shutil.copytree(Path(__file__).parents[2] / "sql" / "macros", tmp_path / "sql" / "macros")
    (tmp_path / "models" / "staging" / "trace_jobs.sql").write_text(
        # Only the macro names the raw relations that it reads.
        "/* ---\nabout: Mine.\ngrain: [job_id]\ncolumns:\n  job_id: VARCHAR one job\n--- */\n"
        "SELECT job_id FROM ({{ mapped('jobs') }})\n",
        encoding="utf-8",
    )
    said = command("test", "--project", tmp_path)
    assert (said.status, said.err_text, said.out.strip()) == (0, "", "Test   0 tests passed, of 0 models")


def test_jobs_of_philly_come_of_its_json_by_the_statement_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats" / "earlier_traces.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    detail = [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]
    begin, end = "2017-10-07 01:12:09", "2017-10-09 06:53:12"
    attempts = [
        {"start_time": begin, "end_time": "2017-10-07 01:13:23", "detail": detail},
        {"start_time": "2017-10-07 01:13:30", "end_time": end, "detail": detail[:1]},
    ]
    of_all = {"vc": "v", "user": "u", "submitted_time": begin}
    jobs = [
        {**of_all, "status": "Pass", "jobid": "a_1", "attempts": attempts},
        {**of_all, "status": "Killed", "jobid": "a_2", "attempts": []},
        {**of_all, "status": "Failed", "jobid": "a_3", "attempts": [{**attempts[0], "end_time": None, "detail": []}]},
    ]
    (tmp_path / "cluster_job_log").write_text(json.dumps(jobs), encoding="utf-8")
    made = tmp_path / "philly_jobs.csv"

    duckdb.sql(
        statement.replace("'cluster_job_log'", f"'{tmp_path}/cluster_job_log'").replace(
            "'philly_jobs.csv'", f"'{made}'"
        )
    )

    assert made.read_text(encoding="utf-8").splitlines()[1:] == [
        f"a_1,u,v,Pass,{begin},{begin},{end},2,3",
        f"a_2,u,v,Killed,{begin},,,0,",
        f"a_3,u,v,Failed,{begin},{begin},,1,",
    ]
    (kind,) = next(one.formats for one in shipped_traces() if one.name == "philly")
    assert kind.inspect(RawFile(made, made.name, 1, 1)).status == "read"
    assert list(kind.repair(RawFile(made, made.name, 1, 1), tmp_path / "clean.csv")) == []


def test_files_in_latin_1_with_semicolons_and_milliseconds_and_no_header(tmp_path: Path) -> None:
    project, data = tmp_path / "study", tmp_path / "release"
    lay_out_project(project, ["metrics.jobs", "staging.rejected_rows"])
    (project / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    (project / "data" / "traces").mkdir(parents=True)
    data.mkdir()
    mapping = MAPPING.partition("totals:")[0].replace(
        "cluster: mine", "cluster: mine\n    header: no\n    encoding: latin-1"
    )
    mapping = mapping.replace("order:", "delimiter: ';'\n    order:").replace(
        "files:", "time unit: milliseconds\nfiles:"
    )
    (project / "data" / "traces" / "mine.yaml").write_text(mapping, encoding="utf-8")
    good = "".join(f"p-{at};Zoë;1;;1500;2500;{at + 10_000}\n" for at in range(150))
    (data / "pods_1.csv").write_text(f"{good}p-x;Zoë;é;;1;2;3\n", encoding="latin-1")
    (data / "pods_2.csv").write_text("p-1;Zoë;1;;1500;2500\n", encoding="latin-1")

    warehouse.build(data, tmp_path / "t", project=project)

    with warehouse.open(tmp_path / "t") as connection:
        assert connection.execute(
            "SELECT count(*), min(user_id), max(user_id), min(submit_seconds), min(start_seconds), max(end_seconds), "
            "max(run_seconds) FROM metrics.jobs"
        ).fetchall() == [(150, "Zoë", "Zoë", 1, 2, 10, 8)]
        assert connection.execute("SELECT line, reason, text FROM staging.rejected_rows").fetchall() == [
            (151, "gpu_request is not a number, 0 or more: 'é'", "p-x;Zoë;é;;1;2;3")
        ]
        assert connection.execute("SELECT reason FROM raw.files WHERE status = 'skipped'").fetchall() == [
            ("6 fields instead of 7",)
        ]


LONG = f'c;"{"x" * 200_000}";;;\nd;"open;;;\n'
"""Lines that Python's reader does not take: a cell that is too long, and one that is not closed."""
DRAFTS = {
    "2025 odd.csv": (
        'Job ID;my "x";Start Time;end;phase\n"a;1";;2023-03-01 00:18;2023-03-01 00:20;Done\nb;;2023-03-01 00:19;;Los\n'
        + LONG,
        """    delimiter: ";"
    key: Job ID  # ? unique in the first 2 rows
    order: [Start Time, end]  # ? rows against it are rejected
    columns:
      Job ID: text!
      "my \\"x\\"": text  # ? blank in the first 2 rows
      Start Time: clock
      end: clock
      phase: text
jobs:
  from: odd_jobs
  job_id: "\\"Job ID\\""
  state_raw: phase  # ?
  start_utc: "\\"Start Time\\""  # ? no zone: taken as UTC
  end_utc: "\\"end\\""  # ? no zone: taken as UTC
  extra:
    my_x_: "\\"my \\"\\"x\\"\\"\\""
states:
  Done: COMPLETED completed  # ?
  Los: LOS  # ?
""",
    ),
    "t.csv.gz": (
        "id,submitted,ended\n1,1700000000000,2023-03-01 00:18:22+08:00\n1,1700000000001,2023-03-01 00:18:23+08:00\n",
        """      ended: time
jobs:
  from: t_jobs
  # ? values of the id repeat
  job_id: id
  submit_seconds: submitted  # ? since 1970
  end_utc: "{{ utc_of('\\"ended\\"') }}"
""",
    ),
}
"""File -> content, and lines of its first mapping."""


@pytest.mark.parametrize("name", DRAFTS)
def test_a_first_mapping_is_valid_and_marks_its_doubts(tmp_path: Path, command: Command, name: str) -> None:
    content, said = DRAFTS[name]
    data = tmp_path / name.partition(".")[0].replace("_", " ")
    data.mkdir()
    written = content.encode()
    (data / name).write_bytes(gzip.compress(written) if name.endswith(".gz") else written)
    (data / "notes.csv").write_text("a,b\n", encoding="utf-8")

    assert command("init", tmp_path / "study", "--trace", data).status == 0

    (path,) = (tmp_path / "study" / "data" / "traces").iterdir()
    text = path.read_text(encoding="utf-8")
    assert said in text
    assert ("origin: 1970-01-01 00:00:00  # ?\ntime unit: milliseconds  # ?\n" in text) == (name == "t.csv.gz")
    assert "# ? other columns, so not read: notes.csv" in text
    (trace,) = traces_in([path])
    assert trace.formats[0].claims(data / name)


@pytest.mark.parametrize(("table", "model"), [("jobs", "staging.trace_jobs"), ("nodes", "staging.trace_nodes")])
def test_mappings_fill_the_columns_of_the_models(table: str, model: str) -> None:
    types = {column.name: column.type for column in Project.open().models[model].columns}
    assert {name: types[name] for name in TARGETS[table]} == TARGETS[table]
    assert {one.name for one in shipped_traces() if table in one.tables} >= {"alibaba_v2023"}
