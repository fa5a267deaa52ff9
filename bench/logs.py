"""Log reader: throughput, precision and recall on synthetic logs, one core.

    python -m bench.logs                       1 GB of logs: MB per CPU second and peak memory
    python -m bench.logs --megabytes 200       a quick run
    python -m bench.logs --seeds 2000          logs of 2,000 seeds, damaged and intact: precision and recall by kind
    python -m bench.logs --seeds 1 --first 291 one seed; every error is printed

For throughput, the undamaged logs of 60 seeds are repeated, each up to its share of the size. Events are created and
dropped: the cost of storing them is not included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from bench.log_check import KINDS, scores
from bench.log_truth import DAMAGES, make_sample, write_sample
from bench.measure import machine, medians, run

SAMPLES = 60
BATCH = 250
"""Seeds per build."""
READ = """
import sys
from pathlib import Path
from warehouse.formats.logs.reader import LogReader
count = 0
rejected = []
for path in sorted(Path(sys.argv[1]).glob("*.log")):
    for event in LogReader(path.name, lambda *said: rejected.append(said)).read(path):
        count += 1
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seeds", type=int)
    options.add_argument("--first", type=int, default=0)
    given = options.parse_args()
    print(machine())
    if given.seeds:
        return _truth(given.first, given.seeds)
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        size = _write(Path(scratch), given.megabytes * 10**6) / 1e6
        cost = medians([run([sys.executable, "-c", READ, scratch]) for _ in range(given.rounds)])
    print(f"{given.rounds} rounds, one core: {size:,.0f} MB, {cost.cpu:.2f} CPU s, {size / cost.cpu:.1f} MB a CPU s,")
    print(f"at most {cost.peak_mb:.0f} MB of memory, {cost.wall:.2f} s wall")
    return 0


def _write(folder: Path, size: int) -> int:
    """Write the undamaged logs of `SAMPLES` seeds, each repeatedly; return the size of all."""
    samples = [one for one in map(make_sample, range(SAMPLES)) if one.damage == "none"]
    written = 0
    for sample in samples:
        content = b"".join(sample.files.values())
        path = folder / f"{sample.name}.log"
        path.write_bytes(content * max(1, size // len(samples) // len(content)))
        written += path.stat().st_size
    return written


def _truth(first: int, count: int) -> int:
    """Build the logs of the seeds and compare the tables with the truth."""
    totals: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    failed = 0
    for begin in range(first, first + count, BATCH):
        samples = [make_sample(seed) for seed in range(begin, min(begin + BATCH, first + count))]
        with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
            for sample in samples:
                write_sample(Path(scratch) / "data" / "logs" / "taskinfo", sample)
            target = Path(scratch) / "target"
            command = [sys.executable, "-m", "warehouse", "build", "-d", f"{scratch}/data", "--target", str(target)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            found = scores(target, samples)
        for sample in samples:
            for score in found[sample.name]:
                total = totals[score.kind, sample.damage]
                for place, number in enumerate((score.said, score.right, score.true)):
                    total[place] += number
                if score.wrong or (score.missing and sample.damage == "none"):
                    failed += 1
                    print(f"{sample.name} ({sample.about}): {score.kind}: wrong {score.wrong}, missing {score.missing}")
    print(f"{count:,} seeds, precision and recall by kind and damage; {failed} failures\n")
    print(f"{'':<12}" + "".join(f"{damage:>18}" for damage in DAMAGES))
    for kind in KINDS:
        cells = []
        for damage in DAMAGES:
            said, right, true = totals[kind, damage]
            cells.append(f"{right / said if said else 1:9.4f}{right / true if true else 1:9.4f}")
        print(f"{kind:<12}" + "".join(cells))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
