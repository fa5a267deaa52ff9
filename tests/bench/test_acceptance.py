"""bench.acceptance finds what is wrong in a warehouse, and nothing where nothing is."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import openpyxl
import polars
import pytest

import warehouse
from bench.acceptance import TABLES, main
from bench.acceptance_files import MANAGEMENT_BYTES_PER_MS, WRAP, corrected, seconds
from tests.release import lay_out, spoil

MODELS = (*TABLES, "staging.rejected_rows")
MOST = 500 * MANAGEMENT_BYTES_PER_MS


@pytest.mark.parametrize(
    ("port", "raw", "expected"),
    [
        ("M-GigabitEthernet0/0/0", [7, 7], (7, 0, 0)),
        ("M-GigabitEthernet0/0/0", [7, MOST - WRAP], (MOST, 1, 0)),
        ("M-GigabitEthernet0/0/0", [7, MOST - WRAP + 1], (0, 0, 1)),
        ("M-GigabitEthernet0/0/0", [MOST - WRAP], (0, 0, 1)),
        ("TwoHundredGigE1/0/1:2", [7, MOST - WRAP], (0, 0, 1)),
    ],
)
def test_a_wrap_is_only_what_line_rate_allows(port: str, raw: list[int], expected: tuple[int, int, int]) -> None:
    """A first row has no row before that tells what the line rate allows."""
    times = [500 * number for number in range(len(raw))]
    rows = polars.DataFrame({"SaveTimeUTC": times, "PortName": port, "InOctets": raw, "OutOctets": 0})
    moved, wraps, resets = corrected(rows)
    assert (moved["InOctets"][-1], wraps, resets) == expected
    assert moved["OutOctets"].sum() == 0


def test_bytes_are_spread_over_windows() -> None:
    """A first row over the time since the hour began; after a silence, over a second before the last poll."""
    assert seconds([(1500, 3, 0), (2000, 0, 0), (9000, 0, 0), (9500, 0, 1501)]) == {
        0: (2, 0, 1000, "fine"),
        1: (1, 0, 500, "fine"),
        8: (0, 1000, 1000, "fine"),
        9: (0, 501, 500, "fine"),
    }
    assert seconds([(0, 5, 5)]) == {0: (5, 5, 1, "fine")}
    assert [row[3] for row in seconds([(3000, 9, 9)]).values()] == ["coarse"] * 3
    assert seconds([(1500, 0, 0)]) == {}


DOCTORED = {
    "metrics.port_hour": "in_bytes = in_bytes + 1",
    "metrics.server_hour": "tx_bytes = tx_bytes - 1",
    "metrics.uplink_balance": "jain_index = jain_index * 0.999999",
    "metrics.uplink_balance_minute": "total_bytes = total_bytes + 1",
    "metrics.spine_hour": "to_leaf_bytes = to_leaf_bytes + 1",
    "metrics.published_claims": "verdict = verdict || '.'",
    "metrics.suspect_links": "hours = hours + 1",
    "metrics.job_pauses": "seconds = seconds + 1",
    "metrics.job_periods": "bytes = bytes + 1",
    "metrics.suspect_servers": "group_id = group_id + 1",
    "metrics.sampling_quality": "refresh_phase_ms = (refresh_phase_ms + 1) % 1000",
    "metrics.findings": "number = number + 1 WHERE kind = 'servers_exchanged'",
    "staging.port_seconds": "out_bytes = out_bytes + 1",
}


def test_one_changed_cell_of_each_table_is_found(
    sample: Path, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no other row of the sample differs from its raw files."""
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
    assert main([str(sample), "--target", str(tmp_path), "--ports", "1000"]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("metrics.", "staging."))]
    assert [(name, differ) for name, _, differ, _ in lines] == [(name, "1") for name in TABLES]


@pytest.mark.usefixtures("only_own_models")
def test_any_part_of_a_release_is_compared(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster with bad lines and no sheet of NICs, and one of a single port without a workbook."""
    release = lay_out(sample, tmp_path)
    one_port = release.root / "other" / release.access.relative_to(release.cluster)
    one_port.parent.mkdir(parents=True)
    shutil.copy(release.access, one_port)
    book = openpyxl.load_workbook(release.workbook)
    (title,) = (one for one in book.sheetnames if "NIC" in one)
    del book[title]
    book.save(release.workbook)
    spoil(release.access, lambda lines: [*lines[:50], b"x\n", lines[49], *lines[50:-1], lines[-1][:-9]])
    warehouse.build(release.root, release.target)
    status = main([str(release.root), "--target", str(release.target)])
    said = capsys.readouterr().out
    assert status == 0, said
    assert "; 3 lines left out" in said


def test_a_build_that_fails_is_no_success(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "note.txt").write_text("no release")
    assert main([str(tmp_path)]) == 2
    assert "nothing readable" in capfd.readouterr().err
