"""Uniform lines: the counts of their characters, and the changes that these counts detect."""

from __future__ import annotations

import random

import pytest

from warehouse.formats.uniform import UniformLines

HEADER = "time,port,bytes,ratio"


def is_odd(content: bytes, chunk: int = 1 << 20) -> bool:
    lines = UniformLines()
    for start in range(0, len(content), chunk):
        lines(content[start : start + chunk])
    return lines.is_odd()


def make_lines(end: str = "\n", rows: int = 500) -> list[str]:
    numbers = random.Random(7)
    line = "2024/05/24 星期五 00:00:00,Leaf-1 1/0/1:1,{},{}"
    lines = [line.format(numbers.randint(-9, 10**15), numbers.choice(["0", "1.5", "-10.6"])) for _ in range(rows)]
    return [text + end for text in (HEADER, *lines)]


@pytest.mark.parametrize("chunk", [7, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("rows", [0, 1, 500])
def test_uniform_lines_are_not_odd(end: str, chunk: int, rows: int) -> None:
    assert is_odd("".join(make_lines(end, rows)).encode(), chunk) == (rows == 0)


@pytest.mark.parametrize("odd", ["e", "_", "+", " ", "n", '"', "\r", "\0", "\n", ",", "１", "x" * 80])
def test_an_extra_character_is_odd(odd: str) -> None:
    for times in (1, 2, 400):
        lines = make_lines()
        for at in range(2, 2 + times):
            lines[at] = lines[at][:-2] + odd + lines[at][-2:]
        assert is_odd("".join(lines).encode(), 1000)
        assert is_odd("".join(lines).encode(), 1 << 20)


def test_a_line_without_its_end_or_a_part_of_its_text_is_odd() -> None:
    assert not UniformLines().is_odd()  # nothing was read
    lines = make_lines()
    assert is_odd("".join(lines)[:-1].encode())
    assert is_odd("".join([*lines[:9], lines[9].replace("星期五 ", ""), *lines[10:]]).encode())
