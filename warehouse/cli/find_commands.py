"""Commands that find: `warehouse` alone, `ls`, `show`, `lineage`, `render`, `findings`, `cite`."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from warehouse.base.errors import QueryError
from warehouse.base.settings import settle
from warehouse.base.text import for_target, plural
from warehouse.cli.commands import say, say_json, settings
from warehouse.reader.connection import connect
from warehouse.reader.text_table import WIDTH

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


def say_state() -> None:
    """Print what is built in the target of this folder and three next steps."""
    target = settle({}).target
    try:
        lines, steps = built(target), _ASK
    except QueryError as error:
        lines, steps = [error.message[0].upper() + error.message[1:] + "."], _BEGIN
    widest = max(len(step) for step, _ in steps)
    following = [f"{'' if at else 'Next':<7}{step:<{widest}}  {about}" for at, (step, about) in enumerate(steps)]
    say(*lines, "", *following, "", "All commands: warehouse --help")


def built(target: Path) -> list[str]:
    """Return what is built in a target. Raises QueryError if it cannot be opened."""
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


def run_ls(given: argparse.Namespace) -> None:
    """List tables, by question."""
    from warehouse.reader.finding import find_tables, print_by_question
    from warehouse.reader.table_info import reasons_of

    target = settings(given).target
    with connect(target) as connection:
        found = find_tables(connection, given.pattern)
        empty = reasons_of(connection, (one.table.name for one in found if not one.table.rows))
    if given.json:
        say_json([asdict(one.table) for one in found])
    else:
        print_by_question(found, sys.stdout, word=given.pattern, everything=given.all, empty=empty, target=target)


def run_show(given: argparse.Namespace) -> None:
    """Describe one table, or the columns of a name."""
    from warehouse.reader.finding import find_columns, print_columns
    from warehouse.reader.table_info import as_json, print_relation, show

    target = settings(given).target
    columns = []
    try:
        relation = show(target, given.name)
    except QueryError:
        with connect(target) as connection:
            columns = find_columns(connection, given.name)
        if not columns:
            raise
    if given.json:
        say_json(columns or as_json(relation))
    elif columns:
        print_columns(columns, sys.stdout, target=target)
    else:
        print_relation(relation, sys.stdout, target=target)


def run_lineage(given: argparse.Namespace) -> None:
    """Print the lineage graph around one relation, or the path of one column."""
    from warehouse.api.warehouse import lineage

    print(lineage(settings(given), given.name, as_json=given.json, steps=given.steps))


def run_render(given: argparse.Namespace) -> None:
    """Print a model's SELECT or its code."""
    from warehouse.lineage.table_lineage import find_model
    from warehouse.project.project import Project

    project = Project.open(settings(given).project)
    print(project.render(find_model(project, given.name)).strip())


def run_findings(given: argparse.Namespace) -> None:
    """Print the findings."""
    from warehouse.api.warehouse import Warehouse
    from warehouse.reader.findings import print_findings

    target = settings(given).target
    with Warehouse(target) as opened:
        found = opened.findings()
    if given.json:
        say_json([one._asdict() for one in found])
    else:
        print_findings(found, sys.stdout, min(WIDTH, shutil.get_terminal_size().columns), target)


def run_cite(given: argparse.Namespace) -> int:
    """List citations, or verify one."""
    from warehouse.project.project import Project
    from warehouse.reader import citations
    from warehouse.reader.named_queries import load_queries

    settled = settings(given)
    if given.id is None:
        say(*(citations.load(settled.target, path.stem).text() for path in citations.kept(settled.target)))
        return 0
    citation = citations.load(settled.target, given.id)
    queries = load_queries(Project.open(settled.project).query_folders)
    lines, differences = citations.again(settled.target, citation, queries)
    say(*lines, *(["differs", *(f"  {line}" for line in differences)] if differences else ["same"]))
    return 1 if differences else 0
