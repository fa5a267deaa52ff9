"""Reader of pickles that hold only lists of numeric arrays, without unpickling.

Docs: docs/formats/utilization.md. A pickle is a program. This module interprets the 23 instructions that write a list
of NumPy arrays, in the shapes that NumPy writes. It decodes numbers with `struct`. It imports no module that a file
names, builds no object and calls nothing. Any other content stops the read with an error that names the content.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NoReturn, TypeVar

MAX_BYTES = 2**24
"""Largest file that is opened, in bytes; the published files have 80 kB."""
_T = TypeVar("_T")


class RefusedError(Exception):
    """Error for any other content; the message names the content and its byte offset."""


@dataclass(frozen=True)
class _Global:
    name: str


@dataclass
class _Dtype:
    code: str
    is_built: bool = False


@dataclass
class _Array:
    values: tuple[float, ...] | None = None


_ARGUMENT_BYTES = {
    b"\x80": ("PROTO", 1), b"\x95": ("FRAME", 8), b"]": ("EMPTY_LIST", 0), b"\x94": ("MEMOIZE", 0), b"(": ("MARK", 0),
    b"\x93": ("STACK_GLOBAL", 0), b"K": ("BININT1", 1), b"M": ("BININT2", 2), b"J": ("BININT", 4),
    b"\x85": ("TUPLE1", 0), b"\x87": ("TUPLE3", 0), b"t": ("TUPLE", 0), b"R": ("REDUCE", 0), b"h": ("BINGET", 1),
    b"\x89": ("NEWFALSE", 0), b"\x88": ("NEWTRUE", 0), b"N": ("NONE", 0), b"b": ("BUILD", 0), b"e": ("APPENDS", 0),
    b".": ("STOP", 0),
}  # fmt: skip
"""Opcode -> (name, bytes of its argument), for arguments of fixed size."""
_LENGTH_BYTES = {b"\x8c": ("SHORT_BINUNICODE", 1), b"C": ("SHORT_BINBYTES", 1), b"B": ("BINBYTES", 4)}
"""Opcode -> (name, bytes of the length that precedes its argument)."""
_RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
_GLOBALS = (*_RECONSTRUCT, "numpy.ndarray", "numpy.dtype")
_DTYPES = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"}
"""NumPy's type code -> the code of `struct`."""


def read_arrays(content: bytes) -> list[tuple[float, ...]]:
    """Return the arrays of a pickle that is a list of one-dimensional arrays of numbers.

    Raises
    ------
    RefusedError
        If the pickle holds anything else.
    """
    if len(content) > MAX_BYTES:
        raise RefusedError(f"{len(content):,} bytes, more than {MAX_BYTES:,}")
    found = _Reader(content).run()
    if not isinstance(found, list):
        raise RefusedError(f"it holds {_name(found)}, not a list of arrays")
    arrays = []
    for item in found:
        if not isinstance(item, _Array) or item.values is None:
            raise RefusedError(f"its list holds {_name(item)}, not arrays alone")
        arrays.append(item.values)
    return arrays


class _Reader:
    """Interpreter of one pickle: its stack, marks and memo."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: list[object] = []

    def run(self) -> object:
        """Run the instructions to the end; return the object left on the stack."""
        while True:
            start = self._at
            code = self._take(1)
            if code in _LENGTH_BYTES:
                name, width = _LENGTH_BYTES[code]
                argument = self._take(int.from_bytes(self._take(width), "little"))
            elif code in _ARGUMENT_BYTES:
                name, width = _ARGUMENT_BYTES[code]
                argument = self._take(width)
            else:
                raise RefusedError(f"{_opcode_name(code)} at byte {start}")
            if name == "STOP":
                return self._stop()
            try:
                self._step(name, argument)
            except RefusedError as error:
                raise RefusedError(f"{error} at byte {start}") from None

    def _take(self, count: int) -> bytes:
        piece = self._content[self._at : self._at + count]
        if len(piece) < count:
            raise RefusedError(f"it ends at byte {len(self._content)} in the middle")
        self._at += count
        return piece

    def _stop(self) -> object:
        rest = len(self._content) - self._at
        if rest:
            raise RefusedError(f"{rest:,} bytes after its end")
        if len(self._stack) != 1 or self._marks:
            raise RefusedError("its end leaves other than one object")
        return self._stack.pop()

    def _step(self, name: str, argument: bytes) -> None:
        match name:
            case "PROTO":
                if argument not in (b"\x04", b"\x05"):
                    raise RefusedError(f"pickle protocol {argument[0]}")
            case "FRAME":
                pass  # frames only matter for buffered readers
            case "MARK":
                self._marks.append(len(self._stack))
            case "EMPTY_LIST":
                self._stack.append([])
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                self._stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
            case "BININT1" | "BININT2" | "BININT":
                self._stack.append(int.from_bytes(argument, "little", signed=name == "BININT"))
            case "SHORT_BINUNICODE":
                self._stack.append(_text(argument))
            case "SHORT_BINBYTES" | "BINBYTES":
                self._stack.append(argument)
            case "TUPLE1" | "TUPLE3":
                self._stack.append(tuple(self._pop_several(1 if name == "TUPLE1" else 3)))
            case "TUPLE":
                self._stack.append(tuple(self._pop_marked()))
            case "APPENDS":
                items = self._pop_marked()
                self._top(list, "APPENDS").extend(items)
            case "MEMOIZE":
                self._memo.append(self._top(object, name))
            case "BINGET":
                if argument[0] >= len(self._memo):
                    raise RefusedError(f"BINGET of {argument[0]}, which was never put there,")
                self._stack.append(self._memo[argument[0]])
            case "STACK_GLOBAL":
                module, attribute = self._pop_several(2)
                self._stack.append(_global(module, attribute))
            case "REDUCE":
                called, arguments = self._pop_several(2)
                self._stack.append(_reduced(called, arguments))
            case "BUILD":
                (state,) = self._pop_several(1)
                _apply_state(self._top(object, name), state)

    def _top(self, kind: type[_T], name: str) -> _T:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0) or not isinstance(self._stack[-1], kind):
            raise RefusedError(f"{name} without {'an object' if kind is object else f'a {kind.__name__}'} to work on")
        return self._stack[-1]

    def _pop_several(self, count: int) -> list[object]:
        if len(self._stack) - count < (self._marks[-1] if self._marks else 0):
            raise RefusedError("too few objects")
        found = self._stack[-count:]
        del self._stack[-count:]
        return found

    def _pop_marked(self) -> list[object]:
        if not self._marks:
            raise RefusedError("no mark")
        start = self._marks.pop()
        found = self._stack[start:]
        del self._stack[start:]
        return found


def _text(argument: bytes) -> str:
    try:
        return argument.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("a text that is not UTF-8") from None


def _global(module: object, attribute: object) -> _Global:
    if not (isinstance(module, str) and isinstance(attribute, str)):
        raise RefusedError("a global without a name")
    name = f"{module}.{attribute}"
    if name in _GLOBALS:
        return _Global(name)
    raise RefusedError(f"pandas object ({name[:100]})" if name.startswith("pandas.") else f"global {name[:100]!r}")


def _reduced(called: object, arguments: object) -> object:
    """Return the result of the two calls that write an array, without making either call."""
    if not isinstance(called, _Global):
        raise RefusedError(f"a call of {_name(called)}")
    if called.name in _RECONSTRUCT and arguments == (_Global("numpy.ndarray"), (0,), b"b"):
        return _Array()
    if called.name == "numpy.dtype" and isinstance(arguments, tuple) and len(arguments) == 3:
        code, align, copy = arguments
        if not isinstance(code, str) or code not in _DTYPES:
            _refuse_dtype(code)
        if align is False and copy is True:
            return _Dtype(code)
    raise RefusedError(f"a call of {called.name} with other than NumPy's arguments")


def _refuse_dtype(code: object) -> NoReturn:
    if not isinstance(code, str):
        raise RefusedError(f"a dtype that {_name(code)} describes")
    raise RefusedError(f"{'object dtype' if code.startswith('O') else 'dtype'} {code[:40]!r}")


def _apply_state(target: object, state: object) -> None:
    if isinstance(target, _Dtype):
        orders = ("|",) if target.code == "u1" else ("<",)
        if state not in [(3, order, None, None, None, -1, -1, 0) for order in orders]:
            raise RefusedError("a dtype with fields, flags or another byte order")
        target.is_built = True
    elif isinstance(target, _Array):
        target.values = _values(target, state)
    else:
        raise RefusedError(f"BUILD of {_name(target)}")


def _values(array: _Array, state: object) -> tuple[float, ...]:
    if array.values is not None:
        raise RefusedError("an array that is built twice")
    if not (isinstance(state, tuple) and len(state) == 5 and state[0] == 1):
        raise RefusedError("an array with other than NumPy's state")
    _, shape, dtype, is_fortran, content = state
    if not (isinstance(shape, tuple) and len(shape) == 1 and type(shape[0]) is int):
        raise RefusedError("an array of other than one dimension")
    if not (isinstance(dtype, _Dtype) and (dtype.is_built or dtype.code == "u1")):
        raise RefusedError("an array without a dtype of its own")
    if is_fortran is not False:
        raise RefusedError("an array with the Fortran flag")
    if not isinstance(content, bytes):
        raise RefusedError(f"an array whose content is {_name(content)}")
    form = _DTYPES[dtype.code]
    if len(content) != shape[0] * struct.calcsize(f"<{form}"):
        raise RefusedError(f"an array of {shape[0]:,} numbers of type {dtype.code} in {len(content):,} bytes")
    return struct.unpack(f"<{shape[0]}{form}", content)


def _name(value: object) -> str:
    match value:
        case _Global():
            return value.name
        case _Dtype():
            return "a dtype"
        case _Array():
            return "an array" if value.values is not None else "an array that was never filled"
        case None:
            return "None"
        case _:
            return f"a {type(value).__name__}"


def _opcode_name(code: bytes) -> str:
    """Return the name of an instruction from the standard library's list."""
    import pickletools

    known = {one.code: one.name for one in pickletools.opcodes}
    return f"opcode {known.get(code.decode('latin-1'), code.hex())}"
