"""Output streams whose encoding lacks characters, such as Latin-1: lines are drawn in ASCII, others are escaped."""

from __future__ import annotations

import codecs
import io
import sys

_PLAIN = dict(zip("─━╌│├└…·↓↑▁▂▃▄▅▆▇█", "-=-|++~-v^12345678", strict=True))
"""Characters that we draw with, and ASCII characters of the same width."""
_DEFAULTS = ("strict", "surrogateescape", "backslashreplace")


def accept_every_character() -> None:
    """Let stdout and stderr write characters that their encoding lacks, unless the user chose how."""
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        lacks_some = not stream.encoding.lower().startswith("utf")
        if isinstance(stream, io.TextIOWrapper) and lacks_some and stream.errors in _DEFAULTS:
            stream.reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one, one.encode("ascii", "backslashreplace").decode()) for one in lacking), error.end
