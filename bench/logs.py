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
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import duckdb

from bench.log_truth import DAMAGES, Key, Sample
from bench.measure import Case, building, in_turn, machine, medians, run

SAMPLES = 60
BATCH = 250
"""Seeds per build."""
READ = """
import sys
from pathlib import Path
from warehouse.formats.logs.reader import LogReader
for path in sorted(Path(sys.argv[1]).glob("*.log")):
    for event in LogReader(path.name, lambda *said: None).read(path):
        pass
"""
TABLES = {
    "edges": "SELECT task, kind, channel, src_rank, dst_rank FROM topology.rank_paths",
    "ranks": "SELECT task, host, pid, rank, ranks FROM topology.task_communicators WHERE host IS NOT NULL",
    "iterations": "SELECT task, iteration, round(loss, 6) FROM metrics.task_iterations",
    "devices": """
        SELECT task, channel, src_rank, dst_rank, 'send', src_hca FROM topology.rank_paths WHERE src_evidence = 'log'
        UNION
        SELECT task, channel, src_rank, dst_rank, 'receive', dst_hca FROM topology.rank_paths
        WHERE dst_evidence = 'log'""",
}
"""Rows of each kind, as `Sample` has them."""


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
        cost = medians(in_turn({"read": Case([sys.executable, "-c", READ, scratch])}, given.rounds)["read"])
    print(f"{given.rounds} rounds, one core: {size:,.0f} MB, {cost.cpu:.2f} CPU s, {size / cost.cpu:.1f} MB a CPU s,")
    print(f"at most {cost.peak_mb:.0f} MB of memory, {cost.wall:.2f} s wall")
    return 0


def _write(folder: Path, size: int) -> int:
    """Write the undamaged logs of `SAMPLES` seeds, each repeatedly; return the size of all."""
    samples = [one for one in map(Sample, range(SAMPLES)) if one.damage == "none"]
    written = 0
    for sample in samples:
        content = b"".join(sample.files.values())
        written += (folder / f"{sample.name}.log").write_bytes(content * max(1, size // len(samples) // len(content)))
    return written


def _truth(first: int, count: int) -> int:
    """Build the logs of the seeds and compare the tables with the truth."""
    totals: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    failed = 0
    for begin in range(first, first + count, BATCH):
        samples = [Sample(seed) for seed in range(begin, min(begin + BATCH, first + count))]
        with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
            data, target = Path(scratch, "data"), Path(scratch, "target")
            for sample in samples:
                sample.write(data / "logs" / "taskinfo")
            run(Case(building(data, target)))
            found = scores(target, samples)
        for sample in samples:
            for score in found[sample.name]:
                totals[score.kind, sample.damage].update(said=score.said, right=score.right, true=score.true)
                if score.wrong or (score.missing and sample.damage == "none"):
                    failed += 1
                    print(f"{sample.name} ({sample.about}): {score.kind}: wrong {score.wrong}, missing {score.missing}")
    print(f"{count:,} seeds, precision and recall by kind and damage; {failed} failures\n")
    print(f"{'':<12}" + "".join(f"{damage:>18}" for damage in DAMAGES))
    for kind in TABLES:
        cells = [totals[kind, damage] for damage in DAMAGES]
        shares = [one["right"] / one[of] if one[of] else 1 for one in cells for of in ("said", "true")]
        print(f"{kind:<12}" + "".join(f"{share:9.4f}" for share in shares))
    return 1 if failed else 0


class Score(NamedTuple):
    """Counts of one kind in one sample."""

    kind: str
    said: int
    right: int
    true: int
    wrong: list[Key]
    missing: list[Key]


def scores(target: Path, samples: Iterable[Sample]) -> dict[str, list[Score]]:
    """Return the scores of each sample, by its name."""
    said: dict[tuple[str, str], Counter[Key]] = defaultdict(Counter)
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as connection:
        for kind, sql in TABLES.items():
            for task, *row in connection.execute(sql).fetchall():
                said[kind, task][tuple(row)] += 1
    return {one.name: [_score(kind, said[kind, one.name], one) for kind in TABLES] for one in samples}


def _score(kind: str, said: Counter[Key], sample: Sample) -> Score:
    true: Counter[Key] = getattr(sample, kind)
    if kind == "iterations" and sample.damage != "none":  # ignore the missing loss of a damaged line
        losses = {key[0]: key[1] for key in true}
        said = Counter({(step, losses.get(step) if loss is None else loss): 1 for step, loss in said})
    if kind == "edges" and sample.damage != "none":  # without its line on a communicator, a process has one of its own
        said = Counter(dict.fromkeys(_known_edges(said, true), 1))
        true = Counter(dict.fromkeys(true, 1))
    return Score(kind, said.total(), (said & true).total(), true.total(), [*(said - true)], [*(true - said)])


def _known_edges(said: Counter[Key], true: Counter[Key]) -> Iterable[Key]:
    """Yield the edges; replace those of unknown kind by all true edges that they could be."""
    for kind, *edge in said:
        could_be = [key for key in true if list(key[1:]) == edge] if kind == "unknown" else []
        yield from could_be or [(kind, *edge)]


if __name__ == "__main__":
    sys.exit(main())
