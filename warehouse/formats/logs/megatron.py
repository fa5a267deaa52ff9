"""Megatron-LM over several lines: its list of arguments, and iterations that were wrapped between two values."""

from __future__ import annotations

from warehouse.base.startup import regex
from warehouse.formats.logs import settings
from warehouse.formats.logs.event import Event, config

FAMILY = "megatron"

_BEGINS = regex(r"\biteration[ :]+\d+ */")
_MORE = regex(r"(?: *[A-Za-z][\w ()/.-]{0,80}: *[^|:\s][^|]{0,40}\|)+ *$")
LAST_KEY = "number of nan iterations"
_SIZES = regex(r"([a-z][a-z -]{0,80}?)[ -]size: (\d{1,9})")
_ARGUMENTS = regex(r"-{8,} (arguments|end of arguments) -{8,}")


class Arguments:
    """Megatron's list of arguments in the lines of one file."""

    def __init__(self) -> None:
        self.is_inside = False

    def read(self, text: str) -> list[Event] | None:
        """Return the events of a line of arguments; None for other lines."""
        if "-- " in text and (border := _ARGUMENTS.search(text)):
            self.is_inside = border[1] == "arguments"
            return []
        if self.is_inside or " .." in text:
            return list(settings.dotted(FAMILY, text, long_names=self.is_inside)) or None
        if "using world size:" in text:
            return [
                config(FAMILY, f"{name.strip().replace('-', '_').replace(' ', '_').removeprefix('using_')}_size", value)
                for name, value in _SIZES.findall(text)
            ] or None
        return None


def is_more(text: str) -> bool:
    """Return True if a line may continue an iteration that was wrapped between two values.

    >>> is_more(" lm loss: 2.5E+00 | loss scale: 1.0 |"), is_more(" iteration 7/ 90 | lm loss: 2.5 |")
    (True, False)
    """
    return _MORE.match(text) is not None and not begins(text)


def begins(text: str) -> bool:
    """Return True if an iteration begins in a text."""
    return _BEGINS.search(text) is not None
