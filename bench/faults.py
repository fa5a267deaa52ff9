"""Fault injection: builds that are killed or meet broken files, their readers, and the next build.

    python -m bench.faults                     200 x kill -9 at random times, then every other fault
    python -m bench.faults --kills 1000 --seed 7
    python -m bench.faults --only "disk full"

A small warehouse (`bench.fault_rig`) is built repeatedly from inputs that change each time. After each fault, two kinds
of readers must find the last good build, or the new build if the fault came after publication. Their answers must equal
those computed in plain Python. Then the next build must succeed and leave no temporary files.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.fault_rig import Rig, State, fill, flipped, parts
from bench.measure import machine
from warehouse.store.atomic import TEMPORARY

Count = Counter[str]
"""Number of trials by outcome."""


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
            count = FAULTS[name](Rig(Path(folder)), random.Random(given.seed), times)
        what = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(count.items()))
        print(f"{name:<28}{count.total():>6,} {time.perf_counter() - started:>6.0f} s  {what}", flush=True)
    return 0


# killed -------------------------------------------------------------------------------------------


def killed(rig: Rig, chance: random.Random, times: int) -> Count:
    """Kill a build with `kill -9` at a random time: one in three while it publishes, the others at any time."""
    count: Count = Counter()
    whole = first(rig)
    for number in range(1, times + 1):
        before, there, folders = rig.state, parts(rig.target), set(rig.target.glob("builds/*"))
        rig.change(number)
        process = rig.start()
        within = number % 3 == 0
        while within and process.poll() is None and not publishing(rig):
            time.sleep(0.001)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, 0.1 if within else 1.1) * whole)
        ended = process.poll() is not None
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)  # kill the session of the build
        _, said = process.communicate()
        is_new = rig.which(before, rig.state)
        assert not ended or (process.returncode == 0 and is_new), said
        stages = {
            "after the end": ended,
            "after publishing": is_new,
            "while publishing": publishing(rig) or set(rig.target.glob("builds/*")) != folders,
            "while parts were made": parts(rig.target) != there or any("parts/" in name for name in rig.left()),
            "before the first part": True,
        }
        count[next(stage for stage, was in stages.items() if was)] += 1
        rig.recover()
    rig.prove()
    return count


def publishing(rig: Rig) -> bool:
    """Return True if the folder of a build with manifest and catalog is being written."""
    return any((rig.target / TEMPORARY).glob("*.build"))


def first(rig: Rig) -> float:
    """Build twice and return the seconds of the second build, as the usual duration."""
    rig.recover()
    rig.change(0)
    started = time.perf_counter()
    rig.recover()
    return time.perf_counter() - started


# an input that becomes unreadable ------------------------------------------------------------------


def input_unreadable(rig: Rig, chance: random.Random, times: int) -> Count:
    """Replace a raw file by a folder, which nobody can read, at a random time; tests/runner tries other changes."""
    count: Count = Counter()
    whole = first(rig)
    for number in range(1, times + 1):
        old = rig.state
        rig.change(3 * number + 1)
        new = rig.state
        with rig.start() as process:
            time.sleep(chance.uniform(0.2, 0.9) * whole)
            os.kill(process.pid, signal.SIGSTOP)  # pause the build, so that it cannot end before the change
            rig.file(0).unlink()
            rig.file(0).mkdir()
            os.kill(process.pid, signal.SIGCONT)
            _, said = process.communicate(timeout=300)
        without = State(tuple(one for one in new.hours if one[0] != 0), new.factor)
        found = rig.which(old, new, without)
        assert (process.returncode, found) in ((2, 0), (0, 1), (0, 2)), said
        assert not process.returncode or "changed while the build ran" in said, said
        count["published" if found else "refused"] += 1
        rig.file(0).rmdir()
        rig.hour(0, 7 * number)
        rig.recover()
    return count


# too few resources --------------------------------------------------------------------------------


def disk_full(rig: Rig, chance: random.Random, times: int) -> Count:
    """Build with ever less free disk space: on a small tmpfs or, without permission to mount, a file size limit."""
    count: Count = Counter()
    with small_disk(rig.folder / "disk") as disk:
        rig.target = (disk or rig.folder) / "target"
        rig.recover()
        for number in range(1, times + 1):
            before = rig.state
            rig.change(number)
            free = int(2 ** chance.uniform(10, 24))
            if disk:
                filler = fill(disk, free)
                ended = rig.build()
                filler.unlink()
            else:
                ended = rig.build(limit=(resource.RLIMIT_FSIZE, free))
            is_new = rig.which(before, rig.state)
            assert ended.status in (0, 1, 2), ended.said
            assert bool(is_new) == (ended.status == 0), ended.said
            assert ended.status == 0 or "error: " in ended.said, ended.said
            count[f"{'published' if is_new else 'refused'}, {'tmpfs' if disk else 'RLIMIT_FSIZE'}"] += 1
            rig.recover()
    return count


def memory_short(rig: Rig, chance: random.Random, times: int) -> Count:
    """Build with too little memory for the engine, or for the process."""
    count: Count = Counter()
    rig.recover()
    for number in range(1, times + 1):
        before = rig.state
        rig.change(number)
        if number % 2:
            ended = rig.build("--memory", f"{int(2 ** chance.uniform(0, 8))}MB")
        else:
            ended = rig.build(limit=(resource.RLIMIT_AS, int(2 ** chance.uniform(27, 32))))
        is_new = rig.which(before, rig.state)
        assert bool(is_new) == (ended.status == 0), ended.said
        count[f"{'published' if is_new else 'refused'}, {'limit of the engine' if number % 2 else 'RLIMIT_AS'}"] += 1
        rig.recover()
    return count


# broken files -------------------------------------------------------------------------------------


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "cut": lambda content: content[: len(content) // 2],
    "of zeros": lambda content: bytes(len(content)),
    "one byte other": lambda content: flipped(content, len(content) // 2),
    "something else": lambda _: b"PAR1 or DUCK or { or nothing of the kind",
    "of another version": lambda content: content[:12] + (999).to_bytes(8, "little") + content[20:],
}
"""Kinds of damage to a file; one turns a DuckDB file into a file of a future version."""


def damaged(rig: Rig, chance: random.Random, times: int) -> Count:
    """Delete or damage any file of the target: the next build must succeed."""
    count: Count = Counter()
    rig.recover()
    for number in range(1, times + 1):
        files = sorted(path for path in rig.target.rglob("*") if path.is_file() and path.name != "lock")
        kinds = sorted({kind_of(rig, path) for path in files})
        kind = kinds[number % len(kinds)]
        path = chance.choice([one for one in files if kind_of(rig, one) == kind])
        damage = chance.choice([one for one in DAMAGES if one != "of another version" or path.suffix == ".duckdb"])
        broken(path, damage)
        if chance.random() < 0.5:
            rig.change(number)
        rig.recover()
        count[kind] += 1
    rig.prove()
    return count


def broken(path: Path, damage: str) -> None:
    """Damage a file, even if it is read-only or has hard links."""
    content = DAMAGES[damage](path.read_bytes())
    path.unlink()
    if content is not None:
        path.write_bytes(content)


def kind_of(rig: Rig, path: Path) -> str:
    """Return the kind of a target's file: `parts/*.json`."""
    below = path.relative_to(rig.target)
    return f"{below.parts[0]}/*{path.suffix}" if below.parts[0] == "parts" else path.name


def clock_off(rig: Rig, chance: random.Random, times: int) -> Count:
    """Build with a clock that is years off in either direction, as are the files' times."""
    count: Count = Counter()
    rig.recover()
    for number in range(1, times + 1):
        rig.change(number)
        path, clock = rig.file(number % 3), chance.randint(-(10**8), 10**8)
        os.utime(path, (1, chance.randint(1, 4 * 10**9)))
        ended = rig.build(clock=clock)
        assert ended.status == 0, ended.said
        assert rig.which(rig.state) == 0
        kept = [line.split()[0] for line in listed(rig)]
        assert kept[0] == (rig.target / "builds" / "current").read_text().strip()[: len(kept[0])], "the newest is first"
        count["built late" if clock > 0 else "built early"] += 1
    return count


def listed(rig: Rig) -> list[str]:
    """Return the lines of `warehouse builds`, without the header."""
    command = [sys.executable, "-m", "warehouse", "builds", "-t", str(rig.target)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[2:]


# concurrent builds --------------------------------------------------------------------------------


def at_once(rig: Rig, chance: random.Random, times: int) -> Count:
    """Start four builds of a target together, with and without --wait, and kill one of them."""
    count: Count = Counter()
    whole = first(rig)
    for number in range(1, times + 1):
        before = rig.state
        rig.change(number)
        builds = [rig.start(*(["--wait"] if place % 2 else [])) for place in range(4)]
        time.sleep(chance.uniform(0, whole))
        os.killpg(builds[0].pid, signal.SIGKILL)
        said = [one.communicate(timeout=300)[1] for one in builds]
        for place, one in enumerate(builds[1:], start=1):
            held = one.returncode == 3 and "another build holds" in said[place]
            assert one.returncode == 0 or (held and not place % 2), said[place]
            count["held" if held else "built or up to date"] += 1
        assert rig.which(before, rig.state) == 1, "those that wait have built"
        rig.recover()
    return count


# tools --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "24m") -> Iterator[Path | None]:
    """Mount a tmpfs and yield its folder, or None without permission to mount."""
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if not mount or os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


KILLED = "kill -9"
FAULTS: dict[str, Callable[[Rig, random.Random, int], Count]] = {
    KILLED: killed,
    "an input becomes unreadable": input_unreadable,
    "disk full": disk_full,
    "memory short": memory_short,
    "files of the target damaged": damaged,
    "clock off": clock_off,
    "four builds at once": at_once,
}


if __name__ == "__main__":
    sys.exit(main())
