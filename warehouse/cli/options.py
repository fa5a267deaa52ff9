"""Declaration of commands and their options, and the settings derived from them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, TypeVar

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.settings import KEYS, Settings, settle

Run = TypeVar("Run", bound=Callable[[argparse.Namespace], int])
Option = tuple[tuple[str, ...], dict[str, Any]]
"""Arguments of `add_argument`."""

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


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one sentence, and whose options are written in full."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, formatter_class=_in_80_columns, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise SettingsError with the nearest option or value."""
        wrong = re.search(r"(?:choice: '|arguments: )([^'= ]+)", message)
        known = re.findall(r"[\w-]+", f"{self.format_usage()} {message.partition('choose from')[2]}")
        for pattern, sentence in _MISTAKES:
            message = re.sub(pattern, sentence, message)
        hint = nearest_hint(wrong[1], known) if wrong else None
        raise SettingsError(message, hint=hint or f"{self.prog} --help")


class Command(NamedTuple):
    """Command with its help, its example and its options."""

    function: str
    """Name of the function in its module that runs it."""
    about: str
    example: str
    options: tuple[Option, ...]

    def add(self, commands: Any, name: str, module: ModuleType) -> None:
        """Add the command to the subparsers of a parser; the module has its function."""
        about = self.about[0].upper() + self.about[1:] + "."
        one = commands.add_parser(name, help=self.about, description=about, epilog=f"example:\n  {self.example}")
        for names, given in self.options:
            one.add_argument(*names, **given)
        one.set_defaults(parser=one, run=getattr(module, self.function))


COMMANDS: dict[str, Command] = {}
"""Commands of the modules that are imported."""


def command(name: str, about: str, example: str, *options: Option) -> Callable[[Run], Run]:
    """Return a decorator that makes a function the command of this name."""

    def declare(run: Run) -> Run:
        COMMANDS[name] = Command(run.__name__, about, example, options)
        return run

    return declare


def option(*names: str, **given: Any) -> Option:
    """Return an option or argument, with the arguments of `add_argument`."""
    return names, given


def flag(name: str, about: str | None = None) -> Option:
    """Return an option without a value."""
    return option(name, action="store_true", help=about)


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


def _in_80_columns(prog: str) -> argparse.HelpFormatter:
    """Return a formatter that does not ask the terminal for its width: that imports much, for each option."""
    return argparse.RawDescriptionHelpFormatter(prog, width=80)


def seconds(text: str) -> float:
    """Return a time limit in seconds. Raises ValueError."""
    found = float(text)
    if not 0 < found < float("inf"):
        raise ValueError(text)
    return found


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
