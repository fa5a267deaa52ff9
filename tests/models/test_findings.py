"""Findings of the sample: the planted case of every kind is found with its number, and no near miss is."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench.acceptance import main as acceptance

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.models.conftest import Planted

ROOT = Path(__file__).parents[2]
RATES = {"M": 1e9, "T": 200e9, "F": 400e9}
Case = dict[str, Any]
"""Number of each finding of a kind, by place. Sentences are in models/metrics/findings.test.yaml."""


def short(port: str) -> str:
    return port.partition("GigE")[2]


def traps(planted: Planted, *kinds: str) -> list[dict[str, Any]]:
    return [trap for trap in planted.truth["traps"] if trap["kind"] in kinds]


def found(planted: Planted, kind: str) -> dict[str, tuple[float, str]]:
    """Number and sentence of the findings of a kind, by place."""
    rows = planted.rows(f"SELECT where_, number, sentence FROM metrics.findings WHERE kind = '{kind}'")
    return {where: (number, sentence) for where, number, sentence in rows}


def at_ports(planted: Planted, *kinds: str) -> Case:
    return {f"{trap['switch']} {short(trap['port'])}": 1 for trap in traps(planted, *kinds)}


def one_way(planted: Planted, kind: str) -> Case:
    expected: Case = Counter()
    for port, trap in product(planted.truth["ports"], traps(planted, f"{kind}_in", f"{kind}_out")):
        if (port["switch"], port["port"]) == (trap["switch"], trap["port"]):
            alive = port["out_bytes" if trap["kind"].endswith("in") else "in_bytes"]
            expected[f"{trap['switch']} {short(trap['port'])}"] += alive
    return expected


def cables(planted: Planted, *, of_pairs: bool) -> Case:
    rows = Counter(suspect["server"] for suspect in planted.truth["suspects"] if suspect["server"])
    pairs = [trap["servers"] for trap in traps(planted, "servers_exchanged")]
    if of_pairs:
        return {" and ".join(pair): sum(rows[one] for one in pair) for pair in pairs}
    return {server: count for server, count in rows.items() if not any(server in pair for pair in pairs)}


def spine(planted: Planted) -> Case:
    spine_of = {(one["leaf"], one["leaf_port"]): one["spine"] for one in planted.truth["uplinks"]}
    moved: dict[str, Counter[str]] = defaultdict(Counter)
    for port in planted.truth["ports"]:
        if to := spine_of.get((port["switch"], port["port"])):
            moved[port["hour_utc"]][to] += port["in_bytes"] + port["out_bytes"]
    [trap] = traps(planted, "spine_favored")
    more = max(spines[trap["spine"]] * len(spines) / spines.total() - 1 for spines in moved.values())
    return {trap["spine"]: pytest.approx(more)}


def full_nics(planted: Planted) -> Case:
    full = traps(planted, "nics_at_line_rate")[0]
    nics = len(full["nics"])
    return {f"{nics} servers": pytest.approx(nics * (full["seconds"] - 2), abs=2 * nics)}


def idle(planted: Planted) -> Case:
    count = len(traps(planted, "idle_servers")[0]["servers"])
    [(servers,)] = planted.rows("SELECT count(DISTINCT server) FROM metrics.server_hour")
    return {f"{count} servers": count / servers}


def fullest(planted: Planted) -> Case:
    share, place = max(
        (max(p["in_bytes"], p["out_bytes"]) * 8 / 3600 / RATES[p["port"][0]], f"{p['switch']} {short(p['port'])}")
        for p in planted.truth["ports"]
    )
    return {place: pytest.approx(share, rel=1e-12)}


def claims(planted: Planted) -> Case:
    asked = "SELECT count(*) FROM metrics.published_claims WHERE verdict IN ('differs', 'contradicted')"
    return {"published figures": planted.rows(asked)[0][0]}


CASES: dict[str, Callable[[Planted], Case]] = {
    "uplink_silent": lambda planted: one_way(planted, "uplink_silent"),
    "uplink_no_data": lambda planted: one_way(planted, "uplink_no_data"),
    "less_from_spine": lambda planted: {
        trap["spine"]: pytest.approx(trap["percent"] / 100, abs=0.01) for trap in traps(planted, "less_from_spine")
    },
    "servers_exchanged": lambda planted: cables(planted, of_pairs=True),
    "server_cabled_elsewhere": lambda planted: cables(planted, of_pairs=False),
    "rails_differ": lambda planted: {trap["server"]: 4 for trap in traps(planted, "rails_differ")},
    "uneven_leaf": lambda planted: {
        f"{trap['switch']} {trap['kind'].rpartition('_')[2]}": pytest.approx(0.3, abs=0.15)
        for trap in traps(planted, "uplink_silent_in", "uplink_no_data_out", "uplink_hot_out")
    },
    "spine_out_of_line": spine,
    "nics_at_line_rate": full_nics,
    "job_pauses": lambda planted: {
        f"group of {job['servers'][0]}": pytest.approx(trap["seconds"], abs=2)
        for job, trap in product(planted.truth["jobs"], traps(planted, "job_pause"))
        if job["job"] == trap["job"]
    },
    "uneven_minutes": lambda planted: {
        f"{trap['switch']} {trap['direction']}": 1 for trap in traps(planted, "uneven_minute")
    },
    "peer_differs": lambda planted: at_ports(planted, "spine_port_not_by_formula"),
    "one_way_servers": lambda planted: dict.fromkeys(("receive", "send"), pytest.approx(2e12, rel=0.9)),
    "idle_servers": idle,
    "fullest_link": fullest,
    "observation": lambda planted: {"9 switches": pytest.approx(0.2, abs=0.15)},
    "job_trades_most": lambda planted: {"group of GPU-1": pytest.approx(150e12, rel=0.5)},
    "claims_differ": claims,
}


@pytest.mark.parametrize("kind", CASES)
def test_the_planted_case_is_found_and_nothing_else(planted: Planted, kind: str) -> None:
    expected = CASES[kind](planted)
    assert expected
    assert {where: number for where, (number, _) in found(planted, kind).items()} == expected


def test_each_kind_of_the_model_has_a_line_with_its_threshold_and_a_planted_case() -> None:
    model = (ROOT / "models" / "metrics" / "findings.sql").read_text(encoding="utf-8")
    written = [kind for listed in re.findall(r"facts_of\(\[(.*)\]\)", model) for kind in re.findall(r"\w+", listed)]
    with (ROOT / "data" / "finding_kinds.csv").open(encoding="utf-8", newline="") as stream:
        kinds = list(csv.DictReader(stream))
    assert [kind["kind"] for kind in kinds] == written == list(CASES)
    assert all(all(kind.values()) for kind in kinds)
    assert [int(kind["position"]) for kind in kinds] == list(range(1, len(kinds) + 1))
    for page in {word for kind in kinds for word in re.findall(r"docs/[\w/]+\.md", kind["threshold_source"])}:
        assert (ROOT / page).is_file()


def test_the_numbers_are_those_of_the_raw_files(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    """bench.acceptance computes findings and what they rest on without the models."""
    tables = ["metrics.job_pauses", "metrics.suspect_servers", "metrics.spine_hour", "metrics.findings"]
    assert acceptance([str(planted.root), "--target", str(planted.target), "--ports", "1", "--tables", *tables]) == 0
    compared = dict(re.findall(r"^(metrics\.\w+) +(\d+) +0 ", capsys.readouterr().out, re.MULTILINE))
    assert list(compared) == tables
    assert int(compared["metrics.findings"]) >= len(CASES)
    assert all(int(rows) >= 2 for rows in compared.values())


# near misses, and what sentences say ------------------------------------------------------------


def test_control_traffic_is_told_beside_that_of_idle_links(planted: Planted) -> None:
    [(_, silent)] = found(planted, "uplink_silent").values()
    assert " and no packet came in; " in silent
    [(_, no_data)] = found(planted, "uplink_no_data").values()
    assert re.search(r"B in [\d,]+ packets went out; an idle uplink has 132.0 kB in 634 packets an hour", no_data)


def test_servers_that_answer_or_receive_little_neither_move_one_way_nor_are_idle(planted: Planted) -> None:
    [trap] = traps(planted, "one_way_servers")
    near = [trap["answers_too_much"], trap["receives_too_little"]]
    asked = f"SELECT server, rx_bytes, tx_bytes FROM metrics.server_hour WHERE server IN {tuple(near)}"
    for server, received, sent in planted.rows(asked):
        assert sent < received / 10
        assert (received >= 1e12 and sent > received / 20) if server == near[0] else 1e9 < received < 2e9
    assert traps(planted, "hardly_idle")[0]["server"] not in traps(planted, "idle_servers")[0]["servers"]


def test_a_pause_is_told_with_its_times_and_a_late_iteration_is_none(planted: Planted) -> None:
    pauses, [late, *_] = traps(planted, "job_pause"), traps(planted, "job_late")
    [(number, sentence)] = found(planted, "job_pauses").values()
    [job] = [job for job in planted.truth["jobs"] if job["job"] == late["job"]]
    assert late["seconds"] < job["period_seconds"] < number
    [(begin, end)] = re.findall(r"(\d\d:\d\d:\d\d) to (\d\d:\d\d:\d\d)", sentence)
    assert min(abs(second_of(begin) - second_of(one["start_utc"][11:])) for one in pauses) <= 1
    assert second_of(end) - second_of(begin) == number


def second_of(clock: str) -> int:
    """Return the second of the day of a time such as 16:08:20."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def test_short_bursts_are_not_at_line_rate_and_missing_polls_are_told(planted: Planted) -> None:
    full, burst = traps(planted, "nics_at_line_rate")[0], traps(planted, "near_line_rate")[0]
    at_rate = ", ".join(f"('{nic['switch']}', '{nic['port']}')" for nic in full["nics"])
    [(most,)] = planted.rows(f"SELECT max(full_seconds) FROM metrics.port_hour WHERE (switch, port) NOT IN ({at_rate})")
    assert 0 < most <= 2 * burst["seconds"]
    [(theirs, all_of_them)] = planted.rows(
        f"SELECT sum(missing_polls) FILTER (WHERE (switch, port) IN ({at_rate})), sum(missing_polls) "
        "FROM metrics.port_hour JOIN metrics.findings USING (cluster, hour_utc) WHERE kind = 'nics_at_line_rate'"
    )
    [(_, sentence)] = found(planted, "nics_at_line_rate").values()
    assert f" {theirs:,} of the {all_of_them:,} missing polls of the hour are of these ports." in sentence
    [(_, sentence)] = found(planted, "observation").values()
    assert f"no row at {sum(p['missing_polls'] for p in planted.truth['ports']):,} polls." in sentence


def test_an_uneven_leaf_is_told_with_its_reason(planted: Planted) -> None:
    for trap in traps(planted, "uplink_silent_in", "uplink_no_data_out", "uplink_hot_out"):
        _, sentence = found(planted, "uneven_leaf")[f"{trap['switch']} {trap['kind'].rpartition('_')[2]}"]
        assert ("which is the reason" in sentence) == (trap["kind"] != "uplink_hot_out")
        assert short(trap["port"]) in sentence
    [trap] = traps(planted, "one_way_servers")
    told = {way: sentence.partition(" ")[0] for way, (_, sentence) in found(planted, "one_way_servers").items()}
    assert told == {way: trap[way] for way in ("receive", "send")}


def test_consequences_stand_below_their_cause(planted: Planted) -> None:
    ranked = planted.connection.execute("SELECT kind, where_, cause FROM metrics.findings ORDER BY rank").fetchall()
    places = [where for _, where, _ in ranked]
    for at, (kind, _, cause) in enumerate(ranked):
        if cause:
            before = ranked[places.index(cause)]
            assert before[0] in ("uplink_no_data", "uplink_silent")
            assert all(one[2] == cause for one in ranked[places.index(cause) + 1 : at]), kind
    assert {kind for kind, _, cause in ranked if cause} == {"less_from_spine", "uneven_leaf"}
