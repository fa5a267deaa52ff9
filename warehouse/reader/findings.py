"""Findings: the rows of `metrics.findings`, as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from warehouse.base.startup import duckdb
from warehouse.base.text import few, for_target, grouped, plural, wrapped
from warehouse.reader.result import SHARE
from warehouse.reader.text_table import escape, header_unit, readable

TABLE = "metrics.findings"
MOST_SHOWN = 12
"""Findings that are printed in full; the others are counted."""


class Finding(NamedTuple):
    """Row of `metrics.findings`."""

    kind: str
    severity: str
    what: str
    where: str
    number: float
    unit: str
    sentence: str
    so_what: str
    look_further: str
    hour_utc: str | None
    cluster: str
    cause: str | None
    """Place of the finding that this one is a consequence of."""


class Card(NamedTuple):
    """First finding of a kind, its number in readable form, and the other findings of that kind."""

    first: Finding
    number: str
    others: tuple[Finding, ...]
    scope: str
    """The hour or hours that the number covers."""


def findings_of(connection: duckdb.DuckDBPyConnection) -> list[Finding] | None:
    """Return the findings on an open connection, or None if the build did not compute any."""
    # An empty table may mean that nothing was found or nothing was looked for: only a build that looked has checks.
    looked = connection.execute("SELECT 1 FROM meta.checks WHERE model = $1 AND status = 'passed'", [TABLE]).fetchone()
    if looked is None:
        return None
    rows = connection.execute(
        "SELECT kind, severity, what, where_, number, unit, sentence, so_what, look_further, "
        f"strftime(hour_utc, '%Y-%m-%d %H:%M:%S'), cluster, cause FROM {TABLE} ORDER BY rank"
    ).fetchall()
    return [Finding(*row) for row in rows]


def cards_of(connection: duckdb.DuckDBPyConnection) -> list[Card] | None:
    """Return one card per kind, or None without findings: many findings of one kind would hide the others."""
    found = findings_of(connection)
    if found is None:
        return None
    # Published figures mean nothing for synthetic data.
    left_out = ("claims_differ",) if is_synthetic(connection) else ()
    return [
        Card(
            first,
            headline(first.kind, [first.where, *(one.where for one in others)], first.number, first.unit),
            tuple(others),
            scope(first.kind, first.hour_utc),
        )
        for first, *others in grouped((one.kind, one) for one in found if one.kind not in left_out).values()
    ]


def headline(kind: str, places: Sequence[str], number: float, unit: str) -> str:
    """Return the large text of a card: the links without data, else the first number, with the server of its cables.

    >>> headline("uplink_silent", ["Leaf-1 1/0/35"], 2e9, "B")
    'Leaf-1 1/0/35'
    >>> headline("uplink_no_data", ["Leaf-1 1/0/35", "Leaf-2 1/0/36", "Leaf-3 1/0/37"], 2e9, "B")
    'Leaf-1 1/0/35, Leaf-2 1/0/36 and 1 more'
    >>> headline("server_cabled_elsewhere", ["GPU-228", "GPU-76"], 4, "cables")
    '4 cables of GPU-228'
    """
    if kind in ("uplink_silent", "uplink_no_data"):
        return few(places, 2)
    return number_text(number, unit) + (f" of {places[0]}" if unit == "cables" else "")


def scope(kind: str, hour: str | None) -> str:
    """Return the hour or hours that the number of a finding covers.

    >>> scope("uneven_leaf", "2024-05-23 16:00:00"), scope("observation", None), scope("claims_differ", None)
    ('2024-05-23 16:00 UTC', 'all loaded hours', 'all loaded files')
    """
    if hour:
        return f"{hour[:16]} UTC"
    return "all loaded files" if kind == "claims_differ" else "all loaded hours"


def number_text(number: float, unit: str) -> str:
    """Return the number of a finding with its unit, in readable form.

    >>> [number_text(*one) for one in ((0.3451, "1"), (6785715334821, "B"), (1, "cables"), (389.0, "figures"))]
    ['34.5 %', '6.79 TB', '1 cable', '389 figures']
    """
    shown_unit = SHARE if unit == "1" else unit
    text = readable([repr(number)], shown_unit)[0] or ""
    words = unit[:-1] if number == 1 and unit.endswith("s") else unit
    return text + (f" {words}" if header_unit(shown_unit) else "")


_CONTINUED = " \\"
"""End of a line of a command that goes on in the next line."""


def print_findings(found: Sequence[Finding], stream: TextIO, width: int, target: Path) -> None:
    """Print the first findings: warnings, then notes, each with its consequence and where to look further."""
    if not found:
        said = "No finding of any kind: warehouse sql 'FROM reference.finding_kinds'\n"
        stream.write(for_target(said, target))
        return
    printed: set[str] = set()
    for severity, after in (("warning", "\n"), ("note", "")):
        count = sum(one.severity == severity for one in found)
        stream.write(f"{plural(count, severity)}\n" if count else f"No {severity}s\n")
        for one in found[:MOST_SHOWN]:
            if one.severity == severity:
                stream.write("\n")
                _print_finding(one, stream, width, target, says_so_what=one.kind not in printed)
                printed.add(one.kind)
        stream.write(after)
    if len(found) > MOST_SHOWN:
        stream.write(for_target(f"\nand {len(found) - MOST_SHOWN} more: warehouse sql -q findings\n", target))


def _print_finding(one: Finding, stream: TextIO, width: int, target: Path, *, says_so_what: bool) -> None:
    """Print a finding; a consequence is indented below its cause, and what follows is said once for each kind."""
    margin, follows = ("  ", "consequence · ") if one.cause else ("", "")
    width -= len(margin)
    lines = wrapped(f"{follows}{one.what}: {escape(one.sentence)}", width)
    if says_so_what:
        lines += ["  " + line for line in wrapped(one.so_what, width - 2)]
    command = f"  {escape(for_target(one.look_further, target))}"
    if len(command) <= width:
        lines.append(f"{command}\n")
    else:
        pieces = [line.removesuffix("\n") for line in wrapped(command, width - len(_CONTINUED), indent="    ")]
        lines.append(f"{_CONTINUED}\n{margin}".join(pieces) + "\n")
    stream.writelines(margin + line for line in lines)


def build_of(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return id, time, version and engine of the open build."""
    row = connection.execute("SELECT build_id, published_utc, version, engine FROM meta.build").fetchall()[0]
    return dict(zip(("id", "published", "version", "engine"), map(str, row), strict=True))


def is_synthetic(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return True if a file of the build is of a cluster of `warehouse sample`."""
    try:
        # So begins the name of each cluster that `warehouse sample` writes.
        found = connection.execute("SELECT 1 FROM raw.files WHERE starts_with(cluster, 'cluster_sample') LIMIT 1")
    except duckdb.CatalogException:  # a project without raw files
        return False
    return found.fetchone() is not None
