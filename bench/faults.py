"""Fault injection: builds that are killed or meet broken files, their readers, and the next build.

    python -m bench.faults                     200 x kill -9 at random times, then every other fault
    python -m bench.faults --kills 1000 --seed 7
    python -m bench.faults --only "disk full"

A small warehouse is built repeatedly from inputs that change each time: the polls of a port in three hours, summed by
hour and over all hours, with a factor from a reviewed table. After each fault, two kinds of readers must find the last
good build, or the new build if the fault came after publication: their answers are those of plain Python. Then the next
build must succeed and leave no temporary files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb

import warehouse
from bench.measure import machine
from tests.conftest import Completed, call
from tests.tiny import HOUR_COLUMNS, Tiny
from warehouse.store.atomic import TEMPORARY
from warehouse.store.manifest import PUBLISHED

QUERY = """SELECT
    (SELECT list([hour(hour_utc) - 16, polls, bytes] ORDER BY hour_utc) FROM metrics.hours),
    (SELECT list(bytes ORDER BY hour_utc) FROM metrics.seen),
    (SELECT [hours, bytes] FROM metrics.total),
    (SELECT count(*) FROM staging.polls)"""
"""Reads a table, a view over parts, a view over a view, and a part."""
CLOCK = """
import sys, time
ns, seconds = time.time_ns, time.time
time.time_ns, time.time = lambda: ns() + {clock} * 10**9, lambda: seconds() + {clock}
from warehouse.cli import main
sys.exit(main(sys.argv[1:]))
"""
Limit = tuple[int, int]
"""Resource of `resource.RLIMIT_...`, and its limit."""


class State(NamedTuple):
    """Content of the inputs: bytes per poll of each hour, and the factor."""

    hours: tuple[int, ...] = (0, 0, 0)
    factor: int = 0


class Rig(Tiny):
    """Project, data and target below a folder."""

    def __init__(self, base: Path, *, rows: int = 3500) -> None:
        self.rows, self.state = rows, State()
        self.changes, self.whole = 0, 0.0
        """Number of changes so far; seconds of a build, once there was one."""
        super().__init__(base)

    def _write_first(self) -> None:
        polls = """SELECT f.hour_utc, c."SaveTimeUTC" AS ms, c."InOctets" AS bytes
            FROM raw.port_counters AS c JOIN raw.files AS f ON f.read_path = c.filename"""
        hours = """SELECT p.hour_utc, count(*) AS polls, sum(p.bytes) * max(s.factor) AS bytes
            FROM staging.polls AS p, reference.scale AS s GROUP BY p.hour_utc"""
        by_hour, more = "partition: hour_utc", {"hour_utc": "TIMESTAMP", "polls": "BIGINT", "bytes": "BIGINT"}
        columns = {"hour_utc": "TIMESTAMP", "ms": "BIGINT", "bytes": "BIGINT"}
        self.model("staging.polls", polls, columns, "grain: [hour_utc, ms]", by_hour)
        self.model("metrics.hours", hours, more, by_hour, "checks: [polls > 0]")
        seen = "SELECT hour_utc, bytes FROM metrics.hours"
        self.model("metrics.seen", seen, HOUR_COLUMNS, by_hour, "materialize: view")
        total = "SELECT 'all' AS name, count(*) AS hours, sum(bytes) AS bytes FROM metrics.hours"
        columns = {"name": "VARCHAR", "hours": "BIGINT", "bytes": "BIGINT"}
        self.model("metrics.total", total, columns, "materialize: table")
        self.write("warehouse.toml", "shipped = false\n")
        self.put(State((1, 2, 3), 1))

    def put(self, state: State) -> None:
        """Write the inputs that differ from those of now."""
        for hour, each in enumerate(state.hours):
            if each != self.state.hours[hour]:
                self.file(hour, *[f"1,{each},2,200,0,0.5"] * self.rows)
        if state.factor != self.state.factor:
            self.reference("scale", {"name": "VARCHAR", "factor": "BIGINT"}, f"all,{state.factor}")
        self.state = state

    def change(self) -> None:
        """Change an hour, and every fifth time the factor, to values that are new."""
        self.changes += 1
        hours = list(self.state.hours)
        hours[self.changes % len(hours)] = 1000 + self.changes
        self.put(State(tuple(hours), self.state.factor if self.changes % 5 else self.changes + 2))

    def start(self, *options: str | Path, clock: int = 0, limit: Limit | None = None) -> subprocess.Popen[str]:
        """Start a build in a session of its own, so that a kill reaches its children.

        Its clock is `clock` seconds off; `limit` limits a resource.
        """
        command = [sys.executable, *(["-c", CLOCK.format(clock=clock)] if clock else ["-m", "warehouse"]), "build"]
        command += ["--project", str(self.folder), "-d", str(self.data), "-t", str(self.target), "--threads", "2"]
        return subprocess.Popen(
            [*command, *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=(lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))) if limit else None,
        )

    def build(self, *options: str | Path, clock: int = 0, limit: Limit | None = None) -> Completed:
        """Run a build to its end; a traceback is an error, except where Python itself is out of memory."""
        with self.start(*options, clock=clock, limit=limit) as process:
            _, said = process.communicate(timeout=300)
        assert "Traceback" not in said or (limit and limit[0] == resource.RLIMIT_AS), said
        return Completed(process.returncode, "", said)

    def run(self, *words: str | Path) -> str:
        """Return the output of another command on the target, which must succeed."""
        done = call(*words, "-t", self.target, cwd=self.base)
        assert done.status == 0, done.out + done.err
        return done.out

    def which(self, *states: State) -> int:
        """Return the index of the state that plain DuckDB and `warehouse.open` both find."""
        with duckdb.connect(str(self.target / PUBLISHED), read_only=True) as plain, warehouse.open(self.target) as ours:
            found, other = (one.execute(QUERY).fetchall()[0] for one in (plain, ours))
        assert found == other, f"{found} is not {other}"
        expected = []
        for hours, factor in states:
            sums = [[hour, self.rows, self.rows * each * factor] for hour, each in enumerate(hours)]
            moved = [one[2] for one in sums]
            expected.append((sums, moved, [len(sums), sum(moved)], self.rows * len(sums)))
        assert found in expected, f"readers find {found}, none of {expected}"
        return expected.index(found)

    def prove(self) -> None:
        """Check that the published build is intact and that a rebuild elsewhere is identical."""
        assert json.loads(self.run("verify", "--project", self.folder, "--json"))["good"]

    def recover(self) -> None:
        """Check that the next build succeeds, publishes the current inputs, and removes leftovers."""
        ended = self.build()
        assert ended.status == 0, ended.err
        assert self.which(self.state) == 0
        assert not [*self.target.rglob(".*")], "a temporary file is left"


class Try(NamedTuple):
    """One injection: the inputs have changed since the last good build."""

    rig: Rig
    chance: random.Random
    number: int
    before: State
    """Inputs of the last good build."""

    def judged(self, ended: Completed) -> str:
        """Return `published` or `refused`; a build that ends well has published, and no other one."""
        is_new = self.rig.which(self.before, self.rig.state)
        assert bool(is_new) == (ended.status == 0), ended.err
        return "published" if is_new else "refused"


def main() -> int:
    """Print a line per fault; stop with a traceback at the first failure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=200, help="builds to kill (default 200)")
    options.add_argument("--times", type=int, default=40, help="of each other fault (default 40)")
    options.add_argument("--seed", type=int, default=11, help="of the moments (default 11)")
    options.add_argument("--only", choices=FAULTS, help="one fault alone")
    given = options.parse_args()
    print(f"{machine()}; seed {given.seed}", flush=True)
    for name in [given.only] if given.only else FAULTS:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            times = given.kills if name == KILLED else given.times
            rig = Rig(Path(folder))
            count = inject(name, rig, random.Random(given.seed), times)
            rig.prove()
        what = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(count.items()))
        print(f"{name:<28}{count.total():>6,} {time.perf_counter() - started:>6.0f} s  {what}", flush=True)
    return 0


def inject(name: str, rig: Rig, chance: random.Random, times: int) -> Counter[str]:
    """Inject a fault a number of times, with a good build after each; return the number of trials by outcome."""
    count: Counter[str] = Counter()
    if not rig.whole:
        rig.recover()
        rig.change()
        started = time.perf_counter()
        rig.recover()
        rig.whole = time.perf_counter() - started
    for number in range(1, times + 1):
        before = rig.state
        rig.change()
        count[FAULTS[name](Try(rig, chance, number, before))] += 1
        rig.recover()
    return count


def killed(one: Try) -> str:
    """Kill a build with `kill -9` at a random time: one in three while it publishes, the others at any time."""
    rig = one.rig
    there, folders = parts(rig.target), set(rig.target.glob("builds/*"))
    process = rig.start()
    within = one.number % 3 == 0
    while within and process.poll() is None and not publishing(rig):
        time.sleep(0.001)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(one.chance.uniform(0, 0.1 if within else 1.1) * rig.whole)
    ended = process.poll() is not None
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
    _, said = process.communicate()
    is_new = rig.which(one.before, rig.state)
    assert not ended or (process.returncode == 0 and is_new), said
    stages = {
        "after the end": ended,
        "after publishing": is_new,
        "while publishing": publishing(rig) or set(rig.target.glob("builds/*")) != folders,
        "while parts were made": parts(rig.target) != there,
        "before the first part": True,
    }
    return next(stage for stage, was in stages.items() if was)


def parts(target: Path) -> set[str]:
    """Return the names of all parts."""
    return {path.name for path in (target / "parts").glob("*/*/*.parquet")}


def publishing(rig: Rig) -> bool:
    """Return True if the folder of a build with manifest and catalog is being written."""
    return any((rig.target / TEMPORARY).glob("*.build"))


def disk_full(one: Try) -> str:
    """Build with a limit on the size of a file, at which a write fails as on a full disk."""
    ended = one.rig.build(limit=(resource.RLIMIT_FSIZE, int(2 ** one.chance.uniform(10, 24))))
    assert ended.status == 0 or (ended.status in (1, 2) and "error: " in ended.err), ended.err
    return one.judged(ended)


def memory_short(one: Try) -> str:
    """Build with too little memory for the engine, or for the process."""
    if one.number % 2:
        limited = int(2 ** one.chance.uniform(0, 8))
        return f"{one.judged(one.rig.build('--memory', f'{limited}MB'))}, limit of the engine"
    limit = resource.RLIMIT_AS, int(2 ** one.chance.uniform(27, 32))
    return f"{one.judged(one.rig.build(limit=limit))}, RLIMIT_AS"


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "cut": lambda content: content[: len(content) // 2],
    "of zeros": lambda content: bytes(len(content)),
    "one byte other": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 0xFF]) + content[len(content) // 2 + 1 :]
    ),
    "something else": lambda _: b"PAR1 or DUCK or { or nothing of the kind",
    # DuckDB keeps the version of its storage in bytes 12 to 19
    "of another version": lambda content: content[:12] + (999).to_bytes(8, "little") + content[20:],
}


def damaged(one: Try) -> str:
    """Delete or damage a file of the target, even if it is read-only or has hard links: the next build must succeed."""
    kinds: dict[str, list[Path]] = {}
    for path in sorted(one.rig.target.rglob("*")):
        below = path.relative_to(one.rig.target)
        if path.is_file() and path.name != "lock" and below.parts[0] != "damaged":
            kind = f"{below.parts[0]}/*{path.suffix}" if below.parts[0] == "parts" else path.name
            kinds.setdefault(kind, []).append(path)
    kind = sorted(kinds)[one.number % len(kinds)]
    path = one.chance.choice(kinds[kind])
    damage = one.chance.choice([name for name in DAMAGES if name != "of another version" or path.suffix == ".duckdb"])
    content = DAMAGES[damage](path.read_bytes() or b"?")
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    return kind


def clock_off(one: Try) -> str:
    """Build with a clock that is years off in either direction, as are the files' times."""
    rig, clock = one.rig, one.chance.randint(-(10**8), 10**8)
    os.utime(sorted(rig.data.rglob("*.csv"))[one.number % 3], (1, one.chance.randint(1, 4 * 10**9)))
    ended = rig.build(clock=clock)
    assert ended.status == 0, ended.err
    assert rig.which(rig.state) == 0
    newest = rig.run("builds").splitlines()[2].split()[0]
    assert (rig.target / "builds" / "current").read_text().startswith(newest), "the newest is first"
    return "built late" if clock > 0 else "built early"


def at_once(one: Try) -> str:
    """Start four builds of a target together, with and without --wait, and kill one of them."""
    builds = [one.rig.start(*(["--wait"] if place % 2 else [])) for place in range(4)]
    time.sleep(one.chance.uniform(0, one.rig.whole))
    os.killpg(builds[0].pid, signal.SIGKILL)
    said = [build.communicate(timeout=300)[1] for build in builds]
    for place, build in enumerate(builds[1:], start=1):
        held = build.returncode == 3 and "another build holds" in said[place] and not place % 2
        assert build.returncode == 0 or held, said[place]
    assert one.rig.which(one.before, one.rig.state) == 1, "those that wait have built"
    return "held" if any(build.returncode == 3 for build in builds) else "built or up to date"


KILLED = "kill -9"
FAULTS: dict[str, Callable[[Try], str]] = {
    KILLED: killed,
    "disk full": disk_full,
    "memory short": memory_short,
    "files of the target damaged": damaged,
    "clock off": clock_off,
    "four builds at once": at_once,
}


if __name__ == "__main__":
    sys.exit(main())
