"""Options that several commands share, and the settings that follow from them."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

from warehouse.base.settings import KEYS, Settings, settle

Commands = Any  # argparse._SubParsersAction has no public name


class Help(argparse.RawDescriptionHelpFormatter):
    """Help at one width: argparse would load half of what a start costs to ask the terminal for its own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Examples keep their lines; a sentence is broken into some."""
        kind = argparse.RawDescriptionHelpFormatter if "\n" in text else argparse.HelpFormatter
        return kind._fill_text(self, text, width, indent)  # noqa: SLF001 - argparse has no other way


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest option where one is misspelled."""

    said = ""
    """The command, as far as it is known."""

    def error(self, message: str) -> NoReturn:
        """End with the usage and the sentence."""
        from warehouse.base.errors import nearest_hint

        wrong = message.partition("unrecognized arguments: ")[2].split()
        groups = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001
        known = [
            option
            for group in groups
            if self.said
            for option in group.choices[self.said]._option_string_actions  # noqa: SLF001
        ]
        hints = [hint for one in wrong if one.startswith("-") and (hint := nearest_hint(one.partition("=")[0], known))]
        super().error("\n       ".join([message, *hints]))


def command(commands: Commands, name: str, about: str, example: str, **more: object) -> argparse.ArgumentParser:
    """Add a command: its sentence, its example, its options in `more`."""
    return commands.add_parser(  # type: ignore[no-any-return]
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=Help,
        **more,
    )


def add_target(one: argparse.ArgumentParser) -> None:
    """`--target`."""
    one.add_argument("-t", "--target", metavar="DIR", help="the warehouse's folder (default build/warehouse)")


def add_data(one: argparse.ArgumentParser) -> None:
    """`--data`, `--follow-links`, `--cluster`, `--max-rejected`."""
    one.add_argument(
        "-d",
        "--data",
        metavar="DIR",
        action="append",
        help="a release, a part of it, or its archive; may be repeated",
    )
    one.add_argument(
        "--follow-links", action="store_true", default=None, help="follow links that lead out of the data folders"
    )
    one.add_argument("--cluster", metavar="NAME", help="name for files below no cluster's folder")
    one.add_argument(
        "--max-rejected", metavar="SHARE", help="rows of a job file that may be unreadable (default 1%% of them)"
    )


def add_project(one: argparse.ArgumentParser) -> None:
    """`--project`."""
    one.add_argument("--project", metavar="DIR", help="a folder with models of your own, see `warehouse init`")


def add_engine(one: argparse.ArgumentParser) -> None:
    """`--threads`, `--memory`."""
    one.add_argument("--threads", metavar="N", help="cores to use (default all)")
    one.add_argument("--memory", metavar="SIZE", help="memory that the engine may use (default 3GB)")


def settings(given: argparse.Namespace) -> Settings:
    """Return the settings of a command."""
    return settings_of({key: getattr(given, key, None) for key in KEYS})


def settings_of(flags: Mapping[str, object]) -> Settings:
    """Return the settings that follow from flags; warnings go to stderr, a sentence each."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        settled = settle(flags)
    for one in told:
        sys.stderr.write(f"warning: {one.message}\n")
    return settled
