"""Small warehouse for fault tests: inputs and expected answers are computed from a number.

The polls of a port in three hours are summed by hour and over all hours, with a factor from a reviewed table. Readers
query a part, a table, a view over parts and a view over a view. The expected answers are computed in plain Python.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import duckdb

import warehouse
from warehouse.store.layout import PUBLISHED

HEADER = "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
HOURS = 3
ROWS = 4000
MODELS = {
    "models/staging/polls.sql": """\
/* ---
about: The polls of each hour.
partition: hour_utc
grain: [hour_utc, ms]
columns:
  hour_utc: TIMESTAMP
  ms: BIGINT
  bytes: BIGINT
--- */
SELECT f.hour_utc, c."SaveTimeUTC" AS ms, c."InOctets" AS bytes
FROM raw.port_counters AS c JOIN raw.files AS f ON f.read_path = c.filename
""",
    "models/metrics/hours.sql": """\
/* ---
about: The sum of each hour, by the factor.
partition: hour_utc
grain: [hour_utc]
columns:
  hour_utc: TIMESTAMP
  polls: BIGINT
  bytes: BIGINT
checks:
  - polls > 0
--- */
SELECT p.hour_utc, count(*) AS polls, sum(p.bytes) * max(s.factor) AS bytes
FROM staging.polls AS p, reference.scale AS s GROUP BY p.hour_utc
""",
    "models/metrics/seen.sql": """\
/* ---
about: The same as a view.
partition: hour_utc
grain: [hour_utc]
materialize: view
columns:
  hour_utc: TIMESTAMP
  bytes: BIGINT
--- */
SELECT hour_utc, bytes FROM metrics.hours
""",
    "models/metrics/total.sql": """\
/* ---
about: The sum of all hours.
grain: [name]
columns:
  name: VARCHAR
  hours: BIGINT
  bytes: BIGINT
--- */
SELECT 'all' AS name, count(*) AS hours, sum(bytes) AS bytes FROM metrics.hours
""",
    "data/tables.yaml": """\
scale:
  about: A factor.
  columns:
    name: VARCHAR
    factor: BIGINT
""",
    "warehouse.toml": "shipped = false\n",
}
"""Files of the project, except the reviewed table."""
QUERY = """SELECT
    (SELECT list([hour(hour_utc) - 16, polls, bytes] ORDER BY hour_utc) FROM metrics.hours),
    (SELECT list(bytes ORDER BY hour_utc) FROM metrics.seen),
    (SELECT [hours, bytes] FROM metrics.total),
    (SELECT count(*) FROM staging.polls)"""


Limit = tuple[int, int]
"""Resource of `resource.RLIMIT_...`, and its limit."""


class State(NamedTuple):
    """Content of the inputs: bytes per poll of each hour, and the factor."""

    hours: tuple[tuple[int, int], ...]
    factor: int


class Ended(NamedTuple):
    """Exit status and output of a build."""

    status: int
    said: str


class Rig:
    """Project, data and target below a folder."""

    def __init__(self, folder: Path, *, rows: int = ROWS) -> None:
        self.folder = folder
        self.rows = rows
        self.project, self.data, self.target = folder / "project", folder / "data", folder / "target"
        self.state = State((), 1)
        for name, text in MODELS.items():
            self._write(name, text)
        for hour in range(HOURS):
            self.hour(hour, hour + 1)
        self.scale(1)

    def _write(self, name: str, text: str) -> None:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    # inputs ---------------------------------------------------------------------------------------

    def file(self, hour: int) -> Path:
        """Return the path of the raw file of an hour."""
        return self.data / "c" / "trafficinfo" / f"20240524{hour:02}" / "x" / "Leaf-1_1_1.csv"

    def hour(self, hour: int, each: int) -> None:
        """Write an hour whose polls moved `each` bytes."""
        path = self.file(hour)
        path.parent.mkdir(parents=True, exist_ok=True)
        start = 1716480000000 + hour * 3_600_000
        rows = (
            f"2024/05/24 星期五 {hour:02}:{poll // 600:02}:{poll // 10 % 60:02}.{poll % 10}00,"
            f"{start + poll * 100},NH-Leaf-1.GPU,TwoHundredGigE1/0/1:1,1,{each},2,200,0,0.5"
            for poll in range(self.rows)
        )
        path.write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
        self.state = State(tuple(sorted({**dict(self.state.hours), hour: each}.items())), self.state.factor)

    def scale(self, factor: int) -> None:
        """Set the factor of the reviewed table."""
        self._write("data/scale.csv", f"name,factor\nall,{factor}\n")
        self.state = State(self.state.hours, factor)

    def change(self, number: int) -> None:
        """Change an hour, and every fifth time the factor, to values that are new."""
        self.hour(number % HOURS, 1000 + number)
        if number % 5 == 0:
            self.scale(number + 2)

    # builds ---------------------------------------------------------------------------------------

    def command(self, *options: str, clock: int = 0) -> list[str]:
        """Return the command line of a build, with a clock that is `clock` seconds off."""
        start = ["-m", "warehouse"]
        if clock:
            script = (
                "import sys, time; n, t = time.time_ns, time.time; "
                f"time.time_ns = lambda: n() + {clock} * 10**9; time.time = lambda: t() + {clock}; "
                "from warehouse.cli import main; sys.exit(main(sys.argv[1:]))"
            )
            start = ["-c", script]
        places = ["--project", str(self.project), "-d", str(self.data), "-t", str(self.target)]
        return [sys.executable, *start, "build", *places, "--threads", "2", *options]

    def start(self, *options: str, clock: int = 0, limit: Limit | None = None) -> subprocess.Popen[str]:
        """Start a build in a session of its own, with a resource limit."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WAREHOUSE_")}
        environment["PYTHONPATH"] = str(Path(warehouse.__file__).parents[1])
        return subprocess.Popen(
            self.command(*options, clock=clock),
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=(lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))) if limit else None,
        )

    def build(self, *options: str, clock: int = 0, limit: Limit | None = None) -> Ended:
        """Run a build to its end; a traceback is an error, except where Python itself is out of memory."""
        with self.start(*options, clock=clock, limit=limit) as process:
            _, said = process.communicate(timeout=300)
        assert "Traceback" not in said or (limit and limit[0] == resource.RLIMIT_AS), said
        return Ended(process.returncode, said)

    # readers --------------------------------------------------------------------------------------

    def found(self) -> tuple[object, ...]:
        """Return the answers of two kinds of readers, which must be equal."""
        with duckdb.connect(str(self.target / PUBLISHED), read_only=True) as plain:
            one = plain.execute(QUERY).fetchall()[0]
        with warehouse.open(self.target) as ours:
            other = ours.execute(QUERY).fetchall()[0]
        assert one == other, f"{one} is not {other}"
        return one

    def expected(self, state: State) -> tuple[object, ...]:
        """Return the expected answers for the given inputs."""
        sums = [[hour, self.rows, self.rows * each * state.factor] for hour, each in state.hours]
        each_hour = [one[2] for one in sums]
        return sums, each_hour, [len(sums), sum(each_hour)], self.rows * len(sums)

    def which(self, *states: State) -> int:
        """Return the index of the state that readers find.

        Raises
        ------
        AssertionError
            If readers find none of the states.
        """
        found = self.found()
        matching = [place for place, state in enumerate(states) if self.expected(state) == found]
        assert matching, f"readers find {found}, none of {[self.expected(state) for state in states]}"
        return matching[0]

    def left(self) -> list[str]:
        """Return the hidden files of the target: temporary files and leftovers."""
        return [str(path.relative_to(self.target)) for path in self.target.rglob(".*")]

    def recover(self, *options: str) -> None:
        """Check that the next build succeeds, publishes the current inputs, and removes leftovers."""
        ended = self.build(*options)
        assert ended.status == 0, ended.said
        assert self.which(self.state) == 0
        assert self.left() == []

    def prove(self) -> None:
        """Check that the published build is intact and that a rebuild elsewhere is identical."""
        verified = subprocess.run(
            [*self.command()[:3], "verify", "--project", str(self.project), "-t", str(self.target), "--json"],
            cwd=self.folder, check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(warehouse.__file__).parents[1])},
        )  # fmt: skip
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert json.loads(verified.stdout)["good"]


def parts(target: Path) -> set[str]:
    """Return the names of all parts."""
    return {path.name for path in (target / "parts").glob("*/*/*.parquet")}
