"""Reader of pickles that hold only lists of numeric arrays.

Docs: docs/formats/utilization.md. A pickle is a program. So its size and its instructions are checked first, and the
unpickler knows four names, each of which stands for a class or function of this module. Nothing is imported for a file.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct

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
    "numpy._core.multiarray._reconstruct": _reconstruct,
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
