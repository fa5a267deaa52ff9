"""Training tasks: duration of iterations, and bytes sent compared with bytes expected."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.report.charts import Bar, Bars, Curve, bars, distribution
from warehouse.report.figure import Figure, Section, Values
from warehouse.report.svg import Key, Panel
from warehouse.report.theme import CATEGORIES
from warehouse.report.words import count, listed, number, size, total

DASHES = ("", " dash")
"""Line styles that double the number of distinguishable tasks."""


def _iterations_title(rows: Sequence[Values]) -> str:
    if len(rows) == 1:
        row = rows[0]
        middle, longest = number(row["median_seconds"]), number(row["longest_seconds"])
        return f"Half of the iterations of {row['task']} take less than {middle} s, the longest {longest} s"
    slow = max(rows, key=lambda row: (row["longest_seconds"] or 0, str(row["task"])))
    middle, longest = number(slow["median_seconds"]), number(slow["longest_seconds"])
    return f"The longest iteration is one of {slow['task']}: {longest} s, its median {middle} s"


def _iterations_say(rows: Sequence[Values]) -> str:
    shown = len(CATEGORIES) * len(DASHES)
    more = f" The {shown} with most iterations are drawn." if len(rows) > shown else ""
    iterations, tasks = count(total(rows, "iterations"), "iteration"), count(len(rows), "task")
    return f"{iterations} of {tasks} with logs, a step at each percent.{more}"


def _iterations(rows: Sequence[Values]) -> list[Panel]:
    kinds = [f"{kind}{dash}" for dash in DASHES for kind in CATEGORIES]
    curves = [
        Curve(f"{row['task']} ({row['iterations']:,})", kind, row["seconds_by_percent"])
        for row, kind in zip(rows, kinds, strict=False)
    ]
    return distribution(curves, "Times of iterations", "seconds of an iteration", "% of the iterations")


def _seen(rows: Sequence[Values]) -> list[Values]:
    return [row for row in rows if row["tx_bytes"] is not None]


def _traffic_title(rows: Sequence[Values]) -> str:
    seen = _seen(rows)
    if not seen:
        return "No task ran in a loaded hour: traffic of tasks is not measured"
    top = seen[0]
    if top["expected_implemented_bytes"]:
        expected = f"as implemented: {size(top['expected_implemented_bytes'])}"
    elif top["expected_nominal_bytes"]:
        expected = f"nominal: {size(top['expected_nominal_bytes'])}"
    else:
        return f"{top['task']} sent most: {size(top['tx_bytes'])}"
    return f"{top['task']} sent {size(top['tx_bytes'])}; expected, {expected}"


def _traffic_says(rows: Sequence[Values]) -> str:
    seen = _seen(rows)
    text = f"{len(seen)} of {count(len(rows), 'task')} ran on observed NICs in loaded hours"
    outside = [row for row in rows if row["tx_bytes"] is None and not row["observed_iterations"]]
    text += f"; {len(outside)} had no iteration in a loaded hour." if seen and outside else "."
    if not seen:
        return f"{text} There is nothing to draw."
    return (
        f"{text} Expected bytes keep the copies of the model equal: nominal, by the usual formula (line), and as the "
        f"framework implements it (gray).{_shared(seen)}"
    )


def _shared(seen: Sequence[Values]) -> str:
    tasks = [row for row in seen if (row["tasks_on_nic"] or 0) > 1]
    if not tasks:
        return ""
    most = max(row["tasks_on_nic"] for row in tasks)
    names = listed([str(row["task"]) for row in tasks])
    return f" * NICs of {names} had up to {most} tasks at a time: their bytes are those of all tasks together."


def _traffic(rows: Sequence[Values]) -> list[Panel]:
    groups = [
        Bars(
            str(row["task"]) + (" *" if (row["tasks_on_nic"] or 0) > 1 else ""),
            [
                Bar(row["tx_bytes"] / 1e12, "out", _tip(row), (row["expected_nominal_bytes"] or 0) / 1e12 or None),
                *_expected(row),
            ],
        )
        for row in _seen(rows)
    ]
    rounded = [group._replace(bars=[bar._replace(value=_short(bar.value)) for bar in group.bars]) for group in groups]
    keys = [Key("out", "sent"), Key("none", "expected, as implemented"), Key("line s-bad", "expected, nominal")]
    return bars(rounded, "TB sent by the NICs of a task", "Traffic of tasks", keys=keys) if groups else []


def _expected(row: Values) -> list[Bar]:
    """Return the bar of the expected bytes, if they are known."""
    expected = row["expected_implemented_bytes"]
    if not expected:
        return []
    return [Bar(expected / 1e12, "none", f"{row['task']}, expected as implemented: {size(expected)}")]


def _short(value: float) -> float:
    """Return TB with one decimal, and small values with two digits in place of 0.

    >>> _short(491.42), _short(0.0378)
    (491.4, 0.038)
    """
    return round(value, 1) if value >= 0.1 else float(f"{value:.2g}")


def _tip(row: Values) -> str:
    shared = f", NICs shared by {row['tasks_on_nic']} tasks" if (row["tasks_on_nic"] or 0) > 1 else ""
    return f"{row['task']}: {size(row['tx_bytes'])} over {row['nics_seen']} of {count(row['nics'], 'NIC')}{shared}"


SECTION = Section(
    "tasks",
    "How fast do training tasks run?",
    (
        Figure(
            "task-iterations",
            _iterations_title,
            _iterations_say,
            "Times of iterations",
            "No task logged an iteration.",
            _iterations,
            tables=("metrics.task_iterations",),
            further='sql "FROM metrics.task_summary"',
        ),
        Figure(
            "task-traffic",
            _traffic_title,
            _traffic_says,
            "Traffic of tasks",
            "No NIC of a task is known.",
            _traffic,
            tables=("metrics.task_traffic",),
            further='sql "FROM metrics.task_traffic"',
        ),
        Figure(
            "tasks",
            lambda rows: f"{count(len(rows), 'training task')} with logs",
            lambda rows: "Set-up, speed, the share of the GPUs' peak that each reached, and restarts.",
            "Training tasks",
            "No task logs are loaded.",
            tables=("metrics.task_summary",),
            further='sql "FROM metrics.task_summary"',
        ),
    ),
)
