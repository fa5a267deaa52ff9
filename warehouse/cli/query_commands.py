"""`warehouse sql`, `cite`, `ls`, `show`, `lineage`, `render`: look at tables, models, and where a number is from."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError, SettingsError, nearest_hint
from warehouse.cli.options import Commands, add_data, add_engine, add_project, add_target, command, settings

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.reader.named_queries import Query

SQL_OPTIONS = frozenset(
    [
        "--file",
        "--query",
        "--list",
        "--param",
        "--format",
        "--json",
        "--output",
        "--limit",
        "--cite",
        "--raw",
        "--target",
        "--data",
        "--cluster",
        "--follow-links",
        "--max-rejected",
        "--project",
        "--threads",
        "--memory",
        "--timeout",
        "--help",
    ]
)
FORMATS = ("table", "lines", "csv", "json", "jsonl", "markdown", "parquet")


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(
        commands, "sql", "ask the warehouse: SQL, a file, or a named query; read-only",
        "warehouse sql -q nic --server GPU-35\n  warehouse sql 'FROM metrics.leaf_hour' --format csv > leaves.csv",
    )  # fmt: skip
    one.add_argument("sql", metavar="QUERY", nargs="?", help="SQL; `-` reads it from stdin; without one a shell opens")
    one.add_argument("-f", "--file", metavar="FILE", help="a file of SQL")
    one.add_argument("-q", "--query", metavar="NAME", help="a named query; --list shows them")
    one.add_argument("--list", action="store_true", help="the named queries by question; --list NAME one of them")
    one.add_argument(
        "--param", metavar="NAME=VALUE", action="append", default=[], help="a parameter; also --NAME VALUE"
    )
    one.add_argument("--format", choices=FORMATS, help="default: table on a terminal, csv in a pipe")
    one.add_argument("--json", action="store_true", help="the same as --format json")
    one.add_argument("-o", "--output", metavar="FILE", help="write to a file; its suffix names the format")
    one.add_argument("--limit", metavar="N", type=int, help="rows at most; default 40 on a terminal, else all")
    one.add_argument("--raw", action="store_true", help="exact values and all columns in a table, no units")
    one.add_argument("--cite", action="store_true", help="keep a citation of the answer, and say it on stderr")
    add_target(one)
    add_data(one)
    add_project(one)
    add_engine(one)
    one.add_argument("--timeout", metavar="SECONDS", type=_seconds, help="end the query after so long (default never)")
    one.set_defaults(run=run_sql)

    one = command(
        commands,
        "cite",
        "compute a cited answer again: the same, or what changed; without an id list the citations",
        "warehouse cite 7f3a91c2d0e1",
    )
    one.add_argument("id", metavar="ID", nargs="?", help="of a citation, or its file")
    add_target(one)
    add_project(one)
    one.set_defaults(run=run_cite)

    one = command(
        commands,
        "ls",
        "list the tables of the warehouse, by question",
        "warehouse ls bandwidth\n  warehouse ls 'metrics.*'",
    )
    one.add_argument(
        "pattern", metavar="WORD", nargs="?", help="only where name, columns or meaning hold it; or a pattern"
    )
    one.add_argument("--all", action="store_true", help="staging, raw and empty tables, too")
    add_target(one)
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_ls)

    one = command(
        commands,
        "show",
        "say what a table means: columns, units, grain, checks, first rows",
        "warehouse show metrics.port_hour",
    )
    one.add_argument("name", metavar="NAME")
    add_target(one)
    add_data(one)
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_show)

    one = command(
        commands,
        "lineage",
        "show what a table or a column stands on, down to raw files",
        "warehouse lineage metrics.port_hour\n  warehouse lineage metrics.port_hour.in_utilization",
    )
    one.add_argument("name", metavar="NAME", help="a table, or a column of it")
    add_project(one)
    add_target(one)
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_lineage)

    one = command(
        commands,
        "render",
        "print a model's SELECT as it runs, macros written out; of a Python model its code",
        "warehouse render metrics.port_hour",
    )
    one.add_argument("name", metavar="NAME")
    add_project(one)
    one.set_defaults(run=run_render)


def run_sql(given: argparse.Namespace) -> int:
    """Run one query."""
    from warehouse.reader.user_query import run_query

    settled = settings(given)
    asked = [value for value in (given.sql, given.file, given.query) if value]
    if given.list:
        return _list_queries(_queries(settled), given.query or given.sql)
    if not asked:
        return _shell(settled, _queries(settled), given)
    if len(asked) > 1:
        raise SettingsError("give one of QUERY, --file or --query", hint="warehouse sql alone opens a shell")
    parameters = _parameters(given.param)
    text = sys.stdin.read() if given.sql == "-" else given.sql
    # SQL with a text of its own asks for no project, whose modules would cost it a start's twentieth
    queries = _queries(settled) if given.query or given.project else {}
    query = None
    if given.query:
        from warehouse.reader.named_queries import find_query

        query = find_query(given.query, queries)
        _known_options(query, parameters)
    status = run_query(
        settled.target,
        text,
        file=Path(given.file) if given.file else None,
        query=query,
        parameters=parameters,
        data_folders=settled.data,
        format="json" if given.json else given.format,
        output=Path(given.output) if given.output else None,
        limit=given.limit,
        memory=given.memory,
        threads=settled.threads if given.threads else None,
        timeout=given.timeout,
        raw=given.raw,
    )
    if given.cite and not status:
        from warehouse.reader.citations import cite_query

        said = Path(given.file).read_text(encoding="utf-8") if given.file else text or ""
        sys.stderr.write(f"{cite_query(settled.target, said, query, parameters).text()}\n")
    return status


def _queries(settled: Settings) -> Mapping[str, Query]:
    """The named queries of the project."""
    from warehouse.project.project import Project
    from warehouse.reader.named_queries import load_queries

    return load_queries(Project.open(settled.project).query_folders)


def _shell(settled: Settings, queries: Mapping[str, Query], given: argparse.Namespace) -> int:
    """The shell; what it says of lineage comes from the project."""
    from warehouse.reader.shell.prompt import run_shell

    def lineage(name: str) -> str:
        from warehouse.lineage import table_lineage

        return (
            _column_path(settled, name)
            if table_lineage.names_a_column(name)
            else table_lineage.as_text(table_lineage.table_lineage(settled, name))
        )

    return run_shell(
        settled.target,
        queries,
        lineage,
        data_folders=settled.data,
        memory=given.memory,
        threads=settled.threads if given.threads else None,
        timeout=given.timeout,
    )


def run_cite(given: argparse.Namespace) -> int:
    """List citations, or compute one again."""
    from warehouse.reader import citations

    settled = settings(given)
    if given.id is None:
        for path in citations.kept(settled.target):
            print(citations.load(settled.target, path.stem).text())  # noqa: T201
        return 0
    citation = citations.load(settled.target, given.id)
    differences = citations.again(settled.target, citation, _queries(settled))
    print(citation.text())  # noqa: T201
    print("\n".join(["differs", *(f"  {line}" for line in differences)]) if differences else "same")  # noqa: T201
    return 1 if differences else 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


def with_parameters(arguments: Sequence[str]) -> list[str]:
    """Arguments in which `--leaf Leaf-10` of a named query has become `--param leaf=Leaf-10`.

    argparse cannot know the parameters of a query, whose names are in a file.

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
    """`leaf=Leaf-10`, ... as a dictionary."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise SettingsError(f"--param {pair!r} is not NAME=VALUE")
        found[name] = value
    return found


def _known_options(query: Query, parameters: Mapping[str, str]) -> None:
    """Refuse what is neither a parameter of the query nor an option, with the nearest. Raises SettingsError."""
    known = [name.replace("_", "-") for name in query.parameters]
    for name in parameters:
        if name.replace("_", "-") not in known:
            hint = nearest_hint(f"--{name}", [*(f"--{one}" for one in known), *sorted(SQL_OPTIONS)])
            takes = ", ".join(f"--{one}" for one in known) or "none"
            raise SettingsError(f"query {query.name} has no parameter {name}", hint=hint or f"its parameters: {takes}")


def _list_queries(queries: Mapping[str, Query], word: str | None) -> int:
    """The queries by question; with a word those that it is about, with their parameters."""
    from warehouse.reader.finding import matching_queries, print_queries

    if word is None:
        print_queries(queries, sys.stdout)
        return 0
    for query in matching_queries(queries, word):
        also = f"  (also {', '.join(query.aliases)})" if query.aliases else ""
        print(f"{query.name}{also}\n    {query.about}")  # noqa: T201
        for parameter in query.parameters.values():
            default = "required" if parameter.required else f"default {parameter.default}"
            if parameter.default is None and not parameter.required:
                default = "optional"
            print(f"    --{parameter.name.replace('_', '-')} {parameter.type}  {parameter.about} ({default})")  # noqa: T201
    return 0


def run_ls(given: argparse.Namespace) -> int:
    """List tables, by question."""
    from warehouse.reader.connection import connect
    from warehouse.reader.finding import Found, find_tables, print_by_question
    from warehouse.reader.table_info import list_tables, ls, tables_as_json

    target = settings(given).target
    if given.json:
        print(json.dumps(tables_as_json(ls(target, given.pattern)), indent=1))  # noqa: T201
        return 0
    connection = connect(target)
    try:
        found = (
            find_tables(connection, given.pattern)
            if given.pattern
            else [Found(table) for table in list_tables(connection)]
        )
    finally:
        connection.close()
    print_by_question(found, sys.stdout, word=given.pattern or "", everything=given.all)
    return 0


def run_show(given: argparse.Namespace) -> int:
    """Describe one table."""
    from warehouse.reader.table_info import print_shown, show, shown_as_json

    settled = settings(given)
    try:
        shown = show(settled.target, given.name, data_folders=settled.data)
    except QueryError:
        if not _show_column(settled, given.name, as_json=given.json):
            raise
        return 0
    if given.json:
        print(json.dumps(shown_as_json(shown), indent=1))  # noqa: T201
    else:
        print_shown(shown, sys.stdout)
    return 0


def _show_column(settled: Settings, name: str, *, as_json: bool) -> bool:
    """Describe the columns of that name; return whether there are any."""
    from warehouse.reader.connection import connect
    from warehouse.reader.finding import find_columns, print_columns

    connection = connect(settled.target)
    try:
        found = find_columns(connection, name)
    finally:
        connection.close()
    if found and as_json:
        print(json.dumps([one._asdict() for one in found], indent=1))  # noqa: T201
    elif found:
        print_columns(found, sys.stdout)
    return bool(found)


def run_lineage(given: argparse.Namespace) -> int:
    """The graph around one relation, or the path of one column."""
    from warehouse.lineage.table_lineage import as_json, as_text, names_a_column, table_lineage

    if named := given.name if names_a_column(given.name) else _only_column(settings(given), given.name):
        print(_column_path(settings(given), named, as_json=given.json))  # noqa: T201
        return 0
    lineage = table_lineage(settings(given), given.name)
    print(json.dumps(as_json(lineage), indent=1) if given.json else as_text(lineage))  # noqa: T201
    return 0


def _only_column(settled: Settings, name: str) -> str | None:
    """The full name of a column that is named alone; None where a table is meant. Raises SettingsError."""
    from warehouse.project.project import Project

    if "." in name:
        return None
    models = Project.open(settled.project).models
    if any(model.partition(".")[2] == name.lower() for model in models):
        return None
    found = [
        f"{model.name}.{one.name}" for model in models.values() for one in model.columns if one.name == name.lower()
    ]
    # of a metric and what it is made of, the metric is meant
    found = [one for one in found if one.startswith("metrics.")] or found
    if len(found) > 1:
        raise SettingsError(f"{name} is a column of {len(found)} tables", hint="one of: " + ", ".join(sorted(found)))
    return found[0] if found else None


def _column_path(settled: Settings, name: str, *, as_json: bool = False) -> str:
    from warehouse.lineage import column_lineage, lineage_text
    from warehouse.project.project import Project

    project = Project.open(settled.project)
    found = column_lineage.load(project, settled.target)
    trace = found.trace(*column_lineage.column_named(found, project, name))
    return (
        json.dumps(lineage_text.as_json(trace), indent=1)
        if as_json
        else lineage_text.as_text(trace, lineage_text.read_from(project))
    )


def run_render(given: argparse.Namespace) -> int:
    """A model's SELECT, or its code."""
    from warehouse.lineage.table_lineage import find_model
    from warehouse.project.project import Project

    project = Project.open(settings(given).project)
    print(project.render(find_model(project, given.name)).strip())  # noqa: T201
    return 0
