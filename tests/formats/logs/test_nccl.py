"""NCCL's lines in the forms of versions 2.4 to 2.30, and of RCCL, invented from the formats in docs/formats/logs.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.logs.conftest import Read, Rejects

PREFIX = "node-1:100:200 [0] NCCL INFO "


def _picked(event: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(event.get(name) for name in names)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Channel 00/0 : 25[16000] -> 0[10000] [receive] via NET/IB/0/GDRDMA", (0, 25, 0, "receive", "NET/IB", 0)),
        ("Channel 04 : 0[10000] -> 8[14000] [send] via NET/IB/3", (4, 0, 8, "send", "NET/IB", 3)),
        ("Channel 11/0 : 9[1] -> 16[0] [send] via NET/IB/1(8)/GDRDMA(PCI)/Shared", (11, 9, 16, "send", "NET/IB", 1)),
        (
            "Channel 01/1 : 1[1] -> 2[0] [send] via NET/NCCL RDMA Plugin v8/3(1)/GDRDMA(PCI)/Shared",
            (1, 1, 2, "send", "NET/NCCL RDMA Plugin v8", 3),
        ),
        ("Channel 01/1 : 1[1] -> 2[0] [send] via NET/Socket/0", (1, 1, 2, "send", "NET/Socket", 0)),
        ("Channel 02/0 : 3[3] -> 4[4] [receive] via NET/IBext_v8/2/GDRDMA", (2, 3, 4, "receive", "NET/IBext_v8", 2)),
        (
            "Channel 02/0 : 3[3] -> 4[4] [receive] via NET/AWS Libfabric/5/GDRDMA",
            (2, 3, 4, "receive", "NET/AWS Libfabric", 5),
        ),
        ("Ring 03 : 9 -> 16 [send] via NET/Socket/1", (3, 9, 16, "send", "NET/Socket", 1)),
        ("Ring 03 : 9[8a000] -> 16[1b000] [receive] via NET/IB/2/GDRDMA", (3, 9, 16, "receive", "NET/IB", 2)),
        (
            "Channel 05/0 : 9[8a000] -> 16[c000] [send] via NET/IB/3/GDRDMA comm 0x7a10 nRanks 32",
            (5, 9, 16, "send", "NET/IB", 3),
        ),
    ],
)
def test_edges(read: Read, message: str, expected: tuple[Any, ...]) -> None:
    (event,) = read(PREFIX + message)

    assert _picked(event, "kind", "host", "pid", "tid", "local_rank") == ("nccl_edge", "node-1", 100, 200, 0)
    assert _picked(event, "channel", "src_rank", "dst_rank", "direction", "transport", "nic_index") == expected


@pytest.mark.parametrize(
    "message",
    [
        "Channel 01/0 : 0[10000] -> 3[4d000] via P2P/IPC/read",
        "Channel 01 : 0[10000] -> 3[4d000] via P2P/IPC",
        "Channel 01/0 : 0[0] -> 3[3] via P2P/CUMEM/read",
        "Channel 01 : 0[10000] -> 3[4d000] via SHM/direct/direct",
        "Channel 01 : 0[10000] -> 3[4d000] via direct shared memory",
        "Channel 01/0 : 0[0] -> 3[3] via P2P/direct pointer/read",
        "Channel 01/0 : 0[10000] -> 3[4d000] via P2P/IPC comm 0x7a10 nRanks 32",
        "Ring 01 : 0[0] -> 3[3] via P2P/IPC",
    ],
)
def test_connections_inside_a_server(read: Read, message: str) -> None:
    (event,) = read(PREFIX + message)

    assert _picked(event, "kind", "channel", "src_rank", "dst_rank") == ("nccl_local", 1, 0, 3)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Channel 00/08 :    0   7   6   5", (0, 8, "0 7 6 5", None)),
        ("Channel 00/08 :  0  7  6 15", (0, 8, "0 7 6 15", None)),
        ("Channel 01/32 :   0   7 126 12...", (1, 32, "0 7 126", "cut")),
        ("Channel 01/32 :   0   7 126 125 ...", (1, 32, "0 7 126 125", "cut")),
        ("Channel 00/08 :    0   7  16  2", (0, 8, "0 7 16", "cut")),
        ("Channel 00/08 : 0 7 16 2", (0, 8, "0 7 16 2", None)),
        ("Channel 03 :    0   2   3   1", (3, None, "0 2 3 1", None)),
        ("Channel 07/32 :    0", (7, 32, "0", None)),
    ],
)
def test_ring_lists(read: Read, message: str, expected: tuple[Any, ...]) -> None:
    (event,) = read(PREFIX + message)

    assert event["kind"] == "nccl_ring"
    assert _picked(event, "channel", "channels", "value", "name") == expected


def test_options_after_a_nic(read: Read) -> None:
    (event,) = read(PREFIX + "Channel 01/1 : 1[1] -> 2[0] [send] via NET/IB/3(1)/GDRDMA(PCI)/Shared")

    assert _picked(event, "name", "proxy_rank", "options") == ("1", 1, "/GDRDMA(PCI)/Shared")


def test_places_in_trees(read: Read) -> None:
    trees = read(PREFIX + "Trees [0] 1/16/-1->0->-1 [1] 1/-1/-1->0->8")

    assert [_picked(event, "kind", "item", "channel", "rank", "value") for event in trees] == [
        ("nccl_tree", 0, 0, 0, "-1 1 16 -1"),
        ("nccl_tree", 1, 1, 0, "8 1 -1 -1"),
    ]


@pytest.mark.parametrize("dump", ["Ring 00 : 1 -> 0 -> 1", "Tree 0 : -1 -> 0 -> 1/-1/-1", "NVLS Head  0:  0  1"])
def test_a_plan_of_the_graph_search_is_neither_a_ring_nor_an_edge(read: Read, rejects: Rejects, dump: str) -> None:
    (event,) = read(PREFIX + dump)

    assert event["kind"] == "message"
    assert not rejects


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("Trees [2] 3/8/-1->2->-1", "-1 3 8 -1"),
        ("Trees [2] 3/8/-1->2->-1|-1->2->3/8/-1", "-1 3 8 -1"),
        ("Trees [2] 0->2->3/8/-1", "0 3 8 -1"),
        ("Trees [2] 3/8/-1->2->0 comm 0x7a10 nRanks 32 busId 17000", "0 3 8 -1"),
    ],
)
def test_a_place_in_a_tree_as_each_version_prints_it(read: Read, message: str, value: str) -> None:
    (event,) = read(PREFIX + message)

    assert _picked(event, "kind", "channel", "rank", "value") == ("nccl_tree", 2, 2, value)


def test_a_contradictory_tree_is_damaged(read: Read, rejects: Rejects) -> None:
    (event,) = read(PREFIX + "Trees [0] 3/-1/-1->2->0|0->2->4/-1/-1")

    assert event["kind"] == "damaged"
    assert len(rejects) == 1


def test_lines_of_rccl_name_their_communicator(read: Read) -> None:
    events = read(
        PREFIX + "Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0 comm 0x7a10 nRanks 32",
        PREFIX + "comm 0x7a10 rank 8 nRanks 32 nNodes 4 localRanks 8 localRank 0 MNNVL 0",
    )

    assert [_picked(event, "kind", "communicator", "ranks", "rank") for event in events] == [
        ("nccl_edge", "0x7a10", 32, None),
        ("nccl_init_start", "0x7a10", 32, 8),
    ]


def test_a_line_that_the_buffer_truncated_loses_its_last_item(read: Read) -> None:
    message = "Trees " + " ".join(f"[{channel}] 1/-1/-1->0->8" for channel in range(64))
    events = read((PREFIX + message)[:1023])

    assert [event["channel"] for event in events] == list(range(len(events)))
    assert 40 < len(events) < 64
    assert {event["value"] for event in events} == {"8 1 -1 -1"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "NET/IB : Using [0]mlx5_2:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB bond0:10.0.0.1<0>",
            [(0, "mlx5_2"), (1, "mlx5_3")],
        ),
        (
            "NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB ; OOB ib0.0065:10.0.0.1<0>",
            [(0, "mlx5_0"), (1, "mlx5_1")],
        ),
        ("NET/IB : Using [RO]; OOB eth0:10.0.0.1<0>", []),
        (
            "NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [2]mlx5_2:1/IB [RO]; OOB x:1<0>",
            [(0, None), (2, "mlx5_2")],
        ),
        ("NET/IB : Using {[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]; OOB x:1<0>", []),
        ("NET/IB : Using [0]mlx4_0:1/IB [1]mlx4_0:2/IB ; OOB :", [(0, "mlx4_0"), (1, "mlx4_0")]),
        ("NET/Socket : Using [0]eth0.100:10.0.0.1<0> [1]eth1:fe80::1%eth1<0>", []),
        ("NET/IB: [1] mlx5_3:1/IB", [(1, "mlx5_3")]),
        ("NET/IB: Dev 0 Port 1 qpn 305 mtu 5 LID 4", []),
        ("NET/IB : GPU Direct RDMA Disabled for GPU 2[2] / HCA 0 (distance 3 >= 2)", []),
        ("NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=400000 ndevs=2", [(4, "mlx5_0+mlx5_1")]),
    ],
)
def test_lists_of_nics(read: Read, message: str, expected: list[tuple[int, str | None]]) -> None:
    events = read(PREFIX + message)

    assert [_picked(event, "nic_index", "name") for event in events if event["kind"] == "nccl_nic"] == expected


MEMBER = "comm 0xab1 rank 3 nranks 32 cudaDev 3"


@pytest.mark.parametrize(
    ("message", "kind", "name"),
    [
        (f"{MEMBER} busId 4d000 - Init COMPLETE", "nccl_init", None),
        (f"{MEMBER} busId 4d000 commId 0x9c - Init COMPLETE", "nccl_init", "commId 0x9c"),
        (f"{MEMBER} nvmlDev 3 busId 4d000 commId 0x9c - Init START", "nccl_init_start", "commId 0x9c"),
        (f"ncclCommInitRank {MEMBER} nvmlDev 3 busId 4d000 commId 0x9c - Init COMPLETE", "nccl_init", "commId 0x9c"),
        (
            f"ncclCommSplit {MEMBER} nvmlDev 3 busId 4d000 parent 0xff splitCount 1 color 7 key 3- Init START",
            "nccl_init_start",
            "parent 0xff",
        ),
        (f"[Rank 3] ncclCommInitRank {MEMBER} busId 4d000 commId 0x9c - Init COMPLETE", "nccl_init", "commId 0x9c"),
        (
            f"ncclCommInitRankConfig {MEMBER} nvmlDev 3 busId 4d000 commId 0x9c - Init COMPLETE",
            "nccl_init",
            "commId 0x9c",
        ),
        (
            f"ncclCommSplit {MEMBER} nvmlDev 3 busId 4d000 parent 0xff color 7 key 3 commId 0x9c - Init COMPLETE",
            "nccl_init",
            "commId 0x9c",
        ),
        (f"{MEMBER} nvmlDev 3 - Init COMPLETE", "nccl_init", None),
        (f"{MEMBER} busId 4d000 used 67129296 bytes - Init COMPLETE", "nccl_init", None),
        (f"{MEMBER} busId 4d000 - Destroy COMPLETE", "nccl_end", None),
    ],
)
def test_communicators(read: Read, message: str, kind: str, name: str | None) -> None:
    (event,) = read(PREFIX + message)

    assert _picked(event, "kind", "communicator", "rank", "ranks", "local_rank", "name") == (
        kind,
        "0xab1",
        3,
        32,
        3,
        name,
    )


@pytest.mark.parametrize(
    ("line", "kind", "value"),
    [
        ("NCCL version 2.14.3+cuda11.7", "nccl_version", "2.14.3+cuda11.7"),
        (PREFIX + "NCCL version 2.21.5+cuda12.4", "nccl_version", "2.21.5+cuda12.4"),
        (PREFIX + "Bootstrap : Using bond0:10.0.0.1<0>", "nccl_address", "10.0.0.1"),
        (PREFIX + "Bootstrap: Using ib0.0065:10.0.0.1<0>", "nccl_address", "10.0.0.1"),
        (PREFIX + "Connected all rings, use ring PXN 0 GDR 1", "nccl_connected", None),
        (PREFIX + "threadThresholds 8/8/64 | 256/8/64 | 512 | 512", "message", None),
    ],
)
def test_other_lines(read: Read, line: str, kind: str, value: str | None) -> None:
    (event,) = read(line)

    assert _picked(event, "kind", "value") == (kind, value)


@pytest.mark.parametrize(
    "label",
    [
        "3: ",
        "[1,0]<stdout>:",
        "node-1: ",
        "[default0]:",
        "[0] node-1: ",
        "(Worker pid=9, ip=10.0.0.1) ",
        "10.0.0.7: node-1: ",
        "2024-05-23T16:00:00.123456789Z ",
        "  | 2024-05-23T16:00:00.123Z | ",
        "  | 2024-05-23T16:00:00.123-07:00 | ",
        "[155] ",
        "        [1,0]<stdout>:",
        "\t",
    ],
)
def test_launcher_labels_are_not_hosts(read: Read, label: str) -> None:
    (event,) = read(label + PREFIX + "Connected all rings")

    assert _picked(event, "kind", "host", "pid") == ("nccl_connected", "node-1", 100)


@pytest.mark.parametrize("host", ["10.0.0.7", "77", "NODE-1.example.org", "node_1", "<host_name>"])
def test_hosts_of_all_kinds_and_a_time(read: Read, host: str) -> None:
    (event,) = read(f"[2025-01-02 03:04:05] {host}:1:2 [7] transport/net.cc:42 NCCL WARN Connected all rings")

    assert _picked(event, "host", "time_utc", "level") == (host, "2025-01-02 03:04:05", "WARNING")


def test_a_place_with_blanks_and_brackets(read: Read) -> None:
    (event,) = read("node-1:1:2 [7] int f(std::vector<int> [3], char*):120 NCCL WARN it failed")

    assert _picked(event, "kind", "host", "level") == ("message", "node-1", "WARNING")


EDGE = "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/1"


@pytest.mark.parametrize(
    "line",
    [
        PREFIX + EDGE + "node-2:300:400 [1] NCCL INFO " + EDGE,
        PREFIX + EDGE[:30] + "node-2:300:400 [1] NCCL INFO Connected all trees",
        "node-1:100:200 [0] node-2:300:400 [1] x.cc:12 NCCL WARN it failed",
        ":100:200 [0] NCCL INFO " + EDGE,
        "[0] NCCL INFO " + EDGE,
        PREFIX + EDGE[:-9],
        PREFIX + "Channel 00/08 :    0   7   6 via",
        PREFIX + "Trees [0] 1/-1/-1->0->8 [1] 1/-1/-1->",
        PREFIX + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1",
        PREFIX + "comm 0xab1 rank 3 nranks 32 cudaDev 3 busId 4d000 - Init COMP",
    ],
)
def test_a_damaged_line_yields_no_values_and_is_counted(read: Read, rejects: Rejects, line: str) -> None:
    before, event, after = read(PREFIX + "Connected all rings", line, PREFIX + "Connected all trees")

    assert (before["kind"], after["kind"]) == ("nccl_connected", "nccl_connected")
    assert event["kind"] == "damaged"
    assert set(event) <= {"family", "kind", "value", "line", "segment", "item", "label", "text", "filename"}
    assert [(number, reason.startswith("damaged: "), text) for number, reason, text in rejects] == [(2, True, line)]


def test_a_thousand_damaged_lines_are_listed_and_all_are_counted(read: Read, rejects: Rejects) -> None:
    events = read(*["[0] NCCL INFO " + EDGE] * 2_500)

    assert len(events) == 2_500
    assert len(rejects) == 1_001
    assert rejects[-1][1] == "damaged: 1,500 more lines"


def test_a_container_label_gives_the_time(read: Read) -> None:
    (event,) = read("2024-05-23T16:00:00.123456789Z " + PREFIX + "Connected all rings")

    assert event["time_utc"] == "2024-05-23 16:00:00.123456"
