"""Jobs of the job traces: durations, sizes, types, ends, and the GPUs that they held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import ROW, chart, sized
from warehouse.report.words import count, foremost, number

HOUR = 4096
"""Seconds: the step of the distribution that is nearest to an hour."""


def _clusters(rows: Sequence[Values]) -> int:
    return len({(row["trace"], row["cluster"]) for row in rows})


def _durations(rows: Sequence[Values]) -> str:
    shares = [row for row in rows if row["up_to_seconds"] == HOUR and row["jobs_percent"] is not None]
    said = f"A line for each of {count(_clusters(rows), 'cluster')}, its colour is the trace."
    if not shares:
        return said
    low, high = (choose(row["jobs_percent"] for row in shares) for choose in (min, max))
    return f"{said} {number(low)} to {number(high)} % of GPU jobs last at most {HOUR:,} s."


def _lines(rows: Sequence[Values], x: str, title: str, y: str, what: str, *, step: bool = False) -> Spec:
    import altair

    return sized(
        chart(rows)
        .mark_line(interpolate="step-after" if step else "linear", point=step)
        .encode(
            x=altair.X(f"{x}:Q", title=title, scale=altair.Scale(type="log", base=2)),
            y=altair.Y(f"{y}:Q", title=what, scale=altair.Scale(domain=[0, 100])),
            color=altair.Color("trace:N"),
            strokeDash=altair.StrokeDash("trace:N"),
            detail="cluster:N",
            tooltip=["trace:N", "cluster:N", f"{x}:Q", "jobs_percent:Q", "gpu_time_percent:Q"],
        ),
        260,
    )


def _durations_chart(rows: Sequence[Values]) -> Spec:
    return _lines(rows, "up_to_seconds", "seconds, at most", "jobs_percent", "GPU jobs, %")


def _sizes(rows: Sequence[Values]) -> str:
    one = [row for row in rows if row["num_gpus"] == 1]
    said = f"A line for each of {count(_clusters(rows), 'cluster')}."
    if not one:
        return said
    top = foremost(one)
    return (
        f"{said} In {top['cluster']} {number(top['jobs_percent'])} % of jobs ask for one GPU, and take "
        f"{number(top['gpu_time_percent'])} % of the GPU time."
    )


def _sizes_chart(rows: Sequence[Values]) -> Spec:
    return _lines(rows, "num_gpus", "GPUs, at most", "gpu_time_percent", "GPU time, %", step=True)


def _shares(kind: str) -> tuple[Callable[[Sequence[Values]], str], Callable[[Sequence[Values]], Spec]]:
    """The sentence and the chart of shares by `kind`."""

    def says(rows: Sequence[Values]) -> str:
        top = foremost(rows)
        return (
            f"{top[kind]} takes {number(top['gpu_time_percent'])} % of the GPU time of {top['cluster']}, with "
            f"{number(top['jobs_percent'])} % of its GPU jobs."
        )

    def drawn(rows: Sequence[Values]) -> Spec:
        import altair

        named = [{**row, "name": f"{row['cluster']} {row[kind]}"} for row in rows]
        return sized(
            chart(named)
            .transform_fold(["jobs_percent", "gpu_time_percent"], ["of", "percent"])
            .transform_calculate(share="datum.of === 'jobs_percent' ? 'jobs' : 'GPU time'")
            .mark_bar()
            .encode(
                x=altair.X("percent:Q", title="%"),
                y=altair.Y("name:N", sort=None, title=None),
                yOffset="share:N",
                color=altair.Color("share:N", title=None),
                tooltip=["trace:N", "cluster:N", f"{kind}:N", "jobs:Q", "share:N", "percent:Q"],
            ),
            1.5 * ROW * len(rows),
        )

    return says, drawn


def _allocation(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    return (
        f"Means of days, from starts and ends of jobs. {top['cluster']} held most on {str(top['day_utc'])[:10]}: "
        f"{number(top['gpus'])} GPUs."
    )


def _allocation_chart(rows: Sequence[Values]) -> Spec:
    import altair

    return sized(
        chart(rows)
        .mark_line()
        .encode(
            x=altair.X("day_utc:T", title=None),
            y=altair.Y("gpus:Q", title="GPUs held, mean of the day"),
            color=altair.Color("cluster:N", title=None),
            strokeDash=altair.StrokeDash("trace:N", title=None),
            tooltip=["trace:N", "cluster:N", "day_utc:N", "gpus:Q"],
        ),
        260,
    )


def section() -> Section:
    """All figures on jobs."""
    type_says, type_chart = _shares("type")
    state_says, state_chart = _shares("state")
    none = "No job trace is loaded."
    return Section(
        "jobs",
        "Jobs",
        (
            Figure("job-durations", "How long jobs last", _durations, none, _durations_chart),
            Figure("job-sizes", "How many GPUs they ask for", _sizes, none, _sizes_chart),
            Figure("job-types", "What they are", type_says, "No loaded trace has types of jobs.", type_chart),
            Figure("job-states", "How they end", state_says, "No loaded trace says how jobs ended.", state_chart),
            Figure(
                "allocation",
                "GPUs over time",
                _allocation,
                "No loaded trace says when jobs started and ended.",
                _allocation_chart,
            ),
        ),
    )
