"""Commands with their options, and what all of them share: settings, and how a result is printed.

A command is a function `run_NAME`. Its module is imported when the command runs, for a fast start.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NoReturn

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.settings import KEPT_BUILDS, KEYS, Settings, settle
from warehouse.base.version import __version__

EXAMPLES = """\
examples:
  warehouse demo                              a planted sample, built and shown
  warehouse doctor -d ~/downloads/release     what is in there, what is not
  warehouse build -d ~/downloads/release      read, join, check, publish
  warehouse findings                          what to look at first
  warehouse sql -q nic --server GPU-35        a named query
  warehouse sql "FROM metrics.leaf_hour"      your own
  warehouse report report.html                one page with charts, to send

Options can also stand in warehouse.toml, or in WAREHOUSE_DATA and the like.
Exit status: 0 done, 1 model or check failed, 2 usage or SQL, 3 target is held.
"""
Option = tuple[tuple[str, ...], dict[str, Any]]
"""Arguments of `add_argument`."""


def option(*names: str, **given: Any) -> Option:
    """Return an option or argument, with the arguments of `add_argument`."""
    return names, given


def flag(name: str, about: str | None = None) -> Option:
    """Return an option without a value."""
    return option(name, action="store_true", help=about)


def seconds(text: str) -> float:
    """Return a time limit in seconds. Raises ValueError."""
    found = float(text)
    if not 0 < found < float("inf"):
        raise ValueError(text)
    return found


def _address(text: str) -> str:
    if not re.fullmatch(r"local:[1-9]\d{0,2}|tcp://[^\s/:][^\s/]*:\d{1,5}", text):
        raise argparse.ArgumentTypeError(f"is {text!r}, not tcp://HOST:PORT or local:N")
    return text


def _pair(text: str) -> Sequence[str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


TARGET = option("-t", "--target", metavar="DIR", help="the warehouse's folder (default build/warehouse)")
PROJECT = option("--project", metavar="DIR", help="a folder with models of your own, see `warehouse init`")
JSON = flag("--json")
DATA = (
    option(
        "-d", "--data", metavar="DIR", action="append",
        help="a release, a part of it, or its archive; may be repeated",
    ),
    # None and not False, which would win over warehouse.toml and WAREHOUSE_FOLLOW_LINKS.
    option("--follow-links", action="store_true", default=None, help="follow links that lead out of the data folders"),
    option("--cluster", metavar="NAME", help="name for files below no cluster's folder"),
    option("--max-rejected", metavar="SHARE", help="rows of a job file that may be unreadable (default 1%% of them)"),
)  # fmt: skip
ENGINE = (
    option("--threads", metavar="N", help="cores to use (default all)"),
    option("--memory", metavar="SIZE", help="memory that the engine may use (default 3GB)"),
)
WAIT = flag("--wait", "wait for a build of this target to end")
KEEP = option("--keep", metavar="N", type=int, default=KEPT_BUILDS, help=f"builds to keep (default {KEPT_BUILDS})")
TABLES = option("-s", "--select", metavar="TABLE", action="append", help="only this table; may be repeated")
BUILD = (
    *DATA,
    TARGET,
    PROJECT,
    option(
        "-s", "--select", metavar="SEL", action="append", default=[],
        help="only these models: a name, a layer, a glob; +name with its upstream, name+ with its downstream models",
    ),
    *ENGINE,
    KEEP,
    flag("--paranoid", "hash all files again, even those with unchanged size and times"),
)  # fmt: skip
"""Options that define a build."""
FORMATS = ("table", "lines", "csv", "json", "jsonl", "markdown", "parquet", "text", "agent")
"""Those of `reader.output`, which a build that has nothing to do must not load."""


COMMANDS: dict[str, tuple[str, str, str, *tuple[Option, ...]]] = {
    "build": (
        "build_commands",
        "read the data folders, build all models, check them, publish",
        "warehouse build -d data/\n  warehouse build -d data/ -t build/anew --profile",
        *BUILD,
        flag("--wait", "wait for another build of this target to end"),
        JSON,
        flag("--quiet", "print only errors"),
        flag("--profile", "what each model cost: CPU, time, rows, memory; on stdout"),
        option(
            "--scheduler", metavar="ADDRESS", type=_address,
            help="make the parts on the workers of Dask: tcp://HOST:PORT or local:N",
        ),
    ),
    "plan": (
        "doctor_commands",
        "print what build would do, and why, model by model; nothing is built",
        "warehouse plan -d data/",
        *BUILD, flag("--json", "every part with its reasons and downstream parts, as JSON"),
    ),
    "test": (
        "doctor_commands",
        "run the tests of models and the examples of logs and traces; needs no data",
        "warehouse test\n  warehouse test metrics.leaf_hour 'topology.*'",
        option("select", metavar="SEL", nargs="*", help="only these models: a name, a layer, a glob, +name, name+"),
        PROJECT,
        flag("--quiet", "print only failures"),
    ),
    "sql": (
        "query_commands",
        "query the warehouse: SQL, a file, or a named query; read-only",
        "warehouse sql -q nic --server GPU-35\n  warehouse sql 'FROM metrics.leaf_hour' --format csv > leaves.csv",
        option("sql", metavar="QUERY", nargs="?", help="SQL; `-` reads it from stdin; without one a shell opens"),
        option("-f", "--file", metavar="FILE", help="a file of SQL"),
        option("-q", "--query", metavar="NAME", help="a named query; --list shows them"),
        flag("--list", "the named queries by question; --list NAME one of them"),
        option(
            "--param", metavar="NAME=VALUE", type=_pair, action="append", default=[],
            help="a parameter; also --NAME VALUE",
        ),
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
    ),
    "findings": (
        "find_commands",
        "print what to look at first, with numbers and the next command",
        "warehouse findings",
        TARGET, JSON,
    ),
    "cite": (
        "find_commands",
        "recompute a cited answer: equal, or what changed; or list citations",
        "warehouse cite 7f3a91c2d0e1",
        option("id", metavar="ID", nargs="?", help="of a citation, or its file"), TARGET, PROJECT,
    ),
    "ls": (
        "find_commands",
        "list the tables of the warehouse, by question",
        "warehouse ls bandwidth\n  warehouse ls 'metrics.*'",
        option(
            "pattern", metavar="WORD", nargs="?", default="",
            help="only where name, columns or meaning hold it; or a pattern",
        ),
        flag("--all", "staging, raw and empty tables, too"),
        TARGET,
        JSON,
    ),
    "show": (
        "find_commands",
        "describe a table: columns, units, grain, how to sum, checks",
        "warehouse show metrics.port_hour",
        option("name", metavar="NAME", help="a table, or a column"), TARGET, JSON,
    ),
    "lineage": (
        "find_commands",
        "show the sources of a table or a column, down to raw files",
        "warehouse lineage metrics.port_hour\n  warehouse lineage metrics.port_hour.in_utilization",
        option("name", metavar="NAME", help="a table, or a column of it"),
        PROJECT,
        TARGET,
        flag("--steps", "of a column: each step, with file and line"),
        JSON,
    ),
    "render": (
        "find_commands",
        "print a model's SELECT with macros expanded, or the code of a Python model",
        "warehouse render metrics.port_hour",
        option("name", metavar="NAME"), PROJECT,
    ),
    "doctor": (
        "doctor_commands",
        "list the files that are read, those that are not and why",
        "warehouse doctor -d ~/downloads/release",
        *DATA,
        TARGET,
        PROJECT,
        flag("--all", "list every file that is not read, not the first 20"),
        flag("--json", "the inventory as JSON, a file an object"),
    ),
    "diff": (
        "history_commands",
        "compare two builds, targets or exports: tables, columns, rows, totals",
        "warehouse diff 7f3a91c2 --where-from\n  warehouse diff old/target new/target --json",
        option(
            "old", metavar="OLD", nargs="?",
            help="a build id or its beginning, a target, TARGET@BUILD, or an export (default the build before)",
        ),
        option("new", metavar="NEW", nargs="?", help="the same (default the published build)"),
        flag("--where-from", "print which file, table or model each change came from"),
        option(
            "-s", "--select", metavar="TABLE", action="append", help="only this table, or a glob of names"
        ),
        option("--rows", metavar="N", type=int, default=3, help="rows to show of each kind of change (default 3)"),
        JSON,
        TARGET,
        *ENGINE,
    ),
    "verify": (
        "history_commands",
        "check for damage, rebuild in a temporary folder, and compare",
        "warehouse verify\n  warehouse verify --hour 2024-05-23T16\n  warehouse verify --reference",
        flag("--reference", "only compare with the published rows of the public hour"),
        flag("--quick", "only check for damage, do not rebuild"),
        option("--hour", metavar="HOUR", help="only the parts of this hour (UTC), as 2024-05-23T16"),
        *DATA,
        TARGET,
        PROJECT,
        *ENGINE,
        WAIT,
        JSON,
    ),
    "builds": (
        "history_commands", "list the builds that the target keeps", "warehouse builds",
        TARGET, JSON,
    ),
    "rollback": (
        "history_commands",
        "publish an earlier build again",
        "warehouse rollback 7f3a91c2",
        option("build", metavar="BUILD", nargs="?", help="its id or the beginning of it (default the build before)"),
        TARGET,
        WAIT,
    ),
    "relocate": (
        "history_commands",
        "make a moved or copied target read its own parts; needs no raw data",
        "warehouse relocate -t /srv/traces",
        TARGET, WAIT,
    ),
    "clean": (
        "history_commands",
        "list what the target no longer needs; with --yes, remove it",
        "warehouse clean --yes",
        KEEP, flag("--yes", "remove it"), TARGET, WAIT, JSON,
    ),
    "export": (
        "publish_commands",
        "write tables as Parquet, CSV, Excel or one DuckDB file, with checksums",
        (
            "warehouse export tables/\n  warehouse export excel/ --format xlsx -s metrics.leaf_hour\n"
            "  warehouse export meaning/ --semantics json"
        ),
        option("directory", metavar="DIR", help="a new folder, or an earlier export, which is replaced"),
        option("tables", metavar="TABLE", nargs="*", help="only these tables, as with -s"),
        TABLES,
        flag("--all", "the staging layer too"),
        option(
            "--format", choices=("parquet", "csv", "xlsx", "duckdb"), action="append",
            help="only this form (default parquet and csv), may be repeated; duckdb: all tables in one file",
        ),
        option(
            "--semantics", choices=("json",),
            help="measures, dimensions, times, units and keys instead of rows",
        ),
        option(
            "--for", dest="simulator", choices=("matrix", "simai", "htsim"),
            help="the traffic from leaf to leaf for a simulator: CSV and NumPy, SimAI (ns-3) or htsim",
        ),
        TARGET,
        *ENGINE,
    ),
    "publish": (
        "publish_commands",
        "copy the changed tables to PostgreSQL, and swap them all at once",
        "warehouse publish postgresql://me@localhost:5432/traces --reader dashboards",
        option(
            "url", metavar="URL", help="postgresql://USER@HOST:PORT/NAME; the password from PGPASSWORD or ~/.pgpass"
        ),
        TABLES,
        option("--reader", metavar="ROLE", action="append", help="a role that may read them, created if missing"),
        option("--schema-prefix", metavar="NAME", default="", help="put before the name of each schema"),
        flag("--dry-run", "print what would be created, replaced and dropped"),
        flag("--verify", "compare the rows on the server by a digest, not only by their count"),
        option(
            "--lock-timeout", metavar="SECONDS", type=float, default=60.0,
            help="how long to wait for locks that readers hold (default 60)",
        ),
        TARGET,
        *ENGINE,
    ),
    "report": (
        "publish_commands",
        "write one HTML page of charts, with their data and SQL; it needs no network",
        "warehouse report report.html",
        option("file", metavar="FILE", help="the HTML file, which is replaced"),
        option("--site", metavar="PLACE", default="", help="folder or address of `docs`, to link tables to"),
        TARGET,
        PROJECT,
        *ENGINE,
    ),
    "docs": (
        "publish_commands",
        "write a site that works from disk: tables, lineage, queries, pages, search",
        "warehouse docs site/",
        option("directory", metavar="DIR", help="a new folder, or an earlier site, which is replaced"),
        TARGET,
        PROJECT,
        *ENGINE,
    ),
    "sample": (
        "start_commands",
        "write a synthetic release with planted truth",
        "warehouse sample data/sample",
        option("directory", metavar="DIR"),
        option("--seed", type=int, default=7, metavar="N", help="another seed, other traffic (default 7)"),
        option("--hours", type=int, metavar="N", help="hours of traffic, 1 to 24 (default 2)"),
        option("--leaves", type=int, metavar="N", help="GPU leaves: 8, 12, 16 or 20 (default 8)"),
        option("--servers", type=int, metavar="N", help="servers a group of four leaves, 4 to 50 (default 4)"),
        flag("--full", "a full-size hour: 24 switches, 2,160 files, 1.5 GB"),
        flag("--clean", "plant no faults; what is odd in any release stays"),
    ),
    "demo": (
        "start_commands",
        "write a sample, build it, and query it",
        "warehouse demo",
        option("directory", metavar="DIR", nargs="?", default="data/sample", help="default data/sample"),
        TARGET,
    ),
    "init": (
        "start_commands",
        "start a folder with models of your own on top of the shipped ones",
        "warehouse init study/ && cd study && warehouse build\n  warehouse init study/ -d ~/downloads/release",
        option("directory", metavar="DIR", help="a new folder, or one without warehouse.toml"),
        option("-d", "--data", metavar="DIR", action="append", help="a release (default a small sample)"),
        option("--trace", metavar="FOLDER", help="a job trace as CSV files: write a first mapping of it"),
    ),
    "mcp": (
        "agent_commands",
        "serve the warehouse to an agent over stdio (Model Context Protocol); read-only",
        "warehouse mcp -t build/warehouse",
        TARGET,
        PROJECT,
        *DATA,
        option("--timeout", metavar="SECONDS", type=seconds, default=30.0, help="time of a query (default 30)"),
        option("--memory", metavar="SIZE", default="1GB", help="memory of a query (default 1GB)"),
    ),
    "skill": (
        "agent_commands", "print a SKILL.md that says to an agent how to ask", "warehouse skill > SKILL.md",
    ),
}  # fmt: skip
"""Of each command: the module of this package that has its function, its help, its example, and its options."""

_MISTAKES = (
    (r"invalid choice: (.*) \(choose from (.*)\)", r"is \1, not one of \2"),
    (r"invalid seconds value: (.*)", r"is \1, not a number of seconds above 0"),
    (r"invalid \w+ value: (.*)", r"is \1, not a number"),
    (r"expected one argument", "has no value"),
    (r"the following arguments are required: (.*)", r"missing: \1"),
    (r"^argument (?:-\w/)?(\S+):", r"\1"),
    (r"^COMMAND is '(.*)', not one of .*", r"no command \1"),
)
"""Messages of argparse, and the sentences that take their place."""


# Without a width, a formatter asks the terminal for it, which imports much, for each option.
IN_80_COLUMNS = partial(argparse.RawDescriptionHelpFormatter, width=80)


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one sentence, and whose options are written in full."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, formatter_class=IN_80_COLUMNS, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise SettingsError with the nearest option or value."""
        wrong = re.search(r"(?:choice: '|arguments: )([^'= ]+)", message)
        known = re.findall(r"[\w-]+", f"{self.format_usage()} {message.partition('choose from')[2]}")
        for pattern, sentence in _MISTAKES:
            message = re.sub(pattern, sentence, message)
        hint = nearest_hint(wrong[1], known) if wrong else None
        raise SettingsError(message, hint=hint or f"{self.prog} --help")


def parser(word: str = "") -> argparse.ArgumentParser:
    """Return the parser of all commands or, for the first word of a command line, the part that it needs."""
    top = Parser(
        prog="warehouse",
        description="A SQL warehouse for public traces of GPU clusters that train language models.",
        epilog=EXAMPLES,
    )
    top.add_argument("--version", action="version", version=f"warehouse {__version__}")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True, prog="warehouse")
    for name in [word] if word in COMMANDS else () if word == "--version" else COMMANDS:
        _, about, example, *options = COMMANDS[name]
        described = f"{about[0].upper()}{about[1:]}."
        one = commands.add_parser(name, help=about, description=described, epilog=f"example:\n  {example}")
        for names, given in options:
            one.add_argument(*names, **given)
        one.set_defaults(parser=one)
    return top


SQL_OPTIONS = (
    *(name for names, _ in COMMANDS["sql"][3:] for name in names if name.startswith("-")), "--help", "-h",
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
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, value = argument.partition("=")
        # An option of the command wins over a parameter of that name.
        if not argument.startswith("--") or name in SQL_OPTIONS:
            changed.append(argument)
            continue
        given = value if equals else next(waiting, None)
        if given is None:
            raise SettingsError(f"{argument} has no value", hint=f"give {argument} VALUE")
        changed += ["--param", f"{name.removeprefix('--')}={given}"]
    return changed


def settings(given: argparse.Namespace) -> Settings:
    """Return the settings of a command."""
    return settle({key: getattr(given, key, None) for key in KEYS})


def tell(given: argparse.Namespace, values: Callable[[], object], lines: Callable[[], Iterable[str]]) -> None:
    """Print the result of a command: its values with --json, else its lines, wrapped on a terminal."""
    if given.json:
        say_json(values())
    else:
        say(*lines())


def say_json(values: object) -> None:
    """Print values as JSON."""
    print(json.dumps(values, indent=1, ensure_ascii=False, default=str), flush=True)


def say(*lines: str) -> None:
    """Print lines, wrapped on a terminal."""
    from warehouse.reader.text_table import for_terminal

    sys.stdout.writelines(for_terminal(lines, sys.stdout))
