"""Fuzz raw files of every format and check the guarantees of a build.

    python -m bench.fuzz --seed 7 --minutes 60
    python -m bench.fuzz --seed 7 --only 131            repeat one trial, by the number that a finding prints
    python -m bench.fuzz --logs --minutes 20            the reader of training logs alone: thousands of damaged logs

A trial damages one file of a small sample in one to three ways and builds into a target that holds a good build. It
checks:

- The exit status is 0, 1 or 2, without a traceback and without a hang. A build that stops names the file.
- A failed build leaves the last build unchanged.
- A successful build loses no line of a damaged counter file. The line is a row or in `staging.rejected_rows`, or
  `raw.files` lists the file with a reason.
- The rows of other files are unchanged.

With `--logs`, a damaged line never ends in a traceback, nor in an event with a number or a host that its text does not
hold. A finding prints the seed and the trial; the damaged file is kept in `--keep DIR`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import math
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

from bench.log_truth import Sample
from bench.measure import building
from warehouse.formats.logs.event import Event
from warehouse.formats.logs.line_kinds import line_kinds
from warehouse.formats.logs.reader import LogReader
from warehouse.sample import SampleOptions, write_sample

LONGEST_SECONDS = 300
SAMPLE = SampleOptions(hours=1, seconds=60, utilization=True)


class Fuzz:
    """Sample, target with a good build of it, and the content of that build."""

    def __init__(self, folder: Path, keep: Path, seed: int) -> None:
        self.data, self.target, self.keep, self.seed = folder / "data", folder / "target", keep, seed
        self.seen: Counter[str] = Counter()
        write_sample(self.data, SAMPLE)
        ended = self.build()
        if ended.returncode:
            raise SystemExit(f"the sample itself does not build:\n{ended.stderr}")
        known = """SELECT format, list(path ORDER BY path) FROM raw.files
            WHERE status IN ('read', 'partial') AND starts_with(path, ?) GROUP BY format"""
        self.files = {kind: [Path(path) for path in paths] for kind, paths in self.ask(known, f"{self.data}/")}
        self.rows = self.counters()

    def build(self) -> subprocess.CompletedProcess[str]:
        """Build the data folder; raise TimeoutExpired if the build hangs."""
        command = building(self.data, self.target)
        return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)

    def ask(self, sql: str, *values: str) -> list[Any]:
        """Return rows of the published warehouse."""
        with closing(duckdb.connect(str(self.target / "warehouse.duckdb"), read_only=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def counters(self) -> dict[str, Any]:
        """Return rows and bytes of each counter file, by path."""
        sql = """SELECT f.path, (count(c.filename), coalesce(sum(c.InOctets), 0)) FROM raw.files AS f
            LEFT JOIN raw.port_counters AS c ON c.filename = f.read_path
            WHERE f.format = 'zhejiang.port_counters' AND f.status IN ('read', 'partial') GROUP BY f.path"""
        return dict(self.ask(sql))

    def trial(self, number: int) -> list[str]:
        """Damage a file, build, check; return the violations."""
        chance = random.Random(f"{self.seed}/{number}")
        kind = chance.choice(sorted(self.files))
        path = chance.choice(self.files[kind])
        good = path.read_bytes()
        before = self.ask("FROM meta.build")
        try:
            for _ in range(chance.choice((1, 1, 2, 3))):
                if _is_file(path):
                    mutate(path, chance)
            problems = self.check(path, kind, before)
            if problems and _is_file(path):
                self.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, self.keep / f"{self.seed}-{number}-{path.name}")
            return [f"seed {self.seed}, trial {number}, {kind}, {path.name}: {one}" for one in problems]
        finally:
            # a mutation may have made a folder, a link or a pipe of it
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            path.write_bytes(good)

    def check(self, path: Path, kind: str, before: list[Any]) -> list[str]:
        """Build and return the violated guarantees."""
        try:
            ended = self.build()
        except subprocess.TimeoutExpired:
            return [f"the build takes more than {LONGEST_SECONDS} s"]
        self.seen[f"status {ended.returncode}"] += 1
        if ended.returncode not in (0, 1, 2):
            return [f"status {ended.returncode}: {ended.stderr[-500:]}"]
        if "Traceback" in ended.stderr or "nanobind" in ended.stderr:
            return [f"a traceback: {ended.stderr[-1500:]}"]
        if ended.returncode:
            message = ended.stderr.partition("error: ")[2].partition("\n")[0]
            self.seen[f"stopped: {kind}"] += 1
            print(f"  stopped by {path.name}: {message[:200]}", flush=True)
            if message.startswith("models/") or "changed while it was read" in message:
                return [f"stopped, and not in the words of its format: {message[:500]}"]
            return [] if self.ask("FROM meta.build") == before else ["a failed build changed what is published"]
        now = self.counters()
        others = [one for one, rows in self.rows.items() if one != str(path) and now.get(one) != rows]
        lost = self.lost_lines(path, kind, now) if _is_file(path) else []
        return [*lost, *(f"{one} has other rows" for one in others)]

    def lost_lines(self, path: Path, kind: str, now: dict[str, Any]) -> list[str]:
        """Return the lines of a counter file that are missing from all tables."""
        listed = self.ask("SELECT status, reason, release_path FROM raw.files WHERE path = ?", str(path))
        if len(listed) != 1:
            return [f"raw.files lists it {len(listed)} times"]
        ((status, reason, release_path),) = listed
        self.seen[f"{status}"] += 1
        if status not in ("read", "partial"):
            return [] if reason else [f"it is {status} without a reason"]
        if kind != "zhejiang.port_counters":
            return []
        ((bad,),) = self.ask("SELECT count(DISTINCT line) FROM raw.rejected_rows WHERE file = ?", release_path)
        rows = now.get(str(path), (0,))[0]
        content = path.read_bytes().replace(b"\r\n", b"\n").removesuffix(b"\n")
        lines = sum(bool(line.strip(b"\r")) for line in content.split(b"\n")[1:])
        return [] if rows + bad >= lines else [f"{lines} lines, {rows} rows and {bad} rejected"]


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def main() -> int:
    """Run trials; print each finding at once, then the counts."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--only", type=int, help="this trial alone")
    options.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="where the files of findings go")
    options.add_argument("--logs", action="store_true", help="read damaged training logs, without builds")
    given = options.parse_args()
    if given.logs:
        return 1 if fuzz_logs(given.seed, given.minutes, given.keep) else 0
    with tempfile.TemporaryDirectory(prefix="warehouse-fuzz-") as folder:
        fuzz = Fuzz(Path(folder), given.keep, given.seed)
        ends, number, findings = time.monotonic() + 60 * given.minutes, given.only or 0, 0
        while time.monotonic() < ends:
            for finding in fuzz.trial(number):
                print(finding, flush=True)
                findings += 1
            number += 1
            if given.only is not None:
                break
        counts = ", ".join(f"{name} {count:,}" for name, count in sorted(fuzz.seen.items()))
        print(f"{number - (given.only or 0):,} damaged files, {findings:,} findings; {counts}")
    return 1 if findings else 0


# mutations of raw files, aware of the structure of each format --------------------------------------

Mutate = Callable[[bytes, random.Random], bytes]
NUMBERS = (b"1e9", b"-1", b"0x10", b"", b"NaN", b"9" * 25, b"1.5", b"\xe2\x88\x921", b"1_000", b" 7 ", b"24:00:00")
ODD_BYTES = (b"\x00", b"\xff", b"\x1b[2J", b'"', b"'", b"\r", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x85", b",", b"\\")


def _in_lines(change: Callable[[list[bytes], random.Random], object]) -> Mutate:
    def mutate(content: bytes, chance: random.Random) -> bytes:
        lines = content.split(b"\n")
        change(lines, chance)
        return b"\n".join(lines)

    return mutate


def _cell(lines: list[bytes], chance: random.Random) -> None:
    """Replace a cell, remove one or insert one."""
    at = chance.randrange(len(lines))
    cells = lines[at].split(b",")
    place, how = chance.randrange(len(cells)), chance.random()
    if how < 0.66:
        cells[place] = chance.choice((*NUMBERS, *ODD_BYTES))
    elif how < 0.83:
        cells.pop(place)
    else:
        cells.insert(place, b"1")
    lines[at] = b",".join(cells)


def _swap_columns(lines: list[bytes], chance: random.Random) -> None:
    count = lines[0].count(b",") + 1
    one, other = chance.randrange(count), chance.randrange(count)
    for at, line in enumerate(lines):
        cells = line.split(b",")
        if len(cells) == count:
            cells[one], cells[other] = cells[other], cells[one]
            lines[at] = b",".join(cells)


def _long(lines: list[bytes], chance: random.Random) -> None:
    lines[chance.randrange(len(lines))] += b"x" * 3_000_000


def flip(content: bytes, chance: random.Random) -> bytes:
    """Flip bits of one byte in a thousand, and of at least one byte."""
    changed = bytearray(content)
    for _ in range(len(changed) // 1000 + 1 if changed else 0):
        changed[chance.randrange(len(changed))] ^= chance.randrange(1, 256)
    return bytes(changed)


def cut(content: bytes, chance: random.Random) -> bytes:
    """Truncate the file anywhere, most often to nothing or in its last line."""
    return content[: chance.choice((0, 1, len(content) - 1, chance.randrange(len(content) + 1)))]


def insert(content: bytes, chance: random.Random) -> bytes:
    """Insert unusual bytes."""
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(ODD_BYTES) * chance.choice((1, 1, 50)) + content[at:]


BINARY: tuple[Mutate, ...] = (flip, cut, insert, lambda content, _: content + content)
TEXT: tuple[Mutate, ...] = (
    *BINARY,
    *map(_in_lines, (_cell, _cell, _cell, _swap_columns, _long)),
    _in_lines(lambda lines, chance: lines.insert(chance.randrange(len(lines)), chance.choice(lines))),
    _in_lines(lambda lines, chance: lines.pop(chance.randrange(len(lines)))),
    _in_lines(lambda lines, chance: chance.shuffle(lines)),
    lambda content, _: content.replace(b"\n", b"\r\n"),
    lambda content, _: content.replace(b"\n", b"\r"),
    lambda content, _: content.decode("utf-8", "replace").encode("utf-16"),
    lambda content, _: gzip.compress(content),
)


def workbook(content: bytes, chance: random.Random) -> bytes:
    """Damage the XML of one part of a workbook and keep the archive valid."""
    result = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            parts = {name: source.read(name) for name in source.namelist()}
        chosen = chance.choice([name for name in parts if name.endswith(".xml")])
    except (OSError, ValueError, LookupError, NotImplementedError, EOFError, RuntimeError, zipfile.error, zlib.error):
        return flip(content, chance)  # an earlier mutation of this trial broke the archive
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as package:
        for name, part in parts.items():
            package.writestr(name, _xml(part, chance) if name == chosen else part)
    return result.getvalue()


def _xml(part: bytes, chance: random.Random) -> bytes:
    cells = list(re.finditer(rb"<v>[^<]*</v>|<t[^>]*>[^<]*</t>", part))
    how = chance.randrange(4)
    if cells and how < 3:
        found = chance.choice(cells)
        other = (b"<f>1+1</f>", b"<v>" + chance.choice(NUMBERS) + b"</v>", b"<v>#N/A</v>")[how]
        return part[: found.start()] + other + part[found.end() :]
    return chance.choice((flip, cut, insert))(part, chance)


def special(path: Path, chance: random.Random) -> None:
    """Replace a file by a link, a set of links, a pipe or a folder."""
    path.unlink()
    how = chance.randrange(6)
    if how == 0:
        os.mkfifo(path)
    elif how <= 2:
        path.mkdir()
        for number in range(50 * (how - 1)):
            target = chance.choice(("..", ".", "/", "/proc", "nowhere", f"{number - 1}.csv"))
            (path / f"{number}.csv").symlink_to(target)
    else:
        path.symlink_to(chance.choice(("/proc/self/environ", "/", "/dev/zero", "nowhere", path.name, "..")))


def mutate(path: Path, chance: random.Random) -> None:
    """Apply one mutation to a file."""
    if chance.random() < 0.08:
        special(path, chance)
        return
    content = path.read_bytes()
    ways = TEXT if path.suffix in (".csv", ".log", ".txt") else BINARY
    if path.suffix == ".xlsx" and zipfile.is_zipfile(path) and chance.random() < 0.8:
        ways = (workbook,)
    path.write_bytes(chance.choice(ways)(content, chance))


# logs -----------------------------------------------------------------------------------------------

WHOLE = (
    "step", "steps", "samples", "rank", "ranks", "local_rank", "pid", "tid", "channel", "channels", "src_rank",
    "dst_rank", "nic_index", "proxy_rank",
)  # fmt: skip
UNITS = (1.0, 1e3, 1e6, 1 / 60)
BEFORE = {"nccl": "node-1:1:2 [0] NCCL INFO ", "logger": "[2024-04-29 06:15:13,208] [INFO] [x.py:1:f] "}
LABELS = ("", "", "[rank3]:", "3: ", "(Worker pid=7, ip=10.0.0.1) ", "2024-05-23T16:00:00.5Z ", "job-worker-0 pytorch ")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
LINES = 40


def fuzz_logs(seed: int, minutes: float, keep: Path) -> int:
    """Read damaged logs for some minutes; print each finding, keep its log, return the number of findings."""
    lines = known_lines(range(seed, seed + 40))
    logs = events = findings = 0
    ends = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="warehouse-fuzz-") as scratch:
        path = Path(scratch) / "x.log"
        while time.monotonic() < ends:
            path.write_bytes(damaged_log(lines, random.Random(f"{seed}/{logs}")))
            try:
                found = list(LogReader("x.log", lambda *_: None).read(path))
                problems = [problem for event in found for problem in problems_of(event)]
            except Exception:
                found, problems = [], [traceback.format_exc()]
            for problem in problems:
                print(f"seed {seed}, log {logs}: {problem}", flush=True)
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, keep / f"{seed}-{logs}.log")
            logs, events, findings = logs + 1, events + len(found), findings + len(problems)
    print(f"{logs:,} damaged logs of {LINES} lines, {events:,} events, {findings:,} findings")
    return findings


def known_lines(seeds: Iterable[int]) -> list[str]:
    """Return the examples of all kinds of lines, and the lines of logs with these seeds."""
    files = [content for seed in seeds for content in Sample(seed).files.values()]
    examples = [BEFORE.get(kind.scope, "") + kind.example for kind in line_kinds()]
    return examples + [line for content in files for line in content.decode(errors="replace").split("\n")]


def damaged_log(lines: list[str], chance: random.Random) -> bytes:
    """Return a log of random lines, about half of them damaged."""
    few = [chance.choice(lines) for _ in range(8)]
    return b"".join(_line(few, chance) + chance.choice((b"\n", b"\n", b"\n", b"\r", b"\r\n")) for _ in range(LINES))


def _line(few: list[str], chance: random.Random) -> bytes:
    text = chance.choice(few)
    text = re.sub(r"\d", lambda digit: str(chance.randrange(10)) if chance.random() < 0.2 else digit[0], text)
    line = (chance.choice(LABELS) + text).encode()
    at = chance.randint(0, len(line))
    match chance.choice(("whole", "whole", "whole", "digits", "cut", "behead", "splice", "bytes")):
        case "cut":
            return line[:at]
        case "behead":
            return line[at:]
        case "splice":
            other = chance.choice(few).encode()
            return line[:at] + other[chance.randint(0, len(other)) :]
        case "bytes":
            return line[:at] + chance.randbytes(chance.randint(1, 4)).replace(b"\n", b"") + line[at + 2 :]
    return line


def problems_of(event: Event) -> Iterable[str]:
    """Yield the values of an event that its text does not hold."""
    text = str(event["text"])
    bare = text.replace(",", "")
    digits = {int(one) for written in (text, bare) for one in re.findall(r"\d+", written)}
    numbers = [float(one) for written in (text, bare) for one in NUMBER.findall(written)]
    for name in WHOLE:
        value = event.get(name)
        if value is not None and value not in digits and (name, event["family"]) != ("step", "lightning"):
            yield f"{name} {value} is not in {text!r}"
    for name in ("loss", "learning_rate", "seconds"):
        value = event.get(name)
        if not isinstance(value, float) or not math.isfinite(value) or not value:
            continue
        near = [unit * value for unit in UNITS] + [1 / value] if name == "seconds" else [value]
        if not any(math.isclose(one, number, rel_tol=1e-9) for one in near for number in numbers):
            yield f"{name} {value} is not in {text!r}"
    host = event.get("host")
    if host is not None and str(host) not in text:
        yield f"host {host} is not in {text!r}"


if __name__ == "__main__":
    raise SystemExit(main())
