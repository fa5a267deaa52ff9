"""Reasons to rebuild a part: the differences between its current inputs and those of the last part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warehouse.engine.base import EngineError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.select_pieces import changed_pieces
from warehouse.engine.volatile import looks_volatile
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Graph, Node, place_in_select
from warehouse.graph.plan import Key
from warehouse.ingest.file_list import FileList, changes
from warehouse.ingest.schemas import FILES

MAKE, MAYBE, CHECK, KEEP, DROP = "make", "maybe", "check", "keep", "drop"
NEW, READS = "new", "reads "
_WORDS = {"added": "new", "removed": "gone", "changed": "changed"}
"""Words for changes of files in reasons."""


@dataclass(frozen=True)
class Step:
    """Step of a dry run: the action for one part, with reasons."""

    key: Key
    action: str
    """`make`, `maybe` (depends on upstream parts that are not written yet), `check`, `keep` or `drop`."""
    reasons: tuple[str, ...] = ()


class Reasons:
    """Comparison of parts with those of the last build.

    Parameters
    ----------
    before, now
        The raw files of the last build, and the current ones.
    """

    def __init__(self, graph: Graph, engine: DuckDBEngine, before: FileList, now: FileList) -> None:
        self._graph = graph
        self._engine = engine
        self._before = before
        self._now = now
        self._only_pieces: dict[str, list[str]] = {}
        """Changed columns or CTEs, by model; only for models in which nothing but the SELECT changed."""

    def why(self, key: Key, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[str]:
        """Return the differences between the inputs of the last part (None: no such part) and the new inputs."""
        node = self._graph.nodes[key.model]
        found = [f"volatile: {volatile_places(node)}"] if node.volatile else []
        if old is None:
            return [*found, *self._first_reasons(key)]
        if old["engine"] != new["engine"]:
            found.append(f"engine changed: {' '.join(old['engine'])} to {' '.join(new['engine'])}")
        if old["recipe"] != new["recipe"]:
            found.append("the file format of parts changed")
        is_other_sql = old["select"] != new["select"] and self._canonical(old.get("sql", "")) != node.canonical
        pieces = self._changed_pieces(old.get("sql", ""), node) if is_other_sql else []
        if is_other_sql:
            found.append(f"SQL changed: {', '.join(pieces)}" if pieces else "SQL changed")
        found += _contract(old, new)
        before, after = old["inputs"], new["inputs"]
        others = [read for read, digest in after.items() if digest is None or before.get(read, digest) != digest]
        if any(is_raw(read) and read != FILES for read in others):
            others = [read for read in others if read != FILES]  # its changes repeat those of the other raw relations
        for read in others:
            found.append(self._rebuilt(node, read) if after[read] is None else self._changed(read, key.partition))
        if len(found) == 1 and is_other_sql:
            self._only_pieces[key.model] = pieces
        return found

    def _first_reasons(self, key: Key) -> list[str]:
        """Return the reasons for a part that the last build does not have: new files if it reads raw files."""
        reads = self._graph.nodes[key.model].reads
        raw = [read for read in reads if is_raw(read)]
        files = {read: text for read in raw if (text := self._changed_files(read, key.partition))}
        if len(files) > 1:
            files.pop(FILES, None)
        return list(files.values()) or [NEW]

    def _canonical(self, sql: str) -> str:
        """Return the canonical text of an earlier SELECT, which another engine may have written in another way."""
        try:
            return self._engine.parse(sql).canonical
        except EngineError:
            return ""

    def _changed_pieces(self, sql: str, node: Node) -> list[str]:
        try:
            return changed_pieces(self._canonical(sql), node.canonical)
        except (ValueError, KeyError, TypeError, IndexError):
            return []

    def _rebuilt(self, node: Node, read: str) -> str:
        """Return the reason for an input that will be rebuilt; if only some columns change, name the columns read."""
        pieces = self._only_pieces.get(read, [])
        columns = {column.name for column in self._graph.nodes[read].model.columns}
        if not pieces or not columns.issuperset(pieces) or '"type":"STAR"' in node.canonical:
            return f"{READS}{read}"
        read_columns = [name for name in pieces if re.search(rf"\b{re.escape(name)}\b", node.sql)]
        return (
            f"{READS}{', '.join(read_columns)} of {read}"
            if read_columns
            else f"{READS}{read}, but nothing of it that changes"
        )

    def _changed(self, read: str, partition: str) -> str:
        """Return the reason for an input that changed."""
        if read in self._graph.nodes and self._graph.nodes[read].model.materialize == "table":
            return f"{read} has other rows"
        if is_raw(read):
            return self._changed_files(read, partition) or f"{read} is read in another way"
        return f"{read} changed"

    def _changed_files(self, read: str, partition: str) -> str:
        """Return the changes of the files of a relation, such as `3 files new, 1 changed`."""
        found = (one for one in changes(self._before, self._now, read) if one.is_in(partition))
        counts = Counter(one.change for one in found)
        words = [f"{counts[change]:,} {word}" for change, word in _WORDS.items() if counts[change]]
        if not words:
            return ""
        count, _, word = words[0].partition(" ")
        words[0] = f"{count} {'file' if count == '1' else 'files'} {word}"
        return ", ".join(words)


def _contract(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the differences in the front matter that affect the rows."""
    before, after = (dict(made["columns"]) for made in (old, new))
    found = []
    for word, names in (
        ("type changed", [name for name in after if name in before and before[name] != after[name]]),
        ("column added", [name for name in after if name not in before]),
        ("column removed", [name for name in before if name not in after]),
    ):
        found += [f"{word}: {', '.join(names)}"] if names else []
    if before == after and list(before) != list(after):
        found.append("columns in another order")
    if old["grain"] != new["grain"]:
        found.append("grain changed")
    found += [f"{word} changed" for word in ("presorted",) if old.get(word) != new.get(word)]
    return found


def volatile_places(node: Node) -> str:
    """Return the volatile expressions of a model, such as `random() at models/metrics/x.sql:12:8`."""
    found = [f"a check at {check.place}" for check in node.model.checks if looks_volatile(check.text)]
    for name, offset in node.volatile:
        place = node.model.place() if offset is None else place_in_select(node.model, node.sql, offset)
        found.append(f"{name} at {place}")
    return ", ".join(found)
