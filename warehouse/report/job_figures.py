"""Charts of job traces and training tasks, and how far to trust them: published figures, conservation of bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from warehouse.base.text import plural, size
from warehouse.report.charts import (
    Bar,
    Bars,
    Curve,
    Key,
    Panel,
    Values,
    bars,
    distinct,
    distribution,
    percent,
    ranges,
    shares,
    short,
)

CATEGORIES = ("access", "out", "in", "uplink", "bad", "none")
"""Colors for categories without a color of their own, in this order."""
VERDICTS = {"reproduced": "access", "differs": "out", "contradicted": "bad"}
SIZES = {"1": "u2", "2-7": "u3", "8-63": "u4", "64 and more": "u6"}
ENDS = {"completed": "access", "failed": "bad", "canceled": "out", "other": "none"}
DASHES = ("", " dash")
"""Line styles that double the number of distinguishable tasks."""
TIMES = {1.0: "1 s", 60.0: "1 min", 3600.0: "1 h", 86400.0: "1 d", 864000.0: "10 d"}
"""Numbers on the axis of run times, in seconds."""


def _name(row: Values) -> str:
    return f"{row['trace']} {row['cluster']}"


def durations(rows: Sequence[Values]) -> list[Panel]:
    """Draw the quantiles of the run times of each cluster's jobs."""
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


def sizes(rows: Sequence[Values]) -> list[Panel]:
    """Draw the GPU time of each cluster by the size of its jobs."""
    return _parts(rows, "gpus", SIZES, "GPU time by size of jobs", " GPUs")


def states(rows: Sequence[Values]) -> list[Panel]:
    """Draw the GPU time of each cluster by how its jobs end."""
    return _parts(rows, "outcome", ENDS, "GPU time by how jobs end", "")


def _curves(rows: Sequence[Values], name: Callable[[Values], str], column: str) -> list[Curve]:
    kinds = [f"{kind}{dash}" for dash in DASHES for kind in CATEGORIES]
    return [Curve(name(row), kind, row[column]) for row, kind in zip(rows, kinds, strict=False)]


def iterations(rows: Sequence[Values]) -> list[Panel]:
    """Draw the distribution of each task's times of iterations."""
    curves = _curves(rows, lambda row: f"{row['task']} ({row['iterations']:,})", "seconds_by_percent")
    return distribution(curves, "Times of iterations", "seconds of an iteration", "% of the iterations")


def allocation(rows: Sequence[Values]) -> list[Panel]:
    """Draw the distribution of each cluster's GPUs in use."""
    curves = _curves(rows, _name, "percents")
    return distribution(curves, "GPUs in use", "% of the cluster's GPUs in use", "% of the time")


def traffic(rows: Sequence[Values]) -> list[Panel]:
    """Draw the bytes that each task sent, beside those that are expected."""
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


def claims(rows: Sequence[Values]) -> list[Panel]:
    """Draw the verdicts on the published figures of each source."""
    groups = []
    for source in distinct(rows, "source"):
        of = Counter(row["verdict"] for row in rows if row["source"] == source)
        parts = [
            Bar(100 * of[one] / of.total(), kind, f"{source}: {of[one]:,} of {of.total():,} {one}")
            for one, kind in VERDICTS.items()
            if of[one]
        ]
        groups.append(Bars(f"{source.removeprefix('figure/').removesuffix('.pdf')} ({of.total()})", parts))
    keys = [Key(kind, verdict) for verdict, kind in VERDICTS.items()]
    return shares(sorted(groups), "Published figures by source", keys, "% of its figures")


def conservation(rows: Sequence[Values]) -> list[Panel]:
    """Draw the difference of bytes in and out of each switch."""
    shown = []
    for row in rows:
        tip = f"{row['switch']}: {size(row['in_bytes'])} in, {size(row['out_bytes'])} out"
        shown.append(Bars(str(row["switch"]), [Bar(row["apart_ppm"], "access", tip)], leaf=str(row["switch"])))
    return bars(shown, "bytes in and out apart, parts per million", "Bytes in against bytes out")
