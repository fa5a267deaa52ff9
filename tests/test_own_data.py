"""Each recipe of docs/your-own-data.md, as written there, in one project over a small release."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import MadeOnce, call
from tests.examples import ROOT, changed
from tests.release import only
from warehouse.quality.model_tests import failed_examples

PAGE = (ROOT / "docs" / "your-own-data.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`((?:study|release)/[^`]+)`[^`]*?:\n\n```\w*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
MODELS = (
    "metrics.findings", "metrics.leaf_hour", "metrics.server_hour", "metrics.task_traffic", "staging.log_events",
    "staging.rejected_rows",
)  # fmt: skip
LOG = "taskinfo/20240524-0001-1/mine-master.log"


@pytest.fixture(scope="module")
def base(sample: Path, made_once: MadeOnce) -> Path:
    """Return a folder with the project `study`, built over two leaves of the sample in `release`."""
    return made_once("own-data", lambda base: _build(base, sample))


def _build(base: Path, sample: Path) -> None:
    cluster = base / "release" / "cluster_sample"
    for file in (*sample.rglob("*.xlsx"), *sample.rglob("Leaf-1_*.csv"), *sample.rglob("Leaf-2_*.csv")):
        if "2024052400" in file.parts or file.suffix == ".xlsx":
            place = cluster / file.relative_to(sample / "zhejiang" / "cluster_sample")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
    (cluster / LOG).parent.mkdir(parents=True)
    (cluster / LOG).write_text(
        "".join(
            f"2024-05-23 16:0{step}:00.000 did update {step} of 90, objective 2.5, took 1250 ms\n" for step in (1, 2, 3)
        )
    )
    for path, text in FILES.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(text)
    names, line = re.findall(r"^```(?:yaml|csv)\n(switch_names:.*?|mycluster,.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    shipped = (ROOT / "data" / "tables.yaml").read_text(encoding="utf-8")
    [clusters] = re.findall(r"^clusters:\n(?: .*\n)+", shipped, re.MULTILINE)
    with (base / "study/data/tables.yaml").open("a") as stream:
        stream.write(names + clusters)
    (base / "study/data/clusters.csv").write_text((ROOT / "data" / "clusters.csv").read_text(encoding="utf-8") + line)
    [diff] = re.findall(r"^```diff\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    model = (ROOT / "models" / "metrics" / "leaf_hour.sql").read_text(encoding="utf-8")
    (base / "study/models/metrics/leaf_hour.sql").write_text(changed(model, diff))
    for number in range(1, 5):
        (base / f"release/cluster0{number}.csv").write_text("job_id;submission_time;duration;num_gpu\na;1;2;3\n")
    with only(base / "shipped", *MODELS):
        for name in ("after-build", "task-ports"):
            shutil.copy(ROOT / "sql" / "queries" / f"{name}.sql", base / "shipped" / "sql" / "queries")
        said = call("build", "-d", "release", "--project", "study", cwd=base)
    assert said.status == 0, said
    (base / "said.txt").write_text(said.err_text)


def ask(base: Path, sql: str) -> list[tuple[object, ...]]:
    with warehouse.open(base / "build" / "warehouse") as connection:
        return connection.execute(sql).fetchall()


def test_every_recipe_has_its_files() -> None:
    assert re.findall(r"^## (\d+)\.", PAGE, re.MULTILINE) == [str(number) for number in range(1, 11)]
    assert len(FILES) == 9


def test_the_last_lines_of_a_build_name_the_files_that_are_not_read(base: Path) -> None:
    last = (base / "said.txt").read_text().partition("Built")[2]
    for number in range(1, 4):
        assert f"not read: cluster0{number}.csv: the separator is `;`, not a comma: save" in last
    assert "not read: 1 more: warehouse doctor" in last
    assert "cluster04.csv" not in last


def test_own_column(base: Path) -> None:
    rows = ask(base, "SELECT uplink_in_bytes / access_out_bytes, coming_share FROM metrics.leaf_hour")
    assert len(rows) == 2
    assert all(expected == shown for expected, shown in rows)


def test_own_model_and_reference_table(base: Path) -> None:
    rows = ask(
        base,
        "SELECT rack, bytes, (SELECT sum(rx_bytes + tx_bytes) FROM metrics.server_hour WHERE server IN "
        "('GPU-1', 'GPU-2')) FROM metrics.rack_hour WHERE rack = 'A01'",
    )
    [(rack, moved, expected)] = rows
    assert (rack, moved) == ("A01", expected)


def test_a_reference_table_without_an_entry_says_what_to_add(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "study", tmp_path / "study")
    (tmp_path / "study/data/tables.yaml").unlink()
    said = call("build", "-d", base / "release", "--project", "study", "-t", "target", cwd=tmp_path)
    assert said.status == 1
    assert "no relation reference.racks" in said.err_text
    assert "data/racks.csv of the project needs an entry `racks:` with `about` and `columns`" in said.err_text


def test_own_task(base: Path) -> None:
    [(task, status, seconds)] = ask(
        base,
        "SELECT DISTINCT task, status, observed_seconds FROM metrics.task_traffic "
        "WHERE task = 'mine' AND status = 'ok'",
    )
    assert (task, status, seconds) == ("mine", "ok", 120)
    said = call("sql", "-q", "task-ports", "--task", "mine", "--format", "csv", cwd=base)
    assert said.status == 0, said
    assert said.out.count("\n") >= 5


def test_own_log_pattern(base: Path) -> None:
    rows = ask(base, "SELECT step, loss, seconds FROM staging.log_events WHERE kind = 'iteration' ORDER BY step")
    assert rows == [(step, 2.5, 1.25) for step in (1, 2, 3)]
    assert failed_examples([base / "study/data/log_lines.yaml"])[1] == []


def test_own_counters(tmp_path: Path) -> None:
    [copy] = re.findall(r"^```sql\n(COPY .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "mine/trafficinfo/2024052400/x").mkdir(parents=True)
    (tmp_path / "telemetry.csv").write_text(
        "time_utc,in_packets,in_bytes,out_packets,out_bytes\n"
        "2024-05-23 16:00:01.5,1,100,2,200\n2024-05-23 16:00:02.5,3,300,4,400\n"
    )
    duckdb.connect().execute(
        copy.replace("telemetry.csv", str(tmp_path / "telemetry.csv")).replace("'mine/", f"'{tmp_path}/mine/")
    )
    assert "port_counters: 1 of 1 file read" in call("doctor", "-d", "mine", cwd=tmp_path).out
    with only(tmp_path / "project", "metrics.port_hour"):
        said = call("build", "-d", "mine", "--cluster", "mine", cwd=tmp_path)
    assert said.status == 0, said
    assert ask(tmp_path, "SELECT switch, port, polls, in_bytes, out_bytes FROM metrics.port_hour") == [
        ("Leaf-1", "TwoHundredGigE1/0/1:1", 2, 400, 600)
    ]


def test_own_names(base: Path) -> None:
    assert ask(base, "SELECT own_name FROM metrics.leaf_hour JOIN reference.switch_names USING (switch)") == [
        ("tor-r17-a",)
    ]
    assert ask(base, "SELECT leaves, spines FROM reference.clusters WHERE cluster = 'mycluster'") == [(4, 2)]


def test_own_query(base: Path) -> None:
    said = call("sql", "-q", "racks", "--project", "study", "--format", "csv", cwd=base)
    assert said.out.splitlines()[0] == "rack,bytes,hour_utc,cluster"
    assert said.out.count("\n") >= 3


def test_own_finding(base: Path) -> None:
    [sentence] = ask(base, "SELECT sentence FROM metrics.findings WHERE kind = 'busy_rack' AND where_ = 'A01'")
    assert re.fullmatch(r"Rack A01 moves [0-9.]+ % of the bytes of all servers\.", str(sentence[0]))
    ranks = ask(base, "SELECT kind = 'busy_rack' FROM metrics.findings ORDER BY rank")
    own = [is_own for (is_own,) in ranks]
    assert own == sorted(own, key=bool)
    assert any(own)


def test_own_figure(base: Path) -> None:
    said = call("report", "report.html", "--project", "study", cwd=base)
    assert said.status == 0, said
    page = (base / "report.html").read_text(encoding="utf-8")
    assert "What does this project add?" in page
    assert "Bytes of each rack by hour" in page
