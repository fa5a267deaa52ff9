"""Streams whose encoding lacks characters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("limits", [(), ("--timeout", "300")])
def test_a_character_that_an_encoding_lacks_is_escaped(target: Path, limits: tuple[str, ...]) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "warehouse", "sql", "SELECT 'é' || chr(9654) AS x", *limits, "-t", target],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, b"x\n\xe9\\u25b6\n", b"")
