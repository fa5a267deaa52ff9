"""Sentence templates of checks: text with `{column}` or `{column:format}`, filled from a failing row.

Formats: `,`, `,.2f` and `.2f` for numbers, `.1%` for fractions of 1, `B` for bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from warehouse.base.startup import regex
from warehouse.base.text import size

_FIELD = regex(r"\{(?P<name>[a-z][a-z0-9_]*)(?::(?P<format>,|,?\.\d[f%]|B))?\}")


def fields(text: str) -> list[str]:
    """Return the columns that a template names.

    Raises
    ------
    ValueError
        For a brace outside a field, or an unknown format.

    >>> fields("{switch} is uneven: {cov:.1%}")
    ['switch', 'cov']
    """
    rest = _FIELD.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError("a field is {column} or {column:format}, the format one of `,`  `.2f`  `,.2f`  `.1%`  `B`")
    return [match["name"] for match in _FIELD.finditer(text)]


def filled(text: str, row: Mapping[str, object]) -> str:
    """Return the sentence with the values of a row; a missing value is `?`.

    >>> filled("{switch} sent {bytes:B}, {cov:.1%} off", {"switch": "Leaf-1", "bytes": 6785715334821, "cov": 0.186})
    'Leaf-1 sent 6.8 TB, 18.6 % off'
    """
    return _FIELD.sub(lambda match: _value(row.get(match["name"]), match["format"]), text)


def _value(value: object, form: str | None) -> str:
    if value is None:
        return "?"
    if not form or isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if form == "B":
        return size(value)
    text = format(value, form)
    return f"{text[:-1]} %" if form.endswith("%") else text
