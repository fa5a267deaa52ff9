"""Command `warehouse` alone: state of the target in this folder and three next steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.settings import settle
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
        state, steps = _built(target), _ASK
    except QueryError as error:
        state, steps = error.message[0].upper() + error.message[1:] + ".", _BEGIN
    widest = max(len(step) for step, _ in steps)
    lines = [
        f"Next   {step:<{widest}}  {about}" if not at else f"       {step:<{widest}}  {about}"
        for at, (step, about) in enumerate(steps)
    ]
    say(*state.splitlines(), "", *lines, "", "All commands: warehouse --help")
    return 0


def _built(target: Path) -> str:
    from warehouse.reader.connection import connect

    with connect(target) as connection:
        build, published, folders = connection.execute(
            "SELECT build_id, strftime(published_utc, '%Y-%m-%d %H:%M UTC'), data_folders FROM meta.build"
        ).fetchall()[0]
        full, empty, warned = connection.execute(
            "SELECT count(*) FILTER (WHERE rows > 0), count(*) FILTER (WHERE rows = 0), "
            "(SELECT count(*) FROM meta.checks WHERE status = 'warned') FROM meta.models"
        ).fetchall()[0]
    warnings = f", {warned:,} warnings" if warned > 1 else ", 1 warning" if warned else ""
    return (
        f"Built  {build[:8]} in {target}, {published}\n"
        f"       {full:,} tables with rows, {empty:,} empty{warnings}\n"
        f"       of {', '.join(folders)}"
    )
