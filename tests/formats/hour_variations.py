"""Files of one row that differ from the documented form of the hour tables, and what must come out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.formats.hour_examples import EXAMPLES, TYPED, WriteCsv, rows_of

Cells = dict[str, str]
Render = Callable[[Cells], bytes]


class Variation(NamedTuple):
    """One file: how it differs, and what must come out of its only row."""

    what: str
    table: str
    render: Render
    """Cells of the documented example, by column -> content of the file."""
    changed: Mapping[str, object] | None = {}
    """Typed columns that differ from those of the example; None if the row or file is refused."""
    names: str = ""
    """Text that the refusal, or the file's reason, must have."""
    rows: int = 1
    rejected: int = 0

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


def text(header: Iterable[str], *rows: Iterable[str], end: str = "\n") -> bytes:
    return "".join(",".join(row) + end for row in (header, *rows)).encode()


def plain(cells: Cells) -> bytes:
    return text(cells, cells.values())


def renamed(name: Callable[[str], str]) -> Render:
    return lambda cells: text(map(name, cells), cells.values())


def cell(**changes: str) -> Render:
    return lambda cells: plain({**cells, **changes})


def measured(column: str, name: str, value: str) -> Render:
    """Give one column another name and value."""
    return lambda cells: text((name if key == column else key for key in cells), ({**cells, column: value}).values())


def ordered(order: Callable[[Sequence[str]], Iterable[str]]) -> Render:
    return lambda cells: plain({name: cells[name] for name in order(list(cells))})


def without(*names: str) -> Render:
    return lambda cells: plain({name: value for name, value in cells.items() if name not in names})


def quoted(cells: Cells) -> bytes:
    return text((f'"{name}"' for name in cells), (f'"{value}"' for value in cells.values()))


def spaced(name: str) -> str:
    return "".join(f" {letter}" if letter.isupper() else letter for letter in name)


def check(write_csv: WriteCsv, one: Variation) -> None:
    """Compare the rows of a file with the expected ones, or its refusal with the expected name."""
    content = one.render(dict(EXAMPLES[one.table]))
    file = write_csv(content.removesuffix(b"\n"), name=f"2024052400_{one.table}.csv")
    rows, rejected = rows_of(file) if file.is_read else ([], [])
    refusal = "; ".join([file.reason or "", *(row.reason for row in rejected)])
    assert one.names in refusal
    if one.changed is None:
        assert not rows
        return
    assert len(rows) == one.rows
    assert len(rejected) == one.rejected
    expected = {**TYPED[one.table], **one.changed}
    for row in rows:
        assert {name: row[name] for name in expected} == expected
