"""Odd headers of CSV files, as spreadsheets, other programs and accidents write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Cells = Sequence[Sequence[str]]
Case = Callable[[Sequence[str], Cells], bytes]


def lines(*rows: Sequence[str], separator: str = ",", end: str = "\n") -> bytes:
    return "".join(separator.join(row) + end for row in rows).encode()


def with_name(name: str, value: str = "7") -> Case:
    """Return a case with one more column, at the end."""
    return lambda names, rows: lines([*names, name], *([*row, value] for row in rows))


def renamed(change: Callable[[str], str]) -> Case:
    """Return a case with other names."""
    return lambda names, rows: lines([change(name) for name in names], *rows)


def separated(separator: str, above: str = "") -> Case:
    """Return a case with another separator, and a line above the header."""
    return lambda names, rows: above.encode() + lines(names, *rows, separator=separator)


def encoded(change: Callable[[bytes], bytes]) -> Case:
    """Return a case with other bytes."""
    return lambda names, rows: change(lines(names, *rows))


def in_header(change: Callable[[bytes], bytes]) -> Case:
    """Return a case with other bytes in the header."""
    return lambda names, rows: change(lines(names)) + lines(*rows)


def after_first(name: bytes) -> Case:
    """Return a case with a column more, the second, whose name is given as bytes."""
    return lambda names, rows: (
        lines(names).replace(b",", b"," + name + b",", 1) + lines(*([row[0], "7", *row[1:]] for row in rows))
    )


CASES: dict[str, Case] = {
    "as published": lambda names, rows: lines(names, *rows),
    "an index without a name": lambda names, rows: lines(
        ["", *names], *([str(at), *row] for at, row in enumerate(rows))
    ),
    "an index that pandas named": lambda names, rows: lines(
        ["Unnamed: 0", *names], *([str(at), *row] for at, row in enumerate(rows))
    ),
    "an index of R, not in the header": lambda names, rows: lines(
        names, *([str(at), *row] for at, row in enumerate(rows, 1))
    ),
    "a comma at the end": with_name("", ""),
    "two commas at the end": lambda names, rows: lines([*names, "", ""], *([*row, "", ""] for row in rows)),
    "a comma at the end of the header alone": lambda names, rows: lines([*names, ""], *rows),
    "a comma at the end of the rows alone": lambda names, rows: lines(names, *([*row, ""] for row in rows)),
    "a value without a name": with_name(""),
    "a known column twice": lambda names, rows: lines([*names, names[-1]], *([*row, row[-1]] for row in rows)),
    "another column twice": lambda names, rows: lines([*names, "x", "x"], *([*row, "1", "2"] for row in rows)),
    "a column filename": with_name("filename", "x.csv"),
    "a column in another case": lambda names, rows: lines(
        [*names, names[0].upper()], *([*row, row[0]] for row in rows)
    ),
    "a reserved word": with_name("select"),
    "another reserved word": with_name("order by"),
    "names of the reader": lambda names, rows: lines(
        [*names, "field_1", "column0", "line", "row_number"], *([*row, "1", "2", "3", "4"] for row in rows)
    ),
    "quotes in a name": with_name('"a""b"'),
    "a quote within a name": with_name('a"b'),
    "an apostrophe": with_name("it's"),
    "SQL": with_name("x'); DROP TABLE y; --"),
    "braces": with_name("{{ name }} %s $1"),
    "a semicolon in a name": with_name("a;b"),
    "a quoted comma in a name": with_name('"a,b"'),
    "300 characters": with_name("x" * 300),
    "emoji": with_name("🚀"),
    "right to left": with_name("\u202edcba\u200b"),
    "a blank": with_name(" "),
    "a blank that does not break": with_name("\u00a0"),
    "an escape": with_name("\x1b[31mred"),
    "500 columns more": lambda names, rows: lines(
        [*names, *(f"extra {at}" for at in range(500))], *([*row, *["1"] * 500] for row in rows)
    ),
    "a byte order mark": encoded(lambda content: b"\xef\xbb\xbf" + content),
    "CR only": encoded(lambda content: content.replace(b"\n", b"\r")),
    "CRLF": encoded(lambda content: content.replace(b"\n", b"\r\n")),
    "CRLF in the header alone": in_header(lambda header: header.replace(b"\n", b"\r\n")),
    "UTF-16": encoded(lambda content: content.decode().encode("utf-16")),
    "Latin-1": after_first(b"caf\xe9"),
    "NUL": after_first(b"a\0b"),
    "sep=,": separated(",", "sep=,\n"),
    "sep=; quoted": separated(";", '"sep=;"\n'),
    "semicolons": separated(";"),
    "tabs": separated("\t"),
    "bars": separated("|"),
    "all names quoted": renamed(lambda name: f'"{name}"'),
    "upper case": renamed(str.upper),
    "blanks before names": renamed(lambda name: f" {name}"),
    "a quote that is not closed": in_header(lambda header: b'"' + header),
    "a name over two lines": after_first(b'"a\nb"'),
    "a blank line above": encoded(lambda content: b"\n" + content),
    "a comment above": encoded(lambda content: b"# exported 2024\n" + content),
    "no header": lambda names, rows: lines(*rows),
    "the header twice": lambda names, rows: lines(names, names, *rows),
    "a column less": lambda names, rows: lines(names[:-1], *(row[:-1] for row in rows)),
    "in another order": lambda names, rows: lines(names[::-1], *(row[::-1] for row in rows)),
    "no line below": lambda names, rows: lines(names),
    "the header without its end": lambda names, rows: lines(names).rstrip(b"\n"),
    "nothing": lambda names, rows: b"",
}  # fmt: skip
