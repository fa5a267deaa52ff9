"""Jobs of the job traces: run times, sizes, outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warehouse.report.charts import Bar, Bars, ranges, shares
from warehouse.report.figure import Figure, Section, Values
from warehouse.report.svg import Key, Panel
from warehouse.report.words import count, foremost, percent, span, total

SIZES = {"1": "u2", "2-7": "u3", "8-63": "u4", "64 and more": "u6"}
ENDS = {"completed": "access", "failed": "bad", "canceled": "out", "other": "none"}
TIMES = (1.0, 60.0, 3600.0, 86400.0, 864000.0)


def _name(row: Values) -> str:
    return f"{row['trace']} {row['cluster']}"


def _clusters(rows: Sequence[Values]) -> list[str]:
    return list(dict.fromkeys(map(_name, rows)))


def _durations_title(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    return f"Half of the GPU jobs of {_name(top)} run longer than {span(top['median_seconds'])}, the longest median"


def _durations_say(rows: Sequence[Values]) -> str:
    return f"Run times of {count(total(rows, 'jobs'), 'GPU job')} of {count(len(rows), 'cluster')}, a row each."


def _durations(rows: Sequence[Values]) -> list[Panel]:
    columns = ("p10_seconds", "p25_seconds", "median_seconds", "p75_seconds", "p90_seconds")
    ordered = sorted(rows, key=lambda row: int(row["place"]))
    shown = [
        (
            _name(row),
            [row[name] for name in columns],
            f"{_name(row)}: median {span(row['median_seconds'])} of {count(row['jobs'], 'job')}",
        )
        for row in ordered
    ]
    return ranges(shown, "Run times of GPU jobs", "run time", span, TIMES)


def _parts(rows: Sequence[Values], column: str, kinds: Mapping[str, str], label: str, words: str) -> list[Panel]:
    """Draw the GPU time of each cluster by category."""
    groups = []
    for name in _clusters(rows):
        of = {row[column]: row for row in rows if _name(row) == name}
        parts = [
            Bar(of[one]["gpu_time_percent"] or 0, kind, _part_tip(f"{name}, {one}", of[one]))
            for one, kind in kinds.items()
            if one in of
        ]
        groups.append(Bars(name, parts))
    return shares(
        groups,
        label,
        [Key(kind, f"{one}{words}".replace("1 GPUs", "1 GPU")) for one, kind in kinds.items()],
        "% of GPU time",
    )


def _part_tip(what: str, row: Values) -> str:
    return f"{what}: {percent(row['gpu_time_percent'])} of GPU time, {percent(row['jobs_percent'])} of jobs"


def _sizes_title(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    gpu_time, jobs = percent(top["gpu_time_percent"]), percent(top["jobs_percent"])
    return f"In {_name(top)}, {jobs} of the jobs take {gpu_time} of the GPU time: those of {top['gpus']} GPUs"


def _states_title(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    return (
        f"In {_name(top)}, {percent(top['gpu_time_percent'])} of the GPU time goes to jobs that end as {top['outcome']}"
    )


def _says(rows: Sequence[Values]) -> str:
    jobs, clusters = count(total(rows, "jobs"), "GPU job"), count(len(_clusters(rows)), "cluster")
    return f"{jobs} of {clusters}; the shares of jobs are in the table."


SECTION = Section(
    "jobs",
    "What do jobs look like?",
    (
        Figure(
            "job-durations",
            _durations_title,
            _durations_say,
            "How long jobs run",
            "No job trace is loaded.",
            _durations,
            tables=("metrics.jobs", "metrics.job_duration_cdf"),
            further="sql -q jobs",
        ),
        Figure(
            "job-sizes",
            _sizes_title,
            _says,
            "How many GPUs jobs ask for",
            "No job trace is loaded.",
            lambda rows: _parts(rows, "gpus", SIZES, "GPU time by size of jobs", " GPUs"),
            tables=("metrics.job_size_share",),
            further='sql "FROM metrics.job_size_share"',
        ),
        Figure(
            "job-states",
            _states_title,
            _says,
            "How jobs end",
            "No loaded trace says how jobs ended.",
            lambda rows: _parts(rows, "outcome", ENDS, "GPU time by how jobs end", ""),
            tables=("metrics.job_state_share",),
            further='sql "FROM metrics.job_state_share"',
        ),
    ),
)
