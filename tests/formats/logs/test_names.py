"""Names of logs: a file in the folder of a task is read if it has log lines; others say where to put them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import warehouse
from tests.scanning import scan
from warehouse.formats import known_formats
from warehouse.formats.base import IGNORED, READ, SKIPPED, UNKNOWN

MODELS = ("staging.log_events", "topology.task_pods")
pytestmark = pytest.mark.usefixtures("only_own_models")
LINE = " [2026-03-01 10:00:0{}.1] iteration {:5d}/ 12000 | elapsed time per iteration (ms): 1.5 | lm loss: 1.1E+01 |\n"
LOG = "".join(LINE.format(step, step) for step in range(1, 4)).encode()
HOST = b"ip-26-0-160-225:7:8 [0] NCCL INFO Connected all rings\n"
PUT_IT = "a training log outside the folder of a task: put it as taskinfo/<task>/<pod>.log"
NO_LINE = "none of the lines in its first 64 kB is of a known log"
NO_NAME = "no known format has such a name"
FILES = {
    "c/taskinfo/t/slurm-48213.out": (LOG, READ, None),
    "c/taskinfo/t/worker.err": (LOG, READ, None),
    "c/taskinfo/t/std_log_process_0.txt": (LOG, READ, None),
    "c/taskinfo/t/log_without_ending": (LOG, READ, None),
    "c/taskinfo/t/w.log.1": (LOG, READ, None),
    "c/taskinfo/t/w.log.2024-05-23": (LOG, READ, None),
    "c/taskinfo/t/zipped.out.gz": (gzip.compress(LOG), READ, None),
    "c/taskinfo/t/attempt_0/3/stderr.log": (LOG, READ, None),
    "c/taskinfo/t/attempt_1/3/stderr.log": (b"no line of a log\n", READ, None),
    "c/taskinfo/t/late.out": (b"x\n" * 40_000 + LOG, UNKNOWN, NO_LINE),
    "c/taskinfo/t/settings.conf": (b"  learning rate: 0.1\n", UNKNOWN, NO_LINE),
    "c/taskinfo/t/model.bin": (bytes(range(256)) * 9, UNKNOWN, "not text"),
    "c/taskinfo/t/from_windows.out": (LOG.decode().encode("utf-16"), UNKNOWN, "UTF-16, not UTF-8: convert it"),
    "c/taskinfo/t/loss.csv": (LOG, UNKNOWN, NO_NAME),
    "c/taskinfo/t/README.txt": (b"how it was run\n", IGNORED, "a text for people"),
    "c/taskinfo/no-task.log": (LOG, SKIPPED, PUT_IT),
    "c/taskinfo/no-log.log": (b"how it was run\n", UNKNOWN, NO_NAME),
    "else/slurm-48213.out": (LOG, SKIPPED, PUT_IT),
    "else/20260301-1000-4/w.log": (LOG, SKIPPED, PUT_IT),
    "else/std_log_process_0.txt": (HOST, SKIPPED, PUT_IT),
    "else/train.log.1.gz": (gzip.compress(LOG), SKIPPED, PUT_IT),
    "else/notes.txt": (b"ValueError: was fixed\n", IGNORED, "a text for people"),
    "else/system.log": (b"ValueError: of another program\n", UNKNOWN, NO_NAME),
    "h/taskinfo/t/host.log": (HOST, READ, None),
    "h/taskinfo/t/none.log": (LOG, READ, None),
    "train.log": (LOG, SKIPPED, PUT_IT),
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with logs of many names."""
    folder = tmp_path_factory.mktemp("names")
    for name, (content, _, _) in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_logs_are_found_by_their_lines(data: Path) -> None:
    found = {file.release_path: (file.status, file.reason) for file in scan([data], known_formats()).files}
    assert found.keys() == FILES.keys()
    for name, (_, status, reason) in FILES.items():
        assert found[name][0] == status, name
        assert (found[name][1] or "").startswith(reason or ""), name
        assert (found[name][1] is None) == (reason is None), name


def test_names_of_pods_are_unique_and_a_host_that_no_sheet_names_is_said(data: Path, tmp_path: Path) -> None:
    result = warehouse.build(data, tmp_path / "t")
    with warehouse.open(tmp_path / "t") as asked:
        sql = "SELECT DISTINCT pod, parse_filename(file) FROM staging.log_events WHERE cluster = 'c' ORDER BY ALL"
        rows: list[tuple[str, str]] = asked.sql(sql).fetchall()
    found: dict[str, list[str]] = {}
    for pod, file in rows:
        found.setdefault(pod, []).append(file)
    assert found == {
        **{name: [name] for name in ("log_without_ending", "slurm-48213.out", "std_log_process_0.txt", "worker.err")},
        "zipped.out": ["zipped.out.gz"],
        "3/stderr": ["stderr.log"],
        "w": ["w.log.1", "w.log.2024-05-23"],
    }
    said = [text for key, one in result.checks() if key.model == "topology.task_pods" for text in one.sentences]
    assert [text for text in said if " pod host " in text or " pod none " in text] == [
        "t: the server of pod host is unknown because no sheet names its host ip-26-0-160-225",
        "t: the server of pod none is unknown because its log names no node, host or address",
    ]
