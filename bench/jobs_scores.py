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


@dataclass
class Score:
    """Sums of a number of hours."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What is counted, and the kind of job."""
    periods: list[Period] = field(default_factory=list)
    cpu: Counter[str] = field(default_factory=Counter)

    def add(self, other: Score) -> None:
        """Add the hours of another score."""
        self.counts += other.counts
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
    for name, servers in members.items():
        if len(servers) == 1:
            continue
        job = job_of[next(iter(servers))]
        inside = {group: servers.intersection(of) for group, of in found.groups.items()}
        best = max(inside, key=lambda group: len(inside[group]), default=None)
        size, whole = (len(inside[best]), len(found.groups[best])) if best is not None else (0, 0)
        holder = best if best is not None and 2 * size > max(len(servers), whole) else None
        odd = _on_other_rails([row for row in truth if row["job_id"] == name])
        for what, count in (
            ("jobs", 1),
            ("held", size >= HELD * len(servers)),
            ("pure", size >= HELD * max(len(servers), whole)),
            ("pairs", comb(len(servers), 2)),
            ("together", sum(comb(len(one), 2) for one in inside.values())),
            ("on other rails", len(odd)),
            ("... found", len(odd.intersection(found.groups[holder])) if holder is not None else 0),
        ):
            made.counts[what, job["kind"]] += count
            made.counts[what, "all"] += count
        if job["period_seconds"] is not None:
            row = found.jobs.get(holder, {}) if holder is not None else {}
            said = row.get("period_seconds"), row.get("period_error_seconds")
            made.periods.append(Period(job["kind"], job["period_seconds"], holder is not None, *said))
    for of in found.groups.values():
        false = [pair for pair in combinations(of, 2) if not _is_true(pair, job_of)]
        made.counts["groups", "all"] += 1
        made.counts["groups with a false pair", "all"] += bool(false)
        made.counts["false", "all"] += len(false)
        for pair in false:
            for kind in {job_of[server]["kind"] if server in job_of else "no job" for server in pair}:
                made.counts["false", kind] += 1
    return made


def _is_true(pair: tuple[str, str], job_of: dict[str, dict[str, Any]]) -> bool:
    one, other = (job_of.get(server) for server in pair)
    return bool(one and other and one["job_id"] == other["job_id"])


def _on_other_rails(rows: list[dict[str, Any]]) -> set[str]:
    """Return the members of a job that share no rail with any other."""
    rails = [set(row.get("rails", "1")) for row in rows]
    apart = {row["server"]: [other for other in rails if not own & other] for row, own in zip(rows, rails, strict=True)}
    return {server for server, others in apart.items() if len(others) == len(rows) - 1}


def show(made: Score) -> None:
    """Print the tables."""
    print(f"{'kind':<10}{'jobs':>6}{'95% in one':>12}{'and pure':>10}{'pairs':>9}{'recall':>8}{'precision':>11}")
    kinds = sorted({kind for what, kind in made.counts if what == "jobs"} - {"all"})
    for kind in [*kinds, "all"]:
        jobs, held, pure, pairs, together, false = (
            made.counts[what, kind] for what in ("jobs", "held", "pure", "pairs", "together", "false")
        )
        print(
            f"{kind:<10}{jobs:>6}{_share(held, jobs):>12}{_share(pure, jobs):>10}{pairs:>9,}"
            f"{_share(together, pairs):>8}{_share(together, together + false):>11}"
        )
    groups, bad, odd, back = (
        made.counts[what, "all"] for what in ("groups", "groups with a false pair", "on other rails", "... found")
    )
    print(f"\n{groups:,} groups, {bad:,} with a false pair; members on other rails: {back} of {odd} found")
    print(
        f"\n{'true period s':<15}{'jobs':>6}{'group':>8}{'resolved':>10}{'within 0.3%':>13}{'beyond 2%':>11}"
        f"{'median error':>14}{'in stated 68%':>15}"
    )
    rows = [(f"{low:g} to {high:g}", [one for one in made.periods if low <= one.true < high]) for low, high in BANDS]
    rows += [(kind, [one for one in made.periods if one.kind == kind]) for kind in kinds]
    for name, some in [*rows, ("all", made.periods)]:
        errors = [(one, abs(one.found / one.true - 1)) for one in some if one.found is not None]
        near = [(one, off) for one, off in errors if off <= WRONG]
        stated = [off * one.true <= one.error for one, off in near if one.error is not None]
        middle = f"{median(off for _, off in near):.4%}" if near else "-"
        print(
            f"{name:<15}{len(some):>6}{_share(sum(one.is_held for one in some), len(some)):>8}"
            f"{_share(len(errors), len(some)):>10}{_share(sum(off <= CLOSE for _, off in errors), len(errors)):>13}"
            f"{_share(len(errors) - len(near), len(errors)):>11}{middle:>14}{_share(sum(stated), len(stated)):>15}"
        )


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"
