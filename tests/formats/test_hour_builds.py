"""Builds of hour tables: what models make of missing columns, other names and damaged lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import warehouse
from tests.conftest import call
from tests.formats.hour_examples import EXAMPLES

Cells = dict[str, str]
Render = Callable[[Cells], bytes]


def text(header: Iterable[str], *rows: Iterable[str]) -> bytes:
    return "".join(",".join(row) + "\n" for row in (header, *rows)).encode()


def plain(cells: Cells) -> bytes:
    return text(cells, cells.values())


def cell(**changes: str) -> Render:
    return lambda cells: plain({**cells, **changes})


def without(*names: str) -> Render:
    return lambda cells: plain({name: value for name, value in cells.items() if name not in names})


def rows(*changes: Mapping[str, str]) -> Render:
    """Write the example once for each set of changed cells."""
    return lambda cells: text(cells, *({**cells, **change}.values() for change in changes))


def spread(cells: Cells) -> bytes:
    """Write the example with blanks around each field."""
    return text((f" {name} " for name in cells), (f" {value} " for value in cells.values()))


def built(folder: Path, tables: Mapping[str, bytes]) -> Callable[[str], list[tuple[object, ...]]]:
    """Build a release of these hour tables alone; return a function that answers a SELECT."""
    hour = folder / "cluster" / "trafficinfo" / "2024052400"
    hour.mkdir(parents=True)
    for name, content in tables.items():
        (hour / f"2024052400_{name}.csv").write_bytes(content)
    warehouse.build(folder / "cluster", folder / "target")

    def ask(select: str) -> list[tuple[object, ...]]:
        with warehouse.open(folder / "target") as asked:
            return asked.sql(select).fetchall()

    return ask


def test_a_build_reads_around_the_damage_of_a_file(tmp_path: Path) -> None:
    """Mixed line ends, text that is not UTF-8, a blank line, a repeated row, no end: good lines keep their numbers."""
    header, good = plain(dict(EXAMPLES["flow"])).splitlines()
    lines = [header, good, good.replace(b"NH-", b"\xff-"), b"", good.replace(b",20  ", b",21  ") + b"\r", good, good]
    ask = built(tmp_path, {"flow": b"\n".join(lines)})
    assert ask("SELECT line, packets FROM staging.hour_flow ORDER BY line") == [(2, 20), (5, 21)]
    found = ask("SELECT line, reason FROM staging.rejected_rows ORDER BY line")
    assert [line for line, _ in found] == [3, 6, 7]
    assert ["UTF-8" in str(found[0]), "repeats" in str(found[1]), "torn" in str(found[2])] == [True] * 3


def test_a_skipped_table_is_named_with_the_line_that_accepts_it(tmp_path: Path) -> None:
    """A project with that line reads the file."""
    content = plain(dict(EXAMPLES["flow"])).replace(b"Rtt,", b"Roundtrip_cycles,").replace(b"DestServer,", b"Ziel,")
    content = content.replace(b"DestIp,", b"Ziel-IP,")
    there = built(tmp_path, {"flow": content, "port": plain(dict(EXAMPLES["port"]))})
    [(reason,)] = there("SELECT reason FROM raw.files WHERE status = 'skipped'")
    assert str(reason).endswith("add this line to data/hour_columns.csv of your project: flow,DestServer,Ziel,")
    study = tmp_path / "study"
    (study / "data").mkdir(parents=True)
    (study / "warehouse.toml").write_text('project = "."\n')
    lines = ("relation,published,headers,factor", "flow,DestServer,Ziel,", "flow,Rtt,Roundtrip_cycles,2")
    (study / "data" / "hour_columns.csv").write_text("\n".join(lines))
    said = call("doctor", "-d", tmp_path / "cluster", cwd=study).out
    assert "Roundtrip_cycles is read as Rtt in Roundtrip_cycles times 2" in " ".join(said.split())
    assert call("build", "-d", tmp_path / "cluster", "-t", tmp_path / "target", cwd=study).status == 0
    assert there("SELECT dest_server, rtt_ns FROM staging.hour_flow") == [("GPU-226", 2 * 5887)]


def test_a_link_table_without_far_ports_is_built(tmp_path: Path) -> None:
    ask = built(tmp_path, {"link": without("DstPort")(dict(EXAMPLES["link"]))})
    assert ask("SELECT switch, port FROM reference.dim_port") == [("spine-9", "FourHundredGigE1/0/8")]


def test_a_flow_table_without_addresses_is_built(tmp_path: Path) -> None:
    """Two servers of one switch with the same queue pair have two flows, and no adapter is known."""
    there = dict(EXAMPLES["flow"])
    other = {**there, "SourceServer": "GPU-7"}
    names = ("SourceIp", "DestIp")
    content = without(*names)(there) + without(*names)(other).split(b"\n", 1)[1]
    ask = built(tmp_path, {"flow": content})
    assert ask("SELECT flows, packets FROM metrics.flow_locality_hour") == [(2, 40)]
    assert ask("SELECT server, hca, queue_pairs, peers FROM metrics.nic_hour ORDER BY ALL") == [
        ("GPU-226", "unknown", 1, None),
        ("GPU-239", "unknown", 1, None),
        ("GPU-7", "unknown", 1, None),
    ]


def test_addresses_in_place_of_names_alone_are_kept(tmp_path: Path) -> None:
    cells = {**EXAMPLES["flow"], "SourceServer": "10.0.0.1", "DestServer": "10.0.0.2"}
    ask = built(tmp_path, {"flow": without("SourceIp", "DestIp")(cells)})
    assert ask("SELECT src_server, dst_server, packets FROM metrics.flow_pairs") == [("10.0.0.1", "10.0.0.2", 20)]


def test_queue_pairs_of_one_end_are_not_counted_for_the_other(tmp_path: Path) -> None:
    ask = built(tmp_path, {"flow": without("DestQp")(dict(EXAMPLES["flow"]))})
    assert ask("SELECT server, queue_pairs FROM metrics.nic_hour ORDER BY ALL") == [
        ("GPU-226", None),
        ("GPU-239", 1),
    ]


def test_blanks_and_other_forms_of_names_make_no_second_name(tmp_path: Path) -> None:
    there = dict(EXAMPLES["flow"])
    ports = ("FH1/0/48", "400GE1/0/48", "FourHundredGigE 1/0/48", "FourHundredGigabitEthernet1/0/48")
    adapters = ("mlx5_3", "mlx5-3", "MLX5_3", "mlx5_3/1")
    seconds = [{"Time": f"2024/5/24 上午00:00:0{at}"} for at in range(4)]
    nic = [{"SaveTime": f"2024/5/24 上午00:00:0{at}", "PortName": name} for at, name in enumerate(adapters)]
    port = [{**time, "PortName": name} for time, name in zip(seconds, ports, strict=True)]
    ask = built(
        tmp_path,
        {
            "flow": plain({**there, "Time": "2024/5/24 上午00:00:01"}) + spread(there).split(b"\n", 1)[1],
            "nic": rows(*nic)(dict(EXAMPLES["nic"])),
            "port": rows(*port)(dict(EXAMPLES["port"])),
            "link": cell(IfOperStatus=" UP ", IfAbbreviatedName="FH1/0/8")(dict(EXAMPLES["link"])),
        },
    )
    assert ask("SELECT flows, packets FROM metrics.flow_locality_hour") == [(1, 40)]
    assert ask("SELECT hca, queue_pairs FROM metrics.nic_hour WHERE queue_pairs > 0 ORDER BY ALL") == [
        ("10.107.235.46", 1),
        ("10.107.235.59", 1),
    ]
    assert ask("SELECT DISTINCT hca FROM staging.hour_nic") == [("mlx5_3",)]
    assert ask("SELECT port, in_loss_packets FROM metrics.port_loss_hour WHERE switch = 'Leaf-12'") == [
        ("FourHundredGigE1/0/48", 4 * 38)
    ]
    assert ask("SELECT port, oper_status FROM staging.hour_link") == [("FourHundredGigE1/0/8", "up")]
