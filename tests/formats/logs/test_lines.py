"""Lines of all trainers and of NCCL, whole and damaged, give the events that `lines.txt` says, and no others."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warehouse.formats.logs.event import COLUMNS
from warehouse.formats.logs.lines import LONGEST
from warehouse.formats.logs.reader import LogReader

SHORT = {
    "<N>": "node-1:100:200 [0] NCCL INFO",
    "<S>": "[2024-05-23 16:00:10,125] [INFO] [callback.py:53:on_log]",
}
NCCL, STAMP = SHORT["<N>"] + " ", SHORT["<S>"] + " "
BLOCKS = Path(__file__).with_name("lines.txt").read_text(encoding="utf-8").split("\n\n# ")[1:]
ITERATION = STAMP + "loss: 2.5, learning_rate: 1e-05, epoch: 0.0, iter: 7/90,  01:10 < 14:00,  10.1s/it"
READ = {"DOUBLE": float, "BIGINT": int, "INTEGER": int}


Events = list[dict[str, Any]]
Read = Callable[..., Events]


Rejects = list[tuple[int, str, str]]
"""Unreadable lines that a reader reported."""


@pytest.fixture
def rejects() -> Rejects:
    return []


@pytest.fixture
def read(tmp_path: Path, rejects: Rejects) -> Read:
    """Return a function that reads lines (text or raw bytes) and returns their events, without NULL columns."""

    def events(*lines: str, raw: bytes | None = None) -> Events:
        path = tmp_path / "x.log"
        path.write_bytes(raw if raw is not None else "".join(f"{line}\n" for line in lines).encode())
        found = LogReader("x.log", lambda *said: rejects.append(said)).read(path)
        return [{name: value for name, value in event.items() if value is not None} for event in found]

    return events


def _expected(text: str) -> dict[str, object]:
    kind, *columns = shlex.split(text)
    pairs = [one.partition("=") for one in columns]
    return {"kind": kind} | {name: READ.get(COLUMNS[name], str)(value) if value else None for name, _, value in pairs}


@pytest.mark.parametrize("block", BLOCKS, ids=[block.partition("\n")[0] for block in BLOCKS])
def test_lines_give_these_events(read: Read, rejects: Rejects, block: str) -> None:
    for short, long in SHORT.items():
        block = block.replace(short, long)
    _, *written = block.strip("\n").split("\n")
    lines = [line for line in written if not line.startswith("=> ")]
    expected = [_expected(line.removeprefix("=> ")) for line in written if line.startswith("=> ")]
    found = [
        {name: event.get(name) for name in wanted} | {"kind": event["kind"]}
        for event, wanted in zip(read(*lines), expected, strict=True)
    ]
    assert found == expected
    damaged = [line for line in rejects if line[1].startswith("damaged: ")]
    assert len(damaged) == len(rejects) == sum(one["kind"] == "damaged" for one in expected)


def test_a_cut_iteration_line_is_not_an_iteration(read: Read, rejects: Rejects) -> None:
    for end in range(len(STAMP) + 1, len(ITERATION)):
        rejects.clear()
        (event,) = read(ITERATION[:end])
        is_known = end >= len(STAMP) + len("loss: 2")
        assert event["kind"] == ("damaged" if is_known else "message")
        assert len(rejects) == is_known


def test_damage_is_rejected_with_its_line(read: Read, rejects: Rejects) -> None:
    lines = f"{ITERATION}\n{STAMP.replace('05-23', '02-30')}x\nlost \xff\x00\n{ITERATION[:-9]}"
    events = read(raw=lines.encode("latin-1"))
    assert [event["kind"] for event in events] == ["iteration", "damaged"]
    assert [(line, reason) for line, reason, _ in rejects] == [
        (2, "damaged: there is no such time"),
        (4, "torn: the file ends without a final newline"),
    ]


def test_a_damaged_line_yields_no_columns_of_its_text(read: Read, rejects: Rejects) -> None:
    line = "[0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/1"
    events = read(*[line] * 2_500)
    assert set(events[0]) <= {"family", "kind", "value", "line", "segment", "item", "label", "text", "filename"}
    assert (len(events), len(rejects)) == (2_500, 1_001)
    assert rejects[0][::2] == (1, line)
    assert rejects[-1][1] == "damaged: 1,500 more lines"


def test_a_line_that_the_buffer_of_nccl_truncated_loses_its_last_item(read: Read) -> None:
    trees = "Trees " + " ".join(f"[{channel}] 1/-1/-1->0->8" for channel in range(64))
    nics = "NET/IB : Using " + " ".join(f"[{index}]mlx5_{100 + index}:1/RoCE" for index in range(64))
    events = read((NCCL + trees)[:1023])
    assert [(event["channel"], event["value"]) for event in events] == [(at, "8 1 -1 -1") for at in range(len(events))]
    assert 40 < len(events) < 64
    events = read((NCCL + nics)[:1023])
    assert [(event["nic_index"], event["name"]) for event in events] == [
        (at, f"mlx5_{100 + at}") for at in range(len(events))
    ]
    assert 40 < len(events) < 64


@pytest.mark.parametrize("width", [45, 50, 53])
def test_a_number_that_a_terminal_cut_is_no_number(read: Read, width: int) -> None:
    losses = {step: f"{9 / step:.6f}" for step in range(1000, 1040)}
    log = [f"run {'x' * (step % 7)} loss: {losses[step]}, lr: 0.000125, global step: {step}" for step in losses]
    log += [
        f"trainer {'y' * (step % 9)}.engine of model step: {step}  loss:  {losses[step]}  tps: 10" for step in losses
    ]
    assert len(read(*log)) == len(log)
    events = read(*(line[at : at + width] for line in log for at in range(0, len(line), width)))
    found = [one for one in events if one["kind"] == "iteration"]
    assert all(one["loss"] == float(losses.get(one["step"], "nan")) for one in found)


def test_lines_of_one_length_are_not_wrapped(read: Read) -> None:
    log = [f"2024-05-23 16:00:{step} step: {step}  loss: {step / 8:.4f}" for step in range(10, 60)]
    assert [one["loss"] for one in read(*log, "saving", *log)] == [step / 8 for step in range(10, 60)] * 2


def test_long_logs_take_little_memory_and_each_line_counts(tmp_path: Path, rejects: Rejects) -> None:
    """A line of 100 MB is one reject; many lines without events are counted."""
    path = tmp_path / "x.log"
    with path.open("wb") as stream:
        stream.write(f"{NCCL}Connected all rings\n".encode() + b"\x1b[0m \n" * 9_000)
        stream.seek(100 * 10**6, 1)  # takes no space on disk
        stream.write(f"\n{NCCL}Connected all trees\n".encode())
    events = list(LogReader("x.log", lambda *said: rejects.append(said)).read(path))
    [(line, reason, shown)] = rejects
    assert (line, reason, len(shown) <= LONGEST) == (9_002, "longer than 262,144 bytes", True)
    assert [(event["line"], event["name"]) for event in events] == [(1, "all rings"), (9_003, "all trees")]


# outcomes of lines

BAR = "  8%|#         | 7/90 [01:10<14:00, 10.10s/it]"
OTHER_TRAINER = [
    "2031-07-01 10:00:00.250 nanotrain starts, step 0 of 90",
    "2031-07-01 10:00:09.000 finished update 7 of 90, objective 2.5, took 1.25 s",
    "2031-07-01 10:00:19.000 finished update 8 of 90, objective 2.4, took 1.25 s",
    "good bye",
]
OUTCOMES = ("event", "label", "text", "damaged", "blank")


@pytest.mark.parametrize(
    ("lines", "outcomes"),
    [
        (["hello", "hello", "", "again"], {"text": 3, "blank": 1}),
        ([f"[rank3]:{NCCL}Connected all rings", "[rank3]:", "[rank3]: "], {"event": 1, "label": 2}),
        (["[0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/1"], {"damaged": 1}),
        ([BAR, "", "", BAR.replace(" 7/", " 8/")], {"event": 2, "blank": 2}),
        (["x" * 600_000, "fine"], {"damaged": 1, "text": 1}),
        (OTHER_TRAINER, {"text": 4, "first_time": "2031-07-01 10:00:00.250", "last_time": "2031-07-01 10:00:19.000"}),
    ],
)
def test_every_line_has_one_outcome(tmp_path: Path, lines: list[str], outcomes: dict[str, object]) -> None:
    path = tmp_path / "x.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    reader = LogReader("x.log", lambda *_: None)
    list(reader.read(path))
    found = json.loads(str(reader.summary()["value"]))
    expected = dict.fromkeys(OUTCOMES, 0) | outcomes
    assert {name: found[name] for name in expected} == expected
    assert found["lines"] == sum(found[name] for name in OUTCOMES) == len(lines)


# labels of launchers: a column of their own, never part of the host, in front of any line

NCCL_LINE = "node-1:100:200 [0] NCCL INFO Connected all rings"
LINES = {
    "NCCL": NCCL_LINE,
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


def test_a_rank_in_a_label_of_nccl_is_said_once(read: Read) -> None:
    found = read(f"[rank3]: {NCCL}Connected all rings", f"[rank3]: {NCCL}Connected all trees")
    assert [(one["line"], one["rank"]) for one in found if one["kind"] == "rank"] == [(1, 3)]
