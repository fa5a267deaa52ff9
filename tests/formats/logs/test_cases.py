"""Logs of public bug reports (tests/fixtures/cases), each with the facts that its log holds."""

from __future__ import annotations

import json
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


def _iterations(events: Events, facts: Facts) -> None:
    """Steps, seconds, losses, times and ranks, as far as the facts have them."""
    iterations = _of(events, "iteration")
    for column, fact in (("step", "steps"), ("seconds", "seconds"), ("loss", "loss")):
        assert facts.get(fact) in (None, _column(iterations, column)), column
    assert facts.get("times") in (None, all(_column(iterations, "time_utc")))
    assert facts.get("rank") in (None, *_column(_of(events, "rank"), "rank"))


def _torchtune(events: Events, _: Facts) -> None:
    bars, iterations = _of(events, "progress"), _of(events, "iteration")
    assert set(zip(_column(bars, "step"), _column(bars, "loss"), strict=True)) == {(55, 0.56), (56, 0.55), (57, 0.54)}
    assert [(one["step"], round(one["loss"], 6)) for one in iterations] == [(1, 2.0), (2, 1.9), (3, 1.8)]


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
    for kind, fact in (("checkpoint_start", "checkpoint"), ("error", "error"), ("train_start", "train_starts")):
        assert len(_of(events, kind)) == facts[fact]


def _axolotl(events: Events, facts: Facts) -> None:
    assert _column(_of(events, "loss"), "loss") == facts["losses"]
    assert [step for step in _column(_of(events, "progress"), "step") if step] == facts["steps"]
    assert len(_of(events, "evaluation")) == facts["eval"]
    (damaged,) = _of(events, "damaged")
    assert damaged["text"].lstrip().startswith("0%|                  [2024-11-13 05:27")
    assert _column(_of(events, "rank"), "rank") == [4, 0]


CHECKS: dict[str, Callable[[Events, Facts], None]] = {
    "03": _literal_escapes,
    **dict.fromkeys(("09", "11", "19", "20"), _iterations),
    "13": _torchtune,
    "21": _torchrun,
    "22": _restart,
    "23": _axolotl,
}


@pytest.mark.parametrize("case", CHECKS)
def test_a_public_log_gives_the_facts_that_it_holds(case: str) -> None:
    events, facts = _read(case)
    CHECKS[case](events, facts)
    assert case == "23" or not _of(events, "damaged")
