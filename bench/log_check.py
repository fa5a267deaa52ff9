"""Precision and recall of a build's log tables against the truth, by kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import duckdb

from bench.log_truth import Key, Sample

KINDS = ("edges", "ranks", "iterations", "devices")
EDGES = "SELECT task, kind, channel, src_rank, dst_rank FROM topology.rank_paths"
RANKS = "SELECT task, host, pid, rank, ranks FROM topology.task_communicators WHERE host IS NOT NULL"
ITERATIONS = "SELECT task, iteration, round(loss, 6) FROM metrics.task_iterations"
DEVICES = """
    SELECT task, channel, src_rank, dst_rank, 'send', src_hca FROM topology.rank_paths WHERE src_evidence = 'log'
    UNION
    SELECT task, channel, src_rank, dst_rank, 'receive', dst_hca FROM topology.rank_paths WHERE dst_evidence = 'log'
"""


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
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as connection:
        said = {
            "edges": _by_task(connection, EDGES),
            "ranks": _by_task(connection, RANKS),
            "iterations": _by_task(connection, ITERATIONS),
            "devices": _by_task(connection, DEVICES),
        }
    found = {}
    for sample in samples:
        true: dict[str, Counter[Key]] = {
            "edges": sample.truth.edges,
            "ranks": sample.truth.ranks,
            "iterations": Counter(sample.truth.iterations.items()),
            "devices": sample.truth.devices,
        }
        found[sample.name] = [_score(kind, said[kind][sample.name], true[kind], sample) for kind in KINDS]
    return found


def _by_task(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Counter[Key]]:
    found: dict[str, Counter[Key]] = defaultdict(Counter)
    for task, *row in connection.execute(sql).fetchall():
        found[task][tuple(row)] += 1
    return found


def _score(kind: str, said: Counter[Key], true: Counter[Key], sample: Sample) -> Score:
    if kind == "iterations" and sample.damage != "none":  # ignore the missing loss of a damaged line
        losses: dict[object, float | None] = dict(sample.truth.iterations.items())
        said = Counter({(step, losses.get(step) if loss is None else loss): 1 for step, loss in said})
    if kind == "edges" and sample.damage != "none":  # without its line on a communicator, a process has one of its own
        said = Counter(dict.fromkeys(_known_edges(said, true), 1))
        true = Counter(dict.fromkeys(true, 1))
    wrong = [key for key in said if said[key] > true[key]]
    missing = [key for key in true if said[key] < true[key]]
    right = sum(min(said[key], true[key]) for key in said)
    return Score(kind, said.total(), right, true.total(), wrong, missing)


def _known_edges(said: Counter[Key], true: Counter[Key]) -> Iterable[Key]:
    """Yield the edges; replace those of unknown kind by all true edges that they could be."""
    for kind, *edge in said:
        could_be = [key for key in true if list(key[1:]) == edge] if kind == "unknown" else []
        yield from could_be or [(kind, *edge)]
