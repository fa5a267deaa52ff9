"""Front matter: YAML at the top of a file, with the place of each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warehouse.base.errors import ModelError, Place, nearest_hint

if TYPE_CHECKING:
    from warehouse.base.yaml_text import Value

_OPEN, _CLOSE = "/* ---", "--- */"


def split_header(content: str, shown: str) -> tuple[str, str]:
    """Return the YAML text, and the SELECT with leading newlines that keep its line numbers.

    >>> split_header("/* ---\\nabout: x\\n--- */\\nSELECT 1\\n", "m.sql")
    ('\\nabout: x\\n', '\\n\\n\\nSELECT 1\\n')
    """
    if not content.startswith(_OPEN):
        raise ModelError(f"the file does not start with `{_OPEN}`", place=Place(shown, 1, 1))
    end = content.find(_CLOSE)
    if end < 0:
        raise ModelError(f"the front matter has no end: `{_CLOSE}` is missing", place=Place(shown, 1, 1))
    header = content[len(_OPEN) : end]
    for mark in ("/*", "*/"):
        if mark in header:
            line = header[: header.index(mark)].count("\n") + 1
            raise ModelError(f"`{mark}` cannot stand inside the front matter", place=Place(shown, line))
    body = content[end + len(_CLOSE) :]
    if not body.strip():
        raise ModelError("no SELECT follows the front matter", place=Place(shown, header.count("\n") + 1))
    return header, "\n" * header.count("\n") + body


def read_header(header: str, shown: str, keys: Sequence[str]) -> dict[str, Value]:
    """Return the top-level keys of a front matter. Raises ModelError for unknown and duplicate keys."""
    from warehouse.base.yaml_text import read_yaml

    found = read_yaml(header, shown, "the front matter")
    for key, below in found.items():
        if key not in keys:
            raise ModelError(
                f"unknown key `{key}` in the front matter",
                place=below.place(shown),
                hint=nearest_hint(key, keys) or f"known keys: {', '.join(keys)}",
            )
    return found
