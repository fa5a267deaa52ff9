"""The four hour tables, as CSV files and as sheets: found by name, typed exactly, rejected row by row."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from warehouse.base.errors import DataError
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, Rejected, TableFormat
from warehouse.formats.zhejiang.hour_tables import FLOW, FORMATS, HOUR_WORKBOOK, LINK, NIC, PORT, HourCsv
from warehouse.formats.zhejiang.workbook import WORKBOOK

if TYPE_CHECKING:
    from tests.formats.conftest import WriteBook

Row = dict[str, object]
MakeFile = Callable[[Path], RawFile]

HOUR_UTC = datetime(2024, 5, 23, 16)  # noqa: DTZ001 - UTC without zone
OUTSIDE = ", not in the hour from 2024-05-23 16:00:00 UTC"
LONG = "longer than 65,536 bytes"
TORN = "torn: the file ends without a final newline"

#: Example values of the release's document, by column.
EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "flow": {
        "SourceServer": "NH-DC-NM129-I04-20U-GPU-239",
        "DestServer": "NH-DC-NM129-H10-28U-GPU-226",
        "SourceSwitch": "NH-DC-NM129-H04-ROCE-Leaf-14.GPU.S9825",
        "DestSwitch": "NH-DC-NM129-H04-ROCE-Leaf-14.GPU.S9825",
        "Time": "2024/5/24 上午12:00:00",
        "SourceIp": "10.107.235.59",
        "DestIp": "10.107.235.46",
        "SourceQp": "15952        ",
        "DestQp": "9662         ",
        "Rtt": "5887         ",
        "ReadPkts": "0            ",
        "WritePkts": "20           ",
        "SendPkts": "0            ",
        "NakPkts": "0            ",
    },
    "nic": {
        "SaveTime": "2024/5/24 上午00:00:04",
        "DeviceName": "NH-DC-NM129-A01-28U-GPU-1",
        "Ip": "10.107.254.1",
        "PortName": "mlx5_3",
        "ReceivedBytes": "1.826184052268872e+16",
        "TransmittedBytes": "1.825375677039005e+16",
        "ReceivedPacketsByPort": "496472930239.0",
        "ReceiveddPacketsByUnicast": "496472930239.0",
        "TransmittedPacketsByPort": "390430116240.0",
        "TransmitteddPacketsByUnicast": "390430116240.0",
    },
    "link": {
        "DeviceName": "NH-DC-NM129-E09-ROCE-spine-9.GPU.S9825",
        "IfAbbreviatedName": "400GE1/0/8",
        "DstDevice": "NH-DC-NM129-B05-ROCE-Leaf-3.GPU.S9825",
        "DstPort": "FourHundredGigE1/0/58",
        "StartTime": "2024/5/24 上午00:00:04",
        "InUcastPkts": "22422882",
        "Ip": "10.107.208.109",
        "IfOperStatus": "up",
        "InOctets": "93553320477",
        "InPkts": "24459395",
        "InMuticastPkts": "90",
        "InBrdcastPkts": "0",
        "InSpeed": "435554397",
        "InPktSpeed": "175947",
        "InUseRatio": "0.87",
        "InErrorRatio": "0.0",
        "OutOctets": "79529075414",
        "OutPkts": "21247872",
        "OutMuticastPkts": "90",
        "OutBrdcastPkts": "21701613",
        "OutSpeed": "272457691",
        "OutPktSpeed": "60614",
        "OutUseRatio": "0.54",
        "EcnMarkedCount": "0",
    },
    "port": {
        "DeviceName": "NH-DC-NM129-F05-ROCE-Leaf-12.GPU.S9825",
        "PortName": "FourHundredGigE1/0/48",
        "Time": "2024/5/24 上午00:00:00",
        "InBytes": "99356705029",
        "InUseRatio": "3.33",
        "InSpeed": "1667114752",
        "InPktsLoss": "38",
        "OutBytes": "99479968333",
        "OutUseRatio": "3.34",
        "OutSpeed": "1669182998",
        "OutPktsLoss": "0",
    },
}
TYPED = {
    "flow": {
        "time_utc": HOUR_UTC,
        "rtt_ns": 5887,
        "read_packets": 0,
        "write_packets": 20,
        "send_packets": 0,
        "nak_packets": 0,
    },
    "nic": {
        "time_utc": HOUR_UTC + timedelta(seconds=4),
        "received_bytes": 18_261_840_522_688_720,
        "transmitted_bytes": 18_253_756_770_390_050,
    },
    "link": {
        "time_utc": HOUR_UTC + timedelta(seconds=4),
        "ecn_marked": 0,
        "in_octets": 93_553_320_477,
        "out_octets": 79_529_075_414,
    },
    "port": {
        "time_utc": HOUR_UTC,
        "in_bytes": 99_356_705_029,
        "out_bytes": 99_479_968_333,
        "in_loss_packets": 38,
        "out_loss_packets": 0,
    },
}
CSV = {"flow": FLOW, "nic": NIC, "link": LINK, "port": PORT}
PORT_HEADER = ",".join(EXAMPLES["port"])


def rows_of(file: RawFile, relation: str | None = None) -> tuple[list[Row], list[Rejected]]:
    found: TableFormat = HOUR_WORKBOOK if relation else csv_format(file.path)
    rejected: list[Rejected] = []
    return [dict(row) for row in found.read([file], relation or found.relations[0].name, rejected)], rejected


def csv_format(path: Path) -> HourCsv:
    (found,) = (one for one in CSV.values() if one.claims(path))
    return found


def port_line(**changes: str) -> str:
    return ",".join({**EXAMPLES["port"], **changes}.values())


@pytest.fixture
def write_csv(tmp_path: Path, raw_file: MakeFile) -> Callable[..., RawFile]:
    """Return a function that writes `2024052400_port.csv` with these lines and inspects it."""

    def write(*lines: str | bytes, name: str = "2024052400_port.csv", end: bytes = b"\n") -> RawFile:
        content = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + end
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pack = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}.get(path.suffix, bytes)
        path.write_bytes(pack(content))
        return csv_format(path).inspect(raw_file(path))

    return write


WriteCsv = Callable[..., RawFile]

# Names and columns


def test_formats_share_four_relations() -> None:
    assert [one.name for one in FORMATS] == [
        "zhejiang.flow",
        "zhejiang.nic",
        "zhejiang.link",
        "zhejiang.port",
        "zhejiang.hour_workbook",
    ]
    assert all(isinstance(one, TableFormat) for one in FORMATS)
    assert list(HOUR_WORKBOOK.relations) == [one.relations[0] for one in CSV.values()]


@pytest.mark.parametrize("name", CSV)
def test_relations_declare_published_columns_then_typed_ones(name: str) -> None:
    columns = CSV[name].relations[0].columns
    second = ["OutBrdcastPkts_2"] if name == "link" else []
    assert list(columns) == [*EXAMPLES[name], *second, *TYPED[name], "line"]
    assert {columns[column] for column in (*EXAMPLES[name], *second)} == {"VARCHAR"}
    assert columns["time_utc"] == "TIMESTAMP"
    folded = [column.lower() for column in (*columns, "filename")]
    assert len(set(folded)) == len(folded), "DuckDB does not tell columns apart by case"


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        ("2024052400_flow.csv", "zhejiang.flow"),
        ("2024052400_nic.csv.gz", "zhejiang.nic"),
        ("2024052400_link.csv.zst", "zhejiang.link"),
        ("2024052400_port.csv", "zhejiang.port"),
        ("2024052400.xlsx", "zhejiang.hour_workbook"),
        ("2024052400_flow.csv.xz", None),
        ("20240524_flow.csv", None),
        ("2024052400_flows.csv", None),
        ("x2024052400_flow.csv", None),
        ("Leaf-1_1_1.csv", None),
        ("cluster.xlsx", None),
        ("~$2024052400.xlsx", None),
    ],
)
def test_claims_goes_by_name(name: str, claimed: str | None) -> None:
    assert [one.name for one in FORMATS if one.claims(Path(name))] == ([claimed] if claimed else [])


# CSV


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", CSV)
def test_the_documented_example_is_read(write_csv: WriteCsv, name: str, suffix: str) -> None:
    example = EXAMPLES[name]
    file = write_csv(",".join(example), ",".join(example.values()), name=f"2024052400_{name}.csv{suffix}")
    assert (file.status, file.reason, file.hour_utc) == (READ, None, HOUR_UTC)
    rows, rejected = rows_of(file)
    assert not rejected
    second = {"OutBrdcastPkts_2": None} if name == "link" else {}
    assert rows == [{**example, **second, **TYPED[name], "line": 2, "filename": str(file.path)}]
    assert list(rows[0]) == [*CSV[name].relations[0].columns, "filename"]


def test_columns_are_found_by_name(write_csv: WriteCsv) -> None:
    flow = dict(reversed(list(EXAMPLES["flow"].items())))
    names = [{"Rtt": "rtt (ns)", "SourceQp": " source_qp", "Time": "TIME "}.get(name, name) for name in flow]
    file = write_csv(
        ",".join(["", *names, "Extra", "Other"]),
        ",".join(["0", *flow.values(), "x", "y"]),
        name="2024052400_flow.csv",
    )
    assert (file.status, file.reason) == (READ, "columns ignored: Extra, Other")
    (row,), rejected = rows_of(file)
    assert not rejected
    assert {name: row[name] for name in EXAMPLES["flow"]} == EXAMPLES["flow"]
    assert row["rtt_ns"] == 5887


@pytest.mark.parametrize("spelling", ["OutBrdcastPkts", "OutBrdcastPkts_2", "OutBrdcastPkts.1"])
def test_link_may_repeat_a_column(write_csv: WriteCsv, spelling: str) -> None:
    link = EXAMPLES["link"]
    file = write_csv(f"{','.join(link)},{spelling}", f"{','.join(link.values())},7", name="2024052400_link.csv")
    assert (file.status, file.reason) == (READ, None)
    (row,), _ = rows_of(file)
    assert (row["OutBrdcastPkts"], row["OutBrdcastPkts_2"]) == ("21701613", "7")


def test_blanks_are_null_and_never_zero(write_csv: WriteCsv) -> None:
    link = {**EXAMPLES["link"], "DstPort": "", "EcnMarkedCount": " ", "InOctets": ""}
    (row,), rejected = rows_of(write_csv(",".join(link), ",".join(link.values()), name="2024052400_link.csv"))
    assert not rejected
    assert [row[name] for name in ("DstPort", "EcnMarkedCount", "ecn_marked", "in_octets")] == [None] * 4
    assert row["out_octets"] == 79_529_075_414


@pytest.mark.parametrize("rows", [1, 500])
def test_a_file_whose_lines_end_in_carriage_returns_alone_is_skipped(write_csv: WriteCsv, rows: int) -> None:
    file = write_csv("\r".join([PORT_HEADER, *[port_line()] * rows]))
    assert file.status == SKIPPED
    assert file.reason in (
        "holds a carriage return: lines end in LF or CRLF",
        "no end of a header in the first 4,096 bytes",
    )


def test_bom_carriage_returns_quotes_and_blank_lines_are_accepted(write_csv: WriteCsv) -> None:
    quoted = ",".join(f'"{value}"' for value in EXAMPLES["port"].values())
    file = write_csv("\ufeff" + PORT_HEADER + "\r", "\r", port_line() + "\r", "", quoted + "\r")
    rows, rejected = rows_of(file)
    assert file.status == READ
    assert not rejected
    assert [row["line"] for row in rows] == [3, 5]
    assert rows[0] | {"line": 5} == rows[1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (port_line() + ",1", "12 fields instead of 11"),
        (port_line().rpartition(",")[0], "10 fields instead of 11"),
        (port_line(Time="yesterday"), "'yesterday' is not a time"),
        (port_line(Time=""), "'' is not a time"),
        (port_line(InBytes="many"), "InBytes: 'many' is not a number"),
        (port_line(OutBytes="1.5"), "OutBytes: 1.5 is not a whole number"),
        (port_line(OutPktsLoss="1e15"), "OutPktsLoss: 1e15 is beyond all bounds"),
        (port_line(OutBytes="1e18"), "OutBytes: 1e18 is beyond all bounds"),
        (port_line(InPktsLoss="1e19"), "InPktsLoss: 1e19 does not fit 64 bits"),
        (port_line(Time="2024/5/24 01:01:01"), "Time is 2024-05-23 17:01:01 UTC" + OUTSIDE),
        (port_line(Time="2024/5/23 23:58:59"), "Time is 2024-05-23 15:58:59 UTC" + OUTSIDE),
        (port_line(DeviceName='"Leaf'), "its quotes do not match: unexpected end of data"),
        (port_line(DeviceName="Leaf\0"), "holds NUL bytes"),
        (port_line(DeviceName="叶").encode("gbk"), "not UTF-8 text"),
        (PORT_HEADER, "'Time' is not a time"),
    ],
)  # fmt: skip
def test_a_bad_row_is_rejected_and_the_rest_goes_on(write_csv: WriteCsv, line: str | bytes, reason: str) -> None:
    file = write_csv(PORT_HEADER, port_line(), line, port_line(InPktsLoss="39"))
    rows, rejected = rows_of(file)
    assert file.status == READ
    assert [(row["line"], row["in_loss_packets"]) for row in rows] == [(2, 38), (4, 39)]
    (one,) = rejected
    assert (one.file, one.line, one.reason) == ("cluster/2024052400_port.csv", 3, reason)
    assert one.text == (line.decode("utf-8", "backslashreplace") if isinstance(line, bytes) else line)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"SourceIp": ""}, "SourceIp is blank"),
        ({"SourceQp": "12161.6"}, "SourceQp is '12161.6'"),
        ({"DestIp": "n/a"}, "DestIp is 'n/a'"),
        ({"DestServer": "storage"}, "DestServer is 'storage'"),
        ({"ReadPkts": "9223372036854775807"}, "ReadPkts: 9223372036854775807 is beyond all bounds"),
        ({"WritePkts": "-1"}, "WritePkts: -1 is negative"),
    ],
)
def test_a_flow_without_ends_or_with_impossible_packets_is_rejected(
    write_csv: WriteCsv, change: dict[str, str], reason: str
) -> None:
    flow = EXAMPLES["flow"]
    lines = (",".join(flow), ",".join(flow.values()), ",".join({**flow, **change}.values()))
    rows, rejected = rows_of(write_csv(*lines, name="2024052400_flow.csv"))
    assert [row["line"] for row in rows] == [2]
    assert [(one.line, one.reason) for one in rejected] == [(3, reason)]


@pytest.mark.parametrize("time", ["2024/5/23 23:59:00", "2024/5/24 01:01:00", "2024/5/24 00:59:59"])
def test_a_minute_outside_the_hour_is_tolerated(write_csv: WriteCsv, time: str) -> None:
    rows, rejected = rows_of(write_csv(PORT_HEADER, port_line(Time=time)))
    assert (len(rows), rejected) == (1, [])


def test_a_line_without_end_is_rejected_alone(write_csv: WriteCsv) -> None:
    for length, lost in ((2**16 - 1, "1 fields instead of 11"), (2**16, LONG), (2**18, LONG)):
        rows, rejected = rows_of(write_csv(PORT_HEADER, "x" * length, port_line()))
        assert [row["line"] for row in rows] == [3]
        assert [(one.line, one.reason) for one in rejected] == [(2, lost)]


def test_rejected_text_is_cut(write_csv: WriteCsv) -> None:
    _, rejected = rows_of(write_csv(PORT_HEADER, "x" * 5_000))
    assert rejected[0].text == "x" * 500


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_torn_file_loses_its_last_line(write_csv: WriteCsv, suffix: str) -> None:
    file = write_csv(PORT_HEADER, port_line(), port_line()[:-1], name=f"2024052400_port.csv{suffix}", end=b"")
    assert (file.status, file.reason) == (PARTIAL, TORN)
    rows, rejected = rows_of(file)
    assert [row["line"] for row in rows] == [2]
    assert [(one.line, one.reason, one.text) for one in rejected] == [(3, TORN, port_line()[:-1])]


def test_a_torn_header_is_a_file_without_rows(write_csv: WriteCsv) -> None:
    file = write_csv(PORT_HEADER, end=b"")
    assert (file.status, rows_of(file)) == (PARTIAL, ([], []))
    file = write_csv(PORT_HEADER[:-4], end=b"")
    assert (file.status, file.reason) == (SKIPPED, "no column OutPktsLoss")


def test_a_cut_gzip_keeps_what_can_be_read(write_csv: WriteCsv, raw_file: MakeFile) -> None:
    lines = [port_line(InBytes=str(number * 7919)) for number in range(2_000)]
    file = write_csv(PORT_HEADER, *lines, name="2024052400_port.csv.gz")
    file.path.write_bytes(file.path.read_bytes()[:-2_000])
    file = PORT.inspect(raw_file(file.path))
    assert file.status == PARTIAL
    assert str(file.reason).startswith("the compressed stream is damaged: ")
    rows, rejected = rows_of(file)
    assert 0 < len(rows) < 2_000
    assert len(rejected) == 1
    assert rejected[0].line == len(rows) + 2


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("2024052400_port.csv", b"", "empty file"),
        ("2024052400_port.csv.gz", b"not gzip", "cannot be decompressed"),
        ("2024052400_port.csv.zst", b"not zstd", "cannot be decompressed"),
        ("2024052400_port.csv", b"\xff\xfe" + PORT_HEADER.encode("utf-16-le"), "not UTF-8 text"),
        ("2024052400_port.csv", b"a,b,c\n", "no column DeviceName, PortName, Time"),
        ("2024052400_port.csv", PORT_HEADER.replace(",", ";").encode(), "no column DeviceName"),
        ("2024052400_port.csv", PORT_HEADER.replace("InBytes", "X").encode() + b"\n", "no column InBytes"),
        ("2024052400_port.csv", f"{PORT_HEADER},Time\n".encode(), "column Time stands twice"),
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


def test_several_files_are_read_in_order(write_csv: WriteCsv) -> None:
    files = [
        write_csv(PORT_HEADER, port_line(Time=f"2024/5/24 {hour:02}:30:00"), name=f"202405240{hour}_port.csv")
        for hour in (1, 0)
    ]
    rows = list(PORT.read(files, "port", []))
    assert [row["filename"] for row in rows] == [str(file.path) for file in files]
    assert [row["time_utc"] for row in rows] == [HOUR_UTC + timedelta(minutes=m) for m in (90, 30)]


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_or_rejections(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "2024052400_port.csv"
    path.write_bytes(PORT_HEADER.encode() + b"\n" + noise + b"\n" + port_line().encode() + b"\n")
    rows, rejected = rows_of(PORT.inspect(RawFile(path, path.name, 0, 0)))
    assert rows[-1]["in_bytes"] == 99_356_705_029
    lines = [line for line in noise.split(b"\n") if line.strip()]
    assert len(rows) - 1 + len(rejected) == len(lines)


# Sheets


def sheets(**changes: Sequence[Sequence[object]]) -> dict[str, Sequence[Sequence[object]]]:
    return {name: [list(row), list(row.values())] for name, row in EXAMPLES.items()} | changes


@pytest.mark.parametrize("prefix", ["", "2024052400_", "2024052400 "])
def test_sheets_feed_the_same_relations(
    write_book: WriteBook, raw_file: MakeFile, write_csv: WriteCsv, prefix: str
) -> None:
    book = {f"{prefix}{name.upper()}": rows for name, rows in sheets().items()}
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(book, "2024052400/2024052400.xlsx")))
    assert (file.status, file.reason, file.hour_utc) == (READ, None, HOUR_UTC)
    for name, example in EXAMPLES.items():
        ours, rejected = rows_of(file, name)
        csv = write_csv(",".join(example), ",".join(example.values()), name=f"2024052400_{name}.csv")
        theirs, _ = rows_of(csv)
        assert not rejected
        assert [row | {"filename": ""} for row in ours] == [row | {"filename": ""} for row in theirs]
        assert list(ours[0]) == [*CSV[name].relations[0].columns, "filename"]


def test_numbers_and_times_of_a_sheet_are_exact(write_book: WriteBook, raw_file: MakeFile) -> None:
    moment = datetime(2024, 5, 24, 0, 0, 4)  # noqa: DTZ001 - a cell has no zone
    row = ["GPU-1", "10.107.254.1", "mlx5_3", 1.826184052268872e16, 12.0, 3, 3, 3, 3]
    header = [*list(EXAMPLES["nic"])[1:], "SaveTime"]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book({"nic": [header, [*row, moment]]}, "2024052400.xlsx")))
    (read,), rejected = rows_of(file, "nic")
    assert not rejected
    assert read["time_utc"] == HOUR_UTC + timedelta(seconds=4)
    assert (read["received_bytes"], read["transmitted_bytes"]) == (18_261_840_522_688_720, 12)
    assert (read["SaveTime"], read["TransmittedBytes"]) == ("2024-05-24 00:00:04", "12")


def test_bad_rows_of_a_sheet_are_rejected_by_their_row(write_book: WriteBook, raw_file: MakeFile) -> None:
    good = list(EXAMPLES["port"].values())
    rows = [list(EXAMPLES["port"]), good, [], ["only a name"], [*good[:3], "=1+1", *good[4:]], good]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(port=rows), "2024052400.xlsx")))
    read, rejected = rows_of(file, "port")
    assert [row["line"] for row in read] == [2, 6]
    assert [(one.line, one.reason) for one in rejected] == [
        (4, "'' is not a time (sheet 'port')"),
        (5, "cell D5 holds a formula without a stored value (sheet 'port')"),
    ]


def test_missing_and_unknown_sheets_are_named(write_book: WriteBook, raw_file: MakeFile) -> None:
    book = sheets(notes=[["x"]])
    del book["link"]
    book["2024052401_link"] = [list(EXAMPLES["link"])]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(book, "2024052400.xlsx")))
    assert (file.status, file.reason) == (READ, "no sheet 'link'; sheets ignored: notes, 2024052401_link")
    assert rows_of(file, "link") == ([], [])


def test_an_unreadable_sheet_leaves_the_others(write_book: WriteBook, raw_file: MakeFile) -> None:
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(flow=[["Time"], ["x"]]), "2024052400.xlsx")))
    assert file.status == PARTIAL
    assert str(file.reason).startswith("sheet 'flow': no column SourceServer, ")
    assert rows_of(file, "flow") == ([], [])
    assert len(rows_of(file, "nic")[0]) == 1
    with pytest.raises(DataError, match=r"2024052400\.xlsx: changed while it was read"):
        rows_of(file.but(status=READ), "flow")


def test_a_table_is_never_counted_twice(write_book: WriteBook, raw_file: MakeFile, write_csv: WriteCsv) -> None:
    write_csv(PORT_HEADER, port_line(), name="2024052400_port.csv.gz")
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(), "2024052400.xlsx")))
    assert (file.status, file.reason) == (SKIPPED, "the same rows lie beside it: 2024052400_port.csv.gz")


def test_the_content_of_a_workbook_decides_its_format(write_book: WriteBook, raw_file: MakeFile) -> None:
    hour = raw_file(write_book(sheets(), "2024052400.xlsx"))
    assert WORKBOOK.inspect(hour).status == SKIPPED
    assert HOUR_WORKBOOK.inspect(hour).status == READ
    nics = {"GPU NIC info": [["GPU IP", "NIC name1", "NIC name 2"]]}
    topology = raw_file(write_book(nics, "2024052401.xlsx"))
    assert WORKBOOK.inspect(topology).status == PARTIAL
    file = HOUR_WORKBOOK.inspect(topology)
    assert file.status == SKIPPED
    assert str(file.reason).startswith("not a workbook of hour tables: no sheet 'flow', ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("2024052400.xlsx", "not a zip file, so not a workbook"),
        ("2024052499.xlsx", "'2024-05-24 99:00' is not a time that exists"),
        ("2024052401/2024052400.xlsx", "its name says hour 2024052400, its folder 2024052401"),
    ],
)
def test_a_workbook_that_cannot_be_read_is_skipped(tmp_path: Path, raw_file: MakeFile, name: str, reason: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("hello")
    file = HOUR_WORKBOOK.inspect(raw_file(path))
    assert (file.status, file.reason) == (SKIPPED, reason)
