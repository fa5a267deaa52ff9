"""Utilization and power as published: CSV files of numbers whose columns differ from file to file.

Docs: docs/formats/utilization.md.

- Wide files `utilization/{seren,kalos}/<METRIC>.csv`: a row per time, a column per server or GPU, about 2,345 columns,
  whose set and order differ. A metric is one file, or several: `<METRIC>-2023-07.csv`.
- Power of servers, `utilization/ipmi/*_Power.csv`: a row per time and server. Every column other than `Time` and `node`
  is a measurement, whatever its name.

The engine reads whole lines, and models split them. This module checks the lines of files that the models report as
faulty. A bad line is rejected. A line with a bad cell is kept with that cell blank.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats import compressed, csv_headers, torn_lines
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.csv_headers import is_unnamed
from warehouse.formats.named_csv import NAME

TIME = "Time"
_TIME = regex(r"[12]\d{3}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d:\d\d", re.ASCII)
_TEXT = regex(NAME.pattern.pattern.encode(), re.ASCII)
_NUMBER = regex(rb"|[nN][aA][nN]|-?\d{1,9}(\.\d{0,17})?([eE]-\d{1,2})?")
"""A valid cell: blank, nan, or a number no larger than any measured here."""
_KNOWN_CELLS = 500_000
_LOOKED_AT = 1_000
"""Lines searched for one that is not blank."""
_FIRST = 20
"""Lines whose fields are counted."""
_SHOWN = 500


class LineFiles:
    """Base class of formats of unparsed lines.

    Parameters
    ----------
    name
        Name of the format.
    relation, about
        Name and description of the relation of `raw` that the files feed.
    """

    version = 4
    same = "time"
    """Words for the key that is unique in a file, for the reason of a rejected line."""

    def __init__(self, name: str, relation: str, about: str) -> None:
        self.name = name
        self.relations: Sequence[RawRelation] = (RawRelation(relation, about, {"line": "VARCHAR"}, whole_lines=True),)

    def placed(self, file: RawFile, names: Sequence[str]) -> RawFile:
        """Return the file with its cluster, group and release path. Raise ValueError if it is not of this format."""
        raise NotImplementedError

    def texts(self, names: Sequence[str]) -> set[int]:
        """Return the positions of columns that hold text; most files have numbers alone."""
        return set()

    def unread(self, names: Sequence[str]) -> set[int]:
        """Return the positions of columns that are not read."""
        return set()

    def inspect(self, file: RawFile) -> RawFile:
        """Check the header, and that at least one line follows it."""
        try:
            with compressed.open_bytes(file.path) as stream:
                header = stream.readline(torn_lines.LINE_BYTES)
                lines = (stream.readline(torn_lines.LINE_BYTES).strip() for _ in range(_LOOKED_AT))
                below = list(itertools.islice(filter(None, lines), _FIRST))
            whole = torn_lines.ends_with_newline(file.path)
        except compressed.STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        if not header:
            return file.but(status=SKIPPED, reason="empty file")
        try:
            names = header_names(header)
            found = self.placed(file, names)
            csv_headers.refuse_other_width(names, [line.split(b",") for line in below])
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        if not below:
            return found.but(status=SKIPPED, reason="no rows below the header")
        unread = self.unread(names)
        clauses = (
            None if whole else torn_lines.TORN,
            csv_headers.ignored(names, {name for at, name in enumerate(names) if at not in unread}),
        )
        return found.but(status=READ if whole else PARTIAL, reason="; ".join(filter(None, clauses)) or None)

    def repair(self, file: RawFile, clean: Path) -> Iterator[Rejected]:
        """Write the good lines to `clean`, with invalid cells blanked; yield every rejected line and cell."""
        state = _RepairState(self, file)
        with clean.open("wb") as out:
            for number, line, damage in torn_lines.numbered_lines(file.path):
                kept, problem, bad = state.check(number, line.removesuffix(b"\r"), damage)
                if problem:
                    yield Rejected(file.release_path, number, problem, bad.decode("utf-8", "replace")[:_SHOWN])
                if kept is not None:
                    out.write(kept + b"\n")

    def entity(self, cells: Sequence[bytes], names: Sequence[str]) -> bytes:
        """Return the part of a line's unique key other than its time, for files with several lines per time."""
        return b""


def header_names(line: bytes) -> list[str]:
    """Return the column names. Raise ValueError if the line is not a valid header."""
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not a text file") from None
    names = text.rstrip("\r\n").split(",")
    if any("\r" in name for name in names):
        raise ValueError(torn_lines.LONE_CR)
    if not text.endswith("\n"):
        raise ValueError(f"no end of a header in the first {torn_lines.LINE_BYTES:,} bytes")
    quotes = f"the header has quotes: {csv_headers.listed(names)}" if '"' in text else None
    if quotes or TIME not in names:
        lacking = f"no column {TIME!r}: {csv_headers.listed(names)}"
        raise ValueError(csv_headers.foreign_header(line, (TIME,)) or quotes or lacking)
    return names


class _RepairState:
    """State of the repair of one file."""

    def __init__(self, lines: LineFiles, file: RawFile) -> None:
        self._format = lines
        self._file = file
        self._header = b""
        self._names: list[str] = []
        self._texts: set[int] = set()
        self._no_numbers: set[int] = set()
        self._seen: dict[tuple[datetime, bytes], int] = {}
        self._known: set[bytes] = set()
        self._other_header: int | None = None

    def check(self, number: int, line: bytes, damage: str | None) -> tuple[bytes | None, str | None, bytes]:
        """Return (line to keep or None, problem or None, text with the problem)."""
        if number == 1 and damage is None:
            self._header = line.removeprefix(b"\xef\xbb\xbf")
            self._names = header_names(line + b"\n")
            self._texts = self._format.texts(self._names)
            self._no_numbers = {self._names.index(TIME), *self._texts, *self._format.unread(self._names)}
            return self._header, None, b""
        problem = damage or self._problem(number, line)
        if problem:
            return None, problem, line
        cells = line.split(b",")
        odd = self._odd(cells)
        if not odd:
            return line, None, b""
        first = f"{self._names[odd[0]]}: {cells[odd[0]].decode('utf-8', 'replace')[:60]!r}"
        bad = b",".join(cells[place] for place in odd)
        for place in odd:
            cells[place] = b""
        count = "a cell is no number" if len(odd) == 1 else f"{len(odd):,} cells are no numbers, the first"
        return b",".join(cells), f"{count}, of {first}; the rest of the line is read", bad

    def _problem(self, number: int, line: bytes) -> str | None:
        """Return the problem of the line as a whole, or None; record its key."""
        if not line:
            return "blank line"
        if b"\r" in line:
            return torn_lines.LONE_CR
        cells = line.split(b",")
        if TIME.encode() in cells:
            if line == self._header:
                return "the header again"
            self._other_header = self._other_header or number
            return "another header"
        if self._other_header:
            return f"below another header, in line {self._other_header}"
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            return "not UTF-8 text"
        if len(cells) != len(self._names):
            return f"{len(cells):,} fields instead of {len(self._names):,}"
        written = cells[self._names.index(TIME)].decode("utf-8")
        time = parse_time(written)
        if time is None:
            return f"{TIME} is no time with an offset: {written[:60]!r}"
        blank = next((place for place in self._texts if not cells[place].strip()), None)
        if blank is not None:
            return f"{self._names[blank]} is blank"
        odd = next((place for place in self._texts if not _TEXT.fullmatch(cells[place])), None)
        if odd is not None:
            return f"{self._names[odd]} is not {NAME.what}: {cells[odd].decode('utf-8')[:60]!r}"
        first = self._seen.setdefault((time, self._format.entity(cells, self._names)), number)
        return None if first == number else f"the same {self._format.same} as in line {first}"

    def _odd(self, cells: Sequence[bytes]) -> list[int]:
        """Return the positions of cells that should be numbers and are not."""
        new = set(cells) - self._known
        odd = {cell for cell in new if not _NUMBER.fullmatch(cell)}
        if len(self._known) < _KNOWN_CELLS:
            self._known |= new - odd
        return (
            [place for place, cell in enumerate(cells) if cell in odd and place not in self._no_numbers] if odd else []
        )


def parse_time(written: str) -> datetime | None:
    """Parse a time with its UTC offset; return None if it has no offset or does not exist in the calendar.

    >>> parse_time("2023-07-01 08:00:00+08:00") == parse_time("2023-07-01 00:00:00+00:00")
    True
    >>> parse_time("2023-07-01 08:00:00"), parse_time("2023-02-30 08:00:00+08:00")
    (None, None)
    """
    if not _TIME.fullmatch(written):
        return None
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None


CLUSTERS = ("seren", "kalos")
_NAME = regex(r"(?P<metric>[A-Z][A-Z0-9_]{1,60})(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII)
_ADDRESS = regex(r"\d{1,3}(\.\d{1,3}){3}(\.\d{1,3})?(-[\w.]+)?", re.ASCII)
"""A server, `10.140.1.10`, or one of its devices, `10.140.1.10-0`.

A name of five parts matches, too: it is an odd column, which the models flag.
"""


class WideFiles(LineFiles):
    """Format `acme.utilization`."""

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like a metric."""
        return _NAME.fullmatch(path.name) is not None

    def placed(self, file: RawFile, names: Sequence[str]) -> RawFile:
        """Set the cluster from the folder; a file group is a cluster and a metric."""
        if names[0] != TIME:
            raise ValueError(f"the first column is {names[0][:60]!r}, not {TIME}")
        if len(names) == 1:
            raise ValueError(f"no column beside {TIME}")
        if not any(_ADDRESS.fullmatch(name) for name in names[1:]):
            raise ValueError(f"no column is named like a server or GPU: {','.join(names)[:100]}")
        found = _NAME.fullmatch(file.path.name)
        assert found is not None
        folders = (part.lower() for part in reversed(file.path.parts[:-1]))
        cluster = next((part for part in folders if part in CLUSTERS), file.cluster)
        return file.but(
            cluster=cluster,
            release_path=f"acme/utilization/{cluster}/{file.path.name}",
            file_group=f"{cluster}.{found['metric']}",
        )


WIDE = WideFiles(
    "acme.utilization", "acme_utilization", "Lines of the wide utilization files as published, header lines included."
)


NODE = "node"
_POWER_NAME = regex(r"(?P<stem>[A-Za-z0-9_]{1,60}_Power)(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII | re.IGNORECASE)
CLUSTER = "seren"
"""Cluster of the servers: the release's figures label them Seren, and their addresses, 10.140.x.y, are Seren's."""


class PowerFiles(LineFiles):
    """Format `acme.ipmi`."""

    same = "time and server"

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like a power file."""
        return _POWER_NAME.fullmatch(path.name) is not None

    def placed(self, file: RawFile, names: Sequence[str]) -> RawFile:
        """Set cluster, release path and file group; a file group is a kind of server."""
        if NODE not in names:
            raise ValueError(f"no column {NODE!r}: {csv_headers.listed(names)}")
        repeated = sorted({name for name in names if not is_unnamed(name) and names.count(name) > 1})
        if repeated:
            raise ValueError(f"the header has {csv_headers.listed(repeated)} twice")
        if len(names) - len(self.unread(names)) < 3:
            raise ValueError(f"no column beside {TIME} and {NODE}")
        found = _POWER_NAME.fullmatch(file.path.name)
        assert found is not None
        return file.but(
            cluster=CLUSTER,
            release_path=f"acme/utilization/ipmi/{file.path.name}",
            file_group=f"ipmi.{found['stem']}",
        )

    def texts(self, names: Sequence[str]) -> set[int]:
        """Return the position of `node`, the only text column."""
        return {names.index(NODE)}

    def unread(self, names: Sequence[str]) -> set[int]:
        """Return the positions of columns without a name, which are no measurement."""
        return {place for place, name in enumerate(names) if is_unnamed(name)}

    def entity(self, cells: Sequence[bytes], names: Sequence[str]) -> bytes:
        """Return the server: each has one row per time."""
        return cells[names.index(NODE)]


POWER = PowerFiles(
    "acme.ipmi", "acme_ipmi", "Lines of the server power (IPMI) files as published, header lines included."
)
