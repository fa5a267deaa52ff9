"""The four hour tables as CSV files: found by name, typed exactly, rejected row by row."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.hour_examples import (
    CSV,
    EXAMPLES,
    HOUR_UTC,
    LONG,
    OUTSIDE,
    PORT_HEADER,
    TORN,
    TYPED,
    UNNAMED,
    MakeFile,
    WriteCsv,
    port_line,
    rows_of,
)
from warehouse.base.errors import DataError
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, TableFormat
from warehouse.formats.zhejiang.hour_tables import FORMATS, PORT
from warehouse.formats.zhejiang.hour_workbook import HOUR_WORKBOOK

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
    assert list(columns) == [*EXAMPLES[name], *second, "other_columns", *TYPED[name], "line"]
    assert {columns[column] for column in (*EXAMPLES[name], *second, "other_columns")} == {"VARCHAR"}
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
    assert rows == [{**example, **second, "other_columns": None, **TYPED[name], "line": 2, "filename": str(file.path)}]
    assert list(rows[0]) == [*CSV[name].relations[0].columns, "filename"]


def test_columns_are_found_by_name(write_csv: WriteCsv) -> None:
    flow = dict(reversed(list(EXAMPLES["flow"].items())))
    names = [{"Rtt": "rtt (ns)", "SourceQp": " source_qp", "Time": "TIME "}.get(name, name) for name in flow]
    file = write_csv(
        ",".join(["", *names, "Extra", "Other"]),
        ",".join(["0", *flow.values(), "x", "y"]),
        name="2024052400_flow.csv",
    )
    assert (file.status, file.reason) == (READ, f"columns kept as text: Extra, Other; {UNNAMED}")
    (row,), rejected = rows_of(file)
    assert not rejected
    assert {name: row[name] for name in EXAMPLES["flow"]} == EXAMPLES["flow"]
    assert row["rtt_ns"] == 5887
    assert row["other_columns"] == '{"Extra":"x","Other":"y"}'


@pytest.mark.parametrize(
    ("spelling", "reason"),
    [
        ("OutBrdcastPkts", None),
        ("OutBrdcastPkts_2", None),
        ("OutBrdcastPkts.1", "OutBrdcastPkts.1 is read as OutBrdcastPkts_2"),
    ],
)
def test_link_may_repeat_a_column(write_csv: WriteCsv, spelling: str, reason: str | None) -> None:
    link = EXAMPLES["link"]
    file = write_csv(f"{','.join(link)},{spelling}", f"{','.join(link.values())},7", name="2024052400_link.csv")
    assert (file.status, file.reason) == (READ, reason)
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
    quoted = ",".join(f'"{value}"' for value in {**EXAMPLES["port"], "OutUseRatio": "3.35"}.values())
    file = write_csv("\ufeff" + PORT_HEADER + "\r", "\r", port_line() + "\r", "", quoted + "\r")
    rows, rejected = rows_of(file)
    assert file.status == READ
    assert not rejected
    assert [row["line"] for row in rows] == [3, 5]
    assert rows[0] | {"line": 5, "OutUseRatio": "3.35"} == rows[1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (port_line() + ",1", "12 fields instead of 11"),
        (port_line().rpartition(",")[0], "10 fields instead of 11"),
        (port_line(Time="yesterday"), "Time: 'yesterday' is not a time"),
        (port_line(Time=""), "Time: '' is not a time"),
        (port_line(InBytes="many"), "InBytes: 'many' is not a number"),
        (port_line(OutBytes="1.5"), "OutBytes: 1.5 is not a whole number"),
        (port_line(OutPktsLoss="1e15"), "OutPktsLoss: 1e15 is beyond all bounds"),
        (port_line(OutBytes="1e18"), "OutBytes: 1e18 is beyond all bounds"),
        (port_line(InPktsLoss="1e19"), "InPktsLoss: 1e19 does not fit 64 bits"),
        (port_line(Time="2024/5/24 01:01:01"), "Time is 2024-05-23 17:01:01 UTC" + OUTSIDE),
        (port_line(Time="2024/5/23 23:58:59"), "Time is 2024-05-23 15:58:59 UTC" + OUTSIDE),
        (port_line(DeviceName='"Leaf'), "a quoted field is not closed on this line"),
        (port_line(DeviceName="Leaf\0"), "holds NUL bytes"),
        (port_line(DeviceName="叶").encode("gbk"), "not UTF-8 text"),
        (PORT_HEADER, "Time: 'Time' is not a time"),
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
        ({"DestIp": "n/a"}, "DestIp is blank"),
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
    lacking = "no lost packets out: out_loss_packets is NULL"
    assert (file.status, file.reason) == (PARTIAL, f"{TORN}; columns kept as text: OutPkts; {lacking}")


def test_a_cut_gzip_keeps_what_can_be_read(write_csv: WriteCsv, raw_file: MakeFile) -> None:
    lines = [port_line(InPktsLoss=str(number * 7919)) for number in range(2_000)]
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
        ("2024052400_port.csv", b"\xff\xfe" + PORT_HEADER.encode("utf-16-le"), "UTF-16 text: convert it to UTF-8"),
        ("2024052400_port.csv", b"a,b,c\n", "no column DeviceName, PortName, Time"),
        ("2024052400_port.csv", PORT_HEADER.replace(",", ":").encode(), "no column DeviceName"),
        ("2024052400_port.csv", PORT_HEADER.replace("PortName", "X").encode() + b"\n", "no column PortName"),
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
