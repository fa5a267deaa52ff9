"""AcmeTrace beside its jobs: utilization and power of servers as CSV files, and the curves of the paper's figures.

Docs: docs/formats/utilization.md. CSV files of numbers have columns that differ from file to file:

- Wide files `utilization/{seren,kalos}/<METRIC>.csv`: a row per time, a column per server or GPU, about 2,345 columns,
  whose set and order differ. A metric is one file, or several: `<METRIC>-2023-07.csv`.
- Power of servers, `utilization/ipmi/*_Power.csv`: a row per time and server. Every column other than `Time` and `node`
  is a measurement, whatever its name.

The engine reads whole lines, and models split them. This module checks the lines of files that the models report as
faulty. A bad line is rejected. A line with a bad cell is kept with that cell blank.

Published distributions: `util_pkl/*.pkl`, a list of arrays per file. Arrays come in pairs: values in ascending order,
and the percentage of samples up to each value. No file says what a pair measures; `reference.published_series` does. A
pickle is a program. So its size and its instructions are checked first, and the unpickler only notes names and calls.
Nothing is imported or called for a file.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from warehouse.base.errors import DataError, Place
from warehouse.base.hashing import open_regular
from warehouse.base.startup import regex
from warehouse.formats import streams
from warehouse.formats.base import READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.named_csv import (
    CELLS,
    HeadedFiles,
    Rest,
    columns_ignored,
    first_rows,
    header_names,
    is_unnamed,
    listed,
    rank,
    refuse_other_width,
)

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
    placed
        Function of a file, its column names and the first group of its name: returns the file with its cluster, group
        and release path. Raises ValueError if its columns are not those of this format.
    """

    version = 6

    def __init__(
        self, name: str, relation: str, about: str, file_name: re.Pattern[str],
        placed: Callable[[RawFile, Sequence[str], str], RawFile],
    ) -> None:  # fmt: skip
        self.name = name
        self._placed = placed
        self.relations: Sequence[RawRelation] = (RawRelation(relation, about, {"line": "VARCHAR"}, whole_lines=True),)
        self.file_name = file_name

    def looked(self, file: RawFile, head: bytes) -> RawFile:
        """Check the header, and that at least one line follows it."""
        names = self._names(head)
        match = self.match(file.path)
        assert match is not None
        placed = self._placed(file, names, match[1])
        rows = first_rows(head)
        refuse_other_width(names, rows)
        if not rows:
            raise ValueError("no rows below the header")
        return placed

    def _names(self, head: bytes) -> list[str]:
        """Return the column names. Raise ValueError if the line is no header, or has quotes, which models keep."""
        names = header_names(head, (TIME,), self.name)
        if b'"' in head.partition(b"\n")[0]:
            raise ValueError(f"the header has quotes: {listed(names)}")
        return names

    def problems(self, file: RawFile) -> Callable[[int, bytes], str | Rest | None]:
        """Return the problem of a line: of its fields, its time or server, a number, or a time that is there."""
        with streams.open_bytes(file.path) as stream:
            header = stream.readline(streams.LINE_BYTES).rstrip(b"\r\n")
        names = self._names(header + b"\n")
        at_time, at_node = names.index(TIME), names.index(NODE) if NODE in names else None
        numbers = [at for at, name in enumerate(names) if name not in (TIME, NODE) and not is_unnamed(name)]
        key = "time" if at_node is None else "time and server"
        seen: dict[tuple[float, bytes], int] = {}
        other_header = 0

        def problem(number: int, line: bytes) -> str | Rest | None:
            nonlocal other_header
            cells = line.split(b",")
            if not line or b"\r" in line:
                return streams.LONE_CR if line else "blank line"
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
            time = rank(texts[at_time])
            if time is None or not CELLS["time"].pattern.fullmatch(texts[at_time]):
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


CLUSTERS = ("seren", "kalos")
_ADDRESS = regex(r"\d{1,3}(\.\d{1,3}){3}(\.\d{1,3})?(-[\w.]+)?", re.ASCII)
"""A server, `10.140.1.10`, or one of its devices, `10.140.1.10-0`.

A name of five parts matches, too: it is an odd column, which the models flag.
"""


def _placed_wide(file: RawFile, names: Sequence[str], kind: str) -> RawFile:
    """Set the cluster from the folder; a file group is a cluster and a metric."""
    if names[0] != TIME:
        raise ValueError(f"the first column is {names[0][:60]!r}, not {TIME}")
    if not any(_ADDRESS.fullmatch(name) for name in names[1:]):
        raise ValueError(f"no column is named like a server or GPU: {listed(names)}")
    folders = (part.lower() for part in reversed(file.path.parts[:-1]))
    cluster = next((part for part in folders if part in CLUSTERS), file.cluster)
    path = f"acme/utilization/{cluster}/{file.path.name}"
    return file.but(cluster=cluster, release_path=path, file_group=f"{cluster}.{kind}")


WIDE = LineFiles(
    *("acme.utilization", "acme_utilization"),
    "Lines of the wide utilization files as published, header lines included.",
    regex(r"([A-Z][A-Z0-9_]{1,60})(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII),
    _placed_wide,
)


def _placed_power(file: RawFile, names: Sequence[str], kind: str) -> RawFile:
    """Set release path and cluster; a file group is a kind of server.

    The release's figures label the servers Seren, and their addresses, 10.140.x.y, are Seren's.
    """
    if NODE not in names:
        raise ValueError(f"no column {NODE!r}: {listed(names)}")
    named = [name for name in names if not is_unnamed(name)]
    repeated = sorted({name for name in named if named.count(name) > 1})
    if repeated:
        raise ValueError(f"the header has {listed(repeated)} twice")
    if {*named} == {TIME, NODE}:
        raise ValueError(f"no column beside {TIME} and {NODE}")
    path, unread = f"acme/utilization/ipmi/{file.path.name}", columns_ignored(names, named)
    return file.but(cluster="seren", release_path=path, file_group=f"ipmi.{kind}", reason=unread)


POWER = LineFiles(
    *("acme.ipmi", "acme_ipmi"),
    "Lines of the server power (IPMI) files as published, header lines included.",
    regex(r"([A-Za-z0-9_]{1,60}_Power)(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII | re.IGNORECASE),
    _placed_power,
)


# published distributions

MAX_BYTES = 2**20
"""Largest file that is opened, in bytes; the published files have 80 kB."""
_OPCODES = {
    *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2"),
    *("SHORT_BINUNICODE", "SHORT_BINBYTES", "BINBYTES", "EMPTY_LIST", "APPENDS", "TUPLE1", "TUPLE3", "TUPLE"),
    *("MEMOIZE", "BINGET", "STACK_GLOBAL", "REDUCE", "BUILD"),
}
"""Instructions that write a list of arrays. Others could also take memory without end."""
_FORMS = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"}
"""NumPy's type code -> the code of `struct`."""
_GLOBALS = {
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",  # the name in NumPy 2
    "numpy.ndarray",
    "numpy.dtype",
}


class RefusedError(Exception):
    """Error for any other content; the message names the content."""


class _Noted:
    """Name in a pickle, or a call of it, with the state that was set: only written down, nothing is carried out."""

    __match_args__ = ("name", "arguments", "state")
    state: object = None

    def __init__(self, name: str, *arguments: object) -> None:
        self.name = name
        self.arguments = arguments

    def __call__(self, *arguments: object) -> _Noted:
        return _Noted(self.name, *arguments)

    def __setstate__(self, state: object) -> None:
        if self.state is not None:
            raise RefusedError("an object that is built twice")
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        """Note one of the four names. Nothing is imported."""
        full = f"{module}.{name}"
        if full not in _GLOBALS:
            raise RefusedError(f"global {full[:100]!r}")
        return _Noted(full)


def read_arrays(content: bytes) -> list[tuple[float, ...]]:
    """Return the arrays of a pickle that is a list of one-dimensional arrays of numbers.

    Raises
    ------
    RefusedError
        If the pickle holds anything else.
    """
    if len(content) > MAX_BYTES:
        raise RefusedError(f"more than {MAX_BYTES:,} bytes")
    try:
        _check_instructions(content)
        found = _Unpickler(io.BytesIO(content)).load()
    except RefusedError:
        raise
    except Exception as error:  # a damaged pickle can raise any exception
        raise RefusedError(f"no pickle of arrays: {error}"[:200]) from None
    if not isinstance(found, list):
        raise RefusedError(f"it holds {type(found).__name__.lstrip('_')}, not a list of arrays")
    arrays = list(map(_array, found))
    if sum(len(numbers) for _, numbers in arrays) > MAX_BYTES:
        raise RefusedError("its list holds one array many times")
    return [struct.unpack(form, numbers) for form, numbers in arrays]


def _array(noted: object) -> tuple[str, bytes]:
    """Return form and bytes of the numbers of an array, if it is written as NumPy writes one of one dimension."""
    match noted:
        case _Noted(
            "numpy.core.multiarray._reconstruct" | "numpy._core.multiarray._reconstruct",
            (_Noted("numpy.ndarray", ()), (0,), b"b"),
            (1, (int(count),), _Noted("numpy.dtype") as dtype, False, bytes(numbers)),
        ):
            match dtype:
                case _Noted(_, (str(code), False, True), (3, "<" | "|", None, None, None, -1, -1, 0)) if code in _FORMS:
                    form = f"<{count}{_FORMS[code]}"
                    if count >= 0 and struct.calcsize(form) == len(numbers):
                        return form, numbers
                    raise RefusedError(f"an array of {count:,} numbers in {len(numbers):,} bytes")
            raise RefusedError(f"an array of dtype {str(dtype.arguments)[:60]}")
    raise RefusedError("its list holds other than arrays of one dimension, as NumPy writes them")


def _check_instructions(content: bytes) -> None:
    end = 0
    for opcode, argument, place in pickletools.genops(content):
        if opcode.name not in _OPCODES:
            raise RefusedError(f"opcode {opcode.name} at byte {place}")
        if opcode.name == "PROTO" and argument not in (4, 5):
            raise RefusedError(f"pickle protocol {argument}")
        end = (place or 0) + 1
    if end != len(content):
        raise RefusedError(f"{len(content) - end:,} bytes after its end")


_CLUSTER = regex(r"(?:^|_)(seren|kalos|philly|pai|helios)(?:_|\.|$)", re.IGNORECASE)


class PublishedCurves:
    """Format `acme.published`."""

    name = "acme.published"
    version = 1
    relations: Sequence[RawRelation] = (
        RawRelation(
            "acme_published",
            "Points of the published distributions, as stored in the pickles.",
            {"series": "BIGINT", "point": "BIGINT", "value": "DOUBLE", "percent": "DOUBLE"},
        ),
    )

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like a pickle."""
        return path.suffix.lower() == ".pkl"

    def inspect(self, file: RawFile) -> RawFile:
        """Read the whole file, which is small; no code of the pickle runs."""
        found = _CLUSTER.search(file.path.name)
        here = file.but(
            cluster=found[1].lower() if found else "acme",
            release_path=f"acme/utilization/util_pkl/{file.path.name}",
            file_group="util_pkl",
        )
        try:
            _curves(file.path)
        except RefusedError as error:
            return here.but(status=SKIPPED, reason=f"refused: {error}")
        return here.but(status=READ)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the points, pair by pair.

        Raises
        ------
        DataError
            If a file changed since it was inspected.
        """
        for file in files:
            try:
                curves = _curves(file.path)
            except (RefusedError, OSError) as error:
                raise DataError(f"changed while it was read: {error}", place=Place(file.path)) from error
            for series, curve in enumerate(curves, start=1):
                for point, (value, percent) in enumerate(zip(*curve, strict=True), start=1):
                    yield {
                        "series": series, "point": point, "value": value, "percent": percent,
                        "filename": str(file.read_path),
                    }  # fmt: skip


def _curves(path: Path) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return the pairs of arrays in a file. Raise RefusedError if they are not distributions."""
    with open_regular(path) as stream:
        arrays = read_arrays(stream.read(MAX_BYTES + 1))  # one more, to see that a file is larger
    if not arrays or len(arrays) % 2:
        raise RefusedError(f"{len(arrays)} arrays, which are no pairs")
    curves = list(zip(arrays[::2], arrays[1::2], strict=True))
    for number, (values, percents) in enumerate(curves, start=1):
        if len(values) != len(percents) or not values:
            raise RefusedError(f"pair {number} has {len(values):,} values and {len(percents):,} percentages")
        if not all(math.isfinite(one) for one in (*values, *percents)):
            raise RefusedError(f"pair {number} holds numbers that are not finite")
        if any(later < earlier for side in (values, percents) for earlier, later in pairwise(side)):
            raise RefusedError(f"pair {number} does not ascend")
    return curves


PUBLISHED = PublishedCurves()
