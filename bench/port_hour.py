"""Computation of `port_hour` with polars: python -m bench.port_hour LISTING OUT.

It has the same cleaning of negative deltas, sums and means, but no validation, seconds or percentiles.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars

KEYS = ["DeviceName", "PortName"]
SUMS = ["InPkts", "InOctets", "OutPkts", "OutOctets"]
NAMES = ["SaveTime", "SaveTimeUTC", *KEYS, *SUMS, "InRatio", "OutRatio"]
WRAPS = "M-GigabitEthernet"
"""Counters of the management port wrap at 2**32; a negative delta of another port is a reset and counts as 0.

Unlike the models, this ignores the time since the previous row: in the files measured here each wrap is plausible.
"""


def corrected(name: str) -> polars.Expr:
    """Return a delta with a wrap added, or 0 for a reset."""
    stored, wraps = polars.col(name), polars.col("PortName").str.starts_with(WRAPS)
    return polars.when(stored >= 0).then(stored).when(wraps).then(stored + 2**32).otherwise(0).alias(name)


def main(listing: str, out: str) -> None:
    """Write the sums of each port."""
    files = Path(listing).read_text(encoding="utf-8").split("\n")
    kinds = dict.fromkeys(("SaveTime", *KEYS), polars.String) | dict.fromkeys(NAMES[-2:], polars.Float64)
    rows = polars.scan_csv(files, schema={name: kinds.get(name, polars.Int64) for name in NAMES})
    hour = (
        rows.with_columns(corrected("InOctets"), corrected("OutOctets"))
        .group_by(KEYS)
        .agg(polars.len().cast(polars.Int64).alias("polls"), polars.col(SUMS).sum())
        .with_columns((polars.col("InOctets") * 8 / 3600).alias("in_mean_bps"))
        .sort(KEYS)
    )
    hour.collect(engine="streaming").write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
