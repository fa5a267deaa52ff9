"""Labels of launchers: a column of their own, never part of the host, in front of any line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.formats.logs.conftest import Read, Rejects

NCCL = "node-1:100:200 [0] NCCL INFO Connected all rings"
LINES = {
    "NCCL": NCCL,
    "NCCL edge": "node-1:100:200 [0] NCCL INFO Channel 00/0 : 25[1] -> 0[0] [receive] via NET/IB/0/GDRDMA",
    "NCCL ring": "node-1:100:200 [0] NCCL INFO Channel 00/02 :    0   1   2   3",
    "NCCL version": "NCCL version 2.21.5+cuda12.4",
    "Megatron": (
        " iteration        7/      90 | consumed samples: 448 | lm loss: 2.5E+00 | number of nan iterations:   0 |"
    ),
    "bar": "  8%|#         | 7/90 [01:10<14:00, 10.10s/it]{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.0}",
    "dictionary": "{'loss': 2.5, 'learning_rate': 1e-05, 'step': 7, 'epoch': 0.0}",
    "logger": "[2024-05-23 16:00:10,125] [INFO] [x.py:1:f] hello",
    "callback": (
        "[2024-05-23 16:00:10,125] [INFO] [callback.py:53:on_log] loss: 2.5, learning_rate: 1e-05, epoch: 0.0, "
        "iter: 7/90,  01:10 < 14:00,  10.1s/it"
    ),
    "DeepSpeed": "[2024-05-23 16:00:10,125] [INFO] [logging.py:96:log_dist] step=7, skipped=0, lr=[1e-05], mom=[0.9]",
    "NeMo": "Training epoch 0, iteration 7/89 | lr: 3e-05 | global_step: 7 | reduced_train_loss: 2.5",
    "torchtitan": "step:  7  loss:  7.62585  grad_norm: 26.6250  memory: 66.91GiB(37.51%)  tps: 10,050",
    "MaxText": "completed step: 7, seconds: 0.631, TFLOP/s/device: 350.869, loss: 12.979, lm_loss: 12.979",
    "nanoGPT": "iter 7: loss 10.4021, time 1456.61ms, mfu 12.31%",
    "llm.c": "step    7/19560 | loss 10.950000 (+nanz)| norm 19.2 (+nanz)| lr 8.57e-07 | 1234.56 ms | 45.6% bf16 MFU",
    "checkpoint": "saving checkpoint at iteration      50 to out in torch_dist format",
    "unknown trainer": "Step 7/90, loss = 2.5, step time: 1250 ms",
}
LABELS = [
    "[0]<stdout>:", "[1,0]<stdout>:", "[prterun-node-1@1,0]<stderr>:", "Wed Oct 14 10:00:00 2020[1]<stdout>:", "[0] ",
    "[ 12] ", "3: ", " 3: ", "10.0.0.1: ", "node-7: ", "gpu-31.cluster.local: ", "10.0.0.1: node-7: ", "[0] node-7: ",
    "[default7]:", "[rank0]:", "[default7]:[rank0]: ", "[trainer0|0]:", "[nc-e9-7d-0:0]:",
    "(RayTrainWorker pid=12, ip=10.0.0.1) ", "(pid=34272) ", "(head, rank=0, pid=5630) ",
    "(head, rank=0, pid=5630) [nc-e9-7d-0:0]:",
    "(EngineCore_DP0 pid=1088) (RayWorkerWrapper pid=285, ip=192.168.177.12) ", "[pod/job-worker-0/pytorch] ",
    "job-worker-0 ", "job-worker-0 pytorch ", "job-worker-0 \u203a pytorch ", "worker-0  | ", "[stderr] ",
    "2024-05-23T16:00:00.123456789Z ", "2024-05-23T16:00:00.123456789Z stderr F ", "2024-05-23T16:00:00.123+08:00 ",
    "2024-05-23 16:00:00,123 (RayTrainWorker pid=12) ", "[2024-05-23 16:00:00] ",
    "Oct 10 12:00:00 gpu-31 python[123]: ", "2024-05-23T16:00:00.123456+00:00 gpu-31 slurmstepd[9]: ", "> ", "> > ",
    "I0811 21:54:44.943716 138304841739136 metric_logger.py:333] ", "2024-05-23 16:00:00,100 - root - INFO - ",
    "2024-05-23 16:00:00.100 | INFO     | trainer:train:12 - ", "[titan] 2024-05-23 16:00:00,100 - root - INFO - ",
    "INFO:root:", "(task, pid=7) some_job[3]: ",
]  # fmt: skip
ESCAPES = ["\x1b[36m{}\x1b[0m", "ESC[36m{}ESC[0m", "^[[36m{}^[[0m", "\\x1b[36m{}\\x1b[0m", "\\033[1;36m{}\\033[0m",
           "#033[36m{}#033[0m", "[36m{}[0m"]  # fmt: skip
PLACES = ("text", "segment", "label", "item", "time_utc", "host")
"""Columns that a label may change."""


def _facts(event: dict[str, object]) -> dict[str, object]:
    """Return the columns of an event that do not depend on the label."""
    own_host = "pid" in event
    return {name: value for name, value in event.items() if name not in PLACES or (name == "host" and own_host)}


@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_a_column_and_leaves_the_event_unchanged(read: Read, rejects: Rejects, label: str) -> None:
    for name, line in LINES.items():
        (plain,) = read(line)
        event, *more = read(label + line)

        assert _facts(event) == _facts(plain), name
        said = event.get("label") or event["time_utc"]
        assert said.replace(" ", "").lstrip("[")[:8] == label.replace(" ", "").lstrip("[")[:8], name
        assert {one["kind"] for one in more} <= {"rank"}, name
        assert not rejects, name


@pytest.mark.parametrize("escape", ESCAPES)
def test_colors_are_dropped_in_every_form(read: Read, escape: str) -> None:
    for label in ("[rank0]:", "(RayTrainWorker pid=12) ", "job-worker-0 pytorch "):
        for name, line in LINES.items():
            (plain,) = read(line)
            event = read(escape.format(label) + line)[0]

            assert _facts(event) == _facts(plain), (label, name)


def _docker(line: str) -> dict[str, object]:
    return {"log": f"{line}\n", "stream": "stderr", "time": "2024-05-23T16:00:00.5Z"}


def _structured(line: str) -> dict[str, object]:
    return {"level": "info", "ts": 1716480000.5, "msg": line}


DRIVERS: list[Callable[[str], dict[str, object]]] = [
    _docker,
    lambda line: {"__REALTIME_TIMESTAMP": "1716480000500000", "_HOSTNAME": "gpu-31", "MESSAGE": line, "_PID": "7"},
    _structured,
    lambda line: _docker(json.dumps(_structured(line))),
]


@pytest.mark.parametrize("driver", DRIVERS, ids=["docker", "journald", "structured", "twice"])
def test_a_line_in_a_json_object_is_read(
    read: Read, rejects: Rejects, driver: Callable[[str], dict[str, object]]
) -> None:
    for name, line in LINES.items():
        (plain,) = read(line)
        (event,) = read(json.dumps(driver(line)))

        assert _facts(event) == _facts(plain), name
        assert str(event["time_utc"]).startswith(("2024-05-23 16:00:00.5", "2024-05-23 16:00:10.125")), name
        assert not rejects, name


def test_the_keys_of_a_json_object_are_read_if_its_message_says_nothing(read: Read) -> None:
    events = read(
        '{"level": "INFO", "ts": 1716480000.5, "msg": "step done", "step": 7, "loss": 2.5}',
        '{"step": 8, "loss": 2.4, "time": "2024-05-23T16:00:01Z"}',
    )

    assert [(event["kind"], event["step"], event["time_utc"]) for event in events] == [
        ("iteration", 7, "2024-05-23 16:00:00.500000"),
        ("iteration", 8, "2024-05-23 16:00:01"),
    ]


@pytest.mark.parametrize(
    ("label", "column", "value"),
    [
        ("[rank3]:", "rank", 3),
        ("[PID:6552] [RANK:4] ", "rank", 4),
        ("Oct 10 12:00:00 gpu-31 python[123]: ", "host", "gpu-31"),
        ("[gpu-31:0]:", "host", "gpu-31"),
        ("2024-05-23T16:00:00.5+08:00 ", "time_utc", "2024-05-23 08:00:00.500000"),
        ("2024-05-23T16:00:00.123456789Z ", "time_utc", "2024-05-23 16:00:00.123456"),
        ("2024-05-23 16:00:00,125 - root - INFO - ", "time_utc", "2024-05-23 16:00:00.125"),
    ],
)
def test_rank_host_and_time_are_read_from_a_label(read: Read, label: str, column: str, value: object) -> None:
    events = read(label + LINES["nanoGPT"])

    assert value in [event.get(column) for event in events]


@pytest.mark.parametrize("label", LABELS)
def test_versions_and_blank_lines_have_labels(read: Read, rejects: Rejects, label: str) -> None:
    events = read(label + NCCL, label, label.rstrip(), label + "NCCL version 2.10.3+cuda11.0")

    assert [event["kind"] for event in events if event["kind"] != "rank"] == ["nccl_connected", "nccl_version"]
    assert not rejects


def test_colors_and_suffixes_are_stripped(read: Read) -> None:
    (event,) = read(f"\x1b[36m(Worker pid=12, ip=10.0.0.1)\x1b[0m {NCCL} \x1b[32m[repeated 14x across cluster]\x1b[0m")

    assert (event["kind"], event["host"], event["label"]) == (
        "nccl_connected",
        "node-1",
        "(Worker pid=12, ip=10.0.0.1)",
    )


def test_an_unknown_word_is_a_label_only_after_it_preceded_two_known_lines(read: Read) -> None:
    known, other = f"node-7: {NCCL}", "node-7: hidden size = 4"
    events = read(other, known, other, known, other, "node-8: hidden size = 4")

    assert [(event["line"], event["kind"], event["label"]) for event in events] == [
        (2, "nccl_connected", "node-7:"),
        (4, "nccl_connected", "node-7:"),
        (5, "config", "node-7:"),
    ]


@pytest.mark.parametrize("host", ["10.0.0.7", "77", "NODE-1.example.org", "node_1", "<host_name>", "e0a95b6643f4"])
def test_a_host_is_not_a_label(read: Read, host: str) -> None:
    events = read(*[f"{host}:1:2 [7] NCCL INFO Connected all rings"] * 2)

    assert [(event["host"], event.get("label")) for event in events] == [(host, None)] * 2


def test_an_address_before_the_colon_is_a_label(read: Read) -> None:
    (event,) = read("10.0.0.7:node-1:1:2 [7] NCCL INFO Connected all rings")

    assert (event["host"], event["label"]) == ("node-1", "10.0.0.7:")


@pytest.mark.parametrize("half", ["node-1:100:", "17:100:", "node-1:100:200", "node-1:"])
def test_an_incomplete_prefix_is_not_a_label(read: Read, rejects: Rejects, half: str) -> None:
    events = read(f"{half}23:101:201 [0] NCCL INFO Connected all rings", "node-1:100: hello")

    assert [(event["kind"], event.get("host"), event.get("label")) for event in events] == [("damaged", None, None)]
    assert [line for line, _, _ in rejects] == [1]


def test_a_label_of_digits_precedes_a_host_of_digits(read: Read, rejects: Rejects) -> None:
    events = read("3: 17:100:200 [0] NCCL INFO Connected all rings", "0:100:200 [0] NCCL INFO Connected all rings")

    assert [(event["host"], event.get("label")) for event in events] == [("17", "3:"), ("0", None)]
    assert not rejects
