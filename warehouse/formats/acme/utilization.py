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

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from warehouse.base.startup import regex
from warehouse.formats import compressed, csv_headers, torn_lines
from warehouse.formats.base import SKIPPED, RawFile, RawRelation
from warehouse.formats.named_csv import CELLS, HeadedFiles, Rest, first_rows, header_names

TIME, NODE = "Time", "node"
_NUMBER = regex(rb"|[nN][aA][nN]|-?\d{1,9}(\.\d{0,17})?([eE]-\d{1,2})?")
"""A valid cell: blank, nan, or a number no larger than any measured here."""


class LineFiles(HeadedFiles):
    """Base class of formats of unparsed lines, in files that are named by a pattern.

    Parameters
    ----------
    name
        Name of the format.
    relation, about
        Name and description of the relation of `raw` that the files feed.
    file_name
        Pattern of file names.
    """

    version = 5

    def __init__(self, name: str, relation: str, about: str, file_name: re.Pattern[str]) -> None:
        self.name = name
        self.relations: Sequence[RawRelation] = (RawRelation(relation, about, {"line": "VARCHAR"}, whole_lines=True),)
        self.file_name = file_name

    def placed(self, file: RawFile, names: Sequence[str], kind: str) -> RawFile:
        """Return the file with its cluster, group and release path; `kind` is the first group of its name.

        Raises
        ------
        ValueError
            If its columns are not those of this format.
        """
        raise NotImplementedError

    def looked(self, file: RawFile, head: bytes) -> RawFile:
        """Check the header, and that at least one line follows it."""
        names = self._names(head)
        match = self.match(file.path)
        assert match is not None
        placed = self.placed(file, names, match[1])
        rows = first_rows(head)
        csv_headers.refuse_other_width(names, rows)
        return placed if rows else placed.but(status=SKIPPED, reason="no rows below the header")

    def _names(self, head: bytes) -> list[str]:
        """Return the column names. Raise ValueError if the line is no header, or has quotes, which models keep."""
        names = header_names(head, (TIME,), self.name)
        if b'"' in head.partition(b"\n")[0]:
            raise ValueError(f"the header has quotes: {csv_headers.listed(names)}")
        return names

    def problems(self, file: RawFile) -> Callable[[int, bytes], str | Rest | None]:
        """Return the problem of a line: of its fields, its time or server, a number, or a time that is there."""
        with compressed.open_bytes(file.path) as stream:
            header = stream.readline(torn_lines.LINE_BYTES).rstrip(b"\r\n")
        names = self._names(header + b"\n")
        at_time, at_node = names.index(TIME), names.index(NODE) if NODE in names else None
        numbers = [at for at, name in enumerate(names) if name not in (TIME, NODE) and not csv_headers.is_unnamed(name)]
        key = "time" if at_node is None else "time and server"
        seen: dict[tuple[datetime, bytes], int] = {}
        other_header = 0

        def problem(number: int, line: bytes) -> str | Rest | None:
            nonlocal other_header
            cells = line.split(b",")
            if not line or b"\r" in line:
                return torn_lines.LONE_CR if line else "blank line"
            if TIME.encode() in cells:
                other_header = other_header or (number if line != header else 0)
                return "the header again" if line == header else "another header"
            if other_header:  # the cells are of other columns
                return f"below another header, in line {other_header}"
            try:
                texts = line.decode("utf-8").split(",")
            except UnicodeDecodeError:
                return "not UTF-8 text"
            if len(texts) != len(names):
                return f"{len(texts):,} fields instead of {len(names):,}"
            time = parse_time(texts[at_time])
            if time is None:
                return f"{TIME} is no time with an offset: {texts[at_time][:60]!r}"
            node = b"" if at_node is None else cells[at_node]
            if at_node is not None and not CELLS["name"].pattern.fullmatch(texts[at_node]):
                return f"{NODE} is not {CELLS['name'].what}: {texts[at_node][:60]!r}"
            first = seen.setdefault((time, node), number)
            if first != number:
                return f"the same {key} as in line {first}"
            odd = [at for at in numbers if not _NUMBER.fullmatch(cells[at])]
            if not odd:
                return None
            for at in odd:
                cells[at] = b""
            count = "a cell is no number" if len(odd) == 1 else f"{len(odd):,} cells are no numbers, the first"
            bad = f"{count}, of {names[odd[0]]}: {texts[odd[0]][:60]!r}"
            return Rest(b",".join(cells), f"{bad}; the rest of the line is read")

        return problem


def parse_time(written: str) -> datetime | None:
    """Parse a time with its UTC offset; return None if it has no offset or does not exist in the calendar.

    >>> parse_time("2023-07-01 08:00:00+08:00") == parse_time("2023-07-01 00:00:00+00:00")
    True
    >>> parse_time("2023-07-01 08:00:00"), parse_time("2023-02-30 08:00:00+08:00")
    (None, None)
    """
    try:
        return datetime.fromisoformat(written) if CELLS["time"].pattern.fullmatch(written) else None
    except ValueError:
        return None


CLUSTERS = ("seren", "kalos")
_ADDRESS = regex(r"\d{1,3}(\.\d{1,3}){3}(\.\d{1,3})?(-[\w.]+)?", re.ASCII)
"""A server, `10.140.1.10`, or one of its devices, `10.140.1.10-0`.

A name of five parts matches, too: it is an odd column, which the models flag.
"""


class WideFiles(LineFiles):
    """Format `acme.utilization`."""

    def placed(self, file: RawFile, names: Sequence[str], kind: str) -> RawFile:
        """Set the cluster from the folder; a file group is a cluster and a metric."""
        if names[0] != TIME:
            raise ValueError(f"the first column is {names[0][:60]!r}, not {TIME}")
        if not any(_ADDRESS.fullmatch(name) for name in names[1:]):
            raise ValueError(f"no column is named like a server or GPU: {csv_headers.listed(names)}")
        folders = (part.lower() for part in reversed(file.path.parts[:-1]))
        cluster = next((part for part in folders if part in CLUSTERS), file.cluster)
        path = f"acme/utilization/{cluster}/{file.path.name}"
        return file.but(cluster=cluster, release_path=path, file_group=f"{cluster}.{kind}")


WIDE = WideFiles(
    *("acme.utilization", "acme_utilization"),
    "Lines of the wide utilization files as published, header lines included.",
    regex(r"([A-Z][A-Z0-9_]{1,60})(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII),
)


class PowerFiles(LineFiles):
    """Format `acme.ipmi`."""

    def placed(self, file: RawFile, names: Sequence[str], kind: str) -> RawFile:
        """Set release path and cluster; a file group is a kind of server.

        The release's figures label the servers Seren, and their addresses, 10.140.x.y, are Seren's.
        """
        if NODE not in names:
            raise ValueError(f"no column {NODE!r}: {csv_headers.listed(names)}")
        named = [name for name in names if not csv_headers.is_unnamed(name)]
        repeated = sorted({name for name in named if named.count(name) > 1})
        if repeated:
            raise ValueError(f"the header has {csv_headers.listed(repeated)} twice")
        if {*named} == {TIME, NODE}:
            raise ValueError(f"no column beside {TIME} and {NODE}")
        path, ignored = f"acme/utilization/ipmi/{file.path.name}", csv_headers.ignored(names, named)
        return file.but(cluster="seren", release_path=path, file_group=f"ipmi.{kind}", reason=ignored)


POWER = PowerFiles(
    *("acme.ipmi", "acme_ipmi"),
    "Lines of the server power (IPMI) files as published, header lines included.",
    regex(r"([A-Za-z0-9_]{1,60}_Power)(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII | re.IGNORECASE),
)
