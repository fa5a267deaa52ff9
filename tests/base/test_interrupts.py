"""Ctrl-C while processes start: it comes later, and they never see it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, subprocess, sys
from warehouse.base.interrupts import interrupts_postponed
try:
    with interrupts_postponed():
        os.kill(os.getpid(), signal.SIGINT)
        print("started", flush=True)
        child = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('a child goes on', flush=True)"
        subprocess.run([sys.executable, "-c", child], check=True)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_waits_for_the_end_of_the_block_and_children_see_none() -> None:
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["started", "a child goes on", "interrupted"]
