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
from typing import NamedTuple

from bench.fault_rig import Ended, Rig, State, parts
from bench.measure import machine
from warehouse.store.atomic import TEMPORARY


class Try(NamedTuple):
    """One injection: the inputs have changed since the last good build."""

    rig: Rig
    chance: random.Random
    number: int
    before: State
    """Inputs of the last good build."""
    whole: float
    """Seconds of a build."""

    def judged(self, ended: Ended) -> str:
        """Return `published` or `refused`; a build that ends well has published, and no other one."""
        is_new = self.rig.which(self.before, self.rig.state)
        assert bool(is_new) == (ended.status == 0), ended.said
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
            count = inject(name, Rig(Path(folder)), random.Random(given.seed), times)
        what = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(count.items()))
        print(f"{name:<28}{count.total():>6,} {time.perf_counter() - started:>6.0f} s  {what}", flush=True)
    return 0


def inject(name: str, rig: Rig, chance: random.Random, times: int) -> Counter[str]:
    """Inject a fault a number of times, with a good build after each; return the number of trials by outcome."""
    count: Counter[str] = Counter()
    with small_disk(rig) if name == DISK_FULL else contextlib.nullcontext():
        rig.recover()
        rig.change(0)
        started = time.perf_counter()
        rig.recover()
        whole = time.perf_counter() - started
        for number in range(1, times + 1):
            before = rig.state
            rig.change(number)
            count[FAULTS[name](Try(rig, chance, number, before, whole))] += 1
            rig.recover()
        rig.prove()
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
        process.wait(one.chance.uniform(0, 0.1 if within else 1.1) * one.whole)
    ended = process.poll() is not None
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)  # kill the session of the build
    _, said = process.communicate()
    is_new = rig.which(one.before, rig.state)
    assert not ended or (process.returncode == 0 and is_new), said
    stages = {
        "after the end": ended,
        "after publishing": is_new,
        "while publishing": publishing(rig) or set(rig.target.glob("builds/*")) != folders,
        "while parts were made": parts(rig.target) != there or any("parts/" in name for name in rig.left()),
        "before the first part": True,
    }
    return next(stage for stage, was in stages.items() if was)


def publishing(rig: Rig) -> bool:
    """Return True if the folder of a build with manifest and catalog is being written."""
    return any((rig.target / TEMPORARY).glob("*.build"))


def input_unreadable(one: Try) -> str:
    """Replace a raw file by a folder, which nobody can read, at a random time; tests/runner tries other changes."""
    rig = one.rig
    with rig.start() as process:
        time.sleep(one.chance.uniform(0.2, 0.9) * one.whole)
        os.kill(process.pid, signal.SIGSTOP)  # pause the build, so that it cannot end before the change
        rig.file(0).unlink()
        rig.file(0).mkdir()
        os.kill(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=300)
    without = State(tuple(hour for hour in rig.state.hours if hour[0] != 0), rig.state.factor)
    found = rig.which(one.before, rig.state, without)
    assert (process.returncode, found) in ((2, 0), (0, 1), (0, 2)), said
    assert not process.returncode or "changed while the build ran" in said, said
    rig.file(0).rmdir()
    rig.hour(0, 7 * one.number)
    return "published" if found else "refused"


def disk_full(one: Try) -> str:
    """Build with less free disk space than it needs: on a small tmpfs or, if there is none, with a file size limit."""
    free, disk = int(2 ** one.chance.uniform(10, 24)), one.rig.target.parent
    if disk == one.rig.folder:
        ended = one.rig.build(limit=(resource.RLIMIT_FSIZE, free))
    else:
        filler, about = disk / "filler", os.statvfs(disk)
        filler.write_bytes(b"\0" * max(0, about.f_bavail * about.f_frsize - free))
        ended = one.rig.build()
        filler.unlink()
    assert ended.status == 0 or (ended.status in (1, 2) and "error: " in ended.said), ended.said
    return f"{one.judged(ended)}, {'RLIMIT_FSIZE' if disk == one.rig.folder else 'tmpfs'}"


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
    "of another version": lambda content: content[:12] + (999).to_bytes(8, "little") + content[20:],
}
"""Kinds of damage to a file; one turns a DuckDB file into a file of a future version."""


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
    os.utime(rig.file(one.number % 3), (1, one.chance.randint(1, 4 * 10**9)))
    ended = rig.build(clock=clock)
    assert ended.status == 0, ended.said
    assert rig.which(rig.state) == 0
    command = [sys.executable, "-m", "warehouse", "builds", "-t", str(rig.target)]
    newest = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[2].split()[0]
    assert (rig.target / "builds" / "current").read_text().startswith(newest), "the newest is first"
    return "built late" if clock > 0 else "built early"


def at_once(one: Try) -> str:
    """Start four builds of a target together, with and without --wait, and kill one of them."""
    builds = [one.rig.start(*(["--wait"] if place % 2 else [])) for place in range(4)]
    time.sleep(one.chance.uniform(0, one.whole))
    os.killpg(builds[0].pid, signal.SIGKILL)
    said = [build.communicate(timeout=300)[1] for build in builds]
    for place, build in enumerate(builds[1:], start=1):
        held = build.returncode == 3 and "another build holds" in said[place] and not place % 2
        assert build.returncode == 0 or held, said[place]
    assert one.rig.which(one.before, one.rig.state) == 1, "those that wait have built"
    return "held" if any(build.returncode == 3 for build in builds) else "built or up to date"


@contextlib.contextmanager
def small_disk(rig: Rig) -> Iterator[None]:
    """Move the target of a rig to a tmpfs of 24 MB, if there is permission to mount one."""
    disk, mount = rig.folder / "disk", shutil.which("mount")
    disk.mkdir()
    command = [mount or "", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    if not mount or os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        yield
        return
    try:
        rig.target = disk / "target"
        yield
    finally:
        subprocess.run(["umount", str(disk)], check=True)


KILLED, DISK_FULL = "kill -9", "disk full"
FAULTS: dict[str, Callable[[Try], str]] = {
    KILLED: killed,
    "an input becomes unreadable": input_unreadable,
    DISK_FULL: disk_full,
    "memory short": memory_short,
    "files of the target damaged": damaged,
    "clock off": clock_off,
    "four builds at once": at_once,
}


if __name__ == "__main__":
    sys.exit(main())
