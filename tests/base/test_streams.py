"""Streams whose encoding lacks characters: lines are drawn in ASCII, other characters are escaped."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.base.streams import accept_every_character


def printed(monkeypatch: pytest.MonkeyPatch, text: str, encoding: str, errors: str) -> bytes:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    accept_every_character()
    stream.write(text)
    return stream.buffer.getvalue()


@pytest.mark.parametrize(
    ("encoding", "errors", "said"),
    [
        ("latin-1", "strict", b"-- 12 ~ v \xe9 \\u2192 \\u661f"),
        ("ascii", "surrogateescape", rb"-- 12 ~ v \xe9 \u2192 \u661f"),
        ("latin-1", "replace", b"?? ?? ? ? \xe9 ? ?"),
        ("utf-8", "strict", "── ▁▂ … ↓ é → 星".encode()),
    ],
)
def test_lines_are_drawn_in_ascii_and_other_characters_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str, errors: str, said: bytes
) -> None:
    assert printed(monkeypatch, "── ▁▂ … ↓ é → 星", encoding, errors) == said


@pytest.mark.parametrize("limits", [(), ("--timeout", "300")])
@pytest.mark.parametrize(
    "words",
    [("sql", "SELECT repeat('x', 200) AS long, chr(9654) AS odd, 1 AS one", "--format", "table"), ("ls", "hour")],
)
def test_output_in_latin_1_fits_the_screen(target: Path, words: tuple[str, ...], limits: tuple[str, ...]) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "warehouse", *words, *(limits if words[0] == "sql" else ()), "-t", target],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, b"")
    lines = said.stdout.decode("latin-1").replace(f" -t {target}", "").splitlines()
    assert max(len(line.replace(r"\u25b6", "x")) for line in lines) <= 80
