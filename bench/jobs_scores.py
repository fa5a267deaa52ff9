"""Scores of found groups and jobs against planted ones, added over hours."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bench.jobs_models import Found

HELD = 0.95
"""Share of a job's servers in one group for the job to count as found."""
BANDS = ((0.8, 2.2), (2.2, 4.0), (4.0, 16.0), (16.0, 120.0), (120.0, 400.0))
"""Periods in seconds."""
CLOSE, WRONG = 0.003, 0.02
"""Errors of a period, as parts of it. A larger one than `WRONG` is of a multiple, an alias or nothing."""


class Period(NamedTuple):
    """Period of a planted job, and what its group says of it."""

    kind: str
    true: float
    is_held: bool
    """True if one group has most of the job's servers and few others."""
    found: float | None
    error: float | None
    """As stated."""
    source: str | None
    alias: float | None
    """Stated beside the period: the counters do not tell which."""


@dataclass
class Score:
    """Sums of a number of hours."""

    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    false_pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    periods: list[Period] = field(default_factory=list)
    cpu: Counter[str] = field(default_factory=Counter)

    def add(self, other: Score) -> None:
        """Add the hours of another score."""
        self.counts += other.counts
        self.false_pairs += other.false_pairs
        self.periods += other.periods
        self.cpu += other.cpu


def score(truth: list[dict[str, Any]], found: Found) -> Score:
    """Compare an hour with its truth, whose jobs of one server are no groups."""
    made = Score(cpu=Counter(found.cpu))
    members: dict[str, set[str]] = defaultdict(set)
    job_of: dict[str, dict[str, Any]] = {}
    for row in truth:
        members[row["job_id"]].add(row["server"])
        job_of[row["server"]] = row
    jobs = {name: job_of[next(iter(one))] for name, one in members.items() if len(one) > 1}
    holder: dict[str, int] = {}
    for name, job in jobs.items():
        kind, servers = job["kind"], members[name]
        inside = {group: servers.intersection(of) for group, of in found.groups.items()}
        best = max(inside, key=lambda group: len(inside[group]), default=None)
        size = len(inside[best]) if best is not None else 0
        made.counts["jobs", kind] += 1
        made.counts["held", kind] += size >= HELD * len(servers)
        made.counts["pure", kind] += best is not None and size >= HELD * max(len(servers), len(found.groups[best]))
        made.counts["pairs", kind] += comb(len(servers), 2)
        made.counts["together", kind] += sum(comb(len(one), 2) for one in inside.values())
        if best is not None and 2 * size > max(len(servers), len(found.groups[best])):
            holder[name] = best
        odd = _on_other_rails([row for row in truth if row["job_id"] == name])
        made.counts["on other rails", "all"] += len(odd)
        made.counts["on other rails", "found"] += len(odd.intersection(found.groups.get(holder.get(name, -1), ())))
    for of in found.groups.values():
        _false_pairs(of, job_of, made)
    _periods(jobs, holder, found, made)
    return made


def _on_other_rails(rows: list[dict[str, Any]]) -> set[str]:
    """Return the members of a job that share no rail with any other."""
    rails = [set(row.get("rails", "1")) for row in rows]
    apart = {row["server"]: [other for other in rails if not own & other] for row, own in zip(rows, rails, strict=True)}
    return {server for server, others in apart.items() if len(others) == len(rows) - 1}


def _false_pairs(group: list[str], job_of: dict[str, dict[str, Any]], made: Score) -> None:
    false_groups = 0
    for pair in combinations(group, 2):
        one, other = (job_of.get(server) for server in pair)
        if one and other and one["job_id"] == other["job_id"]:
            continue
        false_groups = 1
        kinds = sorted(row["kind"] if row else "no job" for row in (one, other))
        if one and other and _clock(one) == _clock(other):
            kinds = [f"{one['kind']}, one clock"] * 2
        made.false_pairs[kinds[0], kinds[1]] += 1
        for kind in {row["kind"] if row else "no job" for row in (one, other)}:
            made.counts["false", kind] += 1
    made.counts["groups", "all"] += 1
    made.counts["groups", "with a false pair"] += false_groups


def _clock(row: dict[str, Any]) -> str:
    return str(row["clock_of"] or row["job_id"])


def _periods(jobs: dict[str, dict[str, Any]], holder: dict[str, int], found: Found, made: Score) -> None:
    for name, job in jobs.items():
        row = found.jobs.get(holder[name], {}) if name in holder else {}
        if job["period_seconds"] is not None:
            values = (
                row.get(column)
                for column in ("period_seconds", "period_error_seconds", "resolved_from", "alias_seconds")
            )
            made.periods.append(Period(job["kind"], job["period_seconds"], name in holder, *values))


def show(made: Score) -> None:
    """Print the tables."""
    print(f"{'kind':<10}{'jobs':>6}{'95% in one':>12}{'and pure':>10}{'pairs':>9}{'recall':>8}{'precision':>11}")
    kinds = sorted(kind for what, kind in made.counts if what == "jobs")
    total: Counter[str] = Counter()
    for kind in [*kinds, "all"]:
        row = {what: made.counts[what, kind] for what in ("jobs", "held", "pure", "pairs", "together", "false")}
        if kind == "all":
            row = dict(total) | {"false": sum(made.false_pairs.values())}
        total.update(row)
        print(
            f"{kind:<10}{row['jobs']:>6}{_share(row['held'], row['jobs']):>12}{_share(row['pure'], row['jobs']):>10}"
            f"{row['pairs']:>9,}{_share(row['together'], row['pairs']):>8}"
            f"{_share(row['together'], row['together'] + row['false']):>11}"
        )
    groups = made.counts["groups", "all"]
    print(
        f"\n{groups:,} groups, {made.counts['groups', 'with a false pair']:,} with a false pair. False pairs, of which:"
    )
    for (one, other), count in made.false_pairs.most_common(8):
        print(f"{count:>8,}  {one} and {other}")
    print(f"members on other rails: {made.counts['on other rails', 'found']} of {made.counts['on other rails', 'all']}")
    _show_periods(made.periods)


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _show_periods(periods: list[Period]) -> None:
    print(
        f"\n{'true period s':<15}{'jobs':>6}{'group':>8}{'resolved':>10}{'within 0.3%':>13}{'beyond 2%':>11}"
        f"{'is alias':>10}{'median error':>14}{'in stated 68%':>15}"
    )
    rows = [(f"{low:g} to {high:g}", [one for one in periods if low <= one.true < high]) for low, high in BANDS]
    rows += [(kind, [one for one in periods if one.kind == kind]) for kind in sorted({one.kind for one in periods})]
    for source in sorted({one.source for one in periods if one.found is not None and one.source}):
        rows.append((f"from {source}", [one for one in periods if one.found is not None and one.source == source]))
    for name, some in [*rows, ("all", periods)]:
        pairs = [(one, abs(one.found / one.true - 1)) for one in some if one.found is not None]
        near = [(one, off) for one, off in pairs if off <= WRONG]
        stated = [off * one.true <= one.error for one, off in near if one.error is not None]
        other = sum(
            off > WRONG and one.alias is not None and abs(one.alias / one.true - 1) <= CLOSE for one, off in pairs
        )
        middle = f"{median(off for _, off in near):.4%}" if near else "-"
        print(
            f"{name:<15}{len(some):>6}{_share(sum(one.is_held for one in some), len(some)):>8}"
            f"{_share(len(pairs), len(some)):>10}"
            f"{_share(sum(off <= CLOSE for _, off in pairs), len(pairs)):>13}"
            f"{_share(sum(off > WRONG for _, off in pairs), len(pairs)):>11}{_share(other, len(pairs)):>10}{middle:>14}"
            f"{_share(sum(stated), len(stated)):>15}"
        )
