"""Findings: planted cases of the sample and those of the real files, with the numbers that the raw files have."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.acceptance import main as acceptance

if TYPE_CHECKING:
    import duckdb

    from tests.models.conftest import Planted

ROOT = Path(__file__).parents[2]


def ports(planted: Planted, *kinds: str) -> set[str]:
    """Return the ports of planted cases as findings name them."""
    return {f"{trap['switch']} {trap['port'].partition('GigE')[2]}" for trap in planted.traps(*kinds)}


def planted_places(planted: Planted) -> dict[str, set[str]]:
    """Return where each kind of finding was planted. Numbers are those of bench.acceptance, sentences those of YAML."""
    truth = planted.truth
    pairs = [trap["servers"] for trap in planted.traps("servers_exchanged")]
    elsewhere = {suspect["server"] for suspect in truth["suspects"] if suspect["server"]}
    late = {trap["job"] for trap in planted.traps("job_pause")}
    uneven = planted.traps("uplink_silent_in", "uplink_no_data_out", "uplink_hot_out")
    return {
        "uplink_silent": ports(planted, "uplink_silent_in"),
        "uplink_no_data": ports(planted, "uplink_no_data_in", "uplink_no_data_out"),
        "less_from_spine": {trap["spine"] for trap in planted.traps("less_from_spine")},
        "servers_exchanged": {" and ".join(pair) for pair in pairs},
        "server_cabled_elsewhere": elsewhere.difference(*pairs),
        "rails_differ": {trap["server"] for trap in planted.traps("rails_differ")},
        "uneven_leaf": {f"{trap['switch']} {trap['kind'].rpartition('_')[2]}" for trap in uneven},
        "spine_out_of_line": {trap["spine"] for trap in planted.traps("spine_favored")},
        "nics_at_line_rate": {f"{len(trap['nics'])} servers" for trap in planted.traps("nics_at_line_rate")},
        "job_pauses": {f"group of {job['servers'][0]}" for job in truth["jobs"] if job["job"] in late},
        "uneven_minutes": {f"{trap['switch']} {trap['direction']}" for trap in planted.traps("uneven_minute")},
        "peer_differs": ports(planted, "spine_port_not_by_formula"),
        "one_way_servers": {"receive", "send"},
        "idle_servers": {f"{len(trap['servers'])} servers" for trap in planted.traps("idle_servers")},
    }


def test_the_planted_cases_are_found_and_nothing_else(planted: Planted) -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for kind, where in planted.rows("SELECT kind, where_ FROM metrics.findings"):
        found[kind].add(where)
    expected = planted_places(planted)
    assert all(expected.values())
    assert {kind: found[kind] for kind in expected} == expected
    assert found.keys() - expected.keys() == {"fullest_link", "observation", "job_trades_most", "claims_differ"}


def test_each_kind_of_the_model_has_a_line_with_its_threshold() -> None:
    model = (ROOT / "models" / "metrics" / "findings.sql").read_text(encoding="utf-8")
    written = [kind for listed in re.findall(r"facts_of\(\[(.*)\]\)", model) for kind in re.findall(r"\w+", listed)]
    with (ROOT / "data" / "finding_kinds.csv").open(encoding="utf-8", newline="") as stream:
        kinds = list(csv.DictReader(stream))
    assert [kind["kind"] for kind in kinds] == written
    assert all(all(kind.values()) for kind in kinds)
    assert [int(kind["position"]) for kind in kinds] == list(range(1, len(kinds) + 1))
    for page in {word for kind in kinds for word in re.findall(r"docs/[\w/]+\.md", kind["threshold_source"])}:
        assert (ROOT / page).is_file()


# the real files -----------------------------------------------------------------------------------

SAID = {
    ("uplink_no_data", "Leaf-10 1/0/35"): "in 1 hour 6.8 TB came in and 203.8 kB in 1,688 packets went out; ",
    ("uneven_leaf", "Leaf-10 out"): "18.6 % of the mean over all its uplinks, 1.1 % over those to other spines.",
    ("servers_exchanged", "GPU-76 and GPU-228"): "hold each other's slot",
    ("server_cabled_elsewhere", "GPU-89"): "the busy unlisted port Leaf-5 1/0/15:2 fits.",
    ("nics_at_line_rate", "4 servers"): "2,989 of the 4,308 missing polls of the hour are of these ports.",
    ("job_pauses", "group of GPU-63"): "for 22 s: 16:07:52 to 16:08:05 and 16:08:10 to 16:08:19.",
    ("idle_servers", "97 servers"): "97 of 199 servers (48.7 %)",
    ("fullest_link", "Leaf-17 1/0/8:2"): "(access): 34.5 % of its line rate in the mean of the hour. "
    "The fullest uplink is Leaf-10 1/0/34: 3.9 % of its own.",
    ("observation", "5 switches"): "6.4 % of the bytes that entered 5 switches came in opening gaps",
    ("job_trades_most", "group of GPU-63"): "52.0 % of the bytes of all servers there.",
}
"""Kind, place, and a part of the sentence, in their order."""


@pytest.mark.real
def test_the_findings_of_the_five_switches(real_built: duckdb.DuckDBPyConnection) -> None:
    rows = real_built.execute("SELECT kind, where_, sentence FROM metrics.findings ORDER BY rank").fetchall()
    assert [(kind, where) for kind, where, _ in rows] == list(SAID)
    assert [sentence for kind, where, sentence in rows if SAID[kind, where] not in sentence] == []


@pytest.mark.real
def test_no_row_of_the_five_switches_differs_from_the_raw_files(real: Path, real_output: tuple[Path, str]) -> None:
    assert acceptance([str(real / "zhejiang"), "--target", str(real_output[0]), "--ports", "1"]) == 0
