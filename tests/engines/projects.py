"""A project of two models over port counters, each hour's polls and their sum, for builds on a cluster."""

from __future__ import annotations

from pathlib import Path

import warehouse
from tests.conftest import Said, call
from tests.tiny import HEADER

_POLLS = """/* ---
about: Polls.
partition: hour_utc
grain: [hour_utc, ms]
columns:
  hour_utc: TIMESTAMP
  ms: BIGINT
  in_bytes: BIGINT
--- */
SELECT f.hour_utc, c.SaveTimeUTC AS ms, c.InOctets AS in_bytes
FROM raw.port_counters AS c
JOIN raw.files AS f ON f.read_path = c.filename
"""
_TOTAL = """/* ---
about: All polls.
grain: [polls]
columns:
  polls: BIGINT
  in_bytes: BIGINT
--- */
"""
SUM = "SELECT count(*) AS polls, sum(in_bytes) AS in_bytes FROM staging.polls"


class Sums:
    """`raw.port_counters` -> `staging.polls` -> `metrics.total`."""

    def __init__(self, base: Path) -> None:
        self.folder, self.data, self.target = base / "project", base / "data", base / "target"
        (self.folder / "models" / "staging").mkdir(parents=True)
        (self.folder / "models" / "metrics").mkdir()
        (self.folder / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
        (self.folder / "models" / "staging" / "polls.sql").write_text(_POLLS, encoding="utf-8")
        self.model(SUM)

    def model(self, select: str) -> None:
        """Write the model of the sum."""
        (self.folder / "models" / "metrics" / "total.sql").write_text(f"{_TOTAL}{select}\n", encoding="utf-8")

    @staticmethod
    def slow(number: int) -> str:
        """The sum, in a SELECT that takes Spark some seconds, a task a file."""
        return (
            "SELECT count(*) // 20000000 AS polls, sum(c.InOctets) // 20000000 AS in_bytes "
            "FROM raw.port_counters AS c CROSS JOIN range(1000000) AS r (x) CROSS JOIN range(20) AS q (y) "
            f"WHERE (c.InOctets * r.x + q.y + {number}) % 1000003 >= 0"
        )

    def hour(self, number: int) -> Path:
        """One more file: in this local hour, two polls of 15 bytes each."""
        path = self.data / "c" / "trafficinfo" / f"20240524{number:02}" / "x" / "Leaf-1_1_1.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        start = 1716480000000 + number * 3_600_000
        rows = [
            f"2024/05/24 星期五 {number:02}:00:{second:02}.000,{start + second * 1000},"
            f"NH-Leaf-1.GPU,TwoHundredGigE1/0/1:1,4,15,{second},60,0,0.5"
            for second in (1, 2)
        ]
        path.write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
        return path

    def by_duckdb(self, *options: str) -> Said:
        """Build with DuckDB."""
        return call("build", "-d", self.data, "-t", self.target, "--project", self.folder, *options, cwd=self.data)

    def by_spark(self, *options: str) -> Said:
        """Build with Spark on this machine's cores."""
        return self.by_duckdb("--engine", "spark", "--master", "local[2]", *options)

    def total(self) -> list[tuple[object, ...]]:
        """What is published."""
        with warehouse.open(self.target) as connection:
            return connection.execute("SELECT polls, in_bytes FROM metrics.total").fetchall()
