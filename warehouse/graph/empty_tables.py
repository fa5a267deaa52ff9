"""Reasons for empty tables: the kinds of files that are missing.

A table has groups of relations that it needs. It is empty if all relations of a group are empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from warehouse.formats import known_formats
from warehouse.formats.traces import trace_of

UNMET = "no row of the loaded files meets its conditions"
"""Reason of last resort: no kind of file is missing."""


@dataclass(frozen=True)
class EmptyTables:
    """Relations of a build: kinds, row counts, and what each needs."""

    kinds: Mapping[str, str]
    rows: Mapping[str, int | None]
    needs: Mapping[str, Sequence[Sequence[str]]]
    loaded: Collection[str | None] = ()
    """Formats with files."""

    @cached_property
    def formats(self) -> dict[str, list[str]]:
        """Formats whose files each raw relation holds."""
        found: dict[str, list[str]] = {}
        for one in known_formats():
            for relation in one.relations:
                found.setdefault(relation.full_name, []).append(one.name)
        return found

    def reason(self, table: str) -> str:
        """Return why an empty table is empty."""
        *others, last = dict.fromkeys(self._missing(table)) or [""]
        listed = f"{', '.join(others)} or {last}" if others else last
        return f"no files of {listed} in the data folders" if listed else UNMET

    def is_empty(self, name: str) -> bool:
        """Return True if a relation has no rows."""
        if self.kinds.get(name) == "raw":
            return name in self.formats and not {*self.formats[name]} & {*self.loaded}
        if self.kinds.get(name) == "view" and self.rows.get(name) is None:
            return any(all(map(self.is_empty, group)) for group in self.needs[name])
        return self.rows.get(name) == 0

    def _missing(self, name: str) -> Iterator[str]:
        """Yield the kinds of files that the table needs and that are missing."""
        if self.kinds.get(name) == "raw":
            yield from map(self._label, self.formats.get(name, ()))
        for group in self.needs.get(name, ()):
            if group and all(map(self.is_empty, group)):
                for one in group:
                    yield from self._missing(one)

    def _label(self, name: str) -> str:
        """Return a format's name for people: the job trace, if no file of it is loaded, else the kind of file."""
        prefix, _, kind = name.partition(".")
        trace = trace_of(name)
        named = (trace.short or trace.title) if trace and trace.tables else ""
        shown = kind.replace("_", " ")
        is_partial = any(one and one.startswith(f"{prefix}.") for one in self.loaded)
        return named if named and not is_partial else f"{shown} of {named}" if named else shown
