"""A project of two models over port counters, each hour's polls and their sum, for builds on a cluster."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import warehouse
from tests.conftest import Said, call
from tests.tiny import HEADER

if TYPE_CHECKING:
    from tests.engines.cluster import Cluster

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
_SUM = "SELECT count(*) AS polls, sum(in_bytes) AS in_bytes FROM staging.polls"


class Sums:
    """`raw.port_counters` -> `staging.polls` -> `metrics.total`."""

    def __init__(self, base: Path) -> None:
        self.folder, self.data, self.target = base / "project", base / "data", base / "target"
        (self.folder / "models" / "staging").mkdir(parents=True)
        (self.folder / "models" / "metrics").mkdir()
        (self.folder / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
        (self.folder / "models" / "staging" / "polls.sql").write_text(_POLLS, encoding="utf-8")
        self.model(_SUM)

    def model(self, select: str) -> None:
        """Write the model of the sum."""
        (self.folder / "models" / "metrics" / "total.sql").write_text(f"{_TOTAL}{select}\n", encoding="utf-8")

    @staticmethod
    def slow(number: int) -> str:
        """The sum, in a SELECT that takes Spark some seconds in several tasks."""
        return (
            f"WITH counted AS (SELECT count(*) AS n FROM range(30000) AS a (x) CROSS JOIN range(6000) AS b (y) "
            f"WHERE (a.x * b.y + {number}) % 1000003 = -1) "
            "SELECT count(*) AS polls, sum(p.in_bytes + c.n) AS in_bytes FROM staging.polls AS p "
            "CROSS JOIN counted AS c"
        )

    def hour(self, number: int) -> Path:
        """One more file: a poll of 30 bytes in this local hour."""
        path = self.data / "c" / "trafficinfo" / f"20240524{number:02}" / "x" / "Leaf-1_1_1.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        time_ms = 1716480000000 + number * 3_600_000 + 1000
        row = f"2024/05/24 星期五 {number:02}:00:01.000,{time_ms},NH-Leaf-1.GPU,TwoHundredGigE1/0/1:1,4,30,5,60,0,0.5"
        path.write_text(f"{HEADER}\n{row}\n", encoding="utf-8")
        return path

    def by_duckdb(self, *options: str) -> Said:
        """Build on one machine."""
        return call("build", "-d", self.data, "-t", self.target, "--project", self.folder, *options, cwd=self.data)

    def by_spark(self, cluster: Cluster, *options: str) -> Said:
        """Build on a cluster."""
        from tests.engines.conftest import start_build

        build = start_build(cluster, self.data, self.target, "--project", str(self.folder), *options)
        out, err = build.communicate(timeout=240)
        return Said(build.returncode, out, err)

    def total(self) -> list[tuple[object, ...]]:
        """What is published."""
        with warehouse.open(self.target) as connection:
            return connection.execute("SELECT polls, in_bytes FROM metrics.total").fetchall()

    def wait_for_part(self, model: str, count: int, build: subprocess.Popen[str]) -> None:
        """Wait until a build has written so many parts of a model."""
        deadline = time.monotonic() + 120
        while len(list((self.target / "parts" / model).glob("*/[!.]*.parquet"))) < count:
            assert build.poll() is None, build.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
