"""What is worth looking at first: the rows of `metrics.findings`, as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TextIO

from warehouse.base.errors import QueryError
from warehouse.base.text import plural
from warehouse.reader.connection import connect
from warehouse.reader.text_table import escape, wrapped

TABLE = "metrics.findings"


class Finding(NamedTuple):
    """A row of `metrics.findings`."""

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


def read(target: Path) -> list[Finding]:
    """Return the findings of a target, the first to look at first.

    Raises
    ------
    QueryError
        Where nothing was built, or the build has no findings.
    """
    with closing(connect(target)) as connection:
        looked = connection.execute(
            "SELECT 1 FROM meta.checks WHERE model = $1 AND status = 'passed'", [TABLE]
        ).fetchone()
        if looked is None:
            raise QueryError(
                f"this build did not look for findings: {TABLE} is not part of it", hint="warehouse build -d DIR"
            )
        rows = connection.execute(
            "SELECT kind, severity, what, where_, number, unit, sentence, so_what, look_further, "
            f"strftime(hour_utc, '%Y-%m-%d %H:%M:%S'), cluster FROM {TABLE} ORDER BY rank"
        ).fetchall()
    return [Finding(*row) for row in rows]


def print_findings(found: Sequence[Finding], stream: TextIO, width: int) -> None:
    """Print the findings: warnings, then notes, each with what follows from it and where to look further."""
    warnings = [one for one in found if one.severity == "warning"]
    notes = [one for one in found if one.severity != "warning"]
    if not found:
        stream.write("Nothing found of what is looked for: warehouse sql 'FROM reference.finding_kinds'\n")
        return
    told: set[str] = set()
    for title, those in ((plural(len(warnings), "warning"), warnings), (plural(len(notes), "note"), notes)):
        stream.write(f"{title}\n" if those else f"No {title.partition(' ')[2]}\n")
        for one in those:
            stream.write("\n")
            stream.writelines(wrapped(f"{one.what}: {escape(one.sentence)}", width))
            if one.kind not in told:  # the same for all of a kind
                stream.writelines("  " + line for line in wrapped(one.so_what, width - 2))
                told.add(one.kind)
            stream.write(f"  {escape(one.look_further)}\n")
        stream.write("\n" if title.endswith(("warning", "warnings")) else "")
