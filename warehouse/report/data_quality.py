"""What was loaded, and how good it is."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import ROW, chart, sized
from warehouse.report.words import count, distinct, foremost, number, size, total


def _files(rows: Sequence[Values]) -> str:
    read = [row for row in rows if row["status"] in ("read", "partial")]
    others = [row for row in rows if row not in read]
    clusters = distinct(read, "cluster")
    said = f"{count(total(read, 'files'), 'file')} of {count(len(clusters), 'cluster')} were read, "
    said += f"{size(total(read, 'bytes'))} in {count(len(distinct(read, 'format')), 'format')}."
    return said + (f" Set aside or ignored: {count(total(others, 'files'), 'file')}." if others else "")


def _checks(rows: Sequence[Values]) -> str:
    passed, others = total(rows, "passed"), total(rows, "not_passed")
    found = " · ".join(str(row["which"]) for row in rows if row["which"])
    return f"{count(passed, 'check')} passed" + (f", {others:,} did not: {found}." if others else ", none failed.")


def _observation(rows: Sequence[Values]) -> str:
    worst = foremost(rows)
    gap, share = number(worst["opening_gap_seconds"]), number(worst["gap_bytes_percent"])
    return (
        f"{count(len(rows), 'switch')} were polled. The opening gap that hides most is that of {worst['switch']}: "
        f"{gap} s with {share} % of its bytes in, of which the sum is known but not the minutes. "
        f"{count(total(rows, 'missing_port_polls'), 'poll')} of single ports are missing."
    )


def _observation_chart(rows: Sequence[Values]) -> Spec:
    return sized(
        chart(rows)
        .mark_bar()
        .encode(
            x={"field": "gap_bytes_percent", "type": "quantitative", "title": "bytes in the opening gap, %"},
            y={"field": "switch", "type": "nominal", "sort": None, "title": None},
            tooltip=[
                {"field": name, "type": "nominal"}
                for name in ("cluster", "switch", "polls", "opening_gap_seconds", "gap_bytes_percent")
            ],
        ),
        ROW * len(distinct(rows, "switch")),
    )


SECTION = Section(
    "quality",
    "What was loaded, and how good it is",
    (
        Figure("files", "Files", _files, "No file was loaded."),
        Figure("checks", "Checks", _checks, "The build has no checks."),
        Figure(
            "observation",
            "How switches were observed",
            _observation,
            "No port counters are loaded.",
            _observation_chart,
        ),
    ),
)
