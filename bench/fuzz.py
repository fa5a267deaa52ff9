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

A finding prints the seed, the trial and the damaged file, which is kept in `--keep DIR`.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import duckdb

from bench.fuzz_logs import fuzz_logs
from bench.fuzz_mutations import mutate
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
        listed = self.ask("SELECT path, format FROM raw.files WHERE status IN ('read', 'partial') ORDER BY path")
        kinds: dict[str, list[Path]] = {}
        for path, kind in listed:
            if Path(str(path)).is_relative_to(self.data):
                kinds.setdefault(str(kind), []).append(Path(str(path)))
        self.files = kinds
        self.rows = self.counters()

    def build(self) -> subprocess.CompletedProcess[str]:
        """Build the data folder.

        Raises
        ------
        subprocess.TimeoutExpired
            If the build hangs.
        """
        command = [sys.executable, "-m", "warehouse", "build", "-d", str(self.data), "-t", str(self.target)]
        return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """Return rows of the published warehouse."""
        with closing(duckdb.connect(str(self.target / "warehouse.duckdb"), read_only=True)) as connection:
            return connection.execute(sql).fetchall()

    def counters(self) -> dict[str, tuple[object, ...]]:
        """Return rows and bytes of each counter file, by path."""
        sql = (
            "SELECT f.path, count(c.filename), coalesce(sum(c.InOctets), 0) FROM raw.files AS f "
            "LEFT JOIN raw.port_counters AS c ON c.filename = f.read_path "
            "WHERE f.format = 'zhejiang.port_counters' AND f.status IN ('read', 'partial') GROUP BY ALL"
        )
        return {str(path): rest for path, *rest in self.ask(sql)}  # type: ignore[misc]

    def trial(self, number: int) -> list[str]:
        """Damage a file, build, check; return the violations."""
        chance = random.Random(f"{self.seed}/{number}")
        kind = chance.choice(sorted(self.files))
        path = chance.choice(self.files[kind])
        good = path.read_bytes()
        before = self.ask("FROM meta.build")
        try:
            for _ in range(chance.choice((1, 1, 2, 3))):
                if path.is_file() and not path.is_symlink():
                    mutate(path, chance)
            problems = self.check(path, kind, before)
            if problems:
                self.save(number, path)
            return [f"seed {self.seed}, trial {number}, {kind}, {path.name}: {one}" for one in problems]
        finally:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            path.write_bytes(good)

    def check(self, path: Path, kind: str, before: list[tuple[object, ...]]) -> list[str]:
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
        return [*self.lost_lines(path, kind), *self.other_rows(path)]

    def lost_lines(self, path: Path, kind: str) -> list[str]:
        """Return the lines of a counter file that are missing from all tables."""
        if not path.is_file() or path.is_symlink():
            return []
        name = str(path).replace("'", "''")
        listed = self.ask(f"SELECT status, reason, release_path FROM raw.files WHERE path = '{name}'")
        if len(listed) != 1:
            return [f"raw.files lists it {len(listed)} times"]
        ((status, reason, release_path),) = listed
        self.seen[f"{status}"] += 1
        if status not in ("read", "partial"):
            return [] if reason else [f"it is {status} without a reason"]
        if kind != "zhejiang.port_counters":
            return []
        rejected = "SELECT count(DISTINCT line) FROM raw.rejected_rows WHERE file = '{}'"
        ((bad,),) = self.ask(rejected.format(str(release_path).replace("'", "''")))
        rows = self.counters().get(str(path), (0,))[0]
        content = path.read_bytes().replace(b"\r\n", b"\n").removesuffix(b"\n")
        lines = len([line for line in content.split(b"\n")[1:] if line.strip(b"\r")])
        return [] if int(str(rows)) + int(str(bad)) >= lines else [f"{lines} lines, {rows} rows and {bad} rejected"]

    def other_rows(self, path: Path) -> list[str]:
        """Return the undamaged files whose rows or bytes changed."""
        now = self.counters()
        return [f"{one} has other rows" for one, rows in self.rows.items() if one != str(path) and now.get(one) != rows]

    def save(self, number: int, path: Path) -> None:
        """Store the damaged file of a finding."""
        self.keep.mkdir(parents=True, exist_ok=True)
        if path.is_file() and not path.is_symlink():
            shutil.copy(path, self.keep / f"{self.seed}-{number}-{path.name}")


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


if __name__ == "__main__":
    raise SystemExit(main())
