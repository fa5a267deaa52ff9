"""---
about: 'A utilization metric of a cluster over time: mean and quartiles over all servers or GPUs, per minute.'
partition: file_group
reads: [staging.utilization_lines, staging.utilization_rows]  # check
stream: staging.utilization_lines
grain: [cluster, metric, minute_utc]
columns:
  file_group: VARCHAR cluster and metric
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  minute_utc: TIMESTAMP start of the minute, UTC; a minute without a sample has no row
  samples: BIGINT [1] samples, without empty cells
  zero_samples: BIGINT [1] samples that are 0
  mean: DOUBLE mean of the samples, rounded to a millionth
  p25: DOUBLE first quartile
  p50: DOUBLE median
  p75: DOUBLE third quartile
  min_value: DOUBLE the smallest sample
  max_value: DOUBLE the largest sample
time: minute_utc
measures:
  samples, zero_samples: sum except over metric
  min_value: min
  max_value: max
  others: none
checks:
  - samples > 0 and zero_samples between 0 and samples
  - none: SELECT m.n FROM (SELECT sum(samples) AS n FROM this) AS m, (SELECT sum(samples) AS n FROM staging.utilization_values WHERE value IS NOT NULL) AS v WHERE m.n <> v.n
  - none: SELECT minute_utc FROM this EXCEPT SELECT date_trunc('minute', time_utc) FROM staging.utilization_rows WHERE NOT is_covered
  - min_value <= p25 and p25 <= p50 and p50 <= p75 and p75 <= max_value
sources: docs/metrics/utilization.md
---"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MINUTE_US = 60_000_000
KEYS = ("file_group", "cluster", "metric", "minute")
VALUES = ("samples", "zero_samples", "mean", "p25", "p50", "p75", "min_value", "max_value")
Minute = tuple[str, str, str, int]


def model(lines: Iterator[pa.RecordBatch], rows: pa.Table) -> pa.Table:
    """Return the minutes of a file group.

    A minute is computed once all its lines have been read, so memory holds the samples of a few minutes, for files of any
    size.

    Parameters
    ----------
    lines
        Rows of the wide files, in the order of the files.
    rows
        The same rows without their cells: how many lines a minute has.
    """
    missing = lines_of_minutes(rows)
    pending: defaultdict[Minute, list[np.ndarray]] = defaultdict(list)
    found: dict[Minute, tuple[float, ...]] = {}
    for batch in lines:
        for minute, cells in cells_of(batch):
            pending[minute].append(cells)
            missing[minute] -= 1
            # A minute may continue in the next file of the group, so its lines are counted, not its end awaited.
            if not missing[minute]:
                samples = np.concatenate(pending.pop(minute))
                if len(samples):
                    found[minute] = summary(samples)
    groups, clusters, metrics, minutes = zip(*found, strict=True) if found else ((), (), (), ())
    values = np.array(list(found.values()), dtype=np.float64).reshape(len(found), len(VALUES))
    columns = {name: values[:, place] for place, name in enumerate(VALUES)}
    counts = {name: columns[name].astype(np.int64) for name in VALUES[:2]}
    times = (np.array(minutes, dtype=np.int64) * MINUTE_US).astype("datetime64[us]")
    keys = {name: pa.array(of, pa.string()) for name, of in zip(KEYS, (groups, clusters, metrics), strict=False)}
    return pa.table({**keys, "minute_utc": times, **columns, **counts})


def lines_of_minutes(rows: pa.Table) -> dict[Minute, int]:
    """Return the number of lines of each minute in all files of the group, without covered ones."""
    read = rows.filter(pc.invert(rows["is_covered"]))
    read = read.append_column("minute", minutes_of(read["time_utc"]))
    counted = read.group_by(list(KEYS)).aggregate([([], "count_all")])
    keys = zip(*(counted[name].to_pylist() for name in KEYS), strict=True)
    return dict(zip(keys, counted["count_all"].to_pylist(), strict=True))


def minutes_of(times: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return the minutes since 1970."""
    return pc.divide(pc.cast(times, pa.int64()), MINUTE_US)


def cells_of(batch: pa.RecordBatch) -> Iterator[tuple[Minute, np.ndarray]]:
    """Yield the minute and the samples of each line, in integer millionths; empty cells and nan are no samples."""
    keys = [batch[name].to_pylist() for name in KEYS[:-1]]
    minutes = minutes_of(batch["time_utc"]).to_pylist()
    lists = pc.split_pattern(batch["cells"], ",")
    texts = pc.utf8_trim_whitespace(lists.values)
    numbers = pc.cast(pc.if_else(pc.equal(texts, ""), None, texts), pa.float64()).to_numpy(zero_copy_only=False)
    ends = lists.offsets.to_numpy()
    for place, minute in enumerate(zip(*keys, minutes, strict=True)):
        cells = numbers[ends[place] : ends[place + 1]]
        scaled = cells[~np.isnan(cells)] * 1_000_000
        # Half away from zero, as SQL rounds; np.rint rounds half to even.
        yield minute, np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)


def summary(micro: np.ndarray) -> tuple[float, ...]:
    """Return the aggregates of a minute. Quartiles are interpolated linearly between two samples, exactly in integers."""
    micro.sort()
    last = len(micro) - 1
    quartiles = []
    for quarter in (1, 2, 3):
        place, rest = divmod(quarter * last, 4)
        # Python's integers: products of int64 may overflow.
        low, high = int(micro[place]), int(micro[min(place + 1, last)])
        quartiles.append((low * (4 - rest) + high * rest) / 4 / 1e6)
    zeros = int(np.searchsorted(micro, 0, "right") - np.searchsorted(micro, 0, "left"))
    return (len(micro), zeros, int(micro.sum()) / len(micro) / 1e6, *quartiles, micro[0] / 1e6, micro[-1] / 1e6)
