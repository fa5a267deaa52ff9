"""Examples of kinds of log lines (`data/log_lines.yaml`), read as lines of a log: `warehouse test`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warehouse.formats.logs.event import Damaged
from warehouse.formats.logs.line_kinds import DAMAGED, LineKind, line_kinds
from warehouse.formats.logs.line_parser import LineParser
from warehouse.formats.logs.nccl import Nccl

_BEFORE = {"nccl": "node-1:1:2 [0] NCCL INFO ", "logger": "[2024-04-29 06:15:13,208] [INFO] [x.py:1:f] "}
_OF_PREFIX = {
    "nccl": ("host", "pid", "tid", "local_rank", "level"),
    "logger": ("time_utc", "level"),
}
"""Columns that the text before an example fills, by scope."""


def failed_examples(log_lines: Sequence[Path] = ()) -> tuple[int, list[str]]:
    """Return the number of examples, and a line for each that gives another event than it says."""
    kinds = line_kinds(log_lines)
    return len(kinds), [text for kind in kinds if (text := _failure(kind, kinds))]


def _failure(kind: LineKind, kinds: Sequence[LineKind]) -> str | None:
    place = f"{kind.path}:{kind.line}: {kind.name}"
    try:
        events = LineParser(kinds, Nccl(kinds)).read(_BEFORE.get(kind.scope, "") + kind.example)[1]
    except Damaged as damage:
        if kind.constants["kind"] != DAMAGED and kind.damage != str(damage):
            return f"{place}: the example is read as damaged: {damage}"
        events = damage.kept
        if not events:
            return None
    wanted = kind.constants["kind"], kind.constants["family"]
    mine = [event for event in events if (event["kind"], event["family"]) == wanted]
    if not mine:
        read = ", ".join(f"{event['family']} {event['kind']}" for event in events) or "plain text"
        return f"{place}: the example is read as {read}"
    given = {column: _plain(text) for column, text in kind.gives.items()}
    hidden = {"family", "kind", "level", *_OF_PREFIX.get(kind.scope, ())} - set(given)
    shown = [
        {c: _plain(value) for c, value in event.items() if value is not None and c not in hidden} for event in mine
    ]
    if given not in shown:
        return f"{place}: the example gives {_listed(shown[0])}, and it says {_listed(given)}"
    return None


def _plain(value: object) -> str | float:
    """Return a number as a number, whatever its form, and other values as text."""
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def _listed(columns: dict[str, str | float]) -> str:
    return ", ".join(f"{column} {value}" for column, value in columns.items()) or "nothing"
