"""The four hour tables as CSV files: right numbers, or a refusal that says what would accept them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warehouse
from tests.conftest import call
from tests.formats.hour_examples import (
    CSV,
    EXAMPLES,
    HOUR_UTC,
    LONG,
    PORT_HEADER,
    TORN,
    TYPED,
    MakeFile,
    WriteCsv,
    port_line,
    rows_of,
    typed,
)
from tests.release import lay_out_project
from warehouse.base.errors import DataError
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile
from warehouse.formats.zhejiang.hour_columns import parse_local_time, read_tables
from warehouse.formats.zhejiang.hour_tables import hour_formats

MODELS = (
    *("metrics.flow_pairs", "metrics.nic_hour", "metrics.port_loss_hour", "staging.hour_flow", "staging.hour_link"),
    *("staging.hour_nic", "staging.rejected_rows"),
)
PORT = CSV["port"]
LATE = HOUR_UTC + timedelta(minutes=61)


class Case(NamedTuple):
    """File of one row that differs from the documented example."""

    what: str
    table: str
    change: Mapping[str, object] | Callable[[bytes], bytes]
    """Column -> its value, or its header and value, or None for no such column; or a function of the file."""
    expected: Mapping[str, object] | str = {}
    """Numbers that differ from those of the example, or text that the refusal has."""

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"

    def content(self) -> bytes:
        cells = dict(EXAMPLES[self.table])
        headers = {name: name for name in cells}
        for name, change in self.change.items() if isinstance(self.change, Mapping) else ():
            headers[name], cells[name] = change if isinstance(change, tuple) else (name, change)
        kept = [name for name in headers if cells[name] is not None]
        content = "".join(",".join(line) + "\n" for line in ([headers[n] for n in kept], [cells[n] for n in kept]))
        return content.encode() if isinstance(self.change, Mapping) else self.change(content.encode())


def swapped(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content.replace(old, new)


CASES = [
    # headers
    Case("lower case", "nic", lambda c: b"\n".join((c.split(b"\n")[0].lower(), *c.split(b"\n")[1:]))),
    *(Case("as documented", table, {}) for table in CSV),
    Case("a byte order mark and CRLF", "flow", lambda c: b"\xef\xbb\xbf" + c.replace(b"\n", b"\r\n")),
    Case("commas after header and row", "link", swapped(b"\n", b",,\n")),
    Case("another name", "flow", {"SourceServer": ("SrcHost", "GPU-1"), "NakPkts": ("NackPackets", "0")}),
    Case("snake case with a unit", "flow", {"Rtt": ("rtt_us", "5.887")}),
    Case("a unit in wide brackets", "flow", {"Rtt": ("Rtt（µs）", "5.887")}),
    Case("a unit of another name", "nic", {"TransmittedBytes": ("TxBytes [TB]", "1.825375677039005E+4")}),
    Case("mebibytes", "port", {"InBytes": ("InBytes (MiB)", "94754.0")}, {"in_bytes": 99_356_770_304}),
    Case("a fraction of a byte", "link", {"InOctets": ("InOctets_GiB", "87.128")}, {"in_octets": 93_552_977_641}),
    Case("bits", "port", {"InBytes": ("InBytes (Mb)", "794853.6")}, {"in_bytes": None}),
    Case("UTC by its header", "nic", {"SaveTime": ("time_utc", "2024-05-23T16:00:04")}),
    Case("another zone", "nic", {"SaveTime": ("Time (UTC+9)", "2024-05-24 01:00:04")}, "no column SaveTime"),
    Case("no addresses", "flow", {"SourceIp": None, "DestIp": None}),
    Case("no servers", "flow", {"SourceServer": None, "DestServer": None}),
    Case("no round-trip time", "flow", {"Rtt": None}, {"rtt_ns": None}),
    Case("neither end", "flow", {"SourceServer": None, "SourceIp": None}, "no column SourceServer"),
    Case("no time", "port", {"Time": None}, "no column Time"),
    Case("a column twice", "nic", swapped(b"ReceivedPacketsByPort,", b"Ip,"), "column Ip stands twice"),
    Case("another table", "link", lambda _: (PORT_HEADER + "\n").encode(), "has the columns of the port table"),
    Case("a gzip file without its suffix", "flow", gzip.compress, "not UTF-8"),
    # times
    *(Case(f"the time {time}", "port", {"Time": time}) for time in (
        "2024/5/24 上午00:00:00", "2024-05-23T12:00:00.000-04:00", "2024/5/24 12:00:00 AM",
        "1716480000.0", "1716480000000", "1716480000000000", "1716480000000000000")),
    Case("a minute after the hour", "port", {"Time": "2024/05/24 01:01:00"}, {"time_utc": LATE}),
    *(Case(f"the time {time}", "port", {"Time": time}, "Time (header Time): 1 of 1 values") for time in (
        "", "yesterday", "2024/5/24", "2024/5/24 24:00:00", "2024/2/30 00:00:00", "２０２４/5/24 00:00:00",
        "17164800009", "0001-01-01 00:00:00", "2024-05-24T00:00:04+99:00", "2024-05-23 16:00:00",
        "2024/5/24 上午13:00:00", "2024/5/25 上午12:00:00", "1.71648E+09", "45436.0",
        "05/24/2024 00:00:00", "2024/5/24 00:00:04~00:01:04")),
    Case("counters of NICs without seconds", "nic", {"SaveTime": "2024/5/24 0:00"}, "has no seconds"),
    # numbers
    *(Case(f"the counter {text}", "port", {"InBytes": text}) for text in (
        " 99356705029 ", "+99356705029", "99356705029.0", "9.9356705029E+10")),
    *(Case(f"the counter {text}", "port", {"InPktsLoss": text}, {"in_loss_packets": None}) for text in (
        "", " ", "NA", "null", "-", "nan", "\\N")),
    *(Case(f"the counter {text}", "port", {"InPktsLoss": text}, "(header InPktsLoss): 1 of 1 values") for text in (
        "many", "1.5", "-1", "(1)", "38%", "1e15", "1e400", '"9,935"', "9.935.670", "0x3e", "５", "inf", "5_8")),
    Case("more than 64 bits", "nic", {"ReceivedBytes": "18446744073709551615"}, "is beyond all bounds"),
    Case("microseconds without a unit", "flow", {"Rtt": "6"}, "of your project: flow,Rtt,Rtt,1000"),
    Case("kilobytes without a unit", "port", {"OutBytes": "97148406"}, "port,OutBytes,OutBytes,1000"),
    Case("bits without a unit", "port", {"InBytes": "794853640232"}, "7.95 times 60 s at InSpeed"),
    # names
    Case("an adapter at the other end", "link", {"DstPort": "ens10np0"}),
    *(Case(f"{column} {name!r}", "flow", {column: name}, f"{column} (header {column}): 1 of 1") for column, name in (
        ("SourceServer", ""), ("SourceSwitch", "null"), ("SourceIp", "10.107.235"),
        ("DestIp", "::ffff:10.107.235.46"), ("SourceIp", "10.107.235.59:4791"), ("SourceQp", "0x3e50"))),
    *(Case(f"the port {name}", "port", {"PortName": name}, "PortName): 1 of 1") for name in ("1/0/33", "Total")),
    Case("another port at the other end", "link", {"DstPort": "1/0/33"}, "DstPort (header DstPort): 1 of 1"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers_are_right_or_the_file_is_refused_by_name(write_csv: WriteCsv, case: Case) -> None:
    file = write_csv(case.content(), name=f"2024052400_{case.table}.csv", end=b"")
    if isinstance(case.expected, str):
        assert file.status == SKIPPED
        assert case.expected in str(file.reason)
        return
    assert file.status == READ, file.reason
    (row,), rejected = rows_of(file)
    assert not rejected
    assert typed(case.table, row) == {**TYPED[case.table], **case.expected}


def test_a_line_of_a_project_gives_a_published_header_another_unit(write_csv: WriteCsv, tmp_path: Path) -> None:
    flow = {**EXAMPLES["flow"], "Rtt": "5.887", "Time": "2024-05-23 16:00:00"}
    file = write_csv(",".join(flow), ",".join(flow.values()), name="2024052400_flow.csv")
    assert str(file.reason).endswith(
        "if it is in UTC, add this line to data/hour_columns.csv of your project: flow,Time,Time,0"
    )
    own = tmp_path / "hour_columns.csv"
    own.write_text("relation,published,headers,factor\nflow,Time,Time,0\nflow,Rtt,Rtt,1000\n*,duration,ticks,10\n")
    one = hour_formats([own])[0]
    (row,) = one.read([one.inspect(file)], "flow", [])
    assert (row["Rtt"], row["time_utc"]) == ("5887", HOUR_UTC)
    tables, _ = read_tables([own])
    assert tables["flow"].match("rtt (ticks)") == (tables["flow"].columns["Rtt"], 10)


@pytest.mark.parametrize("line", ["flows,Rtt,x,1", "flow,Rttt,x,1", "flow,Rtt,x,many"])
def test_a_wrong_line_of_a_project_is_named(tmp_path: Path, line: str) -> None:
    own = tmp_path / "hour_columns.csv"
    own.write_text(f"relation,published,headers,factor\n{line}\n")
    with pytest.raises(DataError, match=r"hour_columns\.csv:2: .* is no table, column or factor"):
        read_tables([own])


@pytest.mark.parametrize(("bad", "status"), [(1, READ), (2, READ), (3, SKIPPED)])
def test_a_column_may_have_one_per_cent_of_other_values(write_csv: WriteCsv, bad: int, status: str) -> None:
    lines = [port_line(InPktsLoss=str(number)) for number in range(200 - bad)]
    file = write_csv(PORT_HEADER, *lines, *(port_line(OutPktsLoss=f"x{number}") for number in range(bad)))
    assert file.status == status
    if status == SKIPPED:
        assert str(file.reason).startswith(
            "column OutPktsLoss (header OutPktsLoss): 3 of 200 values are refused, the first in line 199: 'x0' is not"
        )
        return
    rows, rejected = rows_of(file)
    assert len(rows) == 200 - bad
    assert [(one.line, one.reason) for one in rejected] == [
        (number + 202 - bad, f"OutPktsLoss: 'x{number}' is not a number of 0 or more") for number in range(bad)
    ]


@pytest.mark.parametrize(
    "values",
    [[f"{n}.933" for n in range(1, 20)] + ["5.000"], ["323"] * 20 + ["2.527", "2.000"], ["1f", "710", *["a0"] * 12]],
)
def test_numbers_of_another_kind_are_not_read_in_part(write_csv: WriteCsv, values: list[str]) -> None:
    """Microseconds of which one is whole, points for thousands, hexadecimal digits: one of them looks like a number."""
    flow = dict(EXAMPLES["flow"])
    lines = (",".join({**flow, "WritePkts": value, "SourceQp": str(at)}.values()) for at, value in enumerate(values))
    file = write_csv(",".join(flow), *lines, name="2024052400_flow.csv")
    assert file.status == SKIPPED
    assert "column WritePkts" in str(file.reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (port_line() + ",1", "12 fields instead of 11"),
        (port_line().rpartition(",")[0], "10 fields instead of 11"),
        (port_line(DeviceName='"Leaf'), "a quoted field is not closed on this line"),
        (port_line(DeviceName="Leaf\0"), "holds NUL bytes"),
        (port_line(DeviceName="叶").encode("gbk"), "not UTF-8 text"),
        (port_line(), "repeats an earlier row"),
        (port_line(Time='"2024/05/24 0:00:00"'), "repeats an earlier row"),
        ("x" * 2**18, LONG),
    ],
)  # fmt: skip
def test_a_damaged_line_is_rejected_and_the_rest_goes_on(write_csv: WriteCsv, line: str | bytes, reason: str) -> None:
    file = write_csv(PORT_HEADER, port_line(), line, port_line(InPktsLoss="39"))
    rows, rejected = rows_of(file)
    assert file.status == READ
    assert [(row["line"], row["InPktsLoss"]) for row in rows] == [(2, "38"), (4, "39")]
    (one,) = rejected
    assert (one.file, one.line, one.reason) == ("cluster/2024052400_port.csv", 3, reason)
    assert one.text == (line.decode("utf-8", "backslashreplace") if isinstance(line, bytes) else line)[:500]


def test_equal_flows_without_queue_pairs_are_several(write_csv: WriteCsv) -> None:
    flow = {name: value for name, value in EXAMPLES["flow"].items() if name != "SourceQp"}
    line = ",".join(flow.values())
    rows, rejected = rows_of(write_csv(",".join(flow), line, line, name="2024052400_flow.csv"))
    assert (len(rows), rejected) == (2, [])


def test_rows_that_differ_in_a_column_that_is_not_read_are_several(write_csv: WriteCsv) -> None:
    file = write_csv(f"{PORT_HEADER},Queue,", *(f"{port_line()},{queue},{row}" for row, queue in enumerate((0, 1, 1))))
    rows, rejected = rows_of(file)
    assert (len(rows), [one.line for one in rejected]) == (2, [4])


@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_a_torn_file_loses_its_last_line(write_csv: WriteCsv, suffix: str) -> None:
    file = write_csv(PORT_HEADER, port_line(), port_line()[:-1], name=f"2024052400_port.csv{suffix}", end=b"")
    assert (file.status, file.reason, file.hour_utc) == (PARTIAL, TORN, HOUR_UTC)
    rows, rejected = rows_of(file)
    assert [row["line"] for row in rows] == [2]
    assert [(one.line, one.reason, one.text) for one in rejected] == [(3, TORN, port_line()[:-1])]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("2024052400_port.csv", b"", "empty file"),
        ("2024052400_port.csv.gz", b"not gzip", "cannot be decompressed"),
        ("2024052400_port.csv.zst", b"not zstd", "cannot be decompressed"),
        ("2024052424_port.csv", PORT_HEADER.encode(), "is not a time that exists"),
        ("2024052401/2024052400_port.csv", b"", "its name says hour 2024052400, its folder 2024052401"),
    ],
)
def test_a_file_that_cannot_be_read_is_skipped_with_the_reason(
    tmp_path: Path, raw_file: MakeFile, name: str, content: bytes, reason: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    file = PORT.inspect(raw_file(path))
    assert file.status == SKIPPED
    assert reason in str(file.reason)


def test_a_file_that_changed_since_it_was_inspected_is_an_error(write_csv: WriteCsv) -> None:
    file = write_csv(PORT_HEADER, port_line())
    file.path.write_text("a,b\n")
    with pytest.raises(DataError, match=r"2024052400_port\.csv: changed while it was read: no column"):
        rows_of(file)
    file.path.unlink()
    with pytest.raises(DataError, match=r"2024052400_port\.csv: cannot be read"):
        rows_of(file)


def test_the_second_of_two_equal_headers_of_links_is_a_column_of_its_own(write_csv: WriteCsv) -> None:
    link = EXAMPLES["link"]
    for spelling in ("OutBrdcastPkts", "OutBrdcastPkts_2", "OutBrdcastPkts.1"):
        file = write_csv(f"{','.join(link)},{spelling}", f"{','.join(link.values())},7", name="2024052400_link.csv")
        (row,), _ = rows_of(file)
        assert (row["OutBrdcastPkts"], row["OutBrdcastPkts_2"]) == ("21701613", "7")


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_or_rejections(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "2024052400_port.csv"
    path.write_bytes(PORT_HEADER.encode() + b"\n" + noise + b"\n" + port_line().encode() + b"\n")
    rows, rejected = rows_of(RawFile(path, path.name, 0, 0, hour_utc=HOUR_UTC))
    assert rows[-1]["InBytes"] == "99356705029"
    lines = [line for line in noise.split(b"\n") if line.strip()]
    assert len(rows) - 1 + len(rejected) == len(lines)


# times and hours

SECONDS = {
    "2024/5/24 上午12:00:00": 0, "2024/5/24 上午00:00:04": 4, "2024/5/24 上午0:00:04": 4, "2024/5/24 上午1:00:00": 3600,
    "2024/5/24 上午11:59:59": 43_199, "2024/5/24 下午12:00:00": 43_200, "2024/5/24 下午00:00:00": 43_200,
    "2024/5/24 下午1:00:00": 46_800, "2024/5/24 下午13:00:00": 46_800, "2024/5/24 下午11:59:59": 86_399,
    "2024/5/24 下午23:59:59": 86_399, "2024/5/24 上午 12:00:01": 1, "2024/5/24 00:00:04": 4, "2024/5/24 0:05": 300,
    "2024/5/24 13:00:00": 46_800, "2024/05/24 星期五 00:00:00.914": 0.914, "2024/05/24 周五 00:00:01": 1,
    "2024-05-24 00:00:04": 4, "2024-05-24T00:00:04": 4, "2024-05-24T00:00:04.123456789": 4.123456,
    "2024-05-23T16:00:04Z": 4, "2024-05-24T01:00:04+09:00": 4, "2024-05-23 16:00:04+0000": 4,
    "  2024/5/24 上午12:00:00  ": 0,
}  # fmt: skip


def test_every_published_form_of_a_time_is_parsed() -> None:
    for text, seconds in SECONDS.items():
        assert parse_local_time(text) == HOUR_UTC + timedelta(seconds=seconds), text
    with pytest.raises(ValueError, match="is not a time"):
        parse_local_time("2024-05-24T01:00:04+08:60")


# builds

FLOW, NIC, LINK, PORTS = (EXAMPLES[table] for table in ("flow", "nic", "link", "port"))
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
        text(*({**PORTS, "Time": seconds[at], "PortName": one} for at, one in enumerate(ports))),
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
    laid(tmp_path, "c", "port", text({**PORTS}))
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
