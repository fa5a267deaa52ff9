"""Command `warehouse` alone: state of the target in this folder and three next steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.settings import settle
from warehouse.base.text import for_target, plural
from warehouse.cli.options import say

if TYPE_CHECKING:
    from pathlib import Path

_BEGIN = (
    ("warehouse demo", "a planted sample, built and shown"),
    ("warehouse doctor -d DIR", "what is in a release; builds nothing"),
    ("warehouse build -d DIR", "read, join, check, publish"),
)
_ASK = (
    ("warehouse findings", "what to look at first, in sentences"),
    ("warehouse sql --list", "questions that have an answer"),
    ("warehouse ls", "the tables, by question"),
)


def say_state() -> int:
    """Print what is built in the target of this folder and what to do next."""
    target = settle({}).target
    try:
        lines, steps = built(target), _ASK
    except QueryError as error:
        lines, steps = [error.message[0].upper() + error.message[1:] + "."], _BEGIN
    widest = max(len(step) for step, _ in steps)
    following = [f"{'' if at else 'Next':<7}{step:<{widest}}  {about}" for at, (step, about) in enumerate(steps)]
    say(*lines, "", *following, "", "All commands: warehouse --help")
    return 0


def built(target: Path) -> list[str]:
    """Return what is built in a target. Raises QueryError if it cannot be opened."""
    from warehouse.reader.connection import connect

    notes: list[str] = []
    with connect(target, tell_moved=notes.append) as connection:
        build, published, folders = connection.execute(
            "SELECT build_id, strftime(published_utc, '%Y-%m-%d %H:%M UTC'), data_folders FROM meta.build"
        ).fetchall()[0]
        full, empty, rejected, warned = connection.execute(
            "SELECT count(*) FILTER (rows > 0), count(*) FILTER (rows = 0), "
            "coalesce(sum(rows) FILTER (model = 'staging.rejected_rows'), 0)::BIGINT, "
            "(SELECT count(*) FROM meta.checks WHERE status = 'warned') FROM meta.models"
        ).fetchall()[0]
    for count, noun, what in (
        (warned, "warning", "of checks · warehouse sql 'FROM meta.failures'"),
        (rejected, "line", "could not be read · warehouse sql 'FROM staging.rejected_rows'"),
    ):
        notes += [f"{plural(count, noun)} {for_target(what, target)}"] if count else []
    return [
        f"Built  {build[:8]} in {target}, {published}",
        f"       {full:,} tables with rows, {empty:,} empty",
        f"       of {', '.join(folders)}",
        *(f"       {note}" for note in notes),
    ]
