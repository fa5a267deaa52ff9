"""Lines of torchrun, c10d and Python itself: warnings, errors, tracebacks."""

from __future__ import annotations

from warehouse.base.startup import regex
from warehouse.formats.logs.event import Event

FAMILY = "torchrun"

_LOGGER = regex(r"(WARNING|ERROR|CRITICAL):(torch\.[\w.]+):")
_C10D = regex(r"\[([IWEF])(?:\d{3,4} [\d:.]+)? ?(\w+\.(?:cpp|h|hpp)):(\d+)\]")
_PYTHON_WARNING = regex(r"(/\S+\.py):(\d+): (\w+Warning): ")
_ERROR = regex(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt))(?:: |$)")
_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}


def read(text: str) -> list[Event] | None:
    """Return the events of a line; None for other lines."""
    if text.startswith("[") and (c10d := _C10D.match(text)):
        return [{"family": FAMILY, "kind": "message", "level": _LEVELS[c10d[1]], "name": c10d[2]}]
    if text.startswith("/") and (warning := _PYTHON_WARNING.match(text)):
        return [{"family": "python", "kind": "message", "level": "WARNING", "name": warning[3]}]
    if text.startswith("Traceback (most recent call last)"):
        return [{"family": "python", "kind": "traceback", "level": "ERROR"}]
    if logger := _LOGGER.match(text):
        return [{"family": FAMILY, "kind": "message", "level": logger[1], "name": logger[2]}]
    if ("Error" in text or "Exception" in text or "Interrupt" in text) and (error := _ERROR.match(text)):
        return [{"family": "python", "kind": "error", "level": "ERROR", "name": error[1]}]
    return None
