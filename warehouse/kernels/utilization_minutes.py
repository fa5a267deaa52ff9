"""Kernel of models/metrics/utilization_minute.sql: utilization samples of a cluster by minute.

Lines are read in file order, and a minute is aggregated once all its lines have been read. So memory holds the
samples of a few minutes, for files of any size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warehouse.kernels import Arrays, Reader

if TYPE_CHECKING:
    import pyarrow

PARTS = ("staging.utilization_lines", "staging.utilization_rows")
LINES_AT_ONCE = 128
MINUTE_US = 60_000_000
_LINES = "file_group, cluster, metric, epoch_us(time_utc) // 60000000 AS minute"
_QUARTILES = ("p25", "p50", "p75")

Group = tuple[str, str, str]
Minute = tuple[Group, int]


def blocks(_reader: Reader) -> Iterator[None]:
    """Yield one block: lines of a minute can be in any file."""
    yield None


def rows(_block: None, reader: Reader) -> Iterator[Arrays]:
    """Yield all minutes, sorted by cluster, metric and minute."""
    missing = _lines_of_minutes(reader)
    pending: defaultdict[Minute, list[NDArray[np.float64]]] = defaultdict(list)
    found: defaultdict[Group, dict[int, tuple[float, ...]]] = defaultdict(dict)
    lines = f"SELECT {_LINES}, try_cast(string_split(cells, ',') AS DOUBLE[]) AS cells FROM staging.utilization_lines"
    for batch in reader.batches(lines, LINES_AT_ONCE):
        for minute, cells in _cells(batch):
            pending[minute].append(cells)
            missing[minute] -= 1
            if not missing[minute]:
                del missing[minute]
                group, number = minute
                aggregates = summary(np.concatenate(pending.pop(minute)))
                if aggregates:
                    found[group][number] = aggregates
    for group in sorted(found, key=lambda one: one[1:]):
        yield _columns(group, found[group])


def _lines_of_minutes(reader: Reader) -> dict[Minute, int]:
    """Return the number of lines of each minute in all files of the group."""
    counted = reader.arrays(
        f"SELECT {_LINES}, count(*) AS lines FROM staging.utilization_rows WHERE NOT is_covered GROUP BY ALL"
    )
    names = ("file_group", "cluster", "metric", "minute", "lines")
    listed = zip(*(counted[name].tolist() for name in names), strict=True)
    return {((group, cluster, metric), minute): lines for group, cluster, metric, minute, lines in listed}


def _cells(batch: pyarrow.RecordBatch) -> Iterator[tuple[Minute, NDArray[np.float64]]]:
    """Yield the minute and the cells of each line."""
    keys = zip(*(batch.column(name).to_pylist() for name in ("file_group", "cluster", "metric")), strict=True)
    lists = batch.column("cells")
    values = lists.values.to_numpy(zero_copy_only=False)
    ends = lists.offsets.to_numpy()
    minutes = batch.column("minute").to_pylist()
    for place, (group, minute) in enumerate(zip(keys, minutes, strict=True)):
        yield (group, minute), values[ends[place] : ends[place + 1]]


def summary(cells: NDArray[np.float64]) -> tuple[float, ...] | None:
    """Return the aggregates of a minute; None if no cell is a number.

    Quartiles are interpolated linearly between two samples. In integer millionths, this is exact.
    """
    values = cells[~np.isnan(cells)]
    if not len(values):
        return None
    scaled = values * 1_000_000
    micro = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)
    micro.sort()
    last = len(micro) - 1
    quartiles = []
    for quarter in (1, 2, 3):
        place, rest = divmod(quarter * last, 4)
        low, high = int(micro[place]), int(micro[min(place + 1, last)])
        quartiles.append((low * (4 - rest) + high * rest) / 4 / 1e6)
    zeros = int(np.searchsorted(micro, 0, "right") - np.searchsorted(micro, 0, "left"))
    mean = int(micro.sum()) / len(micro) / 1e6
    return (len(micro), zeros, mean, *quartiles, int(micro[0]) / 1e6, int(micro[-1]) / 1e6)


def _columns(group: Group, minutes: dict[int, tuple[float, ...]]) -> Arrays:
    order = sorted(minutes)
    columns = list(zip(*(minutes[minute] for minute in order), strict=True))
    names = ("samples", "zero_samples", "mean", *_QUARTILES, "min_value", "max_value")
    counts = {name: np.array(values, dtype=np.int64) for name, values in zip(names[:2], columns[:2], strict=True)}
    measures = {name: np.array(values, dtype=np.float64) for name, values in zip(names[2:], columns[2:], strict=True)}
    keys = dict(zip(("file_group", "cluster", "metric"), group, strict=True))
    return {
        **{name: np.full(len(order), value, dtype=object) for name, value in keys.items()},
        "minute_utc": (np.array(order, dtype=np.int64) * MINUTE_US).astype("datetime64[us]"),
        **counts,
        **measures,
    }
