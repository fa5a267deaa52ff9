"""bench.acceptance finds what is wrong in a warehouse, and nothing where nothing is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import openpyxl
import pytest

import warehouse
from bench.acceptance import TABLES, main
from bench.acceptance_files import Job
from bench.acceptance_files import Release as RawRelease
from bench.acceptance_findings import job_rails, pauses, suspect_servers
from bench.acceptance_rules import (
    BUSY,
    WRAP,
    Load,
    Owners,
    Plug,
    Poll,
    Port,
    Series,
    Sheets,
    balance,
    bases,
    corrected,
    kind,
    phase,
    rails_used,
    seconds,
    suspects,
)
from tests.release import Release, lay_out, spoil

CHECKED = list(TABLES)
EMPTY = ("metrics.job_pauses", "metrics.suspect_servers")
"""Of seven recorded minutes; a test of the findings compares a longer hour."""
MODELS = (*CHECKED, "staging.rejected_rows")


# rules --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("switch", "port", "said"),
    [
        ("Leaf-1", "M-GigabitEthernet0/0/0", "management"),
        ("Leaf-1", "TwoHundredGigE1/0/30:2", "access"),
        ("Leaf-20", "FourHundredGigE1/0/33", "uplink"),
        ("Leaf-20", "FourHundredGigE1/0/62", "uplink"),
        ("Leaf-1", "FourHundredGigE1/0/31", "spare"),
        ("ST-leaf-1", "FourHundredGigE1/0/54", "storage_access"),
        ("ST-leaf-1", "FourHundredGigE1/0/55", "storage_uplink"),
    ],
)
def test_kinds_of_ports(switch: str, port: str, said: str) -> None:
    assert kind(switch, port) == said


def test_a_wrap_is_only_what_line_rate_allows() -> None:
    most = 500 * 125_000
    assert corrected(7, None, is_management=True) == (7, None)
    assert corrected(most - WRAP, 500, is_management=True) == (most, "wrap")
    assert corrected(most - WRAP + 1, 500, is_management=True) == (0, "reset")
    assert corrected(most - WRAP, None, is_management=True) == (0, "reset")
    assert corrected(most - WRAP, 500, is_management=False) == (0, "reset")


def test_bytes_are_spread_over_windows() -> None:
    """A first row over the time since the hour began; after a silence, over a second before the last poll."""
    assert seconds([Poll(1500, 3, 0), Poll(2000, 0, 0), Poll(9000, 0, 0), Poll(9500, 0, 1501)]) == {
        0: (2, 0, 1000, "fine"),
        1: (1, 0, 500, "fine"),
        8: (0, 1000, 1000, "fine"),
        9: (0, 501, 500, "fine"),
    }
    assert seconds([Poll(0, 5, 5)]) == {0: (5, 5, 1, "fine")}
    assert [row[3] for row in seconds([Poll(3000, 9, 9)]).values()] == ["coarse"] * 3
    assert seconds([Poll(1500, 0, 0)]) == {}


def test_balance_of_links() -> None:
    assert balance([10**9, 3 * 10**9]) == (2, 2e9, 0.5, 1.5, 0.8)
    assert balance([10**9, 10**9 - 1])[2:] == (None, None, None)


def _plug(leaf: int, port: str, server: int, slot: int | None) -> Plug:
    return Plug(f"Leaf-{leaf}", f"TwoHundredGigE1/0/{port}", server, "ens10np0", slot)


PLUGS = (
    _plug(9, "6:2", 131, 11), _plug(9, "7:1", 133, 13), _plug(10, "7:1", 133, 13), _plug(9, "7:2", 134, 20),
    _plug(9, "8:1", 135, None),
)  # fmt: skip
"""Group Leaf-9..12 with base 120: cage c holds GPU-(119+2c) and GPU-(120+2c)."""


def test_the_commonest_base_counts_and_of_equals_the_smallest() -> None:
    assert bases(PLUGS) == {("Leaf", 2): 120}
    assert bases([_plug(1, "1:1", 5, 4), _plug(2, "1:1", 5, 3)]) == {("Leaf", 0): 1}
    assert bases([]) == {}


@pytest.mark.parametrize(
    ("leaf", "port", "moved", "owner"),
    [
        (9, "7:1", 0, "GPU-133"),
        (9, "6:1", 0, "GPU-132"),  # the mate has the other half
        (10, "6:1", 5, "unlisted:Leaf-10:1/0/6:1"),  # here no half is listed: which one it is is not known
        (11, "1:1", 0, "GPU-121/122"),
        (11, "1:2", 5, "GPU-121/122"),
        (12, "2:1", 0, None),  # neither is in the NIC sheet
        (12, "2:1", 1, "unlisted:Leaf-12:1/0/2:1"),
        (9, "8:2", 1, "unlisted:Leaf-9:1/0/8:2"),  # GPU-136 is in no sheet
        (9, "9:1", 0, "GPU-133"),  # reviewed
        (9, "10:1", 0, None),  # reviewed for a server of no sheet, which does not count
        (13, "1:1", 1, "unlisted:Leaf-13:1/0/1:1"),  # a group without base
        (13, "1:1", 0, None),
    ],
)
def test_owners_of_access_ports(leaf: int, port: str, moved: int, owner: str | None) -> None:
    reviewed = {
        ("Leaf-9", "TwoHundredGigE1/0/9:1"): "GPU-133",
        ("Leaf-9", "TwoHundredGigE1/0/7:1"): "GPU-78",
        ("Leaf-9", "TwoHundredGigE1/0/10:1"): "GPU-999",
    }
    owners = Owners(Sheets(PLUGS, frozenset({122, 132, 133, 137})), reviewed)
    assert owners.of(f"Leaf-{leaf}", f"TwoHundredGigE1/0/{port}", moved) == owner


def _load(in_bytes: int, out_bytes: int) -> Load:
    return Load(1, in_bytes, out_bytes, min(in_bytes, 1), min(out_bytes, 1), 0, 0, 0)


def test_suspects_hold_in_every_hour() -> None:
    plugs = (*PLUGS, Plug("Leaf-9", "FourHundredGigE1/0/31", 136, "ens18np0", 16), _plug(1, "7:1", 13, 13))
    strays = (*plugs, _plug(1, "8:1", 136, 16))

    def port(switch: str, name: str) -> Port:
        return Port("c", switch, name)

    hours = {
        port("Leaf-9", "FourHundredGigE1/0/31"): {"a": _load(0, 0), "b": _load(0, 0)},
        port("Leaf-9", "TwoHundredGigE1/0/8:2"): {"a": _load(10**9, 0), "b": _load(0, 0)},
        port("Leaf-9", "FourHundredGigE1/0/33"): {"a": _load(10**9, 999), "b": _load(10**10, 0)},
        port("Leaf-9", "FourHundredGigE1/0/34"): {"a": _load(10**9, 999), "b": _load(10**9, 1000)},
        port("Leaf-9", "FourHundredGigE1/0/35"): {"a": _load(0, 10**9)},
        port("ST-leaf-1", "FourHundredGigE1/0/55"): {"a": _load(0, 10**9)},
    }
    found = {
        ("c", "Leaf-9", "FourHundredGigE1/0/31", "access_on_idle_400g"): (
            "GPU-136", "ens18np0", "TwoHundredGigE1/0/8:2", 2,
        ),
        ("c", "Leaf-9", "FourHundredGigE1/0/33", "uplink_no_data_out"): (None, None, None, 2),
        ("c", "ST-leaf-1", "FourHundredGigE1/0/55", "uplink_silent_in"): (None, None, None, 1),
    }  # fmt: skip
    assert suspects("c", Sheets(plugs), hours) == found
    stray = {("c", "Leaf-1", "TwoHundredGigE1/0/8:1", "server_in_other_group"): ("GPU-136", "ens10np0", None, 0)}
    assert suspects("c", Sheets(strays), hours) == found | stray


def test_rails_are_used_by_their_share_of_the_busiest() -> None:
    assert rails_used([10**12, 10**11, 10**11 - 1, 25 * 10**9]) == 2
    assert rails_used([10**9 - 1]) == 0
    assert rails_used([10**9 - 1, 1]) == 1


def test_a_pause_is_longer_than_a_period_and_between_busy_seconds() -> None:
    port = Port("c", "Leaf-9", "TwoHundredGigE1/0/7:1")
    series = Series.of({})
    for second in (10, 13, 20, 40):
        series.bytes[second] = 100
    release = RawRelease(
        hours={port: {"a": _load(400, 0)}},
        series={(port, "a"): series._replace(gaps=frozenset({30}))},
        sheets={"c": Sheets(PLUGS)},
        jobs=[Job("c", "a", 1, ["GPU-133"], 2.5)],
    )
    assert pauses(release) == {("c", "a", 1, 14): (6, 0), ("c", "a", 1, 21): (9, 0), ("c", "a", 1, 31): (9, 0)}
    assert pauses(replace(release, jobs=[Job("c", "a", 1, ["GPU-133"], 6.0)])).keys() == {
        ("c", "a", 1, 21), ("c", "a", 1, 31),
    }  # fmt: skip


def test_a_switch_is_refreshed_between_two_polls_that_are_less_than_a_second_apart() -> None:
    polls = {second * 1000 + at: ports for second in range(600, 1300) for at, ports in ((300, 0), (700, 4))}
    assert phase(polls) == (500, 0, 2800)
    assert phase({0: 3, 1000: 3}) is None


def test_a_server_is_suspect_whose_rails_differ_from_all_others_of_its_job() -> None:
    """GPU-133 is plugged into two rails and uses one; a job with two members has too few to compare."""
    ports = {
        (server, rail): Port("c", f"Leaf-{8 + rail}", f"TwoHundredGigE1/0/{server}:1")
        for server in (1, 2, 3)
        for rail in (1, 2)
    }
    plugs = [Plug(port.switch, port.port, server, f"ens{rail}", None) for (server, rail), port in ports.items()]
    hours = {port: {"a": _load(0 if key == (3, 2) else BUSY, 0)} for key, port in ports.items()}
    names = ["GPU-1", "GPU-2", "GPU-3"]
    release = RawRelease(hours=hours, sheets={"c": Sheets(plugs)}, jobs=[Job("c", "a", 1, names, 2.5)])
    assert suspect_servers(release) == {("c", "GPU-3", "a"): (1, "1", 1)}
    assert job_rails(release) == {("c", "a", 1): (2, 5 * BUSY)}
    assert suspect_servers(replace(release, jobs=[Job("c", "a", 1, names[1:], 2.5)])) == {}


# a warehouse --------------------------------------------------------------------------------------


def test_the_sample_is_as_its_files_say(sample: Path, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(sample), "--target", str(built), "--tables", *CHECKED]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("metrics.", "staging."))]
    assert [(name, differ) for name, _, differ, _ in lines] == [(name, "0") for name in CHECKED]
    assert {name for name, rows, _, _ in lines if rows == "0"} == {*EMPTY}


DOCTORED = {
    "metrics.port_hour": "in_bytes = in_bytes + 1",
    "metrics.server_hour": "tx_bytes = tx_bytes - 1",
    "metrics.uplink_balance": "jain_index = jain_index * 0.999999",
    "metrics.uplink_balance_minute": "total_bytes = total_bytes + 1",
    "metrics.spine_hour": "to_leaf_bytes = to_leaf_bytes + 1",
    "metrics.published_claims": "verdict = verdict || '.'",
    "metrics.suspect_links": "hours = hours + 1",
    "metrics.job_periods": "bytes = bytes + 1",
    "metrics.sampling_quality": "refresh_phase_ms = (refresh_phase_ms + 1) % 1000",
    "metrics.findings": "number = number + 1 WHERE kind = 'servers_exchanged'",
    "staging.port_seconds": "out_bytes = out_bytes + 1",
}


def test_one_changed_cell_of_each_table_is_found(
    sample: Path, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(built / "warehouse.duckdb", tmp_path)
    (tmp_path / "warehouse.duckdb").chmod(0o600)
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        for table, change in DOCTORED.items():
            connection.execute(f"CREATE TABLE doctored AS FROM {table} ORDER BY ALL")
            connection.execute(f"UPDATE doctored SET {change}" + ("" if " WHERE " in change else " WHERE rowid = 0"))
            ((kind_of,),) = connection.execute(
                f"SELECT table_type FROM information_schema.tables WHERE table_schema || '.' || table_name = '{table}'"
            ).fetchall()
            connection.execute(f"DROP {'VIEW' if kind_of == 'VIEW' else 'TABLE'} {table}")
            connection.execute(f"CREATE TABLE {table} AS FROM doctored")
            connection.execute("DROP TABLE doctored")
    assert main([str(sample), "--target", str(tmp_path), "--tables", *CHECKED, "--ports", "1000"]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("metrics.", "staging."))]
    assert [(name, differ) for name, _, differ, _ in lines] == [(name, str(int(name not in EMPTY))) for name in CHECKED]


def _without_sheet_with_bad_lines(release: Release) -> None:
    book = openpyxl.load_workbook(release.workbook)
    (title,) = (one for one in book.sheetnames if "NIC" in one)
    del book[title]
    book.save(release.workbook)
    spoil(release.access, lambda lines: [*lines[:50], b"x\n", lines[49], *lines[50:-1], lines[-1][:-9]])


def _one_port_without_workbook(release: Release) -> None:
    release.workbook.unlink()
    for path in release.hour.rglob("*.csv"):
        if path != release.access:
            path.unlink()


CHANGES: dict[str, Callable[[Release], object]] = {
    "one port, no workbook": _one_port_without_workbook,
    "bad lines, no sheet of NICs": _without_sheet_with_bad_lines,
}


@pytest.mark.usefixtures("only_own_models")
@pytest.mark.parametrize("change", CHANGES)
def test_any_part_of_a_release_is_compared(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    release = lay_out(sample, tmp_path)
    CHANGES[change](release)
    warehouse.build(release.root, release.target)
    status = main([str(release.root), "--target", str(release.target), "--tables", *CHECKED])
    said = capsys.readouterr().out
    assert status == 0, said
    assert ("; 3 lines left out" in said) == change.startswith("bad lines")


def test_a_build_that_fails_is_no_success(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "note.txt").write_text("no release")
    assert main([str(tmp_path)]) == 2
    assert "nothing readable" in capfd.readouterr().err
