"""Detection of odd characters in files of numbers, while the file is hashed.

The engine is lenient with numbers: it accepts `1e3`, `1_000`, ` 12` and `nan`, and a comma at the end of a line. A
check of each line in Python would take longer than the rest of a build. In these files, all lines have the same text
apart from their numbers. So each line has the same number of commas and of characters that are not part of a number.
Counting both in the bytes that are hashed takes about 0.1 s per GB. A count that is not a multiple of the first line's
shows that some line differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_FIRST, _LAST = ord(","), ord("9")
"""Comma, minus, point, slash and the digits are adjacent in ASCII. Other bytes are not part of a number."""

_PIECE = 2**16
"""Bytes counted in one step: a piece that fits the processor's cache is counted several times faster."""


class UniformLines:
    """Counter of the characters of a comma-separated file, chunk by chunk."""

    def __init__(self) -> None:
        self._outside = 0
        self._commas = 0
        self._head = b""

    def __call__(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        import numpy

        if self._head.count(b"\n") < 2:
            self._head += chunk[:_PIECE]
        data = numpy.frombuffer(chunk, numpy.uint8)
        for start in range(0, len(data), _PIECE):
            above_comma = data[start : start + _PIECE] - _FIRST
            self._outside += _outside(above_comma)
            self._commas += len(above_comma) - int(numpy.count_nonzero(above_comma))

    def is_odd(self) -> bool:
        """Return True if some line differs from the first line below the header. False if no bytes were read."""
        if not self._head:
            return False
        import numpy

        header, line = (text + b"\n" for text in (*self._head.split(b"\n", 2), b"", b"")[:2])
        fields = line.count(b",")
        lines, remainder = divmod(self._commas - header.count(b","), fields) if fields else (0, 1)
        in_header, in_line = (_outside(numpy.frombuffer(text, numpy.uint8) - _FIRST) for text in (header, line))
        return remainder != 0 or self._outside != in_header + lines * in_line


def _outside(above_comma: NDArray[numpy.uint8]) -> int:
    """Count the bytes that are not part of a number; the comma's code is subtracted, so bytes below it wrap around."""
    import numpy

    return int(numpy.count_nonzero(above_comma > _LAST - _FIRST))
