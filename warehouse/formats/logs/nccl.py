"""NCCL's own lines, versions 2.4 to 2.30 (NCCL_DEBUG=INFO): ranks, rings, trees, connections and NICs.

`host:pid:tid [cudaDev] NCCL INFO message`. Formats by version: docs/formats/logs.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from warehouse.base.startup import regex
from warehouse.formats.logs.event import WHOLE, Damaged, Event, time_of
from warehouse.formats.logs.lines import NCCL, is_alone, speaks_nccl

FAMILY = "nccl"

_BARE_VERSION = regex(r"NCCL version (\d+\.\d+\.\d+\S*)$")
_RING = regex(rf"(?:Channel|Ring) ({WHOLE})(?:/({WHOLE}))? :((?: +{WHOLE})+)( ?\.\.\.)?$")
_DUMP = regex(
    rf"(?:Ring {WHOLE} : -?{WHOLE} -> -?{WHOLE} -> -?{WHOLE}|Tree {WHOLE} : [-\d/> ]+|NVLS Head .*"
    rf"|Channel {WHOLE} : -?{WHOLE} -> -?{WHOLE} -> -?{WHOLE})$"
)
"""Lines of NCCL_DEBUG_SUBSYS=GRAPH: plans of NCCL's graph search, neither rings nor edges."""
_PLACE = r"-?\d{1,9}(?:[-/>|]+-?\d{1,9})+"
_TREES = regex(rf"Trees((?: \[{WHOLE}\] {_PLACE})+)$")
_TREE = regex(rf" \[({WHOLE})\] ({_PLACE})")
_CHILDREN_FIRST = regex(rf"(-?{WHOLE})/(-?{WHOLE})/(-?{WHOLE})->({WHOLE})->(-?{WHOLE})$")
_PARENT_FIRST = regex(rf"(-?{WHOLE})->({WHOLE})->(-?{WHOLE})/(-?{WHOLE})/(-?{WHOLE})$")
_NUMBER_END = regex(r"\d+")
_EDGE = regex(
    rf"(?:Channel|Ring) ({WHOLE})(?:/({WHOLE}))? : ({WHOLE})(?:\[(\w+)\])? -> ({WHOLE})(?:\[(\w+)\])? "
    r"(?:\[(send|receive)\] )?via (\S.*)$"
)
_MEMBER = regex(rf" comm (0x[0-9a-f]+) nRanks ({WHOLE})(?: busId \w+)?$")
"""Suffix that AMD's RCCL adds to lines on rings, trees and connections."""
_NET = regex(rf"NET/([^/\s][^/\n]{{0,60}})/({WHOLE})(?:\(({WHOLE})\))?((?:/[A-Za-z][\w=.-]*(?:\([^()/]*\))?)*)$")
_INSIDE = regex(r"(?:P2P|SHM|direct shared memory|NVLS|COLLNET|MNNVL|CE)[\w/\[\] ()-]*$")
_USING = regex(r"NET/[^\s:]+(?: [^\s:]+)? ?: Using(?= |$)")
_MERGED = r"=?\{[^{}]*\}"
_ONE_NIC = r"[^\[\]{};:]+:\d+/[A-Za-z][\w/]*"
_NICS = regex(
    rf"((?: ?(?:\[{WHOLE}\](?:{_MERGED}|{_ONE_NIC})|\{{[^{{}}]*\}})[ ,]?)*)(?: ?\[RO\])? ?(?:; OOB (?:\S*|\S+ \S+))?$"
)
_NIC = regex(rf"\[({WHOLE})\](?:(=?\{{[^{{}}]*\}})|([^\[\]{{}};:]+):(\d+)/([\w/]+))(?=[ ;,\[]|$)")
_UNNUMBERED = regex(r"(?<![\]=])\{[^{}]*\}")
_NIC_LINE = regex(rf"NET/IB ?: \[({WHOLE})\] ([^\s:]+):(\d+)/([\w/]+) ?$")
_VIRTUAL = regex(rf"NET/\S+ ?: Made virtual device \[({WHOLE})\] name=(\S+)(?: speed=\d+)? ndevs=({WHOLE})$")
_BOOTSTRAP = regex(r"Bootstrap ?: Using (?:\[\d+\])?(\S+?):(\S+?)<\d+>")
_INIT = regex(
    rf"(?:\[Rank {WHOLE}\] )?(?:\w+ )?comm (0x[0-9a-f]+) rank ({WHOLE}) nranks ({WHOLE}) cudaDev ({WHOLE})"
    r"(?: nvmlDev -?\d+)?(?: busId (\w+))?(.*?) ?- (Init|Destroy|Abort) (START|COMPLETE)$"
)
_TOPOLOGY = regex(
    rf"(?:\[Rank {WHOLE}\] )?comm (0x[0-9a-f]+) rank ({WHOLE}) nRanks ({WHOLE}) nNodes {WHOLE} localRanks ({WHOLE}) "
    rf"localRank ({WHOLE})(?: .*)?$"
)
_SAYS_INIT = regex(r"(?:\[Rank \d+\] )?(?:nccl\w+ )?comm 0x[0-9a-f]* ?(?:rank|$)")
_COMM_ID = regex(r" commId (0x[0-9a-f]+)")
_PARENT = regex(r" parent (0x[0-9a-f]+)")
_CONNECTED = regex(r"Connected (all rings|all trees|NVLS tree)")
_VERSION = regex(r"NCCL version (\d+\.\d+\.\d+\S*)$")

_LABELS = (
    r"\[\d{1,6}+(?:,\d{1,6}+|)\]<std(?:out|err)>:|\d{1,6}+: |\[default\d{1,4}+\]:|"
    r"\([^()\n]{1,60} pid=\d{1,9}+(?:, ip=[\d.]{7,15}+|)\)"
)
_WRITER = regex(rf"(?:({_LABELS}) ?|)([\w.-]++):(\d{{1,10}}+):(\d{{1,10}}+) \[(\d{{1,4}}+)\]", re.ASCII)
_CONNECTION = regex(
    rf"(((?:(?:{_LABELS}) ?|)[\w.-]++:\d{{1,10}}+:\d{{1,10}}+ \[\d{{1,4}}+\]) NCCL INFO "
    rf"Channel ({WHOLE}+)(?:/({WHOLE}+)|) : ({WHOLE}+)\[(\w++)\] -> ({WHOLE}+)\[(\w++)\] (?:\[(send|receive)\] via "
    rf"(NET/(?:IB\w*+|Socket))/({WHOLE}+)((?:/GDRDMA|)(?:/Shared|))|via ((?:P2P|SHM)/[\w/]++)))\n",
    re.ASCII,
).match
"""Matcher of the most common NCCL lines in their most common forms, with the line feed.

A fast path: the patterns above yield the same events.
"""

WRITERS = 1_024
"""Maximum number of cached line prefixes."""
BUFFER = 1023
"""Maximum bytes of a line, prefix included. NCCL truncates longer lines without a mark."""


def read(text: str) -> list[Event] | None:
    """Return the events of a line; None if it is not a line of NCCL.

    Raises
    ------
    Damaged
        If the line has no complete prefix, holds text of two processes, or is truncated.
    """
    if "NCCL " not in text:
        return None
    if version := _BARE_VERSION.match(text.strip()):
        return [_event("nccl_version", value=version[1])]
    prefix = NCCL.match(text)
    if not prefix:
        if speaks_nccl(text):
            raise Damaged(FAMILY, "a line of NCCL without its whole beginning")
        return None
    if not is_alone(text, prefix):
        raise Damaged(FAMILY, "two processes wrote into one line")
    stamp, host, pid, tid, device, info, _, warn = prefix.groups()
    base: Event = {"level": "WARNING" if warn else "INFO", "host": host, "pid": pid, "tid": tid, "local_rank": device}
    if stamp and (time := time_of(stamp)):
        base["time_utc"] = time
    events = list(_message(text[prefix.end() :].rstrip(), cut=len(text.lstrip()) >= BUFFER)) if info or warn else []
    return [{"family": FAMILY, **base, **event} for event in events or [{"kind": "message"}]]


class Connections:
    """Parser of connections in their most common forms.

    All lines of one process have the same prefix. It is parsed once, and its event is copied.
    """

    def __init__(self, filename: str, labels: set[str]) -> None:
        self._filename = filename
        self._labels = labels
        self._of_writer: dict[str, Event] = {}

    def read(self, block: str, start: int, line: int, segment: int) -> tuple[Event, int] | None:
        """Return the event of the line at `start`, and the line's end; None if the line has another form."""
        found = _CONNECTION(block, start)
        if not found:
            return None
        text, writer, channel, name, src, near, dst, far, way, net, index, direct, inside = found.groups()
        event = (self._of_writer.get(writer) or self._read_writer(writer)).copy()
        event["line"] = line
        event["segment"] = segment
        event["channel"] = int(channel)
        event["name"] = name
        event["src_rank"] = int(src)
        event["dst_rank"] = int(dst)
        event["value"] = f"{near} {far}"
        event["text"] = text
        if net:
            event["kind"] = "nccl_edge"
            event["direction"] = way
            event["transport"] = net
            event["nic_index"] = int(index)
            event["options"] = direct or None
        else:
            event["kind"] = "nccl_local"
            event["transport"] = inside
        return event, found.end()

    def _read_writer(self, text: str) -> Event:
        """Return an event with the columns of a line's prefix; the other columns are None, to be set in a copy."""
        found = _WRITER.match(text)
        assert found
        label, host, pid, tid, device = found.groups()
        columns = "line segment kind channel name src_rank dst_rank value direction transport nic_index options text"
        event: Event = dict.fromkeys(columns.split())
        event |= {"family": FAMILY, "level": "INFO", "item": 0, "filename": self._filename, "host": host}
        event |= {"pid": int(pid), "tid": int(tid), "local_rank": int(device)}
        if label:
            event["label"] = label.rstrip()
            self._labels.add(label.rstrip())
        if len(self._of_writer) >= WRITERS:
            self._of_writer.clear()
        self._of_writer[text] = event
        return event


def _event(kind: str, **columns: object) -> Event:
    return {"family": FAMILY, "kind": kind, **columns}


def _damaged(what: str) -> Damaged:
    return Damaged(FAMILY, f"{what} does not parse to its end")


def _message(message: str, *, cut: bool) -> Iterator[Event]:
    if " nRanks " in message and (member := _MEMBER.search(message)):
        for event in _bare_message(message[: member.start()], cut=cut):
            yield {**event, "communicator": member[1], "ranks": member[2]}
    else:
        yield from _bare_message(message, cut=cut)


def _bare_message(message: str, *, cut: bool) -> Iterator[Event]:
    if message.startswith(("Channel ", "Ring ")):
        yield from _channel(message)
    elif message.startswith("Trees"):
        yield from _trees(message, cut=cut)
    elif using := _USING.match(message):
        yield from _nics(message[using.end() :], cut=cut, ib="Socket" not in using[0])
    elif nic := _NIC_LINE.match(message):
        yield {"kind": "nccl_nic", "nic_index": nic[1], "name": nic[2], "value": f"{nic[3]}/{nic[4]}"}
    elif virtual := _VIRTUAL.match(message):
        value = "virtual" if virtual[3] != "1" else "1/virtual"
        yield {"kind": "nccl_nic", "nic_index": virtual[1], "name": virtual[2], "value": value}
    elif init := _INIT.match(message):
        yield _init(init)
    elif topology := _TOPOLOGY.match(message):
        pointer, rank, ranks, _, local_rank = topology.groups()
        one: Event = {"kind": "nccl_init_start", "communicator": pointer, "rank": rank, "ranks": ranks}
        yield {**one, "local_rank": local_rank}
    elif "comm 0x" in message and _SAYS_INIT.match(message) and ("cudaDev" in message or message.endswith("-")):
        raise _damaged("a line on a communicator")
    elif connected := _CONNECTED.match(message):
        yield {"kind": "nccl_connected", "name": connected[1]}
    elif version := _VERSION.match(message):
        yield {"kind": "nccl_version", "value": version[1]}
    elif bootstrap := _BOOTSTRAP.match(message):
        yield {"kind": "nccl_address", "name": bootstrap[1], "value": bootstrap[2]}


def _channel(message: str) -> Iterator[Event]:
    """Yield the event of a ring or of a connection: both lines have the same start."""
    if " via " not in message:
        if ring := _RING.match(message):
            yield _ring(ring)
        elif not _DUMP.match(message):
            raise _damaged("a ring or connection")
        return
    edge = _EDGE.match(message)
    if not edge:
        raise _damaged("a connection")
    channel, connection, src, src_device, dst, dst_device, direction, via = edge.groups()
    base: Event = {"channel": channel, "name": connection, "src_rank": src, "dst_rank": dst, "transport": via}
    if src_device and dst_device:
        base["value"] = f"{src_device} {dst_device}"
    if net := _NET.match(via):
        base |= {"transport": f"NET/{net[1]}", "nic_index": net[2], "proxy_rank": net[3], "options": net[4] or None}
        yield {**base, "kind": "nccl_edge", "direction": direction}
    elif _INSIDE.match(via):
        yield {**base, "kind": "nccl_local"}
    else:
        raise _damaged("a connection")


def _ring(ring: re.Match[str]) -> Event:
    channel, channels, listed, more = ring.groups()
    members = listed.split()
    short = _is_short(listed)
    if short or (more and len(members) > 1 and len(members[-1]) < len(members[-2])):
        members.pop()  # cut inside a number
    whole = "cut" if more or short else None
    return {"kind": "nccl_ring", "channel": channel, "channels": channels, "value": " ".join(members), "name": whole}


def _is_short(listed: str) -> bool:
    """Return True if the last number of a list in columns was truncated: it ends before its column does.

    >>> _is_short("    0   7  16  2"), _is_short("    0   7  16  23"), _is_short(" 0 12 13 4")
    (True, False, False)
    """
    ends = [one.end() for one in _NUMBER_END.finditer(listed)]
    *steps, last = (after - before for before, after in pairwise([0, *ends]))
    return "  " in listed.strip() and len(set(steps[1:])) == 1 and last < steps[-1]


def _trees(message: str, *, cut: bool) -> Iterator[Event]:
    """Yield a rank's place in the tree of each channel, `children->rank->parent`.

    Versions 2.5 to 2.7 print both forms in one line; version 2.4 prints only the second, `parent->rank->children`.
    """
    if cut:
        message = message[: message.rfind(" [")]
    whole = _TREES.match(message)
    if not whole:
        raise _damaged("a list of trees")
    for found in _TREE.finditer(whole[1]):
        places = {_place(half) for half in found[2].split("|")}
        if len(places) != 1 or not (place := places.pop()):
            raise _damaged("a list of trees")
        rank, up, children = place
        yield {"kind": "nccl_tree", "channel": found[1], "rank": rank, "value": f"{up} {children}"}


def _place(text: str) -> tuple[str, str, str] | None:
    if found := _CHILDREN_FIRST.match(text):
        return found[4], found[5], f"{found[1]} {found[2]} {found[3]}"
    if found := _PARENT_FIRST.match(text):
        return found[2], found[1], f"{found[3]} {found[4]} {found[5]}"
    return None


def _nics(listed: str, *, cut: bool, ib: bool) -> Iterator[Event]:
    """Yield the NICs of `[0]mlx5_2:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>`.

    Merged NICs are listed as `[0]={[0] .., [1] ..}`.
    """
    if not ib:
        return
    if cut and "; OOB" not in listed:
        listed = listed[: listed.rfind(" [")]
    if not _NICS.match(listed):
        raise _damaged("a list of NICs")
    for one in _NIC.finditer(_UNNUMBERED.sub("", listed.partition("; OOB")[0])):
        index, merged, name, port, kind = one.groups()
        if merged is not None:
            yield {"kind": "nccl_nic", "nic_index": index, "name": None, "value": f"merged {merged.strip('={}')}"}
        else:
            yield {"kind": "nccl_nic", "nic_index": index, "name": name.strip(), "value": f"{port}/{kind}"}


def _init(found: re.Match[str]) -> Event:
    pointer, rank, ranks, device, bus, more, what, phase = found.groups()
    name = _COMM_ID.search(more)
    parent = _PARENT.search(more)
    kind = "nccl_end" if what != "Init" else "nccl_init" if phase == "COMPLETE" else "nccl_init_start"
    event: Event = {"kind": kind, "communicator": pointer, "rank": rank, "ranks": ranks, "local_rank": device}
    event["name"] = f"commId {name[1]}" if name else f"parent {parent[1]}" if parent else None
    event["value"] = bus
    return event
