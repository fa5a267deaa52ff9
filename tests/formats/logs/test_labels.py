"""Labels of launchers: a column of their own, never part of the host, in front of any line."""

from __future__ import annotations

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
