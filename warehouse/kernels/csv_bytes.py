"""Vectorized parser for numbers at many places of a text.

A *word* is eight bytes of the text as one little-endian integer. One NumPy call processes the words of all lines,
with all eight bytes of each word at once. Three multiplications turn eight digits into a number: digits to pairs,
pairs to fours, fours to eight (D. Lemire, "Quickly parsing eight digits", 2018).
"""

from __future__ import annotations

from os import SEEK_END
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warehouse.base.regular_files import opener
from warehouse.kernels import UnsupportedError

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

MOST = 2**26
"""Maximum size of a file in bytes. Parsing needs several times that much memory."""
_SPARE = 128
"""Padding after the text in bytes, for words that start near its end."""


def word(text: bytes) -> np.uint64:
    """Return eight bytes as a word."""
    return np.uint64(int.from_bytes(text, "little"))


def _eight(byte: int) -> np.uint64:
    return word(bytes([byte]) * 8)


ZEROS = _eight(ord("0"))
"""Word of eight `0` characters. XOR with it turns digits into their values, other characters into more than 9."""
_COMMAS, _ONES, _HIGH_BITS = _eight(ord(",")), _eight(0x01), _eight(0x80)
_OVER_NINE = _eight(0x80 - 10)
_PAIRS, _FOURS, _WHOLE = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
_BYTE, _MINUS, _POINT = np.uint64(0xFF), np.uint64(ord("-")), np.uint64(ord(".") ^ ord("0"))
_TENS = 10 ** np.arange(9, dtype=np.int64)


class Text:
    """Buffer for the bytes of one file, reused for the next: new memory pages would cost as much as the parsing."""

    def __init__(self) -> None:
        self._held = np.zeros(_SPARE, np.uint8)
        self._is_newline = np.zeros(0, bool)
        self._odd = np.uint64(0)
        self.octets = self._held[:0]

    def load(self, path: Path) -> None:
        """Read a file. Raises UnsupportedError for a file that is too large, and OSError."""
        with open(path, "rb", buffering=0, opener=opener) as stream:
            size = stream.seek(0, SEEK_END)
            if size > MOST:
                raise UnsupportedError(f"more than {MOST} bytes")
            if size > len(self._is_newline):
                self._held = np.zeros(2 * size + _SPARE, np.uint8)
                self._is_newline = np.zeros(2 * size, bool)
            self.octets = self._held[:size]
            stream.seek(0)
            if stream.readinto(self.octets.data) != size:
                raise UnsupportedError("a file that changes")
        self._odd = np.uint64(0)

    @property
    def is_odd(self) -> bool:
        """True if a number of this file contains a character that is not a digit."""
        return bool(self._odd & _HIGH_BITS)

    def newlines(self) -> Ints:
        """Return the places of all newlines."""
        return np.flatnonzero(np.equal(self.octets, ord("\n"), out=self._is_newline[: len(self.octets)]))

    def words(self, places: Ints) -> Words:
        """Return the word at each place."""
        return self.rows(places, 1)[:, 0]

    def rows(self, places: Ints, words: int) -> Words:
        """Return a row of consecutive words for each place."""
        width = 8 * words
        at_any_place = np.ndarray((len(self._held) - width + 1,), f"V{width}", self._held, strides=(1,))
        return at_any_place[places].view(np.uint64).reshape(-1, words)

    def number(self, digits: Words) -> Ints:
        """Return the number of each word of eight digits, after XOR with ZEROS."""
        self._odd |= np.bitwise_or.reduce((digits + _OVER_NINE) | digits)
        pairs = (digits * np.uint64(10) + (digits >> np.uint64(8))) & _PAIRS
        fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & _FOURS
        return ((fours * np.uint64(10_000) + (fours >> np.uint64(32))) & _WHOLE).view(np.int64)

    def whole(self, places: Ints) -> tuple[Ints, Ints]:
        """Return the integer (up to 15 digits) from each place to the next comma, and the places after the commas."""
        places, words, minus = self._signed(places)
        length = _before_comma(words)
        numbers, after = self.number(_at_end(words, length)), places + length + 1
        long = np.flatnonzero(length == 8)
        if len(long):
            rest = self.words(places[long] + 8)
            more = _before_comma(rest)
            if more.max() == 8:
                raise UnsupportedError("a number of 16 digits or more")
            numbers[long] = numbers[long] * _TENS[more] + self.number(_at_end(rest, more))
            after[long] += more
        if not length.all():
            raise UnsupportedError("a blank field")
        numbers[minus] *= -1
        return numbers, after

    def decimal(self, places: Ints, ends: Ints | None = None) -> tuple[NDArray[np.float64], Ints]:
        """Return the decimal number from each place to a comma or end, and the places after it.

        Numbers have up to 7 characters and 2 decimals. The digits as an integer and the power of ten are exact doubles.
        Their quotient is rounded once, so it equals the double that a text parser returns.
        """
        places, words, minus = self._signed(places)
        length = _before_comma(words) if ends is None else ends - places
        if length.min(initial=1) < 1 or length.max(initial=1) > 7:
            raise UnsupportedError("a ratio of no character, or of more than 7")
        text = _at_end(words, length)
        scale = np.ones(len(text))
        for decimals in (1, 2):
            pointed = np.flatnonzero((text >> np.uint64(56 - 8 * decimals)) & _BYTE == _POINT)
            if len(pointed):
                text[pointed] = _without_point(text[pointed], decimals)
                scale[pointed] *= 10**decimals
        if scale.max(initial=1) > 100:
            raise UnsupportedError("a ratio with two points")
        numbers = self.number(text) / scale
        numbers[minus] *= -1
        return numbers, places + length + 1

    def _signed(self, places: Ints) -> tuple[Ints, Words, Ints]:
        """Return the places after an optional minus sign, the words there, and the rows with a minus sign."""
        words = self.words(places)
        minus = np.flatnonzero(words & _BYTE == _MINUS)
        if len(minus):
            places = places.copy()
            places[minus] += 1
            words[minus] = self.words(places[minus])
        return places, words, minus


def _before_comma(words: Words) -> NDArray[np.uint8]:
    """Return the number of bytes before the first comma of each word; 8 without a comma."""
    others = words ^ _COMMAS
    commas = (others - _ONES) & ~others & _HIGH_BITS  # the lowest of these bits is the first comma's
    below = (commas - np.uint64(1)) & ~commas
    return np.bitwise_count(below) >> np.uint8(3)


def _at_end(words: Words, length: NDArray[np.uint8] | Ints) -> Words:
    """Return the first bytes of each word after XOR with ZEROS, right-aligned with leading zeros."""
    return (words ^ ZEROS) << ((8 - length.astype(np.uint64)) << np.uint64(3))


def _without_point(text: Words, decimals: int) -> Words:
    """Remove the decimal point of right-aligned digits: move the digits before it up to the digits after it."""
    after = np.uint64(2**64 - 2 ** (64 - 8 * decimals))
    return (text & after) | ((text << np.uint64(8)) & ~after)
