"""Labels of launchers: a column of their own, never part of the host, in front of any line."""

from __future__ import annotations

import pytest

from tests.formats.logs.conftest import Read, Rejects

NCCL = "node-1:100:200 [0] NCCL INFO Connected all rings"
ITERATION = " iteration        7/      90 | consumed samples: 448 | lm loss: 2.5E+00 | number of nan iterations:   0 |"
BAR = "  8%|#         | 7/90 [01:10<14:00, 10.10s/it]{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.0}"
APP = "[2024-05-23 16:00:10,125] [INFO] [x.py:1:f] hello"
LABELS = [
    "[0]<stdout>:",
    "[1,0]<stdout>:",
    "[prterun-node-1@1,0]<stderr>:",
    "Wed Oct 14 10:00:00 2020[1]<stdout>:",
    "[0] ",
    "[ 12] ",
    "3: ",
    " 3: ",
    "10.0.0.1: ",
    "node-7: ",
    "10.0.0.1: node-7: ",
    "[0] node-7: ",
    "[default7]:",
    "[rank0]:",
    "[default7]:[rank0]: ",
    "(RayTrainWorker pid=12, ip=10.0.0.1) ",
    "(pid=34272) ",
    "(EngineCore_DP0 pid=1088) (RayWorkerWrapper pid=285, ip=192.168.177.12) ",
    "[pod/job-worker-0/pytorch] ",
    "job-worker-0 ",
    "job-worker-0 pytorch ",
    "job-worker-0 › pytorch ",
    "worker-0  | ",
    "[stderr] ",
    "2024-05-23T16:00:00.123456789Z ",
    "2024-05-23T16:00:00.123456789Z stderr F ",
]


@pytest.mark.parametrize("line", [NCCL, ITERATION, BAR, APP])
@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_a_column_and_leaves_the_event_unchanged(
    read: Read, rejects: Rejects, label: str, line: str
) -> None:
    (plain,) = read(line)
    (event, *more) = read(label + line)

    places = ("text", "segment", "label", "item", "time_utc")
    assert {k: v for k, v in event.items() if k not in places} == {k: v for k, v in plain.items() if k not in places}
    assert event["label"].replace(" ", "") == label.replace(" ", "")
    assert {one["kind"] for one in more} <= {"rank"}
    assert not rejects


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
