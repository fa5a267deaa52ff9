"""Numbers of findings, and pauses of jobs, recomputed from raw files for bench.acceptance.

A finding is compared by kind, place, hour and number. Groups of servers and quantities of job traces are as published.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import duckdb

from bench.acceptance_files import Job, Release, reviewed
from bench.acceptance_rules import (
    BUSY,
    USED_PARTS,
    Load,
    Owners,
    Port,
    Sheets,
    Suspect,
    balance,
    bases,
    cage,
    group,
    kind,
    line_rate,
    rail,
    suspects,
)
from bench.acceptance_uplinks import DATA, balances_by_minute, peers, spine_hours, uplinks

FULL_SECONDS, UNEVEN, LESS, TERABYTE, IDLE_SHARE, LARGE_SHARE, PAUSE = 10, 0.1, 0.1, 10**12, 0.1, 0.1, 5
OUT_OF_LINE, FAR, MANY, IN_GAP = 0.1, 1.5, 0.1, 0.01
"""Thresholds of docs/metrics/findings.md."""
Key = tuple[str, str, str]
"""Kind, cluster, place."""
Candidates = Iterator[tuple[str, str, str | None, float]]
"""Cluster, place, hour and number."""
Numbers = dict[Key, tuple[str | None, float]]
"""Hour, or None for all hours, and number of each finding."""
Owned = Mapping[tuple[str, str, str], Mapping[Port, Load]]


def jobs_of(connection: duckdb.DuckDBPyConnection) -> list[Job]:
    """Return the published groups of servers with their periods."""
    rows = connection.execute(
        "SELECT cluster, strftime(hour_utc, '%Y-%m-%d %H:%M:%S'), group_id, list(g.server), min(j.period_seconds) "
        "FROM metrics.traffic_groups AS g JOIN metrics.job_periods AS j USING (cluster, hour_utc, group_id) "
        "GROUP BY cluster, hour_utc, group_id"
    ).fetchall()
    return [Job(*row) for row in rows]


def quantities_of(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Return the published quantities of job traces."""
    return dict(connection.execute("SELECT quantity, value FROM metrics.claim_quantities").fetchall())


def owned(release: Release) -> Owned:
    """Return the ports and loads of every owner of access ports, by cluster, owner and hour."""
    listed = reviewed(DATA / "port_owners.csv")
    owners = {
        cluster: Owners(release.sheets.get(cluster, Sheets()), listed.get(cluster, {}))
        for cluster in {port.cluster for port in release.hours}
    }
    found: dict[tuple[str, str, str], dict[Port, Load]] = defaultdict(dict)
    for port, hours in release.hours.items():
        if kind(port.switch, port.port) == "access":
            for hour, load in hours.items():
                owner = owners[port.cluster].of(port.switch, port.port, load.in_bytes + load.out_bytes)
                if owner is not None:
                    found[port.cluster, owner, hour][port] = load
    return found


def pauses(release: Release) -> dict[tuple[str, str, int, int], tuple[int, int]]:
    """Return length and bytes of each pause, by cluster, hour, job and first second."""
    found: dict[tuple[str, str, int, int], tuple[int, int]] = {}
    of = owned(release)
    for job in release.jobs:
        if job.period_seconds is None:
            continue
        ports = [port for server in job.servers for port in of[job.cluster, server, job.hour]]
        series = [release.series[port, job.hour] for port in ports]
        moved = [sum(one.bytes[second] for one in series) for second in range(3600)]
        gaps = frozenset().union(*(one.gaps for one in series))
        for begin, end in _low(moved, gaps):
            if end - begin >= PAUSE and end - begin > job.period_seconds:
                found[job.cluster, job.hour, job.job_id, begin] = (end - begin, sum(moved[begin:end]))
    return found


def _low(moved: list[int], gaps: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the stretches under a tenth of the mean rate, between busy seconds and outside gaps."""
    busy = [second for second, amount in enumerate(moved) if 36_000 * amount >= sum(moved)]
    marks = sorted({*busy, *gaps} & set(range(busy[0], busy[-1] + 1)))
    for before, after in pairwise(marks):
        if after > before + 1:
            yield before + 1, after


def numbers(release: Release) -> Numbers:
    """Return hour and number of each finding of `FOUND_KINDS`, in the hour with the largest number."""
    found: Numbers = {}
    listed = [(Port(*place), name, server) for (*place, name), (server, *_) in suspect_links(release).items()]
    facts = Facts(release, listed, owned(release))
    for name, candidates in _KINDS.items():
        for cluster, place, hour, number in candidates(facts):
            key = name, cluster, place
            if key not in found or (-number, hour or "") < (-found[key][1], found[key][0] or ""):
                found[key] = hour, number
    return found


class Facts(NamedTuple):
    """What the candidates of several kinds rest on."""

    release: Release
    suspects: list[tuple[Port, str, str | None]]
    """Port, kind and server of each suspect link."""
    owned: Owned


def _short(port: Port) -> str:
    return f"{port.switch} {port.port.partition('GigE')[2]}"


def suspect_links(release: Release) -> dict[tuple[str, ...], Suspect]:
    """Return the suspect links of all clusters, by cluster, switch, port and kind."""
    clusters = {port.cluster for port in release.hours} | release.sheets.keys()
    found = peers(release)
    for cluster in clusters:
        hours = {port: loads for port, loads in release.hours.items() if port.cluster == cluster}
        found |= suspects(cluster, release.sheets.get(cluster, Sheets()), hours)
    return found


def _one_way(name: str) -> Callable[[Facts], Candidates]:
    def candidates(facts: Facts) -> Candidates:
        for port, found, _ in facts.suspects:
            if found.startswith(name):
                loads = facts.release.hours[port].values()
                yield (
                    port.cluster, _short(port), None,
                    max(sum(one.in_bytes for one in loads), sum(one.out_bytes for one in loads)),
                )  # fmt: skip

    return candidates


def _less_from_spine(facts: Facts) -> Candidates:
    suspicious = {port for port, name, _ in facts.suspects if name.startswith("uplink_") and name.endswith("_out")}
    lost: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    received: dict[tuple[str, str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for port, hour, spine, load in uplinks(facts.release):
        received[port.cluster, hour, port.switch][spine].append(load.in_bytes)
        if port in suspicious:
            lost[port.cluster, hour, spine].add(port.switch)
    for (cluster, hour, switch), spines in received.items():
        means = {spine: sum(moved) // len(moved) for spine, moved in spines.items()}
        for spine, mean in means.items():
            others = sum(means.values()) - mean
            losers = lost.get((cluster, hour, spine), {switch})
            if switch not in losers and len(means) > 1:
                share = 1 - mean * (len(means) - 1) / others if others else 0
                if share >= LESS and others >= BUSY * (len(means) - 1):
                    yield cluster, spine, hour, share


def _spine_out_of_line(facts: Facts) -> Candidates:
    for (cluster, spine, hour), (*_, over_mean, _, _, _) in spine_hours(facts.release).items():
        if over_mean is not None and abs(over_mean - 1) >= OUT_OF_LINE:
            yield cluster, spine, hour, abs(over_mean - 1)


def _uneven_minutes(facts: Facts) -> Candidates:
    one_way = {
        (port.cluster, port.switch, name.rpartition("_")[2])
        for port, name, _ in facts.suspects
        if name.startswith("uplink_")
    }
    over: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for (cluster, switch, hour, _, way), (_, cov, _, _, limit, *_) in balances_by_minute(facts.release).items():
        if cov is not None and limit and (cluster, switch, way) not in one_way:
            over[cluster, switch, way, hour].append(cov / limit)
    for (cluster, switch, way, hour), found in over.items():
        above = sum(one > 1 for one in found)
        if above and (max(found) >= FAR or above >= MANY * len(found)):
            yield cluster, f"{switch} {way}", hour, above


def _peer_differs(facts: Facts) -> Candidates:
    for port, name, _ in facts.suspects:
        if name == "peer_differs":
            yield port.cluster, _short(port), None, 1


def _observation(facts: Facts) -> Candidates:
    entered: dict[str, int] = defaultdict(int)
    in_gap: dict[str, int] = defaultdict(int)
    switches: dict[str, set[str]] = defaultdict(set)
    for port, loads in facts.release.hours.items():
        entered[port.cluster] += sum(load.in_bytes for load in loads.values())
        switches[port.cluster].add(port.switch)
    for (cluster, _, _), arrived in facts.release.arrived.items():
        polls = sorted(arrived)
        gaps = [(before - after, after) for before, after in pairwise(polls) if before < 300_000]
        if gaps:
            in_gap[cluster] += arrived[min(gaps)[1]]
    for cluster, total in entered.items():
        if total and in_gap[cluster] / total >= IN_GAP:
            yield cluster, f"{len(switches[cluster])} switches", None, in_gap[cluster] / total


def claims(release: Release) -> dict[tuple[str], tuple[float | None, str]]:
    """Return difference and verdict of each published figure, given our quantities."""
    with (DATA / "claims.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found: dict[tuple[str], tuple[float | None, str]] = {}
    for row in rows:
        ours = release.quantities.get(row["computed"])
        if ours is None:
            found[row["claim"],] = (None, "no_data")
            continue
        difference, tolerance = ours - float(row["published_value"]), float(row["tolerance"])
        agrees = {
            "equal": abs(difference) <= tolerance + 1e-9,
            "at_most": difference <= 1e-9,
            "at_least": difference >= -1e-9,
            "below": difference < 0,
            "above": difference > 0,
        }[row["relation"]]
        is_disputed = row["relation"] == "equal" and any(
            other["computed"] == row["computed"]
            and other["relation"] == "equal"
            and abs(float(other["published_value"]) - float(row["published_value"]))
            > tolerance + float(other["tolerance"]) + 1e-9
            for other in rows
        )
        found[row["claim"],] = (difference, "reproduced" if agrees else "contradicted" if is_disputed else "differs")
    return found


def _claims_differ(facts: Facts) -> Candidates:
    differ = sum(verdict in ("differs", "contradicted") for _, verdict in claims(facts.release).values())
    if differ:
        yield "all", "published figures", None, differ


def _misplaced(facts: Facts) -> dict[tuple[str, int], list[Port]]:
    """Return the ports of the servers that stand in another group than their number's."""
    found: dict[tuple[str, int], list[Port]] = defaultdict(list)
    for port, name, server in facts.suspects:
        if name == "server_in_other_group" and server:
            found[port.cluster, int(server.removeprefix("GPU-"))].append(port)
    return found


def _pairs(facts: Facts) -> Iterator[tuple[str, int, int]]:
    """Yield cluster and numbers of two servers that stand where the other belongs."""
    misplaced = _misplaced(facts)

    def home(cluster: str, server: int) -> tuple[tuple[str, int], int]:
        known = {base: leaves for leaves, base in bases(facts.release.sheets[cluster].plugs).items() if base < server}
        return known[max(known)], (server - max(known) + 1) // 2

    def places(cluster: str, server: int) -> set[tuple[tuple[str, int], int]]:
        return {(group(port.switch), cage(port.port)) for port in misplaced[cluster, server]}

    for cluster, one in misplaced:
        for other in (server for of, server in misplaced if of == cluster and server > one):
            if places(cluster, one) == {home(cluster, other)} and places(cluster, other) == {home(cluster, one)}:
                yield cluster, one, other


def _exchanged(facts: Facts) -> Candidates:
    misplaced = _misplaced(facts)
    for cluster, one, other in _pairs(facts):
        cables = len(misplaced[cluster, one]) + len(misplaced[cluster, other])
        yield cluster, f"GPU-{one} and GPU-{other}", None, cables


def _elsewhere(facts: Facts) -> Candidates:
    exchanged = {(cluster, f"GPU-{server}") for cluster, *pair in _pairs(facts) for server in pair}
    cables = Counter((port.cluster, server) for port, _, server in facts.suspects if server)
    for (cluster, server), count in cables.items():
        if (cluster, server) not in exchanged:
            yield cluster, str(server), None, count


def _uneven_leaf(facts: Facts) -> Candidates:
    moved: dict[tuple[str, str, str], list[Load]] = defaultdict(list)
    for port, found in facts.release.hours.items():
        if kind(port.switch, port.port) == "uplink":
            for hour, load in found.items():
                moved[port.cluster, port.switch, hour].append(load)
    for (cluster, switch, hour), loads in moved.items():
        for way, amounts in (("in", [one.in_bytes for one in loads]), ("out", [one.out_bytes for one in loads])):
            cov = balance(amounts)[2]
            if cov is not None and cov >= UNEVEN:
                yield cluster, f"{switch} {way}", hour, cov


def _full_nics(facts: Facts) -> Candidates:
    seconds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for (cluster, _, hour), loads in facts.owned.items():
        full = [load.full_seconds for load in loads.values() if load.full_seconds >= FULL_SECONDS]
        if full:
            seconds[cluster, hour].append(sum(full))
    yield from _largest(
        (cluster, _count(len(servers), "server"), hour, sum(servers)) for (cluster, hour), servers in seconds.items()
    )


def _largest(rows: Iterable[tuple[str, str, str, float]]) -> Candidates:
    """Yield the row of each cluster with the largest number, of the first hour if several have it."""
    found: dict[str, tuple[str, str, str, float]] = {}
    for row in sorted(rows, key=lambda row: (-row[3], row[2])):
        found.setdefault(row[0], row)
    yield from found.values()


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("s" if number != 1 else "")


def _one_way_servers(facts: Facts) -> Candidates:
    loaded = {(port.cluster, port.switch) for port in facts.release.hours}
    known: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cluster, sheet in facts.release.sheets.items():
        for plug in sheet.plugs:
            known[cluster, f"GPU-{plug.server}"].add(plug.switch)
    sums: dict[tuple[str, str, str], int] = defaultdict(int)
    for (cluster, server, hour), loads in facts.owned.items():
        if all((cluster, switch) in loaded for switch in known[cluster, server]):
            received, sent = (sum(getattr(one, f"{way}_bytes") for one in loads.values()) for way in ("out", "in"))
            for way, larger, smaller in (("receive", received, sent), ("send", sent, received)):
                if larger >= TERABYTE and 20 * smaller < larger:
                    sums[cluster, way, hour] += larger
    for (cluster, way, hour), moved in sums.items():
        yield cluster, way, hour, moved


def _idle_servers(facts: Facts) -> Candidates:
    idle: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for (cluster, _, hour), loads in facts.owned.items():
        idle[cluster, hour].append(sum(one.in_bytes + one.out_bytes for one in loads.values()) < BUSY)
    yield from _largest(
        (cluster, _count(sum(servers), "server"), hour, sum(servers) / len(servers))
        for (cluster, hour), servers in idle.items()
        if sum(servers) >= IDLE_SHARE * len(servers)
    )


def suspect_servers(release: Release) -> dict[tuple[str, str, str], tuple[int, str | None, int]]:
    """Return group, used rails and number of odd rails of the servers that differ from all others of their group."""
    of = owned(release)
    suspicious = {(cluster, server) for (cluster, *_), (server, *_) in suspect_links(release).items()}
    found: dict[tuple[str, str, str], tuple[int, str | None, int]] = {}
    for job in release.jobs:
        used = {
            server: _used_rails(of[job.cluster, server, job.hour])
            for server in job.servers
            if "/" not in server and not server.startswith("unlisted:") and (job.cluster, server) not in suspicious
        }
        for server, rails in used.items():
            odd = 0
            for name, is_used in rails.items():
                others = [one[name] for mate, one in used.items() if mate != server and name in one]
                odd += len(others) >= 2 and all(other != is_used for other in others)
            if odd:
                names = ", ".join(str(name) for name, is_used in sorted(rails.items()) if is_used)
                found[job.cluster, server, job.hour] = (job.job_id, names or None, odd)
    return found


def _used_rails(loads: Mapping[Port, Load]) -> dict[int, bool]:
    """Return whether each rail with counters is used."""
    moved: dict[int, int] = defaultdict(int)
    for port, load in loads.items():
        moved[rail(port.switch)] += load.in_bytes + load.out_bytes
    return {
        one: sum(moved.values()) >= BUSY and USED_PARTS * bytes_ >= max(moved.values()) for one, bytes_ in moved.items()
    }


def job_rails(release: Release) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Return used rails and bytes of each published group of servers."""
    found = {}
    for job, loads in _loads_of_jobs(release):
        found[job.cluster, job.hour, job.job_id] = (
            sum(_used_rails(loads).values()),
            sum(one.in_bytes + one.out_bytes for one in loads.values()),
        )
    return found


def _loads_of_jobs(release: Release) -> Iterator[tuple[Job, dict[Port, Load]]]:
    of = owned(release)
    for job in release.jobs:
        yield job, {port: load for server in job.servers for port, load in of[job.cluster, server, job.hour].items()}


def _rails_differ(facts: Facts) -> Candidates:
    for (cluster, server, hour), (_, _, odd) in suspect_servers(facts.release).items():
        yield cluster, server, hour, odd


def _fullest_link(facts: Facts) -> Candidates:
    yield from _largest(
        (port.cluster, _short(port), hour, max(load.in_bytes, load.out_bytes) * 8 / 3600 / line_rate(port.port))
        for port, loads in facts.release.hours.items()
        if kind(port.switch, port.port) != "management"
        for hour, load in loads.items()
    )


def _most_bytes(facts: Facts) -> Candidates:
    yield from _largest(
        (
            job.cluster,
            f"group of {min(job.servers, key=lambda server: (len(server), server))}",
            job.hour,
            sum(one.in_bytes + one.out_bytes for one in loads.values()),
        )
        for job, loads in _loads_of_jobs(facts.release)
    )


def _pauses(facts: Facts) -> Candidates:
    of = facts.owned
    moved: dict[tuple[str, str], int] = defaultdict(int)
    for (cluster, _, hour), loads in of.items():
        moved[cluster, hour] += sum(one.in_bytes + one.out_bytes for one in loads.values())
    paused: dict[tuple[str, str, int], int] = defaultdict(int)
    for (*job_hour, _), (seconds, _) in pauses(facts.release).items():
        paused[tuple(job_hour)] += seconds  # type: ignore[index]
    for job in facts.release.jobs:
        members = [load for server in job.servers for load in of[job.cluster, server, job.hour].values()]
        share = sum(one.in_bytes + one.out_bytes for one in members) / moved[job.cluster, job.hour]
        seconds = paused.get((job.cluster, job.hour, job.job_id), 0)
        if seconds and share > LARGE_SHARE:
            first = min(job.servers, key=lambda server: (len(server), server))
            yield job.cluster, f"group of {first}", job.hour, seconds


_KINDS: Mapping[str, Callable[[Facts], Candidates]] = {
    "uplink_silent": _one_way("uplink_silent"),
    "uplink_no_data": _one_way("uplink_no_data"),
    "less_from_spine": _less_from_spine,
    "servers_exchanged": _exchanged,
    "server_cabled_elsewhere": _elsewhere,
    "uneven_leaf": _uneven_leaf,
    "nics_at_line_rate": _full_nics,
    "one_way_servers": _one_way_servers,
    "idle_servers": _idle_servers,
    "job_pauses": _pauses,
    "rails_differ": _rails_differ,
    "spine_out_of_line": _spine_out_of_line,
    "uneven_minutes": _uneven_minutes,
    "peer_differs": _peer_differs,
    "observation": _observation,
    "claims_differ": _claims_differ,
    "fullest_link": _fullest_link,
    "job_trades_most": _most_bytes,
}
"""Candidates at their threshold, in every hour, of each kind."""
