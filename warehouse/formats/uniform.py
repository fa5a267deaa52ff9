"""Files whose lines look alike but for their numbers: an odd character is seen while the file is hashed.

The engine is lenient with numbers: it reads `1e3`, `1_000`, ` 12` and `nan`, and lets a line end in a comma. Looking
at each line in Python would cost more than the rest of a build. But where all lines have the same text beside their
numbers, they have the same number of characters that no number has, and as many commas. Counting both in the bytes
that are hashed anyway takes about a tenth of a second a gigabyte, and tells which file has a line unlike the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_FIRST, _LAST = ord(","), ord("9")
"""Comma, minus, point, slash and the digits lie side by side; all that lies outside of them is no number's."""

_PIECE = 2**16
"""Counted at once: what fits the processor's cache is counted several times faster."""


class UniformLines:
    """Counts the characters of a comma-separated file, chunk by chunk."""

    def __init__(self) -> None:
        self._outside = 0
        self._commas = 0
        self._head = b""

    def __call__(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        import numpy

        if self._head.count(b"\n") < 2:
            self._head += chunk[:_PIECE]
        octets = numpy.frombuffer(chunk, numpy.uint8)
        for start in range(0, len(octets), _PIECE):
            above_comma = octets[start : start + _PIECE] - _FIRST
            self._outside += _outside(above_comma)
            self._commas += len(above_comma) - int(numpy.count_nonzero(above_comma))

    def is_odd(self) -> bool:
        """Whether some line does not look like the first one below the header; not where nothing was read."""
        if not self._head:
            return False
        import numpy

        header, line = (text + b"\n" for text in (*self._head.split(b"\n", 2), b"", b"")[:2])
        fields = line.count(b",")
        lines, left = divmod(self._commas - header.count(b","), fields) if fields else (0, 1)
        of_header, of_line = (_outside(numpy.frombuffer(text, numpy.uint8) - _FIRST) for text in (header, line))
        return left != 0 or self._outside != of_header + lines * of_line


def _outside(above_comma: NDArray[numpy.uint8]) -> int:
    """How many of the bytes, less a comma's, are no number's; those below it have wrapped around."""
    import numpy

    return int(numpy.count_nonzero(above_comma > _LAST - _FIRST))
