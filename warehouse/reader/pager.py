"""Pager for an answer that is longer than the screen: `$PAGER`, by default `less`, with the options that git sets."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Screen(io.StringIO):
    """Text that is laid out as for the terminal."""

    def isatty(self) -> bool:
        """Return True: headers are bold, and tables have the width of the terminal."""
        return True


@contextmanager
def paged() -> Iterator[TextIO]:
    """Yield stdout or, if it is a terminal, a stream that is shown at the end of the block."""
    if not sys.stdout.isatty():
        yield sys.stdout
        return
    screen = _Screen()
    yield screen
    show(screen.getvalue())


def show(text: str) -> None:
    """Write text to the terminal, through the pager if it is longer than the screen."""
    pager = shlex.split(os.environ.get("PAGER", "less"))
    if text.count("\n") < shutil.get_terminal_size().lines - 1 or not (pager and shutil.which(pager[0])):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        subprocess.run(  # noqa: S603
            pager,
            input=text,
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            env={"LESS": "FRX", **os.environ},
            check=False,
        )
    finally:
        signal.signal(signal.SIGINT, usual)
