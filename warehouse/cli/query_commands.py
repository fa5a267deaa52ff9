"""Commands `warehouse sql`, `findings` and `cite`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import SettingsError
from warehouse.cli.options import (
    COMMANDS,
    DATA,
    ENGINE,
    JSON,
    PROJECT,
    TARGET,
    command,
    flag,
    option,
    say,
    say_json,
    seconds,
    settings,
)
from warehouse.reader.output import FORMATS

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.reader.named_queries import Query


@command(
    "sql",
    "query the warehouse: SQL, a file, or a named query; read-only",
    "warehouse sql -q nic --server GPU-35\n  warehouse sql 'FROM metrics.leaf_hour' --format csv > leaves.csv",
    option("sql", metavar="QUERY", nargs="?", help="SQL; `-` reads it from stdin; without one a shell opens"),
    option("-f", "--file", metavar="FILE", help="a file of SQL"),
    option("-q", "--query", metavar="NAME", help="a named query; --list shows them"),
    flag("--list", "the named queries by question; --list NAME one of them"),
    option("--param", metavar="NAME=VALUE", action="append", default=[], help="a parameter; also --NAME VALUE"),
    option("--format", choices=FORMATS, metavar="NAME", help=", ".join(FORMATS)),
    option("--json", action="store_const", dest="format", const="json", help="the same as --format json"),
    option("-o", "--output", metavar="FILE", help="write to a file; its suffix names the format"),
    option("--limit", metavar="N", type=int, help="rows at most; default 40 on a terminal, else all"),
    flag("--cite", "store a citation of the answer, and print it on stderr"),
    TARGET,
    option("--timeout", metavar="SECONDS", type=seconds, help="stop the query after this time (default never)"),
    *DATA,
    PROJECT,
    *ENGINE,
)
def run_sql(given: argparse.Namespace) -> int:
    """Run one query."""
    from warehouse.reader.request import Request
    from warehouse.reader.user_query import answer

    settled = settings(given)
    sources = [value for value in (given.sql, given.file, given.query) if value]
    if given.list:
        return _list_queries(settled, given.query or given.sql)
    if not sources:
        return _shell(settled, given)
    if len(sources) > 1:
        raise SettingsError("give one of QUERY, --file or --query", hint="warehouse sql alone opens a shell")
    parameters = _parameters(given.param)
    text = sys.stdin.read() if given.sql == "-" else given.sql
    # a query given as SQL needs no project: importing its modules would cost 5% of a start
    queries = _queries(settled) if given.query or given.project else {}
    query = None
    if given.query:
        from warehouse.reader.named_queries import find_query

        query = find_query(given.query, queries)
    request = Request(
        settled.target,
        text,
        file=Path(given.file) if given.file else None,
        query=query,
        parameters=parameters,
        data_folders=settled.data,
        format=given.format,
        output=Path(given.output) if given.output else None,
        limit=given.limit,
        memory=given.memory,
        threads=settled.threads if given.threads else None,
        timeout=given.timeout,
        cite=given.cite,
    )
    return answer(request)


def _queries(settled: Settings) -> Mapping[str, Query]:
    """Return the named queries of the project."""
    from warehouse.project.project import Project
    from warehouse.reader.named_queries import load_queries

    return load_queries(Project.open(settled.project).query_folders)


def _shell(settled: Settings, given: argparse.Namespace) -> int:
    """Run the shell: its inputs are arguments of `warehouse sql`, after those that it was called with."""
    from warehouse.cli.shell import run_shell

    def ask(words: Sequence[str]) -> int:
        again = argparse.Namespace(**vars(given))
        return run_sql(given.parser.parse_args(with_parameters(["sql", *words])[1:], again))

    queries = _queries(settled)
    parameters = {f"--{name.replace('_', '-')}" for query in queries.values() for name in query.parameters}
    return run_shell(settled, SQL_OPTIONS, [*queries, *parameters], ask)


@command(
    "findings", "print what to look at first, with numbers and the next command", "warehouse findings", TARGET, JSON
)
def run_findings(given: argparse.Namespace) -> int:
    """Print the findings."""
    import shutil

    from warehouse.api.warehouse import Warehouse
    from warehouse.reader import findings, text_table

    target = settings(given).target
    with Warehouse(target) as opened:
        found = opened.findings()
    if given.json:
        say_json([one._asdict() for one in found])
    else:
        width = min(text_table.WIDTH, shutil.get_terminal_size().columns)
        findings.print_findings(found, sys.stdout, width, target)
    return 0


@command(
    "cite",
    "recompute a cited answer: equal, or what changed; or list citations",
    "warehouse cite 7f3a91c2d0e1",
    option("id", metavar="ID", nargs="?", help="of a citation, or its file"),
    TARGET,
    PROJECT,
)
def run_cite(given: argparse.Namespace) -> int:
    """List citations, or verify one."""
    from warehouse.reader import citations
    from warehouse.reader.citations import citation_lines

    settled = settings(given)
    if given.id is None:
        say(*(citations.load(settled.target, path.stem).text() for path in citations.kept(settled.target)))
        return 0
    citation = citations.load(settled.target, given.id)
    differences = citations.again(settled.target, citation, _queries(settled))
    sys.stdout.writelines(citation_lines(settled.target, citation, sys.stdout))
    say(*(["differs", *(f"  {line}" for line in differences)] if differences else ["same"]))
    return 1 if differences else 0


SQL_OPTIONS = (
    *(name for names, _ in COMMANDS["sql"].options for name in names if name.startswith("-")), "--help", "-h",
)  # fmt: skip
"""Options of `warehouse sql`; others are parameters of the named query."""


def with_parameters(arguments: Sequence[str]) -> list[str]:
    """Rewrite `--leaf Leaf-10` of a named query to `--param leaf=Leaf-10`.

    argparse cannot know the parameters of a query, which are defined in a file.

    >>> with_parameters(["sql", "-q", "nic", "--server", "GPU-3", "--json"])
    ['sql', '-q', 'nic', '--param', 'server=GPU-3', '--json']
    """
    if arguments[:1] != ["sql"] or not {"-q", "--query"} & {argument.split("=")[0] for argument in arguments}:
        return list(arguments)
    changed: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        name, equals, value = argument.partition("=")
        # An option of the command wins over a parameter of that name.
        if not argument.startswith("--") or name in SQL_OPTIONS:
            changed.append(argument)
            continue
        if not equals:
            if not waiting:
                raise SettingsError(f"{argument} has no value", hint=f"give {argument} VALUE")
            value = waiting.pop(0)
        changed += ["--param", f"{name.removeprefix('--')}={value}"]
    return changed


def _parameters(pairs: Sequence[str]) -> dict[str, str]:
    """Return `leaf=Leaf-10`, ... as a dictionary."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise SettingsError(f"--param {pair!r} is not NAME=VALUE")
        found[name] = value
    return found


def _list_queries(settled: Settings, word: str | None) -> int:
    """Print the queries by question or, with a word, the matching queries with their parameters."""
    from warehouse.reader.finding import matching_queries, print_queries, print_query

    queries = _queries(settled)
    if word is None:
        print_queries(queries, sys.stdout, target=settled.target)
        return 0
    for query in matching_queries(queries, word):
        print_query(query, sys.stdout)
    return 0
