"""Reasons for empty tables: the kinds of files that are missing.

A table has groups of relations that it needs. It is empty if all relations of a group are empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    reads: Mapping[str, Sequence[str]]
    loaded: Collection[str | None] = field(default=())
    """Formats with files."""

    @cached_property
    def formats(self) -> dict[str, list[str]]:
        """Formats whose files each raw relation holds."""
        found: dict[str, list[str]] = {}
        for one in known_formats() if self.kinds else ():
            for relation in one.relations:
                found.setdefault(relation.full_name, []).append(one.name)
        return found

    def reason(self, table: str) -> str:
        """Return why an empty table is empty."""
        missing = list(dict.fromkeys(self._missing(table)))
        if not missing:
            absent = ", ".join(sorted(self._absent(table)))
            return UNMET + (f"; not loaded: {absent}" if absent else "")
        listed = ", ".join(missing[:-1]) + " or " + missing[-1] if len(missing) > 1 else missing[0]
        return f"no files of {listed} in the data folders"

    def lacks_files(self, table: str) -> bool:
        """Return True if a kind of file that the table needs is missing."""
        return any(True for _ in self._missing(table))

    def is_empty(self, name: str) -> bool:
        """Return True if a relation has no rows."""
        if self.kinds.get(name) == "raw":
            return not set(self.formats.get(name, ())) & set(self.loaded) if name in self.formats else False
        if self.rows.get(name) is None and self.kinds.get(name) == "view":
            return any(all(map(self.is_empty, group)) for group in self.needs[name])
        return self.rows.get(name) == 0

    def _absent(self, table: str) -> set[str]:
        """Return the kinds of job files, as `jobs of AcmeTrace`, that the table reads and that are not loaded."""
        found, waiting = set[str](), [table]
        seen = set(waiting)
        while waiting:
            name = waiting.pop()
            formats = self.formats.get(name, ()) if self.kinds.get(name) == "raw" and self.is_empty(name) else ()
            for trace, _, kind in (one.partition(".") for one in formats):
                named = _job_trace(trace)
                found |= {f"{kind.replace('_', ' ')} of {named}"} if named else set()
            more = set(self.reads.get(name, ())) - seen
            seen |= more
            waiting += more
        return found

    def _missing(self, name: str) -> Iterator[str]:
        """Yield the kinds of files that the table needs and that are missing."""
        if self.kinds.get(name) == "raw":
            yield from (self._label(one) for one in self.formats.get(name, ()))
            return
        for group in self.needs.get(name, ()):
            if group and all(map(self.is_empty, group)):
                for one in group:
                    yield from self._missing(one)

    def _label(self, name: str) -> str:
        """Return a format's name for people: the job trace, if no file of it is loaded, else the kind of file."""
        trace, _, kind = name.partition(".")
        shown = kind.replace("_", " ")
        named = _job_trace(trace)
        if not named:
            return shown
        is_partial = any(one and one.startswith(f"{trace}.") for one in self.loaded)
        return f"{shown} of {named}" if is_partial else named


def _job_trace(prefix: str) -> str:
    """Return the short name of a job trace by the first part of its formats' names; empty for others."""
    found = trace_of(f"{prefix}.")
    return (found.short or found.title) if found and found.tables else ""
