"""Each training task: iterations, checkpoints, traffic against expectation, rank paths."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import BLUE, GREY, ORANGE, RED, ROW, chart, sized
from warehouse.report.words import count, distinct, foremost, listed, most, number, size, total


def _summary(rows: Sequence[Values]) -> str:
    return f"{count(len(rows), 'task')} with logs: {listed([str(row['task']) for row in rows])}."


def _iterations(rows: Sequence[Values]) -> str:
    slowest = foremost(rows)
    middle = sorted(row["median_seconds"] for row in rows)[len(rows) // 2]
    return (
        f"{count(total(rows, 'iterations'), 'iteration')}, most of about {number(middle)} s; the longest took "
        f"{number(slowest['longest_seconds'])} s, at iteration {number(slowest['iteration'])} or soon after."
    )


def _iterations_chart(rows: Sequence[Values]) -> Spec:
    import altair

    x = altair.X("iteration:Q", title="iteration")
    both = chart(rows).encode(x=x, tooltip=["iteration:Q", "iterations:Q", "median_seconds:Q", "longest_seconds:Q"])
    scale = altair.Scale(zero=False)
    return sized(
        altair.layer(
            both.mark_point(size=14, color=ORANGE, filled=True, opacity=0.9).encode(
                y=altair.Y("longest_seconds:Q", title="seconds", scale=scale)
            ),
            both.mark_line(color=BLUE).encode(y=altair.Y("median_seconds:Q", title="seconds", scale=scale)),
        ),
        240,
    )


def _checkpoints(rows: Sequence[Values]) -> str:
    longest = foremost(rows)
    return (
        f"{count(len(rows), 'checkpoint')}; the dearest, at iteration {number(longest['iteration'])}, cost "
        f"{number(longest['extra_seconds'])} s."
    )


def _checkpoints_chart(rows: Sequence[Values]) -> Spec:
    import altair

    return sized(
        chart(rows)
        .mark_bar(color=BLUE)
        .encode(
            x=altair.X("extra_seconds:Q", title="seconds more than an iteration without"),
            y=altair.Y("iteration:O", title="iteration"),
            tooltip=["iteration:Q", "start_utc:N", "extra_seconds:Q"],
        ),
        ROW * len(rows),
    )


def _traffic(rows: Sequence[Values]) -> str:
    seen = [row for row in rows if row["tx_bytes"] is not None]
    expected = most(rows, "expected_nominal_bytes")["expected_nominal_bytes"]
    should = f"Each NIC should have sent {size(expected)} by the books. " if expected else ""
    if not seen:
        return f"{should}None of its {count(len(rows), 'NIC')} was seen while it ran: the loaded hours are others."
    said = should + f"{len(seen)} of {count(len(rows), 'NIC')} were seen: {size(total(seen, 'tx_bytes'))} sent in all."
    shared = [row for row in seen if row["tasks_on_nic"] > 1]
    if not shared:
        return said
    tasks = " or ".join(str(one) for one in sorted({row["tasks_on_nic"] for row in shared}))
    return f"{said} {len(shared)} of them had {tasks} tasks at a time: their bytes are those of all tasks together."


def _traffic_chart(rows: Sequence[Values]) -> Spec:
    import altair

    named = [{**row, "name": f"{row['server']} {row['hca']}"} for row in rows]
    base = chart(named).encode(
        y=altair.Y("name:N", sort=None, title=None),
        tooltip=[
            "name:N",
            "switch:N",
            "tx_bytes:Q",
            "expected_nominal_bytes:Q",
            "expected_implemented_bytes:Q",
            "status:N",
            "tasks_on_nic:Q",
        ],
    )
    axis = altair.Axis(format="~s")
    return sized(
        altair.layer(
            base.mark_bar(color=BLUE).encode(
                x=altair.X(
                    "tx_bytes:Q",
                    axis=axis,
                    title="bytes: bar sent (grey: by all tasks of a shared NIC), | nominal, ◇ as implemented",
                ),
                color=altair.condition("datum.tasks_on_nic > 1", altair.value(GREY), altair.value(BLUE)),
            ),
            base.mark_tick(color=RED, thickness=3).encode(x="expected_nominal_bytes:Q"),
            base.mark_point(shape="diamond", color=ORANGE, strokeWidth=2).encode(x="expected_implemented_bytes:Q"),
        ),
        ROW * len(rows),
    )


def _paths(rows: Sequence[Values]) -> str:
    same = total(rows, "same_leaf")
    return (
        f"{count(total(rows, 'paths'), 'path')} between {count(len(distinct(rows, 'src_server')), 'server')}: "
        f"{total(rows, 'rings'):,} of rings, {total(rows, 'trees'):,} of trees; {same:,} stay on one leaf."
    )


def _paths_chart(rows: Sequence[Values]) -> Spec:
    import altair

    names = sorted(
        {str(row[end]) for row in rows for end in ("src_server", "dst_server")}, key=lambda one: (len(one), one)
    )
    base = chart(rows).encode(
        x=altair.X("dst_server:N", title="to", sort=names, axis=altair.Axis(orient="top")),
        y=altair.Y("src_server:N", title="from", sort=names),
        tooltip=["src_server:N", "dst_server:N", "paths:Q", "same_leaf:Q", "src_leaves:N", "dst_leaves:N"],
    )
    return sized(
        altair.layer(
            base.mark_rect(color=BLUE).encode(
                opacity=altair.Opacity("paths:Q", legend=None, scale=altair.Scale(range=[0.15, 0.5]))
            ),
            base.mark_text(color="currentColor").encode(text="paths:Q"),
        ),
        70 + 1.4 * ROW * len(distinct(rows, "src_server")),
    )


def section(tasks: Sequence[tuple[str, str]]) -> Section:
    """All tasks in a table, then four figures for each of `(cluster, task)`."""
    figures = [Figure("tasks", "All tasks", _summary, "No task logs are loaded.")] if tasks else []
    for cluster, task in tasks:
        asked = {"cluster": cluster, "task": task}
        figures += [
            Figure(
                "iterations", f"{task}: iterations", _iterations, "It logged no iteration.", _iterations_chart, asked
            ),
            Figure(
                "checkpoints",
                f"{task}: checkpoints",
                _checkpoints,
                "It wrote no checkpoint.",
                _checkpoints_chart,
                asked,
            ),
            Figure("task-traffic", f"{task}: traffic", _traffic, "Its NICs are not known.", _traffic_chart, asked),
            Figure("rank-paths", f"{task}: rank paths", _paths, "Its rank paths are not known.", _paths_chart, asked),
        ]
    return Section("tasks", "Training tasks", tuple(figures), "No task logs are loaded.")
