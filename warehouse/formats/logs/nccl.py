"""NCCL's own lines, versions 2.3 to 2.27 (NCCL_DEBUG=INFO): who is which rank, and what goes over which NIC.

`host:pid:tid [cudaDev] NCCL INFO message`. Formats by version: docs/formats/logs.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from warehouse.formats.logs.event import STAMP, WHOLE, Event, time_of
from warehouse.regex import regex

_PREFIX = regex(
    rf"(?:\[({STAMP}(?:\.\d+)?)\] )?(<[A-Za-z][\w-]*>|[^\s:\[\]()<>]+):(\d{{1,10}}):(\d{{1,10}}) \[(\d{{1,4}})\] "
    r"(?:([^\n]{1,400}?:\d+) )?NCCL (INFO|WARN) "
)
_BARE_VERSION = regex(r"NCCL version (\d+\.\d+\.\d+\S*)$")

_RING = regex(rf"Channel ({WHOLE})(?:/({WHOLE}))? :((?: +{WHOLE})+)( ?\.\.\.)?$")
_TREES = regex(r"Trees?(?= \[)")
_TREE = regex(rf" \[({WHOLE})\] ([-\d/>|]+)(?= \[|$)")
_CHILDREN_FIRST = regex(rf"(-?{WHOLE})/(-?{WHOLE})/(-?{WHOLE})->({WHOLE})->(-?{WHOLE})$")
_PARENT_FIRST = regex(rf"(-?{WHOLE})->({WHOLE})->(-?{WHOLE})/(-?{WHOLE})/(-?{WHOLE})$")
_ONE_TREE = regex(rf"Tree ({WHOLE}) : (-?{WHOLE}) -> ({WHOLE}) -> (-?{WHOLE})/(-?{WHOLE})/(-?{WHOLE})$")
_NUMBER_END = regex(r"\d+")
_HOP = regex(rf"Ring ({WHOLE}) : ({WHOLE}) -> ({WHOLE}) -> ({WHOLE})$")
_EDGE = regex(
    rf"(?:Channel|Ring) ({WHOLE})(?:/({WHOLE}))? : ({WHOLE})(?:\[(\w+)\])? -> ({WHOLE})(?:\[(\w+)\])? "
    r"(?:\[(send|receive)\] )?via (\S.*)$"
)
_MEMBER = regex(rf" comm (0x[0-9a-f]+) nRanks ({WHOLE})(?: busId \w+)?$")
"""What AMD's RCCL adds to lines on rings, trees and connections."""
_NET = regex(rf"NET/(\S.*?)/({WHOLE})(?:\({WHOLE}\))?(?:/(?:GDRDMA(?:\([^)]*\))?|Shared|flush=\S+))*$")
_USING = regex(r"NET/\S+ ?: Using(?= |$)")
_NIC = regex(rf"\[({WHOLE})\](?:=\{{([^{{}}]*)\}}|([^\[\];{{}}]+?):(\d+)/([\w/]+))(?=[ ;]|$)")
_NIC_LINE = regex(rf"NET/IB ?: \[({WHOLE})\] ([^\s:]+):(\d+)/([\w/]+)$")
_VIRTUAL = regex(rf"NET/\S+ ?: Made virtual device \[({WHOLE})\] name=(\S+)")
_BOOTSTRAP = regex(r"Bootstrap ?: Using (?:\[\d+\])?(\S+?):(\S+?)<\d+>")
_INIT = regex(
    rf"(?:\[Rank {WHOLE}\] )?(?:\w+ )?comm (0x[0-9a-f]+) rank ({WHOLE}) nranks ({WHOLE}) cudaDev ({WHOLE})"
    r"(?: nvmlDev \d+)?(?: busId (\w+))?(.*?) ?- (Init|Destroy|Abort) (START|COMPLETE)$"
)
_COMM_ID = regex(r" commId (0x[0-9a-f]+)")
_PARENT = regex(r" parent (0x[0-9a-f]+)")
_CONNECTED = regex(r"Connected (all rings|all trees|NVLS tree)")
_VERSION = regex(r"NCCL version (\d+\.\d+\.\d+\S*)$")

CONNECTION = regex(
    rf"(([\w.-]+):(\d{{1,10}}):(\d{{1,10}}) \[(\d{{1,4}})\] NCCL INFO "
    rf"Channel ({WHOLE})(?:/({WHOLE}))? : ({WHOLE})\[(\w+)\] -> ({WHOLE})\[(\w+)\] "
    rf"(?:\[(send|receive)\] via (NET/(?:IB\w*|Socket))/({WHOLE})(?:/GDRDMA)?|via ((?:P2P|SHM)/[\w/]+)))\n",
    re.ASCII,
).match
"""The commonest of NCCL's lines in their commonest forms, with the line feed. The patterns above say the same."""

BUFFER = 1023
"""Bytes of a line, prefix included: NCCL cuts what is longer, without a mark."""


class Nccl:
    """Reads the lines of one file; remembers which process is on which host."""

    def __init__(self) -> None:
        self._once: dict[str, str] = {}
        self._hosts: dict[str, str] = {}

    def read(self, text: str) -> list[Event] | None:
        """Events of a line of one process; None where it is none."""
        if text.startswith("NCCL ") and (version := _BARE_VERSION.match(text)):
            return [_event("nccl_version", value=version[1])]
        first = _PREFIX.match(text)
        if not first or (text.find("NCCL ", first.end()) >= 0 and _PREFIX.search(text, first.end())):
            return None
        host = self._host(first[2], first[3], at_start=True)
        return self._line(first, text[first.end() :], len(text), host)

    def of_connection(self, found: re.Match[str]) -> Event:
        """The event of a line that `CONNECTION` found."""
        text, host, pid, tid, device, channel, connection, src, near, dst, far, way, net, index, inside = found.groups()
        event: Event = {
            "item": 0,
            "family": "nccl",
            "kind": "nccl_edge" if net else "nccl_local",
            "level": "INFO",
            "host": self._host(host, pid, at_start=True),
            "pid": int(pid),
            "tid": int(tid),
            "local_rank": int(device),
            "channel": int(channel),
            "name": connection,
            "src_rank": int(src),
            "dst_rank": int(dst),
            "transport": net or inside,
            "value": f"{near} {far}",
            "text": text,
        }
        if net:
            event["direction"] = way
            event["nic_index"] = int(index)
        return event

    def last_of(self, text: str, complain: Callable[[str], None]) -> list[Event]:
        """Events of the last process that wrote into a line.

        What stands before its prefix is a half; what stands behind is whole, if a whole line has told where the
        process is: else nobody knows where the name of its host begins. `complain` is told of the halves.
        """
        prefixes = list(_PREFIX.finditer(text))
        if not prefixes:
            return []
        last = prefixes[-1]
        host = self._host(last[2], last[3], at_start=False)
        complain("several writers in one line: only what the last one wrote is whole")
        return self._line(last, text[last.end() :], len(text) - last.start(), host) if host else []

    def _host(self, host: str, pid: str, *, at_start: bool) -> str | None:
        """The host of a prefix: one that lost its first bytes, or has others before it, is the process's known one.

        One line may itself have others' bytes before its host: a shorter one is taken for the rest of what two lines
        said alike.
        """
        known = self._hosts.get(pid)
        if known == host:
            return host
        if not at_start:
            known = known or self._once.get(pid)
            return known if known and host.endswith(known) else None
        if known and known.endswith(host):
            return known
        if self._once.get(pid) == host:
            self._hosts[pid] = host
        self._once[pid] = host
        return host

    def _line(self, prefix: re.Match[str], message: str, length: int, host: str | None) -> list[Event]:
        stamp, _, pid, tid, device, _, level = prefix.groups()
        base: Event = {"level": "INFO" if level == "INFO" else "WARNING", "host": host, "pid": pid, "tid": tid}
        if stamp and (time := time_of(stamp)):
            base["time_utc"] = time
        base["local_rank"] = device
        found = list(_message(message.rstrip(), cut=length >= BUFFER)) or [{"kind": "message"}]
        return [{"family": "nccl", **base, **one} for one in found]


def _event(kind: str, **columns: object) -> Event:
    return {"family": "nccl", "kind": kind, **columns}


def _message(message: str, *, cut: bool) -> Iterator[Event]:
    if " nRanks " in message and (member := _MEMBER.search(message)):
        for event in _said(message[: member.start()], cut=cut):
            yield {**event, "communicator": member[1], "ranks": member[2]}
    else:
        yield from _said(message, cut=cut)


def _said(message: str, *, cut: bool) -> Iterator[Event]:
    if message.startswith(("Channel ", "Ring ")):
        yield from _channel(message)
    elif message.startswith("Tree"):
        yield from _trees(message, cut=cut)
    elif using := _USING.match(message):
        yield from _nics(message[using.end() :], cut=cut)
    elif nic := _NIC_LINE.match(message):
        yield {"kind": "nccl_nic", "nic_index": nic[1], "name": nic[2], "value": f"{nic[3]}/{nic[4]}"}
    elif virtual := _VIRTUAL.match(message):
        yield {"kind": "nccl_nic", "nic_index": virtual[1], "name": virtual[2], "value": "virtual"}
    elif init := _INIT.match(message):
        yield _init(init)
    elif address := _BOOTSTRAP.match(message):
        yield {"kind": "nccl_address", "name": address[1], "value": address[2]}
    elif version := _VERSION.match(message):
        yield {"kind": "nccl_version", "value": version[1]}
    elif connected := _CONNECTED.match(message):
        yield {"kind": "nccl_connected", "name": connected[1]}


def _channel(message: str) -> Iterator[Event]:
    """A ring as a list of ranks, one rank's neighbours in it, or one connection. All begin alike."""
    if " via " not in message:
        yield from _ring(message)
    elif edge := _EDGE.match(message):
        channel, connection, src, src_device, dst, dst_device, direction, via = edge.groups()
        base: Event = {"channel": channel, "name": connection, "src_rank": src, "dst_rank": dst, "transport": via}
        if src_device and dst_device:
            base["value"] = f"{src_device} {dst_device}"
        net = _NET.match(via) if direction else None
        if net:
            base |= {"transport": f"NET/{net[1]}", "nic_index": net[2]}
            yield {**base, "kind": "nccl_edge", "direction": direction}
        elif not via.startswith("NET/"):
            yield {**base, "kind": "nccl_local"}


def _ring(message: str) -> Iterator[Event]:
    if ring := _RING.match(message):
        channel, channels, listed, more = ring.groups()
        members = listed.split()
        short = _is_short(listed)
        if short or (more and len(members) > 1 and len(members[-1]) < len(members[-2])):
            members.pop()  # cut inside a number
        whole = "cut" if more or short else None
        yield {"kind": "nccl_ring", "channel": channel, "channels": channels, "value": " ".join(members), "name": whole}
    elif hop := _HOP.match(message):
        channel, before, rank, after = hop.groups()
        yield {"kind": "nccl_hop", "channel": channel, "src_rank": before, "dst_rank": rank, "rank": rank}
        yield {"kind": "nccl_hop", "channel": channel, "src_rank": rank, "dst_rank": after, "rank": rank}


def _is_short(listed: str) -> bool:
    """Whether a list in columns lost the end of its last number: it ends before its column does.

    >>> _is_short("    0   7  16  2"), _is_short("    0   7  16  23"), _is_short(" 0 12 13 4")
    (True, False, False)
    """
    ends = [one.end() for one in _NUMBER_END.finditer(listed)]
    *steps, last = (after - before for before, after in pairwise([0, *ends]))
    return "  " in listed.strip() and len(set(steps[1:])) == 1 and last < steps[-1]


def _trees(message: str, *, cut: bool) -> Iterator[Event]:
    """A rank's place in the tree of each channel, `children->rank->parent`, or in one, `parent -> rank -> children`.

    Versions 2.5 to 2.7 print both ways, one behind the other, 2.4 the second.
    """
    if one := _ONE_TREE.match(message):
        channel, up, rank, *children = one.groups()
        yield _tree(channel, rank, up, " ".join(children))
    elif _TREES.match(message):
        items = list(_TREE.finditer(message))
        for found in items[:-1] if cut else items:
            places = {_place(half) for half in found[2].split("|")}
            if len(places) == 1 and (place := places.pop()):
                yield _tree(found[1], *place)


def _place(text: str) -> tuple[str, str, str] | None:
    if found := _CHILDREN_FIRST.match(text):
        return found[4], found[5], f"{found[1]} {found[2]} {found[3]}"
    if found := _PARENT_FIRST.match(text):
        return found[2], found[1], f"{found[3]} {found[4]} {found[5]}"
    return None


def _tree(channel: str, rank: str, up: str, children: str) -> Event:
    return {"kind": "nccl_tree", "channel": channel, "rank": rank, "value": f"{up} {children}"}


def _nics(listed: str, *, cut: bool) -> Iterator[Event]:
    """`[0]mlx5_2:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>`; merged ones as `[0]={[0] .., [1] ..}`."""
    devices = listed.partition("; OOB")[0]
    found = list(_NIC.finditer(devices))
    if cut and "; OOB" not in listed:
        found = found[:-1]
    for one in found:
        index, merged, name, port, kind = one.groups()
        if merged is not None:
            yield {"kind": "nccl_nic", "nic_index": index, "name": None, "value": f"merged {merged}"}
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
