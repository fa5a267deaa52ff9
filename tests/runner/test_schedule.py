"""Parts are read before their checks end, and a failed check is still the first thing said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.runner.conftest import COLUMNS
from tests.tiny import Tiny
from warehouse.graph import sources
from warehouse.graph.plan import Key
from warehouse.runner import run
from warehouse.runner.executor import Task
from warehouse.runner.schedule import Schedule

PORTS, HOUR, NEXT, TOTAL = (
    Key("staging.ports", "all"), Key("staging.hour", "1"), Key("staging.hour", "2"), Key("metrics.total", "1"),
)  # fmt: skip
READS: dict[Key, set[Key]] = {PORTS: set(), HOUR: {PORTS}, TOTAL: {PORTS}, NEXT: {PORTS}}
CHECKED = {TOTAL: {HOUR}}
"""Parts that only checks read."""


def _schedule(first: frozenset[Key] = frozenset(), *, made: frozenset[Key] = frozenset()) -> Schedule:
    def upstream(key: Key, *, with_checks: bool = True) -> set[Key]:
        return READS[key] | (CHECKED.get(key, set()) if with_checks else set())

    state: Any = SimpleNamespace(
        plan=SimpleNamespace(upstream_parts=upstream), parts=dict.fromkeys(made), unchecked=lambda: sorted(made)
    )
    return Schedule(state, {key: upstream(key) for key in READS if key not in made}, first.__contains__)


def _ready(schedule: Schedule) -> list[Task]:
    found = []
    while task := schedule.take():
        found.append(task)
    return found


def _make(key: Key) -> Task:
    return Task(key, is_check=False)


def _check(key: Key) -> Task:
    return Task(key, is_check=True)


def test_parts_of_an_hour_are_made_then_checked_then_those_of_the_next() -> None:
    schedule = _schedule()
    assert _ready(schedule) == [_make(PORTS)]
    schedule.done(_make(PORTS))
    assert _ready(schedule) == [_check(PORTS), _make(HOUR), _make(TOTAL), _make(NEXT)]  # its group ends with it
    schedule.done(_make(TOTAL))
    assert _ready(schedule) == []  # its check compares with the hour
    schedule.done(_make(HOUR))
    assert _ready(schedule) == [_check(HOUR), _check(TOTAL)]


def test_a_part_that_is_checked_first_has_no_task_of_its_own_for_that() -> None:
    schedule = _schedule(frozenset(READS))
    schedule.take()
    schedule.done(_make(PORTS))
    assert _ready(schedule) == [_make(HOUR), _make(NEXT)]
    schedule.done(_make(HOUR))
    assert _ready(schedule) == [_make(TOTAL)]


def test_parts_that_were_made_without_their_checks_are_checked() -> None:
    assert _check(PORTS) in _ready(_schedule(made=frozenset({PORTS})))


def test_after_a_failure_only_checks_that_may_explain_it_are_run() -> None:
    schedule = _schedule()
    schedule.take()
    schedule.done(_make(PORTS))
    schedule.failed(_make(TOTAL), ValueError("downstream"))
    assert _ready(schedule) == [_check(PORTS), _make(HOUR)]  # a check of the hour may explain it, too
    assert not schedule.is_wanted(_make(NEXT))
    schedule.failed(_check(PORTS), ValueError("upstream"))
    assert _ready(schedule) == []
    with pytest.raises(ValueError, match="upstream"):
        schedule.raise_failure()


def test_without_a_failure_nothing_is_raised() -> None:
    _schedule().raise_failure()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_failed_check_is_said_before_the_failure_that_follows_from_it(
    tiny: Tiny, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "FEW_ROWS", -1)  # checks of all parts wait
    tiny.model(
        "staging.ports", "SELECT port, -speed AS speed FROM reference.speeds", COLUMNS, "checks:", "  - speed > 0"
    )
    tiny.model("metrics.total", "SELECT error('too low') AS speed FROM staging.ports", {"speed": "BIGINT"})
    said = tiny.build("--threads", threads, "--memory", "4GB")
    assert said.status == 1
    assert "staging.ports: speed > 0" in said.err
    assert "too low" not in said.err


def test_checks_that_wait_are_run(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FEW_ROWS", -1)
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, "checks:", "  - warn: speed > 20")
    assert tiny.build("--threads", "2", "--memory", "4GB").status == 0
    assert tiny.ask("SELECT failures FROM meta.checks WHERE check_text = 'speed > 20'") == [(1,)]


def test_a_part_stays_in_memory_until_its_own_checks_have_ended() -> None:
    released: list[str] = []
    state: Any = SimpleNamespace(
        parts={HOUR: SimpleNamespace(file="hour"), TOTAL: SimpleNamespace(file="total")},
        plan=SimpleNamespace(partitions=lambda _: ["1"], upstream_parts=lambda key: {HOUR} if key == TOTAL else set()),
        prepared=SimpleNamespace(engine=SimpleNamespace(release=released.append)),
    )
    readers = run._readers(state, {HOUR: set(), TOTAL: {HOUR}})
    run._release(state, TOTAL, readers)
    assert released == ["total"]
    run._release(state, HOUR, readers)
    assert released == ["total", "hour"]
