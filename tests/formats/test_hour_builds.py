"""Builds of hour tables: damaged lines, other forms of names, and a header that a project accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warehouse
from tests.conftest import call
from tests.formats.hour_examples import EXAMPLES
from tests.release import lay_out_project

MODELS = (
    *("metrics.flow_pairs", "metrics.nic_hour", "metrics.port_loss_hour", "staging.hour_flow", "staging.hour_link"),
    *("staging.hour_nic", "staging.rejected_rows"),
)
FLOW, NIC, LINK, PORT = (EXAMPLES[table] for table in ("flow", "nic", "link", "port"))
Rows = list[tuple[object, ...]]


def text(*rows: dict[str, str]) -> bytes:
    """Return a file with the columns of the first row."""
    return "".join(",".join(cells) + "\n" for cells in (rows[0], *(row.values() for row in rows))).encode()


def laid(folder: Path, cluster: str, table: str, content: bytes) -> None:
    path = folder / cluster / "trafficinfo" / "2024052400" / f"2024052400_{table}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def damaged() -> bytes:
    """Return a table with mixed line ends, text that is not UTF-8, a blank line, a repeated row, and no end."""
    header, good = text({**FLOW}).splitlines()
    odd = good.replace(b",20  ", b",21  ") + b"\r"
    return b"\n".join([header, good, good.replace(b"NH-", b"\xff-"), b"", odd, good, good])


@pytest.mark.usefixtures("only_own_models")
def test_a_build_reads_around_damage_and_other_forms_of_names_make_no_second_name(tmp_path: Path) -> None:
    seconds = [f"2024/5/24 上午00:00:0{at}" for at in range(4)]
    ports = ("FH1/0/48", "400GE1/0/48", "FourHundredGigE 1/0/48", "FourHundredGigabitEthernet1/0/48")
    adapters = ("mlx5_3", "mlx5-3", "MLX5_3", "mlx5_3/1")
    spread = {name: f" {value} " for name, value in FLOW.items()}
    bare = {name: value for name, value in FLOW.items() if name not in ("SourceIp", "DestIp")}
    laid(tmp_path / "d", "damage", "flow", damaged())
    laid(tmp_path / "d", "ips", "flow", text(bare, {**bare, "SourceServer": "10.0.0.1"}))
    laid(tmp_path / "d", "forms", "flow", text({**FLOW, "Time": seconds[1]}, spread))
    nics = ({**NIC, "SaveTime": seconds[at], "PortName": one} for at, one in enumerate(adapters))
    laid(tmp_path / "d", "forms", "nic", text(*nics))
    laid(
        tmp_path / "d",
        "forms",
        "port",
        text(*({**PORT, "Time": seconds[at], "PortName": one} for at, one in enumerate(ports))),
    )
    laid(tmp_path / "d", "forms", "link", text({**LINK, "IfOperStatus": " UP ", "IfAbbreviatedName": "FH1/0/8"}))
    warehouse.build(tmp_path / "d", tmp_path / "t", max_rejected=0.9)

    def ask(select: str) -> Rows:
        with warehouse.open(tmp_path / "t") as asked:
            return asked.sql(select).fetchall()

    kept = ask("SELECT line, packets FROM staging.hour_flow WHERE cluster = 'damage' ORDER BY line")
    assert kept == [(2, 20), (5, 21)]
    rejected = ask("SELECT line, reason FROM staging.rejected_rows ORDER BY line")
    for (line, reason), expected in zip(rejected, ((3, "UTF-8"), (6, "repeats"), (7, "torn")), strict=True):
        assert (line, expected[1] in str(reason)) == (expected[0], True)
    pairs = "SELECT src_server, packets FROM metrics.flow_pairs WHERE cluster = '{}' ORDER BY ALL"
    assert ask(pairs.format("ips")) == [("10.0.0.1", 20), ("GPU-239", 20)]
    assert ask(pairs.format("forms")) == [("GPU-239", 40)]
    assert ask("SELECT DISTINCT hca FROM staging.hour_nic WHERE cluster = 'forms'") == [("mlx5_3",)]
    pairs_of = "SELECT hca, queue_pairs FROM metrics.nic_hour WHERE queue_pairs > 0 AND cluster = 'forms' ORDER BY 1"
    assert ask(pairs_of) == [("10.107.235.46", 1), ("10.107.235.59", 1)]
    lost = "SELECT port, in_loss_packets FROM metrics.port_loss_hour WHERE switch = 'Leaf-12' AND cluster = 'forms'"
    assert ask(lost) == [("FourHundredGigE1/0/48", 4 * 38)]
    assert ask("SELECT port, oper_status FROM staging.hour_link") == [("FourHundredGigE1/0/8", "up")]


def test_a_skipped_table_is_named_with_the_line_that_accepts_it(tmp_path: Path) -> None:
    """A project with that line reads the file."""
    content = text({**FLOW}).replace(b"Rtt,", b"Roundtrip_cycles,").replace(b"DestServer,", b"Ziel,")
    laid(tmp_path, "c", "flow", content.replace(b"DestIp,", b"Ziel-IP,"))
    laid(tmp_path, "c", "port", text({**PORT}))
    study = tmp_path / "study"
    study.mkdir()
    lay_out_project(study, ["staging.hour_flow", "staging.hour_port"])
    (study / "warehouse.toml").write_text('project = "."\nshipped = false\n')
    (study / "data" / "hour_columns.csv").unlink()
    listed = (study / "data" / "tables.yaml").read_text(encoding="utf-8")
    shipped = re.sub(r"^hour_columns:\n(?:[ #\n].*\n?)*", "", listed, flags=re.MULTILINE)
    (study / "data" / "tables.yaml").write_text(shipped, encoding="utf-8")

    def ask(select: str) -> Rows:
        said = call("build", "-d", tmp_path / "c", "-t", tmp_path / "target", cwd=study)
        assert said.status == 0, said.err
        with warehouse.open(tmp_path / "target") as asked:
            return asked.sql(select).fetchall()

    [(reason,)] = ask("SELECT reason FROM raw.files WHERE status = 'skipped'")
    assert str(reason).endswith("add this line to data/hour_columns.csv of your project: flow,DestServer,Ziel,")
    lines = ("relation,published,headers,factor", "flow,DestServer,Ziel,", "flow,Rtt,Roundtrip_cycles,2")
    (study / "data" / "hour_columns.csv").write_text("\n".join(lines))
    said = call("doctor", "-d", tmp_path / "c", cwd=study).out
    assert "Roundtrip_cycles is read as Rtt in Roundtrip_cycles times 2" in " ".join(said.split())
    assert ask("SELECT dest_server, rtt_ns FROM staging.hour_flow") == [("GPU-226", 2 * 5887)]
