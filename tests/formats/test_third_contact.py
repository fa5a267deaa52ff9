"""Third set of hour tables that differ from the document: whole files, not single cells.

Each variation was applied to the four tables of a sample, built, and compared with the metrics of the sample. The files
here are those that came out wrong then, or made the build fail, and some of their neighbors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

import warehouse
from tests.formats.hour_examples import EXAMPLES, WriteCsv, rows_of
from tests.formats.hour_variations import Cells, Render, Variation, cell, check, measured, plain, text, without


def rows(*changes: Mapping[str, str]) -> Render:
    """Write the example once for each set of changed cells."""
    return lambda cells: text(cells, *({**cells, **change}.values() for change in changes))


def many(column: str, values: Iterable[str]) -> Render:
    """Write a row for each value of a column, at different seconds."""
    return rows(*({column: value, "Time": f"2024/5/24 上午00:00:{at:02}"} for at, value in enumerate(values)))


def spread(cells: Cells) -> bytes:
    """Write the example with blanks around each field."""
    return text((f" {name} " for name in cells), (f" {value} " for value in cells.values()))


NO_SECONDS = "2024/5/24 0:00"
ALL = [
    Variation("tabs in quoted names", "flow", lambda c: text((f'"\t{name}\t"' for name in c), c.values())),
    Variation("a unit in wide brackets", "flow", measured("Rtt", "Rtt（us）", "5.887")),
    *(Variation(f"the unit {unit}", "flow", measured("Rtt", f"Rtt ({unit})", "5.887"))
      for unit in ("usec", "Microseconds")),
    Variation("seconds in a word", "flow", measured("Rtt", "rtt_sec", "0.000005887")),
    Variation("the columns of another table", "link", lambda c: plain(dict(EXAMPLES["port"])), None, "port table"),
    Variation("microseconds without a unit, some whole", "flow",
              many("Rtt", [f"{n}.933" for n in range(1, 20)] + ["5.000"]), None, "Rtt"),
    Variation("points for thousands in a few rows", "flow",
              many("WritePkts", ["323"] * 20 + ["2.527", "3.004", "2.000"]), None, "WritePkts"),
    Variation("hexadecimal without a mark", "port", many("InBytes", ["1f", "710", *["a0"] * 12]), None, "InBytes"),
    Variation("a comma for a fraction of zeros", "port", cell(InPktsLoss='"0,000"'), None, "InPktsLoss"),
    Variation("counters of NICs without seconds", "nic", cell(SaveTime=NO_SECONDS), None, "SaveTime"),
    Variation("a sum among the ports", "port", cell(PortName="Total"), None, "PortName"),
    *(Variation(f"the port {name}", table, cell(**{column: name}), None, column)
      for table, column in (("port", "PortName"), ("link", "IfAbbreviatedName"), ("link", "DstPort"))
      for name in ("1/0/33", "2001/1/33")),
    Variation("a port name with a blank", "link", cell(DstPort="FourHundredGigE 1/0/58")),
    Variation("an adapter of a server at the other end", "link", cell(DstPort="ens10np0")),
    Variation("a row twice", "port", rows({}, {}), {}, "repeats an earlier row", 1, 1),
    Variation("a row twice, in quotes once", "port", lambda c: plain(c) + text(f'"{v}"' for v in c.values()),
              {}, "repeats an earlier row", 1, 1),
    Variation("a row twice, unusual", "flow", rows({"Rtt": "5.887e3"}, {"Rtt": "5.887e3"}), {}, "repeats", 1, 1),
    Variation("a bad row twice", "flow", rows({}, {"SourceIp": "x"}, {"SourceIp": "x"}), {}, "SourceIp is 'x'", 1, 2),
    Variation("equal rows with numbers of their own", "port",
              lambda c: text(("", *c), ("0", *c.values()), ("1", *c.values())), {}, "repeats an earlier row", 1, 1),
    Variation("equal rows without queue pairs", "flow",
              lambda c: without("SourceQp")(c) + without("SourceQp")(c).split(b"\n", 1)[1], {}, "", 2),
]  # fmt: skip


@pytest.mark.parametrize("one", ALL, ids=str)
def test_numbers_are_right_or_refused_by_name(write_csv: WriteCsv, one: Variation) -> None:
    check(write_csv, one)


def test_a_few_fractions_are_damage_of_their_rows(write_csv: WriteCsv) -> None:
    content = many("WritePkts", ["323.0"] * 20 + ["2.5"])(dict(EXAMPLES["flow"]))
    found, rejected = rows_of(write_csv(content.removesuffix(b"\n"), name="2024052400_flow.csv"))
    assert [len(found), [row.reason for row in rejected]] == [20, ["WritePkts: 2.5 is not a whole number"]]


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


@pytest.mark.parametrize("lines", [1_000_000, 2])
def test_repeated_rows_are_found_in_one_pass_and_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    monkeypatch.setattr("warehouse.ingest.python_tables.LINES_IN_PASS", lines)
    times = [f"2024/5/24 上午00:00:0{at}" for at in (0, 1, 2, 1, 3, 0, 1)]
    ask = built(tmp_path, {"port": rows(*({"Time": time} for time in times))(dict(EXAMPLES["port"]))})
    assert ask("SELECT second(time_utc) FROM staging.hour_port ORDER BY ALL") == [(0,), (1,), (2,), (3,)]
    found = ask("SELECT line, reason FROM staging.rejected_rows ORDER BY line")
    assert found == [(line, "repeats an earlier row") for line in (5, 7, 8)]


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
    assert ask("SELECT server, hca, queue_pairs, peers FROM metrics.nic_flow_hour ORDER BY ALL") == [
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
    assert ask("SELECT server, queue_pairs FROM metrics.nic_flow_hour ORDER BY ALL") == [
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
    assert ask("SELECT hca, queue_pairs FROM metrics.nic_flow_hour ORDER BY ALL") == [
        ("10.107.235.46", 1),
        ("10.107.235.59", 1),
    ]
    assert ask("SELECT DISTINCT hca FROM staging.hour_nic") == [("mlx5_3",)]
    assert ask("SELECT port, in_loss_packets FROM metrics.port_loss_hour WHERE switch = 'Leaf-12'") == [
        ("FourHundredGigE1/0/48", 4 * 38)
    ]
    assert ask("SELECT port, oper_status FROM staging.hour_link") == [("FourHundredGigE1/0/8", "up")]
