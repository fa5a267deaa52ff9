"""First contact with the hour tables: 60 files that differ from the documented form.

Each variation says what must come out: the right numbers, or a refusal that names the column. Never wrong numbers. The
variations of `FROM_THE_DOCUMENT` were written from docs/formats/hour_tables.md alone, before the readers knew them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import call
from tests.formats.hour_examples import EXAMPLES, WriteCsv
from tests.formats.hour_variations import (
    Variation,
    cell,
    check,
    measured,
    ordered,
    plain,
    quoted,
    renamed,
    spaced,
    text,
    without,
)

FROM_THE_DOCUMENT = [
    *(Variation("columns in reverse order", table, ordered(reversed)) for table in EXAMPLES),
    Variation("names in lower case", "flow", renamed(str.lower)),
    Variation("names in upper case", "port", renamed(str.upper)),
    Variation("names in snake case", "nic", renamed(lambda name: spaced(name).strip().replace(" ", "_").lower())),
    Variation("names with blanks", "link", renamed(spaced)),
    Variation("the unit in the name", "flow", renamed(lambda name: "Rtt (ns)" if name == "Rtt" else name)),
    Variation("a column more", "port", lambda cells: plain({"Vendor": "H3C", **cells})),
    Variation("no time", "port", without("Time"), None, "Time"),
    Variation("no identity", "link", without("IfAbbreviatedName"), None, "IfAbbreviatedName"),
    Variation("a column twice", "nic", lambda c: text((*c, "Ip"), (*c.values(), "10.107.254.1")), None, "Ip"),
    Variation("a byte order mark", "flow", lambda cells: b"\xef\xbb\xbf" + plain(cells)),
    Variation("CRLF", "link", lambda cells: text(cells, cells.values(), end="\r\n")),
    Variation("every field in quotes", "port", quoted),
    Variation("a blank line", "nic", lambda cells: plain(cells).replace(b"\n", b"\n\n", 1)),
    Variation("a counter with an exponent", "port", cell(InBytes="9.9356705029e10")),
    Variation("a counter as a float", "link", cell(InOctets="93553320477.0")),
    Variation("a counter with blanks around", "flow", cell(Rtt="  5887 ")),
    Variation("a counter that is a fraction", "port", cell(OutBytes="1.5"), None, "OutBytes"),
    Variation("a negative counter", "flow", cell(NakPkts="-1"), None, "NakPkts"),
    Variation("a counter beyond all bounds", "port", cell(InBytes="1e18"), None, "InBytes"),
    Variation("a counter left blank", "link", cell(EcnMarkedCount=""), {"ecn_marked": None}),
    Variation("a server left blank", "flow", cell(DestServer=""), None, "DestServer"),
    Variation("an address that is none", "flow", cell(SourceIp="10.107.235"), None, "SourceIp"),
    Variation("24 hours", "port", cell(Time="2024/05/24 00:00:00")),
    Variation("an ISO time", "nic", cell(SaveTime="2024-05-24T00:00:04")),
    Variation("a time with its zone", "link", cell(StartTime="2024-05-23T16:00:04Z")),
    Variation("a time of the afternoon", "flow", cell(Time="2024/5/24 下午12:00:00"), None, "Time"),
    Variation("a time that contradicts itself", "nic", cell(SaveTime="2024/5/24 上午13:00:04"), None, "SaveTime"),
]  # fmt: skip


FROM_THE_HEADER_RULES = [
    Variation("microseconds", "flow", measured("Rtt", "Rtt (us)", "5.887")),
    Variation("microseconds behind an underscore", "flow", measured("Rtt", "rtt_us", "5.887")),
    Variation("milliseconds in square brackets", "flow", measured("Rtt", "RTT[ms]", "0.005887")),
    Variation("a comma that may be a decimal mark", "flow", measured("Rtt", "Rtt (us)", '"5,887"'), None, "Rtt"),
    Variation("a unit of time that nobody knows", "flow", measured("Rtt", "Rtt (ticks)", "5887"), None, "Rtt"),
    Variation("microseconds without a unit", "flow", cell(Rtt="6"), None, "Rtt"),
    Variation("mebibytes", "port", measured("InBytes", "InBytes (MiB)", "94754.0"), {"in_bytes": 99_356_770_304}),
    Variation("kilobytes", "port", measured("InBytes", "InBytes (KB)", "99356705.029"), {}, "is in KB (1,000 B)"),
    Variation("gibibytes", "link", measured("InOctets", "InOctets_GiB", "87.128"), {"in_octets": 93_552_977_641}),
    Variation("gigabytes, fused", "nic", measured("ReceivedBytes", "ReceivedBytesGB", "18261840.52268872")),
    Variation("terabytes", "nic", measured("TransmittedBytes", "TxBytes [TB]", "1.825375677039005E+4")),
    Variation("kilobytes of another case", "link", measured("OutOctets", "OutOctets (kB)", "79529075.414")),
    Variation("megabits", "port", measured("InBytes", "InBytes (Mb)", "794853.6"), None, "InBytes (Mb)"),
    Variation("megabytes or megabits", "link", measured("InOctets", "in_octets_mb", "93553.3"), None, "in_octets_mb"),
    Variation("millions of something", "nic", measured("ReceivedBytes", "RxBytes (M)", "18261840"), None, "(M)"),
    Variation("more bytes than 64 bits", "nic", measured("ReceivedBytes", "RxBytes (TB)", "18446745"), None, "64 bits"),
    Variation("kilobytes without a unit", "port", cell(OutBytes="97148406"), None, "OutBytes"),
    Variation("a number of the row with an empty name", "nic", lambda c: text(("", *c), ("0", *c.values()))),
    Variation("a number of the row without a name", "link", lambda c: text(c, ("1", *c.values()))),
    Variation("a comma after the header", "port", lambda c: text((*c, ""), c.values())),
    Variation("a comma after each row", "link", lambda c: text(c, (*c.values(), ""))),
    Variation("a comma after header and rows", "flow", lambda c: text((*c, ""), (*c.values(), ""))),
    Variation("seconds since 1970", "port", cell(Time="1716480000")),
    Variation("milliseconds since 1970", "nic", cell(SaveTime="1716480004000")),
    Variation("microseconds since 1970", "link", cell(StartTime="1716480004000000")),
    Variation("a fraction of seconds since 1970", "flow", cell(Time="1716480000.000")),
    Variation("AM", "port", cell(Time="2024/5/24 12:00:00 AM")),
    Variation("UTC, stated by the name", "flow", measured("Time", "Time (UTC)", "2024-05-23 16:00:00")),
    Variation("UTC, not stated", "flow", cell(Time="2024-05-23 16:00:00"), None, "Time"),
    Variation("addresses instead of names", "flow", cell(SourceServer="10.107.254.239", DestServer="10.107.254.226")),
    Variation("an address instead of a switch", "link", cell(DeviceName="10.107.208.109")),
    Variation("no round-trip time", "flow", without("Rtt"), {"rtt_ns": None}, "no round-trip time: rtt_* are NULL"),
    Variation("no marks", "link", without("EcnMarkedCount"), {"ecn_marked": None}, "ecn_marked is NULL"),
    Variation("no servers, but addresses", "flow", without("SourceServer", "DestServer")),
    Variation("neither end", "flow", without("SourceServer", "SourceIp"), None, "SourceServer, SourceIp"),
    Variation("thousands with commas", "port", cell(InBytes='"99,356,705,029"')),
    Variation("thousands with blanks", "link", cell(OutOctets="79 529 075 414")),
    Variation("other words", "flow", renamed(lambda name: name.replace("Source", "Src").replace("Pkts", "Packets"))),
    Variation(
        "all at once",
        "flow",
        lambda c: b"\xef\xbb\xbf"
        + text(
            ("", *(f'"{n.upper()}"' for n in reversed(c) if n != "Rtt"), "rtt (us)", "Vendor", ""),
            ("7", *(f'"{c[n]}"' for n in reversed(c) if n != "Rtt"), "5.887", "H3C", ""),
            end="\r\n",
        ).replace("2024/5/24 上午12:00:00".encode(), b"1716480000"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("one", [*FROM_THE_DOCUMENT, *FROM_THE_HEADER_RULES], ids=str)
def test_numbers_are_right_or_refused_by_name(write_csv: WriteCsv, one: Variation) -> None:
    check(write_csv, one)


def test_there_are_sixty_variations() -> None:
    names = {str(one) for one in (*FROM_THE_DOCUMENT, *FROM_THE_HEADER_RULES)}
    assert len(names) == len(FROM_THE_DOCUMENT) + len(FROM_THE_HEADER_RULES) >= 60


def test_doctor_shows_each_rule_and_what_the_file_lacks(tmp_path: Path) -> None:
    hour = tmp_path / "cluster" / "trafficinfo" / "2024052400"
    hour.mkdir(parents=True)
    header = "Time,SrcIp,DstIp,WritePkts,Rtt (us),Vendor"
    (hour / "2024052400_flow.csv").write_text(f"{header}\n1716480000,10.0.0.1,10.0.0.2,12,5.887,H3C\n")
    said = call("doctor", "-d", tmp_path, "-t", tmp_path / "target", cwd=tmp_path).out
    for clause in (
        "SrcIp is read as SourceIp",
        "Rtt is in us",
        "columns kept as text: Vendor",
        "no negative acknowledgments: nak_* are NULL",
    ):
        assert clause in " ".join(said.split())
