"""Findings: planted ones are found, near misses are not, a clean sample has no warning, real ones hold by hand."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

import warehouse
from bench.acceptance import main as acceptance
from tests.conftest import call
from tests.models.conftest import Planted
from warehouse.base.sentences import fields
from warehouse.project.project import Project
from warehouse.reader.findings import print_findings
from warehouse.sample import SampleOptions, write_sample
from warehouse.sample.plan import make_plan

ALL_SEEDS = range(1, 21)
BUILT_SEED = 1
"""This one is built as a whole; of all the plan is looked at."""
WRAP = 2**32


def short(port: str) -> str:
    return port.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def clean(seed: int) -> SampleOptions:
    return SampleOptions(
        seed=seed, hours=1, seconds=300, planted=False, jobs=False, utilization=False, hour_tables=False
    )


def found(planted: Planted, kind: str) -> dict[str, tuple[float, str]]:
    """Number and sentence of the findings of a kind, by place."""
    rows = planted.rows(f"SELECT where_, number, sentence FROM metrics.findings WHERE kind = '{kind}'")
    return {where: (number, sentence) for where, number, sentence in rows}


def test_the_planted_links_without_data_are_found_with_their_bytes(planted: Planted) -> None:
    moved = {
        (p["switch"], p["port"], way): sum(
            q[f"{way}_bytes"] for q in planted.truth["ports"] if (q["switch"], q["port"]) == (p["switch"], p["port"])
        )
        for p in planted.truth["ports"]
        for way in ("in", "out")
    }
    expected: dict[str, dict[str, int]] = {"uplink_no_data": {}, "uplink_silent": {}}
    for trap in planted.truth["traps"]:
        kind, _, way = trap["kind"].rpartition("_")
        if kind in expected:
            alive = "in" if way == "out" else "out"
            expected[kind][f"{trap['switch']} {short(trap['port'])}"] = moved[trap["switch"], trap["port"], alive]
    for kind, links in expected.items():
        assert len(links) == 1
        assert {where: number for where, (number, _) in found(planted, kind).items()} == links
    [(_, silent)] = found(planted, "uplink_silent").values()
    assert " and no packet came in; " in silent
    [(_, no_data)] = found(planted, "uplink_no_data").values()
    assert re.search(r"B in [\d,]+ packets went out; an idle uplink has 132.0 kB in 634 packets an hour", no_data)


def test_idle_uplinks_of_the_fabric_are_compared_with_and_no_finding_themselves(tmp_path: Path) -> None:
    """No user data passes the second storage leaf."""
    options = SampleOptions(hours=1, seconds=300, storage_leaves=2, jobs=False, utilization=False, hour_tables=False)
    write_sample(tmp_path / "sample", options)
    warehouse.build(tmp_path / "sample" / "zhejiang", tmp_path / "target", select=["metrics.suspect_links"], threads=2)
    with warehouse.open(tmp_path / "target") as connection:
        rows = connection.execute(
            "SELECT switch, evidence FROM metrics.suspect_links WHERE starts_with(kind, 'uplink_') ORDER BY kind"
        ).fetchall()
        [(idle,)] = connection.execute(
            "SELECT median(out_packets) FROM metrics.port_hour "
            "WHERE switch = 'ST-leaf-2' AND port_class = 'storage_uplink'"
        ).fetchall()
    assert [switch for switch, _ in rows] == ["Leaf-2", "Leaf-7"]
    assert f" in {idle:.0f} packets an hour (median of the fabric's own)" in rows[0][1]


def test_the_planted_servers_are_found(planted: Planted) -> None:
    expected: dict[str, int] = defaultdict(int)
    for suspect in planted.truth["suspects"]:
        if suspect["server"]:
            expected[suspect["server"]] += 1
    [pair] = [trap["servers"] for trap in planted.truth["traps"] if trap["kind"] == "servers_exchanged"]
    cables = sum(expected.pop(server) for server in pair)
    assert len(expected) == 2
    assert {where: number for where, (number, _) in found(planted, "server_cabled_elsewhere").items()} == expected
    assert {where: number for where, (number, _) in found(planted, "servers_exchanged").items()} == {
        " and ".join(pair): cables
    }


def trap_of(planted: Planted, kind: str) -> dict[str, Any]:
    """Return the only planted trap of a kind, or the first."""
    return next(trap for trap in planted.truth["traps"] if trap["kind"] == kind)


def test_servers_that_move_one_way_and_idle_ones_are_told_from_those_that_nearly_do(planted: Planted) -> None:
    trap = trap_of(planted, "one_way_servers")
    told = found(planted, "one_way_servers")
    assert {way: sentence.partition(" ")[0] for way, (_, sentence) in told.items()} == {
        way: trap[way] for way in ("receive", "send")
    }
    near = [trap["answers_too_much"], trap["receives_too_little"]]
    asked = f"SELECT server, rx_bytes, tx_bytes FROM metrics.server_hour WHERE server IN {tuple(near)}"
    for server, received, sent in planted.rows(asked):
        assert sent < received / 10
        assert (received >= 1e12 and sent > received / 20) if server == near[0] else 1e9 < received < 2e9
    [(where, (share, sentence))] = found(planted, "idle_servers").items()
    idle = trap_of(planted, "idle_servers")["servers"]
    assert trap_of(planted, "hardly_idle")["server"] not in idle
    assert where == f"{len(idle)} servers"
    [(servers,)] = planted.rows("SELECT count(DISTINCT server) FROM metrics.server_hour")
    assert share == pytest.approx(len(idle) / servers)
    assert sentence == f"{len(idle)} of {servers} servers ({100 * share:.1f} %) moved under 1 GB in the hour."


def test_a_pause_is_told_from_a_late_iteration_and_from_the_end_of_a_job(planted: Planted) -> None:
    """The planted job pauses once in an hour, and is once late by less than its period; another job ends."""
    pauses = [trap for trap in planted.truth["traps"] if trap["kind"] == "job_pause"]
    pause, late = pauses[0], trap_of(planted, "job_late")
    [(where, (number, sentence))] = found(planted, "job_pauses").items()
    [job] = [job for job in planted.truth["jobs"] if job["job"] == pause["job"]]
    assert where == f"group of {job['servers'][0]}"
    assert abs(number - pause["seconds"]) <= 2
    assert late["seconds"] < job["period_seconds"]
    [(begin, end)] = re.findall(r"(\d\d:\d\d:\d\d) to (\d\d:\d\d:\d\d)", sentence)
    assert min(abs(second_of(begin) - second_of(one["start_utc"][11:])) for one in pauses) <= 1
    assert second_of(end) - second_of(begin) == number


def second_of(clock: str) -> int:
    """Return the second of the day of a time such as 16:08:20."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def test_nics_at_line_rate_are_told_from_those_with_short_bursts(planted: Planted) -> None:
    full, burst = trap_of(planted, "nics_at_line_rate"), trap_of(planted, "near_line_rate")
    [(where, (number, sentence))] = found(planted, "nics_at_line_rate").items()
    servers = {nic["server"] for nic in full["nics"]}
    assert where == f"{len(servers)} servers"
    assert len(full["nics"]) * (full["seconds"] - 4) <= number <= len(full["nics"]) * full["seconds"]
    assert set(re.findall(r"GPU-\d+", sentence)) == servers
    [(most,)] = planted.rows(
        "SELECT max(full_seconds) FROM metrics.port_hour WHERE (switch, port) NOT IN ("
        + ", ".join(f"('{nic['switch']}', '{nic['port']}')" for nic in full["nics"])
        + ")"
    )
    assert 0 < most <= 2 * burst["seconds"]
    lost = ", ".join(f"('{nic['switch']}', '{nic['port']}')" for nic in full["nics"])
    [(hour,)] = planted.rows("SELECT hour_utc FROM metrics.findings WHERE kind = 'nics_at_line_rate'")
    [(theirs, all_of_them)] = planted.rows(
        f"SELECT sum(missing_polls) FILTER (WHERE (switch, port) IN ({lost})), sum(missing_polls) "
        f"FROM metrics.port_hour WHERE hour_utc = '{hour}'"
    )
    assert f" {theirs:,} of the {all_of_them:,} missing polls of the hour are of these ports." in sentence


def test_the_numbers_are_those_of_the_raw_files(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    """bench.acceptance computes findings and pauses without the models."""
    tables = ["metrics.job_pauses", "metrics.findings"]
    assert acceptance([str(planted.root), "--target", str(planted.target), "--ports", "1", "--tables", *tables]) == 0
    compared = dict(re.findall(r"^(metrics\.\w+) +(\d+) +0 ", capsys.readouterr().out, re.MULTILINE))
    assert int(compared["metrics.job_pauses"]) >= 2
    assert int(compared["metrics.findings"]) >= 14


def test_a_leaf_that_gets_less_from_a_spine_stands_below_the_link_that_sends_nothing(planted: Planted) -> None:
    trap = trap_of(planted, "less_from_spine")
    [(where, (number, sentence))] = found(planted, "less_from_spine").items()
    assert where == trap["spine"]
    assert number == pytest.approx(trap["percent"] / 100, abs=0.01)
    assert sentence.startswith(f"{trap['switch']} gets {trap['percent']} % less from {trap['spine']} than from")
    ranked = planted.connection.execute("SELECT kind, where_, cause FROM metrics.findings ORDER BY rank").fetchall()
    places = [where for _, where, _ in ranked]
    for at, (kind, _, cause) in enumerate(ranked):
        if cause:
            before = ranked[places.index(cause)]
            assert before[0] in ("uplink_no_data", "uplink_silent")
            assert all(one[2] == cause for one in ranked[places.index(cause) + 1 : at]), kind
    assert {kind for kind, _, cause in ranked if cause} == {"less_from_spine", "uneven_leaf"}


def test_the_planted_uneven_leaves_are_found_with_their_reason(planted: Planted) -> None:
    uneven = found(planted, "uneven_leaf")
    expected = set()
    for trap in planted.truth["traps"]:
        if trap["kind"] in ("uplink_silent_in", "uplink_no_data_out", "uplink_hot_out"):
            where = f"{trap['switch']} {trap['kind'].rpartition('_')[2]}"
            expected.add(where)
            is_reason = "which is the reason" in uneven[where][1]
            assert is_reason == (trap["kind"] != "uplink_hot_out")
            assert short(trap["port"]) in uneven[where][1]
    assert len(expected) == 3
    assert set(uneven) == expected


def test_the_planted_spine_is_found_with_its_share(planted: Planted) -> None:
    spine_of = {(one["leaf"], one["leaf_port"]): one["spine"] for one in planted.truth["uplinks"]}
    moved: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for port in planted.truth["ports"]:
        if spine := spine_of.get((port["switch"], port["port"])):
            moved[port["hour_utc"]][spine] += port["in_bytes"] + port["out_bytes"]
    [trap] = [trap for trap in planted.truth["traps"] if trap["kind"] == "spine_favored"]
    [(spine, (number, sentence))] = found(planted, "spine_out_of_line").items()
    assert spine == trap["spine"]
    assert number == pytest.approx(max(spines[spine] * 3 / sum(spines.values()) - 1 for spines in moved.values()))
    assert sentence.startswith(f"{spine} carried {100 * number:.1f} % more than the mean of the spines: ")


def test_the_notes_are_those_of_the_truth(planted: Planted) -> None:
    rates = {"TwoHundredGigE": 200e9, "FourHundredGigE": 400e9}
    shares = {
        f"{p['switch']} {short(p['port'])}": max(p["in_bytes"], p["out_bytes"]) * 8 / 3600 / rate
        for p in sorted(planted.truth["ports"], key=lambda p: max(p["in_bytes"], p["out_bytes"]))
        for name, rate in rates.items()
        if p["port"].startswith(name)
    }
    [(where, (number, _))] = found(planted, "fullest_link").items()
    assert number == pytest.approx(shares[where], rel=1e-12)
    [(where, (number, sentence))] = found(planted, "observation").items()
    assert where == "9 switches"
    missing = sum(p["missing_polls"] for p in planted.truth["ports"])
    assert f"no row at {missing:,} polls." in sentence
    [(where, _)] = found(planted, "job_trades_most").items()
    groups = [job["servers"] for job in planted.truth["jobs"]]
    assert any(where.removeprefix("group of ") in servers for servers in groups)


def test_the_command_tells_warnings_first_and_the_same_as_json(planted: Planted, tmp_path: Path) -> None:
    said = call("findings", "-t", planted.target, cwd=tmp_path)
    assert said.status == 0
    assert said.out.startswith("10 warnings\n\nlink silent one way: The uplink Leaf-7 1/0/37 is silent inward: ")
    out = said.out.replace(f" -t {planted.target}", "")  # a command is not broken
    assert max(map(len, out.splitlines())) <= 80
    told = json.loads(call("findings", "-t", planted.target, "--json", cwd=tmp_path).out)
    assert [one["severity"] for one in told[:10]] == ["warning"] * 10
    assert {one["severity"] for one in told[10:]} == {"note"}
    assert out.endswith(f"\n\nand {len(told) - 12} more: warehouse sql -q findings\n")
    assert [one["what"] in said.out for one in told[:12]] == [True] * 12
    assert told[12]["sentence"][:20] not in said.out
    asked = json.loads(call("sql", "-t", planted.target, "-q", "findings", "--json", cwd=tmp_path).out)
    assert [one["sentence"] for one in asked] == [one["sentence"] for one in told]


def test_the_build_ends_with_at_most_eight_lines_of_findings(planted: Planted, tmp_path: Path) -> None:
    said = call("sql", "-t", planted.target, "-q", "after-build", "--format", "csv", cwd=tmp_path).out
    assert said.splitlines()[-1].strip('"') == "Next:  warehouse findings  (10 warnings, 11 notes, in sentences)"
    lines = [line for line in said.splitlines() if "warning" in line or "note" in line]
    assert len(lines) == 8
    assert max(map(len, lines)) <= 73


def test_each_command_that_a_finding_names_runs(planted: Planted, tmp_path: Path) -> None:
    for (command,) in planted.rows("SELECT DISTINCT look_further FROM metrics.findings"):
        words = command.split()
        assert words[0] == "warehouse"
        assert call(*words[1:], "-t", planted.target, cwd=tmp_path).status == 0, command


def test_the_command_of_a_finding_shows_each_port_server_and_spine_that_it_names(
    planted: Planted, tmp_path: Path
) -> None:
    for kind, sentence, command in planted.rows("SELECT kind, sentence, look_further FROM metrics.findings"):
        said = call(*command.split()[1:], "--format", "table", "-t", planted.target, cwd=tmp_path).out
        ports = re.findall(r"\b\d/\d/\d+(?::\d)?", sentence)
        named = re.findall(r"\b(?:GPU|ST-leaf|spine)-\d+(?:/\d+)?|\bLeaf-\d+\b(?!\.)", sentence)
        assert ports or named or kind in ("observation", "idle_servers", "claims_differ"), sentence
        assert [
            name for name in (*ports, *named) if not re.search(rf"{re.escape(name)}(?!\d)", command + said)
        ] == [], said


def test_a_clean_sample_has_no_warning(tmp_path: Path) -> None:
    write_sample(tmp_path / "sample", clean(BUILT_SEED))
    truth = json.loads((tmp_path / "sample" / "truth.json").read_text(encoding="utf-8"))
    assert truth["suspects"] == []
    warehouse.build(tmp_path / "sample" / "zhejiang", tmp_path / "target", select=["metrics.findings"], threads=2)
    with warehouse.open(tmp_path / "target") as connection:
        assert connection.execute("FROM metrics.suspect_links").fetchall() == []
        severities = connection.execute("SELECT severity, count(*) FROM metrics.findings GROUP BY ALL").fetchall()
    assert severities == [("note", 2)]
    assert call("findings", "-t", tmp_path / "target", cwd=tmp_path).out.startswith("No warnings\n\n2 notes\n")


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_the_uplinks_of_a_clean_plan_are_even_and_alive(seed: int) -> None:
    """The bytes themselves, before they are written: far below the thresholds of a finding."""
    plan = make_plan(clean(seed))
    assert not any(place.is_visitor or place.wrong_rail is not None for place in plan.fabric.places)
    of_spines: dict[int, int] = defaultdict(int)
    for switch in plan.fabric.switches:
        for position, port in enumerate(switch.ports):
            if port.spine:
                both = plan.traffic.into[switch.name][position], plan.traffic.out[switch.name][position]
                of_spines[port.spine] += sum(int(series.sum()) for series in both)
        at = [position for position, port in enumerate(switch.ports) if port.kind == "uplink"]
        for series in (plan.traffic.into[switch.name], plan.traffic.out[switch.name]):
            moved = [int(series[position].sum()) for position in at]
            assert not moved or deviation(moved) < 0.03
    assert deviation(list(of_spines.values())) < 0.03


def test_a_full_sample_is_never_clean(tmp_path: Path) -> None:
    said = call("sample", "s", "--full", "--clean", cwd=tmp_path)
    assert said.status == 2
    assert "a full sample is always planted" in said.err


def test_a_workbook_alone_gives_nothing_and_that_is_said(tmp_path: Path) -> None:
    write_sample(tmp_path / "sample", replace(clean(1), seconds=60))
    shutil.rmtree(next((tmp_path / "sample" / "zhejiang").glob("*/trafficinfo")))
    said = call("build", "-d", "sample/zhejiang", "-t", "t", "-s", "metrics.findings", cwd=tmp_path)
    assert "Nothing found of what is looked for" in said.err
    assert call("findings", "-t", "t", cwd=tmp_path).out.startswith("Nothing found of what is looked for: ")
    assert call("findings", "-t", "t", "--json", cwd=tmp_path).out == "[]\n"


def test_each_warning_of_a_model_has_a_sentence_that_its_rows_fill(planted: Planted) -> None:
    project = Project.open(None)
    warned = [(model, check) for model in project.models.values() for check in model.checks if check.warn]
    assert len(warned) > 20
    assert [(model.name, check.text) for model, check in warned if not check.says] == []
    for model, check in warned:
        if check.text.startswith("none:"):
            asked = re.sub(r"\bthis\b", model.name, check.text.removeprefix("none:"))
            given = [name for name, *_ in planted.connection.execute(f"DESCRIBE {asked}").fetchall()]
        else:
            given = [column.name for column in model.columns]
        assert set(fields(check.says)) <= set(given), check.says


def test_nothing_found_is_one_line() -> None:
    out = io.StringIO()
    print_findings([], out, 80)
    assert out.getvalue().count("\n") == 1


def test_each_kind_of_the_model_has_a_line_with_its_threshold_and_each_line_a_kind() -> None:
    root = Path(__file__).parents[2]
    model = (root / "models" / "metrics" / "findings.sql").read_text(encoding="utf-8")
    written = [kind for listed in re.findall(r"facts_of\(\[(.*)\]\)", model) for kind in re.findall(r"\w+", listed)]
    with (root / "data" / "finding_kinds.csv").open(encoding="utf-8", newline="") as stream:
        kinds = list(csv.DictReader(stream))
    assert [kind["kind"] for kind in kinds] == written
    assert all(all(kind.values()) for kind in kinds)
    assert [int(kind["position"]) for kind in kinds] == list(range(1, len(kinds) + 1))
    for page in {word for kind in kinds for word in re.findall(r"docs/[\w/]+\.md", kind["threshold_source"])}:
        assert (root / page).is_file()


def deviation(values: list[int]) -> float:
    """Population standard deviation over mean."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean


@pytest.fixture(scope="module")
def moved(real: Path) -> tuple[dict[tuple[str, str], list[int]], float]:
    """Bytes in and out of each real port, and the share of all bytes in after the opening gap; plain Python."""
    totals: dict[tuple[str, str], list[int]] = {}
    times: dict[str, set[int]] = defaultdict(set)
    early: dict[tuple[str, int], int] = defaultdict(int)
    for path in (real / "zhejiang").rglob("trafficinfo/*/*/*.csv"):
        columns = polars.read_csv(path, columns=["SaveTimeUTC", "DeviceName", "PortName", "InOctets", "OutOctets"])
        [device], [port] = (set(columns[name]) for name in ("DeviceName", "PortName"))
        name = device.partition("ST-leaf-" if "ST-leaf-" in device else "Leaf-")
        switch = name[1] + name[2].partition(".")[0]
        polled = (columns["SaveTimeUTC"] % 3_600_000).to_list()
        into, out = (columns[way].to_list() for way in ("InOctets", "OutOctets"))
        totals[switch, port] = [sum(value + WRAP if value < 0 else value for value in way) for way in (into, out)]
        times[switch].update(polled)
        for stamp, value in zip(polled, into, strict=True):
            if stamp < 900_000:
                early[switch, stamp] += max(value, 0)
    after = 0
    for switch_name, stamps in times.items():
        ordered = sorted(stamps)
        _, end = max(((late - soon, -late) for soon, late in pairwise(ordered) if soon < 300_000))
        after += early[switch_name, -end]
    return totals, after / sum(into for into, _ in totals.values())


@pytest.mark.real
def test_the_findings_of_the_five_switches_hold_in_plain_python(
    moved: tuple[dict[tuple[str, str], list[int]], float], real_built: duckdb.DuckDBPyConnection
) -> None:
    totals, gap_share = moved
    rows: list[tuple[Any, ...]] = real_built.execute(
        "SELECT kind, where_, number, sentence FROM metrics.findings ORDER BY rank"
    ).fetchall()
    assert [(kind, where) for kind, where, _, _ in rows] == [
        ("uplink_no_data", "Leaf-10 1/0/35"),
        ("uneven_leaf", "Leaf-10 out"),
        ("servers_exchanged", "GPU-76 and GPU-228"),
        ("server_cabled_elsewhere", "GPU-89"),
        ("nics_at_line_rate", "4 servers"),
        ("job_pauses", "group of GPU-63"),
        ("idle_servers", "97 servers"),
        ("fullest_link", "Leaf-17 1/0/8:2"),
        ("observation", "5 switches"),
        ("job_trades_most", "group of GPU-63"),
    ]
    number = {where: value for kind, where, value, _ in rows if kind != "job_pauses"}
    said = {where: sentence for kind, where, _, sentence in rows if kind != "job_pauses"}

    uplinks = {port: totals["Leaf-10", f"FourHundredGigE1/0/{port}"] for port in range(33, 63)}
    assert uplinks[35] == [number["Leaf-10 1/0/35"], 203_762]
    assert "in 1 hour 6.8 TB came in and 203.8 kB in 1,688 packets went out; " in said["Leaf-10 1/0/35"]
    assert sum(out < 10**9 for _, out in uplinks.values()) == 1
    assert number["Leaf-10 out"] == pytest.approx(deviation([out for _, out in uplinks.values()]), rel=1e-9)
    others = deviation([out for port, (_, out) in uplinks.items() if port > 35])
    assert f" of the mean over all its uplinks, {100 * others:.1f} % over those to other" in said["Leaf-10 out"]

    shares = {
        key: max(both) * 8 / 3600 / (200e9 if key[1].startswith("Two") else 400e9)
        for key, both in totals.items()
        if not key[1].startswith("M-")
    }
    fullest = max(shares, key=lambda key: shares[key])
    assert fullest == ("Leaf-17", "TwoHundredGigE1/0/8:2")
    assert number["Leaf-17 1/0/8:2"] == pytest.approx(shares[fullest], rel=1e-12)
    is_uplink = {key: key[1].startswith("Four") and (key[0].startswith("ST-") or 33 <= int(key[1][19:]) <= 62)
                 for key in shares}  # fmt: skip
    upward = max((key for key in shares if is_uplink[key] and not (key[0].startswith("ST-") and int(key[1][19:]) < 55)),
                 key=lambda key: shares[key])  # fmt: skip
    assert said["Leaf-17 1/0/8:2"].startswith("Of the links observed (5 of 24 leaves), the fullest is Leaf-17 1/0/8:2")
    assert f"{upward[0]} {short(upward[1])}: {100 * shares[upward]:.1f} % of its own." in said["Leaf-17 1/0/8:2"]

    assert number["5 switches"] == pytest.approx(gap_share, rel=1e-6)

    ports = real_built.execute(
        "SELECT o.switch, o.port FROM topology.hour_owners AS o JOIN metrics.traffic_groups AS g "
        "USING (cluster, server, hour_utc) WHERE g.group_id = (SELECT group_id FROM metrics.traffic_groups "
        "WHERE server = 'GPU-63')"
    ).fetchall()
    assert number["group of GPU-63"] == sum(sum(totals[key]) for key in ports)
    assert " at their NICs on loaded leaves (1 of 4 per server), " in said["group of GPU-63"]
    access = sum(sum(both) for (_, port), both in totals.items() if port.startswith("Two"))
    assert f"{100 * number['group of GPU-63'] / access:.1f} % of the bytes of all servers" in said["group of GPU-63"]
