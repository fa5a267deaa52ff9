"""Logs of public bug reports (tests/fixtures/cases), each with the facts that its log holds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warehouse.formats.logs.reader import LogReader

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
Events = list[dict[str, Any]]
Facts = dict[str, Any]


def _read(case: str) -> tuple[Events, Facts]:
    """Return the events of all logs of a case, and the facts."""
    (folder,) = CASES.glob(f"{case}_*")
    events: Events = []
    for path in sorted((folder / "in").rglob("*.log")):
        events += LogReader(str(path.relative_to(folder)), lambda *_: None).read(path)
    return events, json.loads((folder / "expected.json").read_text())


def _of(events: Events, *kinds: str) -> Events:
    return [event for event in events if event["kind"] in kinds]


def _column(events: Events, name: str) -> list[Any]:
    return [event.get(name) for event in events]


def _literal_escapes(events: Events, facts: Facts) -> None:
    (init,) = _of(events, "nccl_init")
    assert (init["host"], init["rank"], init["ranks"]) == (facts["host"], facts["rank"], facts["nranks"])
    assert len(_of(events, "nccl_local")) == facts["local_edges"]
    assert len(_of(events, "nccl_connected")) == facts["connected"]
    assert set(_column(events, "label")) == {"(RayWorkerVllm pid=4095)", "(RayWorkerVllm pid=4298)"}


def _torchtitan(events: Events, facts: Facts) -> None:
    iterations = _of(events, "iteration")
    assert (_column(iterations, "step"), _column(iterations, "loss")) == (facts["steps"], facts["loss"])
    assert all(_column(iterations, "time_utc")) is facts["times"]
    assert _column(_of(events, "rank"), "rank") == [facts["rank"]]
    assert len(_of(events, "train_start", "train_end")) == 2


def _steps_seconds_losses(events: Events, facts: Facts) -> None:
    iterations = _of(events, "iteration")
    for column, fact in (("step", "steps"), ("seconds", "seconds"), ("loss", "loss")):
        assert _column(iterations, column) == facts[fact]


def _torchtune(events: Events, _: Facts) -> None:
    bars, iterations = _of(events, "progress"), _of(events, "iteration")
    assert list(dict.fromkeys(zip(_column(bars, "step"), _column(bars, "loss"), strict=True))) == [
        (55, 0.56), (56, 0.55), (57, 0.54),
    ]  # fmt: skip
    assert [(one["step"], round(one["loss"], 6)) for one in iterations] == [(1, 2.0), (2, 1.9), (3, 1.8)]


def _seconds(events: Events, facts: Facts) -> None:
    assert _column(_of(events, "iteration"), "seconds") == facts["seconds"]


def _torchrun(events: Events, facts: Facts) -> None:
    nccl = [event for event in events if event["family"] == "nccl"]
    assert len(set(_column(nccl, "host"))) == facts["hosts"]
    inits = _of(events, "nccl_init")
    assert (sorted(_column(inits, "rank")), set(_column(inits, "ranks"))) == (facts["ranks"], {facts["nranks"]})
    assert len({(event["host"], event["name"]) for event in _of(events, "nccl_nic")}) == facts["nics"]
    assert len(_of(events, "nccl_ring")) == facts["rings"]
    assert len(_of(events, "nccl_edge")) == facts["net_edges"]
    iterations = _of(events, "iteration")
    assert _column(iterations, "step") == [1, 2, 3]
    assert set(_column(iterations, "host")) == {"nc-e9-7d-1"}


def _restart(events: Events, facts: Facts) -> None:
    steps = _column(_of(events, "iteration"), "step")
    assert (len(steps), len(set(steps))) == (facts["lines"], facts["distinct_steps"])
    assert sorted(step for step in set(steps) if steps.count(step) == 2) == facts["steps_twice"]
    assert len(_of(events, "checkpoint_start")) == facts["checkpoint"]
    assert len(_of(events, "error")) == facts["error"]
    assert len(_of(events, "train_start")) == facts["train_starts"]


def _axolotl(events: Events, facts: Facts) -> None:
    assert _column(_of(events, "loss"), "loss") == facts["losses"]
    assert [step for step in _column(_of(events, "progress"), "step") if step] == facts["steps"]
    assert len(_of(events, "evaluation")) == facts["eval"]
    assert len(_of(events, "damaged")) <= facts["damaged_or_ignored"]
    assert _column(_of(events, "rank"), "rank") == [4, 0]


CHECKS: dict[str, Callable[[Events, Facts], None]] = {
    "03": _literal_escapes,
    "09": _torchtitan,
    "11": _steps_seconds_losses,
    "13": _torchtune,
    "19": _seconds,
    "20": _steps_seconds_losses,
    "21": _torchrun,
    "22": _restart,
    "23": _axolotl,
}


@pytest.mark.parametrize("case", CHECKS)
def test_a_public_log_gives_the_facts_that_it_holds(case: str) -> None:
    events, facts = _read(case)

    CHECKS[case](events, facts)


def test_only_one_line_of_the_public_logs_is_damaged() -> None:
    damaged = defaultdict(list)
    for case in CHECKS:
        for event in _of(_read(case)[0], "damaged"):
            damaged[case].append(event["text"][:40].strip())

    assert dict(damaged) == {"23": ["0%|                  [2024-11-13 05:27"]}
