"""Jobs of the job traces (run times, sizes, outcomes) and training tasks (iterations, bytes sent and expected)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from warehouse.base.text import plural, size
from warehouse.report.charts import Bar, Bars, Curve, bars, distribution, ranges, shares
from warehouse.report.figure import Figure, Section, Values
from warehouse.report.svg import Key, Panel, percent, short
from warehouse.report.theme import CATEGORIES

SIZES = {"1": "u2", "2-7": "u3", "8-63": "u4", "64 and more": "u6"}
ENDS = {"completed": "access", "failed": "bad", "canceled": "out", "other": "none"}
DASHES = ("", " dash")
"""Line styles that double the number of distinguishable tasks."""
TIMES = {1.0: "1 s", 60.0: "1 min", 3600.0: "1 h", 86400.0: "1 d", 864000.0: "10 d"}
"""Numbers on the axis of run times, in seconds."""


def _name(row: Values) -> str:
    return f"{row['trace']} {row['cluster']}"


def _durations(rows: Sequence[Values]) -> list[Panel]:
    columns = ("p10_seconds", "p25_seconds", "median_seconds", "p75_seconds", "p90_seconds")
    shown = [
        (
            _name(row),
            [row[name] for name in columns],
            f"{_name(row)}: median {short(row['median_seconds'])} s of {plural(row['jobs'], 'job')}",
        )
        for row in sorted(rows, key=lambda row: int(row["place"]))
    ]
    return ranges(shown, "Run times of GPU jobs", "run time", TIMES.__getitem__, list(TIMES))


def _parts(rows: Sequence[Values], column: str, kinds: Mapping[str, str], label: str, words: str) -> list[Panel]:
    """Draw the GPU time of each cluster by category."""
    groups: dict[str, dict[str, Bar]] = {_name(row): {} for row in rows}
    for row in rows:
        share = percent(row["gpu_time_percent"])
        tip = f"{_name(row)}, {row[column]}: {share} of GPU time, {percent(row['jobs_percent'])} of jobs"
        groups[_name(row)][row[column]] = Bar(row["gpu_time_percent"] or 0, kinds.get(row[column], "none"), tip)
    drawn = [Bars(name, [parts[one] for one in kinds if one in parts]) for name, parts in groups.items()]
    keys = [Key(kind, f"{one}{words}".replace("1 GPUs", "1 GPU")) for one, kind in kinds.items()]
    return shares(drawn, label, keys, "% of GPU time")


def _curves(rows: Sequence[Values], name: Callable[[Values], str], column: str) -> list[Curve]:
    kinds = [f"{kind}{dash}" for dash in DASHES for kind in CATEGORIES]
    return [Curve(name(row), kind, row[column]) for row, kind in zip(rows, kinds, strict=False)]


def _iterations(rows: Sequence[Values]) -> list[Panel]:
    curves = _curves(rows, lambda row: f"{row['task']} ({row['iterations']:,})", "seconds_by_percent")
    return distribution(curves, "Times of iterations", "seconds of an iteration", "% of the iterations")


def _allocation(rows: Sequence[Values]) -> list[Panel]:
    curves = _curves(rows, _name, "percents")
    return distribution(curves, "GPUs in use", "% of the cluster's GPUs in use", "% of the time")


def _traffic(rows: Sequence[Values]) -> list[Panel]:
    groups = []
    for row in (one for one in rows if one["tx_bytes"] is not None):
        expected = row["expected_implemented_bytes"]
        drawn = [Bar(_in_tb(row["tx_bytes"]), "out", _tip(row), (row["expected_nominal_bytes"] or 0) / 1e12 or None)]
        if expected:
            drawn += [Bar(_in_tb(expected), "none", f"{row['task']}, expected as implemented: {size(expected)}")]
        groups.append(Bars(str(row["task"]) + (" *" if (row["tasks_on_nic"] or 0) > 1 else ""), drawn))
    keys = [Key("out", "sent"), Key("none", "expected, as implemented"), Key("line s-bad", "expected, nominal")]
    return bars(groups, "TB sent by the NICs of a task", "Traffic of tasks", keys=keys) if groups else []


def _in_tb(count: float) -> float:
    # Three digits, since the label beside a bar shows all that it gets.
    return float(f"{count / 1e12:.3g}")


def _tip(row: Values) -> str:
    shared = f", NICs shared by {row['tasks_on_nic']} tasks" if (row["tasks_on_nic"] or 0) > 1 else ""
    return f"{row['task']}: {size(row['tx_bytes'])} over {row['nics_seen']} of {plural(row['nics'], 'NIC')}{shared}"


NO_JOBS = "No job trace is loaded."
JOBS = Section(
    "jobs",
    "What do jobs look like?",
    (
        Figure("job-durations", "How long jobs run", NO_JOBS, _durations, "sql -q jobs"),
        Figure(
            "job-sizes",
            "How many GPUs jobs ask for",
            NO_JOBS,
            lambda rows: _parts(rows, "gpus", SIZES, "GPU time by size of jobs", " GPUs"),
            "sql \"FROM metrics.job_share WHERE quantity = 'num_gpus'\"",
        ),
        Figure(
            "gpu-allocation",
            "How many GPUs are in use",
            "No loaded trace has start times and the size of its cluster.",
            _allocation,
            "sql -q gpu-allocation",
        ),
        Figure(
            "job-states",
            "How jobs end",
            "No loaded trace says how jobs ended.",
            lambda rows: _parts(rows, "outcome", ENDS, "GPU time by how jobs end", ""),
            'sql "FROM metrics.job_share"',
        ),
    ),
)
TASKS = Section(
    "tasks",
    "How fast do training tasks run?",
    (
        Figure(
            "task-iterations",
            "Times of iterations",
            "No task logged an iteration.",
            _iterations,
            'sql "FROM metrics.task_summary"',
        ),
        Figure(
            "task-traffic",
            "Traffic of tasks",
            "No NIC of a task is known.",
            _traffic,
            'sql "FROM metrics.task_traffic"',
        ),
        Figure("tasks", "Training tasks", "No task logs are loaded.", further='sql "FROM metrics.task_summary"'),
    ),
)
