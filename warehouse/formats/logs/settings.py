"""Settings in the forms that trainers print: `name ..... value`, `"name": value`, `name = value`, `a: 1, b: 2`."""

from __future__ import annotations

from collections.abc import Iterator

from warehouse.base.startup import regex
from warehouse.formats.logs.event import Event, config, number_of

_DOTTED = regex(r"  ([A-Za-z]\w*) (?:(\.+) | )(\S.*)$")
_JSON = regex(r'\s*"([\w.-]+)": ("[^"]*"|-?[\d.eE+-]+|true|false|null|NaN|Infinity),?\s*$')
_EQUAL = regex(r"\s*([A-Za-z][\w .,()&/-]*?) = (-?[\d,.]+(?:[eE][-+]?\d+)?|True|False|None)$")
_COLON = regex(r"\s+([A-Za-z][\w -]*?):\s+(-?[\d,.]+)\s*$")
_PAIRS = regex(r"(?!loss)[A-Za-z]\w*: \d{1,18}(?:, [A-Za-z]\w*: \d{1,18})+$")
_PAIR = regex(r"([A-Za-z]\w*): (\d+)")
_WORDS = regex(r"(\w+)=('[^']*'|[^\s=]+)")


def dotted(family: str, text: str, *, long_names: bool) -> Iterator[Event]:
    """Yield the settings of `  name ......... value`.

    A name of full width has no dots; it is only accepted if `long_names`.
    """
    found = _DOTTED.match(text)
    if found and (long_names or len(found[2] or "") > 1):
        name, _, value = found.groups()
        yield config(family, name, value.strip())
        if len(pairs := _WORDS.findall(value)) > 1:
            for below, one in pairs:
                yield config(family, f"{name}.{below}", one.strip("',"))


def scalars(family: str, text: str) -> list[Event]:
    """Return the settings of a line of printed JSON, or of names with numbers."""
    if '": ' in text and (found := _JSON.match(text)):
        return [config(family, found[1], found[2].strip('"'))]
    if " = " in text and (found := _EQUAL.match(text)):
        return [config(family, found[1], number_of(found[2]) or found[2])]
    if ": " in text:
        if text[0] == " " and (found := _COLON.match(text)):
            return [config(family, found[1], number_of(found[2]) or found[2])]
        if _PAIRS.match(text):
            return [config(family, name, value) for name, value in _PAIR.findall(text)]
    return []
