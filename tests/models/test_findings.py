"""Findings: what is planted is found and nothing more, a clean sample has no warning, real ones hold by hand."""

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


def test_the_planted_dead_links_are_found_with_their_bytes(planted: Planted) -> None:
    moved = {
        (p["switch"], p["port"], way): sum(
            q[f"{way}_bytes"] for q in planted.truth["ports"] if (q["switch"], q["port"]) == (p["switch"], p["port"])
        )
        for p in planted.truth["ports"]
        for way in ("in", "out")
    }
    expected = {}
    for trap in planted.truth["traps"]:
        if trap["kind"] in ("uplink_dead_in", "uplink_dead_out"):
            alive = "in" if trap["kind"] == "uplink_dead_out" else "out"
            expected[f"{trap['switch']} {short(trap['port'])}"] = moved[trap["switch"], trap["port"], alive]
    assert len(expected) == 2
    assert {where: number for where, (number, _) in found(planted, "link_dead_one_way").items()} == expected


def test_the_planted_servers_are_found(planted: Planted) -> None:
    expected: dict[str, int] = defaultdict(int)
    for suspect in planted.truth["suspects"]:
        if suspect["server"]:
            expected[suspect["server"]] += 1
    assert len(expected) == 2
    assert {where: number for where, (number, _) in found(planted, "server_cabled_elsewhere").items()} == expected


def test_the_planted_uneven_leaves_are_found_with_their_reason(planted: Planted) -> None:
    uneven = found(planted, "uneven_leaf")
    expected = set()
    for trap in planted.truth["traps"]:
        if trap["kind"] in ("uplink_dead_in", "uplink_dead_out", "uplink_hot_out"):
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
    assert said.out.startswith("8 warnings\n\nlink dead one way: The uplink Leaf-2 1/0/35 is dead outward: ")
    assert max(map(len, said.out.splitlines())) <= 80
    told = json.loads(call("findings", "-t", planted.target, "--json", cwd=tmp_path).out)
    assert [one["severity"] for one in told[:8]] == ["warning"] * 8
    assert {one["severity"] for one in told[8:]} == {"note"}
    asked = json.loads(call("sql", "-t", planted.target, "-q", "findings", "--json", cwd=tmp_path).out)
    assert [one["sentence"] for one in asked] == [one["sentence"] for one in told]


def test_the_build_ends_with_at_most_eight_lines_of_findings(planted: Planted, tmp_path: Path) -> None:
    said = call("sql", "-t", planted.target, "-q", "after-build", "--format", "csv", cwd=tmp_path).out
    assert said.splitlines()[-1].strip('"') == "Next:  warehouse findings  (8 warnings, 6 notes, in sentences)"
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
        assert ports or named or kind in ("observation", "claims_differ"), sentence
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
    written = re.findall(
        r"'(\w+)' AS kind,", (root / "models" / "metrics" / "findings.sql").read_text(encoding="utf-8")
    )
    with (root / "data" / "finding_kinds.csv").open(encoding="utf-8", newline="") as stream:
        kinds = list(csv.DictReader(stream))
    assert [kind["kind"] for kind in kinds] == written
    assert all(kind["threshold_source"] and kind["so_what"] for kind in kinds)
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
        ("link_dead_one_way", "Leaf-10 1/0/35"),
        ("server_cabled_elsewhere", "GPU-228"),
        ("server_cabled_elsewhere", "GPU-76"),
        ("server_cabled_elsewhere", "GPU-89"),
        ("uneven_leaf", "Leaf-10 out"),
        ("fullest_link", "Leaf-17 1/0/8:2"),
        ("observation", "5 switches"),
        ("job_trades_most", "group of GPU-63"),
    ]
    number = {where: value for _, where, value, _ in rows}
    said = {where: sentence for _, where, _, sentence in rows}

    uplinks = {port: totals["Leaf-10", f"FourHundredGigE1/0/{port}"] for port in range(33, 63)}
    assert uplinks[35] == [number["Leaf-10 1/0/35"], 203_762]
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
