"""HTML of answers and tables in a notebook."""

from __future__ import annotations

import shutil
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from warehouse.base.text import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Item = TypeVar("Item")


def table(headers: Sequence[tuple[str, str]], rows: Iterable[Sequence[object]], *, above: str = "") -> str:
    """Return a table as HTML: a header for each (name, meaning), and a text above it. All text is escaped.

    >>> table([("bytes", "received")], [["6.67 TB"]])
    '<table><tr><th>bytes<br><small>received</small></th></tr><tr><td>6.67 TB</td></tr></table>'
    """
    names = "".join(
        f"<th>{escape(name)}{f'<br><small>{escape(meaning)}</small>' if meaning else ''}</th>"
        for name, meaning in headers
    )
    cells = "".join(f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in row)}</tr>" for row in rows)
    return (f"<p>{escape(above)}</p>" if above else "") + f"<table><tr>{names}</tr>{cells}</table>"


def _text(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value).strip()


class Rows(list[Item]):
    """List of findings or tables, which a terminal and a notebook show as a table of these fields."""

    def __init__(self, items: Iterable[Item], fields: Sequence[str]) -> None:
        super().__init__(items)
        self._fields = fields

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        lines = (" · ".join(filter(None, map(_text, row))) for row in self._rows())
        return "".join(part for line in lines for part in wrapped(line, width)).rstrip("\n")

    def _repr_html_(self) -> str:
        return table([(field, "") for field in self._fields], self._rows())

    def _rows(self) -> list[list[Any]]:
        return [[getattr(one, field) for field in self._fields] for one in self]
