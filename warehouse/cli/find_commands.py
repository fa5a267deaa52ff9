"""Commands `warehouse ls`, `show`, `lineage`, `render`: find tables and columns, and trace numbers to their source."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError, SettingsError
from warehouse.base.next_step import for_target
from warehouse.base.text import few
from warehouse.cli.options import DATA, JSON, PROJECT, TARGET, command, flag, option, say_json, settings, tell

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.base.settings import Settings


@command(
    "ls",
    "list the tables of the warehouse, by question",
    "warehouse ls bandwidth\n  warehouse ls 'metrics.*'",
    option("pattern", metavar="WORD", nargs="?", help="only where name, columns or meaning hold it; or a pattern"),
    flag("--all", "staging, raw and empty tables, too"),
    TARGET,
    JSON,
)
def run_ls(given: argparse.Namespace) -> int:
    """List tables, by question."""
    from warehouse.reader.connection import connect
    from warehouse.reader.finding import Found, find_tables, print_by_question
    from warehouse.reader.query_errors import START
    from warehouse.reader.table_info import list_tables, ls, tables_as_json
    from warehouse.reader.why_empty import reasons_of

    target, word = settings(given).target, given.pattern or ""
    if given.json:
        say_json(tables_as_json(ls(target, given.pattern)))
        return 0
    with connect(target) as connection:
        found = (
            find_tables(connection, word)
            if word
            else [Found(table) for table in list_tables(connection) if not table.name.startswith(START)]
        )
        empty = reasons_of(connection, (one.table.name for one in found if not one.table.rows))
    print_by_question(found, sys.stdout, word=word, everything=given.all, empty=empty, target=target)
    return 0


@command(
    "show",
    "describe a table: columns, units, grain, checks, first rows",
    "warehouse show metrics.port_hour",
    option("name", metavar="NAME"),
    TARGET,
    *DATA,
    JSON,
)
def run_show(given: argparse.Namespace) -> int:
    """Describe one table, or the columns of a name."""
    from warehouse.reader.connection import connect
    from warehouse.reader.finding import find_columns, print_columns
    from warehouse.reader.table_info import print_shown, show, shown_as_json

    settled = settings(given)
    target = settled.target
    try:
        shown = show(target, given.name, data_folders=settled.data)
    except QueryError:
        with connect(target) as connection:
            found = find_columns(connection, given.name)
        if not found:
            raise
    else:
        found = []
    if given.json:
        say_json([one._asdict() for one in found] or shown_as_json(shown))
    elif found:
        print_columns(found, sys.stdout, target=target)
    else:
        print_shown(shown, sys.stdout, target=target)
    return 0


@command(
    "lineage",
    "show the sources of a table or a column, down to raw files",
    "warehouse lineage metrics.port_hour\n  warehouse lineage metrics.port_hour.in_utilization",
    option("name", metavar="NAME", help="a table, or a column of it"),
    PROJECT,
    TARGET,
    flag("--steps", "of a column: each step, with file and line"),
    JSON,
)
def run_lineage(given: argparse.Namespace) -> int:
    """Print the lineage graph around one relation, or the path of one column."""
    from warehouse.lineage.table_lineage import as_json, as_text, names_a_column, table_lineage

    settled = settings(given)
    if named := given.name if names_a_column(given.name) else _only_column(settled, given.name):
        print(column_path(settled, named, as_json=given.json, steps=given.steps))
        return 0
    lineage = table_lineage(settled, given.name)
    tell(given, lambda: as_json(lineage), lambda: as_text(lineage).splitlines())
    return 0


def _only_column(settled: Settings, name: str) -> str | None:
    """Return the full name of a column given without its table, or None if the name is a table's.

    Raises
    ------
    SettingsError
        If several columns have that name.
    """
    from warehouse.project.project import Project

    models = Project.open(settled.project).models
    if "." in name or any(model.partition(".")[2] == name.lower() for model in models):
        return None
    found = [
        f"{model.name}.{one.name}" for model in models.values() for one in model.columns if one.name == name.lower()
    ]
    # prefer the metric over the tables it is made of
    found = [one for one in found if one.startswith("metrics.")] or found
    if len(found) > 1:
        raise SettingsError(f"{name} is a column of {len(found)} tables", hint=f"one of: {few(sorted(found))}")
    return found[0] if found else None


def column_path(settled: Settings, name: str, *, as_json: bool = False, steps: bool = False) -> str:
    """Return where a column is from, down to raw files: a summary, with each step, or JSON."""
    from warehouse.lineage import column_lineage, lineage_text
    from warehouse.project.project import Project

    project = Project.open(settled.project)
    found = column_lineage.load(project, settled.target)
    relation, column = column_lineage.column_named(found, project, name)
    trace = found.trace(relation, column)
    if as_json:
        return json.dumps(lineage_text.as_json(trace), indent=1)
    ends = lineage_text.read_from(project)
    files = lineage_text.described(ends, _loaded_files(settled.target))
    origins, expression = trace.origins.get(trace.column, ()), list[str]()
    if len(origins) == 1 and origins[0].place.rpartition(":")[0].endswith(".sql"):
        text = project.models[relation].path.read_text(encoding="utf-8")
        expression = lineage_text.expression_lines(text, int(origins[0].place.rpartition(":")[2]))
    parents = found.made_of(relation, column) if relation in found.blocks else ()
    columns = project.models[relation].columns if relation in project.models else ()
    about = next((one.about for one in columns if one.name == column), "")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    summary = lineage_text.summary_text(trace, about, parents, expression, files, width)
    if steps:
        return f"{summary}\n\n{lineage_text.steps_text(trace, ends, width)}"
    following = for_target(f"warehouse lineage {trace.column} --steps", settled.target)
    return f"{summary}\n\nNext:  {following}" if origins else summary


def _loaded_files(target: Path) -> dict[str, tuple[int, int, str]]:
    """Return the number of loaded files of each format, of their folders, and one path; none without a build."""
    from warehouse.reader.connection import connect

    try:
        connection = connect(target)
    except QueryError:
        return {}
    with connection:
        rows = connection.execute(
            "SELECT format, count(*), count(DISTINCT parse_dirpath(release_path)), min(release_path) FROM raw.files "
            "WHERE status IN ('read', 'partial') GROUP BY format"
        ).fetchall()
    return {name: (files, folders, path) for name, files, folders, path in rows}


@command(
    "render",
    "print a model's SELECT with macros expanded, or the code of a Python model",
    "warehouse render metrics.port_hour",
    option("name", metavar="NAME"),
    PROJECT,
)
def run_render(given: argparse.Namespace) -> int:
    """Print a model's SELECT or its code."""
    from warehouse.lineage.table_lineage import find_model
    from warehouse.project.project import Project

    project = Project.open(settings(given).project)
    print(project.render(find_model(project, given.name)).strip())
    return 0
