"""Megatron-LM over several lines: its list of arguments."""

from __future__ import annotations

from warehouse.base.startup import regex
from warehouse.formats.logs import settings
from warehouse.formats.logs.event import Event, config

FAMILY = "megatron"

# Megatron-LM wrote `data-parallel-size` before 2024, and `data-parallel size` since.
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
