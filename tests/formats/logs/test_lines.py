"""Lines of all trainers and of NCCL, whole and damaged, give the events that `lines.txt` says, and no others."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.formats.logs.conftest import Read, Rejects
from warehouse.formats.logs.event import COLUMNS

SHORT = {
    "<N>": "node-1:100:200 [0] NCCL INFO",
    "<S>": "[2024-05-23 16:00:10,125] [INFO] [callback.py:53:on_log]",
}
NCCL, STAMP = SHORT["<N>"] + " ", SHORT["<S>"] + " "
BLOCKS = Path(__file__).with_name("lines.txt").read_text(encoding="utf-8").split("\n\n# ")[1:]
ITERATION = STAMP + "loss: 2.5, learning_rate: 1e-05, epoch: 0.0, iter: 7/90,  01:10 < 14:00,  10.1s/it"
MEGATRON = (
    " [2024-05-23 16:00:10] iteration        7/      90 | consumed samples:          448 | elapsed time per iteration "
    "(ms): 10125.5 | learning rate: 1.000000E-05 | global batch size:    64 | lm loss: 2.500000E+00 | loss scale: 1.0 "
    "| grad norm: 1.125 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
READ = {"DOUBLE": float, "BIGINT": int, "INTEGER": int}


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


@pytest.mark.parametrize("end", [MEGATRON, MEGATRON.partition(" number of skipped")[0]])
def test_lines_that_a_terminal_wrapped_are_joined(read: Read, end: str) -> None:
    lines = [end.replace(" 7/", f" {step}/").replace("2.5000", f"{step}.5000") for step in range(1, 9)]
    events = read(*(line[at : at + 80] for line in lines for at in range(0, len(line), 80)))
    assert [(one["kind"], one["step"], one["loss"], one["line"]) for one in events] == [
        ("iteration", step, step + 0.5, 1 + -(-len(end) // 80) * (step - 1)) for step in range(1, 9)
    ]


def test_a_dictionary_behind_a_bar_that_fills_the_width_is_joined(read: Read) -> None:
    stamp, total = "2024-05-23T16:00:00.123456789Z", 12
    lines = [
        f"{stamp}{100 * step // total:3d}%|{'#' * (step - 1):<11}| {step}/{total} [00:07<1:02:03,  7.01s/it]"
        f"{{'loss': '{step}.5', 'grad_norm': ' 1.25', 'learning_rate': '1e-05', 'epoch': '0.01'}}"
        for step in range(1, total + 1)
    ]
    assert lines[-1][:80].endswith("s/it]")
    events = read(*(line[at : at + 80] for line in lines for at in range(0, len(line), 80)))
    assert [(one["kind"], one["step"], one["loss"]) for one in events] == [
        ("progress", step, step + 0.5) for step in range(1, total + 1)
    ]
