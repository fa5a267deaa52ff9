"""Lines of a log by outcome; logs with text and no iteration are named by the build and by `doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import warehouse
from tests.conftest import Command
from warehouse.formats.logs.reader import LogReader

MODELS = ("staging.log_files",)
NCCL = "node-1:100:200 [0] NCCL INFO "
MEGATRON = " iteration        7/      90 | elapsed time per iteration (ms): 10.5 | lm loss: 2.5E+00 |"
BAR = "  8%|#         | 7/90 [01:10<14:00, 10.10s/it]"
UNKNOWN = [
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
        ([MEGATRON[: MEGATRON.index(" lm")], MEGATRON[MEGATRON.index(" lm") :]], {"event": 2}),
        ([BAR, "", "", BAR.replace(" 7/", " 8/")], {"event": 2, "blank": 2}),
        (["x" * 600_000, "fine"], {"damaged": 1, "text": 1}),
        (UNKNOWN, {"text": 4, "first_time": "2031-07-01 10:00:00.250", "last_time": "2031-07-01 10:00:19.000"}),
    ],
    ids=["text", "labels", "damaged", "an iteration over two lines", "bars", "a line without end", "unknown"],
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


@pytest.mark.usefixtures("only_own_models")
def test_a_log_of_an_unknown_trainer_is_said(tmp_path: Path, command: Command) -> None:
    logs = {
        "one/alone.log": "\n".join(UNKNOWN),
        "two/worker-0.log": MEGATRON,
        "two/worker-1.log": "the last rank prints",
        "three/prose.log": "no number at all",
    }
    for name, text in logs.items():
        path = tmp_path / "d" / "c" / "taskinfo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    doctor = command("doctor", "-d", tmp_path / "d", "-t", tmp_path / "t").out.splitlines()
    result = warehouse.build(tmp_path / "d", tmp_path / "t")

    at = doctor.index("2 files read, no iteration found")
    assert doctor[at + 1 : at + 3] == ["  c/taskinfo/one/alone.log", "  c/taskinfo/three/prose.log"]
    warned = [json.loads(row) for key, one in result.checks() if key.model == "staging.log_files" for row in one.rows]
    assert [(row["file"], row["progress_line"]) for row in warned] == [
        ("c/taskinfo/one/alone.log", 2), ("c/taskinfo/three/prose.log", None),
    ]  # fmt: skip
