"""Commands `warehouse ls`, `show`, `lineage`, `render`: find tables and columns, and trace numbers to their source."""

from __future__ import annotations

import argparse
import sys

from warehouse.base.errors import QueryError
from warehouse.cli.options import JSON, PROJECT, TARGET, command, flag, option, say_json, settings


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
    from dataclasses import asdict

    from warehouse.reader.connection import connect
    from warehouse.reader.finding import find_tables, print_by_question
    from warehouse.reader.table_info import reasons_of

    target, word = settings(given).target, given.pattern or ""
    with connect(target) as connection:
        found = find_tables(connection, word)
        empty = reasons_of(connection, (one.table.name for one in found if not one.table.rows))
    if given.json:
        say_json([asdict(one.table) for one in found])
    else:
        print_by_question(found, sys.stdout, word=word, everything=given.all, empty=empty, target=target)
    return 0


@command(
    "show",
    "describe a table: columns, units, grain, how to sum, checks",
    "warehouse show metrics.port_hour",
    option("name", metavar="NAME", help="a table, or a column"),
    TARGET,
    JSON,
)
def run_show(given: argparse.Namespace) -> int:
    """Describe one table, or the columns of a name."""
    from warehouse.reader.connection import connect
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
        say_json([one._asdict() for one in columns] or as_json(relation))
    elif columns:
        print_columns(columns, sys.stdout, target=target)
    else:
        print_relation(relation, sys.stdout, target=target)
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
    from warehouse.api.lineage import lineage

    print(lineage(settings(given), given.name, as_json=given.json, steps=given.steps))
    return 0


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
