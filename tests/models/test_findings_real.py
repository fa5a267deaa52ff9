"""Findings of the five switches at hand: places and words, and numbers as computed from the raw files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.acceptance import TABLES
from bench.acceptance import main as acceptance

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

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
    tables = [name for name in TABLES if name != "metrics.published_claims"]
    assert (
        acceptance([str(real / "zhejiang"), "--target", str(real_output[0]), "--ports", "1", "--tables", *tables]) == 0
    )
