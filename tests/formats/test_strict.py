"""Numbers and times in every CSV file that the engine reads: an invalid text is rejected, never read as another value.

DuckDB alone reads `12.6` as 13 in a column of whole numbers, `0x10` as 16, and accepts `1_000`, ` 7` and `+5`. It reads
24:00:00 as the next day. Each format declares the valid texts of its numbers and times. The engine and the search for
bad lines must both apply them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import warehouse
from warehouse.engine.base import CsvFiles
from warehouse.engine.duckdb_sql import source_sql
from warehouse.formats import known_formats
from warehouse.formats.base import CsvFormat, RawFile
from warehouse.formats.zhejiang.port_counters import HEADER
from warehouse.project.project import Project
from warehouse.sample.acme import KALOS_HEADER

MODELS = (
    "metrics.port_hour",
    "metrics.jobs",
    "staging.previous_jobs",
    "staging.cluster_summary",
    "staging.elasticflow_jobs",
    "staging.testbed_jobs",
    "staging.rejected_rows",
)
pytestmark = pytest.mark.usefixtures("only_own_models")
NO_NUMBERS = [" 7", "7 ", "+5", "1_000", "0x10", "7L", "٣", "nan", "inf", "1e400", ".5", "5.", "1.2.3", "1;5", "--5"]
NOT_WHOLE = [*NO_NUMBERS, "12.6", "1e3", "1E3", "1e9"]
NO_INTEGERS = [*NOT_WHOLE, "12.0"]
NO_TIMES = [
    "2023-05-17 24:00:00+08:00", "2023-05-17 11:60:00+08:00", "2023-05-17 11:00:60+08:00", "2023-05-17 11:00:58",
    "2023-05-17T11:00:58+08:00", "2023/05/17 11:00:58+08:00", " 2023-05-17 11:00:58+08:00",
    "2023-05-17 11:00:58 +08:00",
    "2023-5-17 11:00:58+08:00", "2023-05-17 11:00+08:00", "2023-05-17 11:00:58+25:00", "2023-05-17 11:00:58+8",
    "2023-05-17 11:00:58.+08:00", "2023-05-17", "1684292458", "now",
]  # fmt: skip
NO_CLOCKS = [
    "2023-05-17 24:00:00", "2023-05-17 11:60:00", "2023-05-17 11:00:60", "2023-05-17 11:00:58+08:00",
    "2023/05/17 11:00:58", " 2023-05-17 11:00:58", "2023-5-17 11:00:58", "2023-05-17", "1684292458", "now",
]  # fmt: skip
WORDS = {"job_id", "id", "user", "type", "state", "model_name", "name", "gpu_spec", "qos", "pod_phase", "sn", "model"}
WORDS |= {"job_name", "task_name", "status", "machine", "jobid"}
"""Columns of names, for which these texts are valid."""
ROWS = {
    "zhejiang.port_counters": (
        "Leaf-1_1_1.csv",
        HEADER,
        "2024/05/24 星期五 00:00:05.914,1716480005914,NH-DC-Leaf-1.GPU,TwoHundredGigE1/0/1:1,1,100,2,200,0,0.5",
    ),
    "acme.jobs": (
        "trace_kalos.csv",
        KALOS_HEADER,
        f"job,user,8,64,960,1000.0,100.0,Pretrain,FAILED{',2023-05-17 11:00:58+00:00' * 5},18,10.0,1152.0",
    ),
    "acme.previous_jobs": (
        "helios_trace.csv",
        "job_id,gpu_num,node_num,cpu_num,plan_gpu,plan_cpu,state,duration",
        "a,8.0,1,64,12.5,600,PASS,17.25",
    ),
    "acme.cluster_summary": ("cluster_summary.csv", "", ""),
    "itp.jobs": ("cluster01.csv", "job_id,submission_time,duration,num_gpu", "a-1,10,600,4"),
    "itp.elasticflow_jobs": (
        "cluster01.csv",
        "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration",
        "a-1,10,500,bert,700,64,4,600",
    ),
}
ROWS["alibaba.pods"] = (
    "openb_pod_list_default.csv",
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
    "pod-1,1000,512,1,500,,LS,Running,0,10,5",
)
ROWS["alibaba.nodes"] = (
    "openb_node_list_all_node.csv",
    "sn,cpu_milli,memory_mib,gpu,model",
    "node-1,64000,262144,2,P100",
)
ROWS["helios.jobs"] = (
    "Venus/cluster_log.csv",
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
    f"a,u,v,4,16,1,FAILED{',2020-06-09 18:41:27' * 3},249,0",
)
ROWS["pai.tasks"] = (
    "pai_task_table.csv",
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
    "a,worker,2.0,Terminated,10.0,20.0,600.0,29.296875,50.0,MISC",
)
ROWS["pai.machines"] = ("pai_machine_spec.csv", "machine,gpu_type,cap_cpu,cap_mem,cap_gpu", "m,T4,96,512,2")
ROWS["philly.jobs"] = (
    "philly_jobs.csv",
    "jobid,user,vc,status,submitted_time,start_time,end_time,attempts,gpus",
    f"a,u,v,Pass{',2017-10-07 01:11:39' * 3},2,8",
)
ROWS["itp.testbed_jobs"] = ("195job.csv", *ROWS["itp.elasticflow_jobs"][1:])
FORMATS = {
    one.name: one
    for one in known_formats()
    if isinstance(one, CsvFormat) and not any(relation.whole_lines for relation in one.relations)
}
SUMMARY = list(FORMATS["acme.cluster_summary"].relations[0].columns)
ROWS["acme.cluster_summary"] = ("cluster_summary.csv", ",".join(SUMMARY), ",".join(["seren", *["1.0"] * 27]))
FLOATS = {
    "acme.jobs": {"mem_per_pod_GB", "shared_mem_per_pod", "duration", "queue", "gpu_time"},
    "acme.previous_jobs": {"duration", "plan_gpu", "plan_cpu"},
    "acme.cluster_summary": {*SUMMARY[4:]},
    "helios.jobs": {"duration", "queue"},
    "pai.tasks": {"plan_cpu", "plan_mem", "plan_gpu"},
}
"""Columns published with fractions."""
WHOLE_WITH_POINT = {
    "acme.jobs": {"node_num", "gpu_num", "cpu_num"},
    "acme.previous_jobs": {"node_num", "gpu_num", "cpu_num"},
    "acme.cluster_summary": {"job_num", "cpu_job_num", "gpu_job_num"},
    "helios.jobs": {"node_num", "gpu_num", "cpu_num"},
    "pai.tasks": {"inst_num", "start_time", "end_time"},
    "pai.machines": {"cap_cpu", "cap_mem", "cap_gpu"},
}
"""Columns of whole numbers that can also be published as 8.0, since their files were written by pandas."""


FIRST_OF_FORM = {
    name: {
        FORMATS[name].relations[0].forms.get(column): column
        for column in reversed(header.split(","))
        if column not in WORDS
    }
    for name, (_, header, _) in ROWS.items()
}
"""Columns of a format with a form of their own: the engine compares equal forms alike, so it reads one of them."""


def odd_texts(name: str, column: str) -> list[str]:
    """Return texts that are invalid in a column."""
    if column in FLOATS.get(name, ()):
        return NO_NUMBERS
    if column in WHOLE_WITH_POINT.get(name, ()):
        return NOT_WHOLE
    if FORMATS[name].relations[0].columns[column] == "TIMESTAMP":
        return NO_CLOCKS
    return NO_TIMES if column.endswith("_time") and name.startswith("acme.") and column != "gpu_time" else NO_INTEGERS


def inspected(path: Path, name: str, *lines: str) -> RawFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return FORMATS[name].inspect(RawFile(path, path.name, 1, 1, format=name, cluster="c"))


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def read(engine: duckdb.DuckDBPyConnection, one: CsvFormat, file: RawFile) -> list[tuple[object, ...]]:
    """Return the rows as the engine reads them."""
    relation = one.relations[0]
    headers = {file.path: file.header} if file.header else {}
    source = CsvFiles(relation.columns, (file.path,), relation.quote, True, headers, relation.forms)
    source = source._replace(has_header=relation.has_header)
    return engine.execute(source_sql(source)).fetchall()


def test_every_format_that_the_engine_reads_is_here() -> None:
    assert FORMATS.keys() == ROWS.keys()


@pytest.mark.parametrize(
    ("name", "column"),
    [(name, column) for name, (_, header, _) in ROWS.items() for column in header.split(",")
     if column in FORMATS[name].relations[0].forms and column not in WORDS],
)  # fmt: skip
def test_an_invalid_text_is_rejected_with_its_line_and_refused_by_the_engine(
    engine: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, column: str
) -> None:
    file_name, header, row = ROWS[name]
    place = header.split(",").index(column)
    odd = odd_texts(name, column)
    rows = []
    for number, text in enumerate(odd):
        fields = row.split(",")
        fields[0] = fields[0] if "time" in header.split(",")[0].lower() or place == 0 else f"{fields[0]}{number}"
        fields[place] = text
        rows.append(",".join(fields))

    above = [header] if FORMATS[name].relations[0].has_header else []
    file = inspected(tmp_path / "all" / file_name, name, *above, row, *rows)
    rejected = list(FORMATS[name].repair(file, tmp_path / "clean.csv"))
    assert [(one.line, one.reason.partition(" ")[0]) for one in rejected] == [
        (line, column) for line in range(len(above) + 2, len(above) + len(odd) + 2)
    ]
    assert (tmp_path / "clean.csv").read_text(encoding="utf-8").splitlines() == [*above, row]

    assert len(read(engine, FORMATS[name], inspected(tmp_path / file_name, name, *above, row))) == 1
    for bad in rows if column in FIRST_OF_FORM[name].values() else rows[:1]:
        with pytest.raises(duckdb.Error, match=f"{column} has another form"):
            read(engine, FORMATS[name], inspected(tmp_path / file_name, name, *above, row, bad))


LONE = {
    "acme.jobs": {"gpu_num": "1_000", "submit_time": "2023/05/17 11:00:58+00:00", "duration": " 7"},
    "acme.previous_jobs": {"duration": "+5", "gpu_num": "1e9"},
    "acme.cluster_summary": {"job_num": "12.6"},
    "itp.jobs": {"duration": "12.6", "num_gpu": "0x10"},
    "itp.elasticflow_jobs": {"deadline": "1e3"},
    "itp.testbed_jobs": {"batch_size": "64.5"},
}
"""Texts that the engine alone would accept silently."""


LONES = [(name, column) for name, lone in LONE.items() for column in lone]


def lone_line(name: str, column: str) -> str:
    """Return the row of a format with such a text, of another job."""
    _, header, row = ROWS[name]
    fields = row.split(",")
    if header.startswith(("job_id", "id")):
        fields[0] = f"another-{column}"
    fields[header.split(",").index(column)] = LONE[name][column]
    return ",".join(fields)


@pytest.fixture(scope="module")
def lone(own_models: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A build of a file per format, each with a valid line and then all lines with such a text."""
    base = tmp_path_factory.mktemp("lone")
    for name, columns in LONE.items():
        file_name, header, row = ROWS[name]
        inspected(base / "data" / name / file_name, name, header, row, *(lone_line(name, column) for column in columns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        warehouse.build(base / "data", base / "target", max_rejected=0.9)
        with warehouse.open(base / "target") as built:
            yield built


@pytest.mark.parametrize(("name", "column"), LONES)
def test_a_build_names_the_file_and_line_of_one_invalid_number(
    lone: duckdb.DuckDBPyConnection, name: str, column: str
) -> None:
    asked = "SELECT file, line, reason FROM staging.rejected_rows WHERE text = ?"
    ((file, line, reason),) = lone.execute(asked, [lone_line(name, column)]).fetchall()
    assert file.endswith(f"/{ROWS[name][0]}")
    assert line == 3 + list(LONE[name]).index(column)
    assert reason.startswith(f"{column} is not ")
    assert lone.execute(f"SELECT count(*) FROM raw.{FORMATS[name].relations[0].name}").fetchall() == [(1,)]
    assert lone.execute("SELECT count(*) FROM staging.rejected_rows").fetchall() == [(len(LONES),)]
