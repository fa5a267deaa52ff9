"""Code in a new Python process."""

from __future__ import annotations

import subprocess
import sys


def python(code: str, *arguments: str) -> str:
    """Run code in a new Python and return its output."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
