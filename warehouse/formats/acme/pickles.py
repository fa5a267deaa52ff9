"""Published distributions: `util_pkl/*.pkl`, curves of the paper's figures, a list of arrays per file.

Docs: docs/formats/utilization.md. Arrays come in pairs: values in ascending order, and the percentage of samples up to
each value. No file says what a pair measures; `reference.published_series` does.

A pickle is a program. So its size and its instructions are checked first, and the unpickler knows four names, each of
which stands for a class or function of this module. Nothing is imported for a file.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from warehouse.base.errors import DataError, Place
from warehouse.base.hashing import open_regular
from warehouse.base.startup import regex
from warehouse.formats.base import READ, SKIPPED, RawFile, RawRelation, Rejected

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


class RefusedError(Exception):
    """Error for any other content; the message names the content."""


class _Ndarray:
    """The class `numpy.ndarray`, as an argument of `_reconstruct`."""

    def __init__(self, *_: object) -> None:
        raise RefusedError("a call of numpy.ndarray")


class _Array:
    """Array: form and bytes of its numbers, which arrive in `__setstate__`."""

    content: bytes | None = None
    form = ""

    def __setstate__(self, state: object) -> None:
        match state:
            case (1, (int(count),), _Dtype() as dtype, False, bytes(content)) if self.content is None:
                self.content, self.form = content, f"<{count}{dtype.form}"
                if count < 0 or struct.calcsize(self.form) != len(content):
                    raise RefusedError(f"an array of {count:,} numbers in {len(content):,} bytes")
            case _:
                raise RefusedError("an array that is not of one dimension, or not as NumPy writes it")


class _Dtype:
    """Type of an array's numbers."""

    def __init__(self, code: object, align: object, copy: object) -> None:
        if not isinstance(code, str) or code not in _FORMS or align is not False or copy is not True:
            raise RefusedError(f"dtype {str(code)[:40]!r}")
        self.form = _FORMS[code]

    def __setstate__(self, state: object) -> None:
        if state not in [(3, order, None, None, None, -1, -1, 0) for order in "<|"]:
            raise RefusedError("a dtype with fields, flags or another byte order")


def _reconstruct(*arguments: object) -> _Array:
    if arguments != (_Ndarray, (0,), b"b"):
        raise RefusedError("a call of _reconstruct with other than NumPy's arguments")
    return _Array()


_GLOBALS = {
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,  # the name in NumPy 2
    "numpy.ndarray": _Ndarray,
    "numpy.dtype": _Dtype,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        """Return one of the four names' meanings. Nothing is imported."""
        full = f"{module}.{name}"
        if full not in _GLOBALS:
            raise RefusedError(f"global {full[:100]!r}")
        return _GLOBALS[full]


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
    arrays = [item for item in found if isinstance(item, _Array) and item.content is not None]
    if len(arrays) < len(found) or sum(len(one.content or b"") for one in arrays) > MAX_BYTES:
        raise RefusedError("its list holds other than arrays, or one array many times")
    return [struct.unpack(one.form, one.content or b"") for one in arrays]


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


Curve = tuple[tuple[float, ...], tuple[float, ...]]
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


def _curves(path: Path) -> list[Curve]:
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
