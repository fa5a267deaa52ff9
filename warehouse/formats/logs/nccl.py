"""NCCL's own lines, versions 2.4 to 2.30 (NCCL_DEBUG=INFO): `host:pid:tid [cudaDev] NCCL INFO message`.

Messages with one event are kinds of `data/log_lines.yaml`. Lists, which give an event per item, are parsed here: rings,
trees and NICs. Formats by version: docs/formats/logs.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from warehouse.base.startup import regex
from warehouse.formats.logs.event import STAMP, WHOLE, Damaged, Event, time_of
from warehouse.formats.logs.line_kinds import LineKind

FAMILY = "nccl"
# A host can be a number or an address. It never has a colon, since a launcher's label can come before it.
HOST = r"(?:<[A-Za-z][\w -]{0,60}>|[^\s:\[\]()<>|{}\"',;=]{1,253})"
PROCESS = r":\d{1,10}:\d{1,10} \[\d{1,4}\] "
_PREFIX = regex(
    rf"(?:\[({STAMP}(?:\.\d+)?)\] )?(?<![^\s:\[\]()<>|{{}}\"',;=])({HOST}):(\d{{1,10}}):(\d{{1,10}}) \[(\d{{1,4}})\] "
    # The place of a WARN can have blanks and brackets, as a C++ signature.
    r"(?:NCCL (INFO|TRACE) |([^\n]{1,400}?:\d+) NCCL (WARN) )"
)
"""Groups: stamp, host, pid, tid, device, then either level, or place and level."""
_SPEAKS = regex(r"NCCL (?:INFO|WARN|TRACE) ")
_CUT = regex(r"(?:^\s*|[\]\d:] ?|\.cc:\d+ )NCCL (?:INFO|WARN|TRACE) ")
"""Rest of a prefix: text about NCCL's log has none."""
_HALF = regex(r"[\w.-]:\d{1,10}:$")
"""End of text before a host that is the first half of another prefix."""
_PROCESS_MARK = regex(rf"[^\s:]{PROCESS}")
# NCCL prints its version on standard output, without a prefix.
_BARE_VERSION = regex(r"(?:^|[\s\]:>)|])NCCL version (\d+\.\d+\.\d+\S*)$")
_MEMBER = regex(rf" comm (0x[0-9a-f]+) nRanks ({WHOLE})(?: busId \w+)?$")
"""Suffix that AMD's RCCL adds to lines on rings, trees and connections."""

_RING = regex(rf"(?:Channel|Ring) ({WHOLE})(?:/({WHOLE}))? :((?: +{WHOLE})+)( ?\.\.\.)?$")
_NUMBER_END = regex(r"\d+")
_PLACE = r"-?\d{1,9}(?:[-/>|]+-?\d{1,9})+"
_TREES = regex(rf"Trees((?: \[{WHOLE}\] {_PLACE})+)$")
_TREE = regex(rf" \[({WHOLE})\] ({_PLACE})")
_CHILDREN_FIRST = regex(rf"(-?{WHOLE})/(-?{WHOLE})/(-?{WHOLE})->({WHOLE})->(-?{WHOLE})$")
_PARENT_FIRST = regex(rf"(-?{WHOLE})->({WHOLE})->(-?{WHOLE})/(-?{WHOLE})/(-?{WHOLE})$")
# The name of a plugin can have a blank: NET/AWS Libfabric.
_USING = regex(r"NET/[^\s:]+(?: [^\s:]+)? ?: Using(?= |$)")
_MERGED = r"=?\{[^{}]*\}"
_ONE_NIC = r"[^\[\]{};:]+:\d+/[A-Za-z][\w/]*"  # of IB, RoCE or IB/SHARP
_NICS = regex(
    rf"((?: ?(?:\[{WHOLE}\](?:{_MERGED}|{_ONE_NIC})|\{{[^{{}}]*\}})[ ,]?)*)(?: ?\[RO\])? ?(?:; OOB (?:\S*|\S+ \S+))?$"
)
_NIC = regex(rf"\[({WHOLE})\](?:(=?\{{[^{{}}]*\}})|([^\[\]{{}};:]+):(\d+)/([\w/]+))(?=[ ;,\[]|$)")
_UNNUMBERED = regex(r"(?<![\]=])\{[^{}]*\}")

BUFFER = 1023
"""Maximum bytes of a line, prefix included. NCCL truncates longer lines without a mark."""


class Nccl:
    """Parser of the lines of NCCL."""

    def __init__(self, kinds: Sequence[LineKind]) -> None:
        self._kinds = [(literal, kind) for kind in kinds if kind.scope == FAMILY for literal in kind.literals]

    def read(self, text: str) -> tuple[str | None, list[Event]] | None:
        """Return the label and the events of a line; None if it is not a line of NCCL.

        Raises
        ------
        Damaged
            If the line has no complete prefix, holds text of two processes, or is truncated.
        """
        if version := _BARE_VERSION.search(text):
            before = text[: version.start(1) - len("NCCL version ")]
            if not _SPEAKS.search(before):
                return before.strip() or None, [{"family": FAMILY, "kind": "nccl_version", "value": version[1]}]
        prefix = _prefix(text)
        if not prefix:
            if _CUT.search(text):
                raise Damaged(FAMILY, "a line of NCCL without its whole beginning")
            return None
        label, columns, end = prefix
        events = self._of(text[end:].rstrip(), len(text) - len(label or ""))
        return label, [{**columns, **event} for event in events]

    def _of(self, message: str, length: int) -> list[Event]:
        """Return the events of a message, without the columns of its line's prefix."""
        if "NCCL " in message and _SPEAKS.search(message):
            raise Damaged(FAMILY, "two processes wrote into one line")
        if message.count(":") > 1 and " [" in message and _PROCESS_MARK.search(message):
            raise Damaged(FAMILY, "two processes wrote into one line")
        if " nRanks " in message and (member := _MEMBER.search(message)):
            columns: Event = {"communicator": member[1], "ranks": int(member[2])}
            return [{**event, **columns} for event in self._bare(message[: member.start()], length)]
        return self._bare(message, length)

    def _bare(self, message: str, length: int) -> list[Event]:
        if " via " not in message:
            if message.startswith(("Channel ", "Ring ")) and (ring := _ring(message)):
                return [ring]
            if message.startswith("Trees"):
                return list(_trees(message, cut=length >= BUFFER))
            if message.startswith("NET/") and (using := _USING.match(message)):
                listed = _nics(message[using.end() :], cut=length >= BUFFER, ib="Socket" not in using[0])
                return list(listed) or [{"kind": "message"}]
        for literal, kind in self._kinds:
            if literal in message and (found := kind.read(message)):
                return [found[1]]
        return [{"kind": "message"}]


def _prefix(text: str) -> tuple[str | None, Event, int] | None:
    """Return the label before the prefix of a line, its columns, and its end; None if it has none.

    Raises
    ------
    Damaged
        If the text before it may be the first half of another prefix, so that the host is in doubt.
    """
    found = _PREFIX.search(text)
    if not found:
        return None
    stamp, host, pid, tid, device, _, place, warn = found.groups()
    label = text[: found.start()]
    if place and _PROCESS_MARK.search(place):
        raise Damaged(FAMILY, "two processes wrote into one line")
    if _HALF.search(label) or (host.isdigit() and label[-1:] == ":" and label[-2:-1].isalnum()):
        raise Damaged(FAMILY, "a line of NCCL without its whole beginning")
    columns: Event = {"family": FAMILY, "level": "WARNING" if warn else "INFO", "host": host}
    columns |= {"pid": int(pid), "tid": int(tid), "local_rank": int(device)}
    if stamp and (time := time_of(stamp)):
        columns["time_utc"] = time
    return label.strip() or None, columns, found.end()


def _ring(message: str) -> Event | None:
    found = _RING.match(message)
    if not found:
        return None
    channel, channels, listed, more = found.groups()
    members = listed.split()
    short = _is_short(listed)
    if short or (more and len(members) > 1 and len(members[-1]) < len(members[-2])):
        members.pop()  # cut inside a number
    event: Event = {"kind": "nccl_ring", "channel": int(channel), "value": " ".join(members)}
    return event | {"channels": channels and int(channels), "name": "cut" if more or short else None}


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
        raise Damaged(FAMILY, "a list of trees does not parse to its end")
    for found in _TREE.finditer(whole[1]):
        places = {_place(half) for half in found[2].split("|")}
        if len(places) != 1 or not (place := places.pop()):
            raise Damaged(FAMILY, "a list of trees does not parse to its end")
        rank, up, children = place
        value = f"{up} {children}"
        yield {"kind": "nccl_tree", "channel": int(found[1]), "rank": int(rank), "value": value}


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
        raise Damaged(FAMILY, "a list of NICs does not parse to its end")
    for one in _NIC.finditer(_UNNUMBERED.sub("", listed.partition("; OOB")[0])):
        index, merged, name, port, kind = one.groups()
        if merged is not None:
            yield {"kind": "nccl_nic", "nic_index": int(index), "name": None, "value": f"merged {merged.strip('={}')}"}
        else:
            yield {"kind": "nccl_nic", "nic_index": int(index), "name": name.strip(), "value": f"{port}/{kind}"}
