"""Computation of `port_hour` with another library: python bench/port_hour.py LIBRARY LISTING OUT.

It has the same cleaning of negative deltas, sums and means, but no validation, seconds or percentiles. One thread. Each
library runs in an environment of its own (`bench/peers/readers.txt`), so this file does not import our package.
"""

from __future__ import annotations

import sys
from pathlib import Path

KEYS = ["DeviceName", "PortName"]
SUMS = ["InPkts", "InOctets", "OutPkts", "OutOctets"]
NAMES = ["SaveTime", "SaveTimeUTC", *KEYS, *SUMS, "InRatio", "OutRatio"]
COLUMNS = [*KEYS, "polls", *SUMS, "in_mean_bps"]
WRAPS = "M-GigabitEthernet"
"""Counters of the management port wrap at 2**32; a negative delta of another port is a reset and counts as 0.

Unlike the models, this ignores the time since the previous row: in the files measured here each wrap is plausible.
"""


def with_polars(files: list[str], out: str) -> None:
    """Compute with lazy, streaming polars."""
    import polars

    kinds = dict.fromkeys(("SaveTime", *KEYS), polars.String) | dict.fromkeys(NAMES[-2:], polars.Float64)
    rows = polars.scan_csv(files, schema={name: kinds.get(name, polars.Int64) for name in NAMES})

    def corrected(name: str) -> polars.Expr:
        stored, wraps = polars.col(name), polars.col("PortName").str.starts_with(WRAPS)
        return polars.when(stored >= 0).then(stored).when(wraps).then(stored + 2**32).otherwise(0).alias(name)

    hour = (
        rows.with_columns(corrected("InOctets"), corrected("OutOctets"))
        .group_by(KEYS)
        .agg(polars.len().cast(polars.Int64).alias("polls"), polars.col(SUMS).sum())
        .with_columns((polars.col("InOctets") * 8 / 3600).alias("in_mean_bps"))
        .select(*COLUMNS)
        .sort(KEYS)
    )
    hour.collect(engine="streaming").write_parquet(out)


def with_pandas(files: list[str], out: str) -> None:
    """Compute one file at a time: all files at once would need several GB."""
    import pandas

    sums = []
    for file in files:
        rows = pandas.read_csv(file, usecols=[*KEYS, *SUMS], dtype=dict.fromkeys(SUMS, "int64"))
        wraps = rows["PortName"].str.startswith(WRAPS)
        for name in ("InOctets", "OutOctets"):
            rows[name] = rows[name].where(rows[name] >= 0, (rows[name] + 2**32).where(wraps, 0))
        grouped = rows.groupby(KEYS, sort=False)
        sums.append(grouped[SUMS].sum().assign(polls=grouped.size()))
    hour = pandas.concat(sums).groupby(level=KEYS).sum().reset_index()
    hour["in_mean_bps"] = hour["InOctets"] * 8 / 3600
    hour[COLUMNS].to_parquet(out, index=False)


def with_chdb(files: list[str], out: str) -> None:
    """Compute with embedded ClickHouse."""
    import chdb

    folders = sorted({str(Path(file).parent) for file in files})
    kinds = dict.fromkeys(("SaveTime", *KEYS), "String") | dict.fromkeys(NAMES[-2:], "Float64")
    columns = ", ".join(f"{name} {kinds.get(name, 'Int64')}" for name in NAMES)
    fixed = [
        f"sum(multiIf({name} >= 0, {name}, startsWith(PortName, '{WRAPS}'), {name} + 4294967296, 0)) AS {name}_"
        for name in ("InOctets", "OutOctets")
    ]
    needed = ", ".join([*KEYS, *SUMS])
    rows = " UNION ALL ".join(
        f"SELECT {needed} FROM file('{folder}/*.csv', 'CSVWithNames', '{columns}')" for folder in folders
    )
    chdb.query(
        f"SELECT DeviceName, PortName, toInt64(count()) AS polls, sum(InPkts) AS InPkts_, {fixed[0]}, "
        f"sum(OutPkts) AS OutPkts_, {fixed[1]}, InOctets_ * 8 / 3600 AS in_mean_bps FROM ({rows}) "
        f"GROUP BY ALL ORDER BY ALL INTO OUTFILE '{out}' TRUNCATE FORMAT Parquet SETTINGS max_threads = 1"
    )


if __name__ == "__main__":
    library, listing, result = sys.argv[1:]
    run = {"polars": with_polars, "pandas": with_pandas, "chdb": with_chdb}[library]
    run(Path(listing).read_text(encoding="utf-8").split("\n"), result)
