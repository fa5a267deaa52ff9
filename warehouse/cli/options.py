"""Options shared by several commands, and the settings derived from them."""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import Any, NoReturn

from warehouse.base.settings import KEYS, Settings, settle

Commands = Any  # argparse._SubParsersAction has no public name
MORE = "more options"
"""Group of rarely used options: `--help` names them, `--help all` explains them."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help formatter with a fixed width.

    argparse would import half of a start's modules to ask the terminal for its width.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap sentences, but keep the lines of examples."""
        kind = argparse.RawDescriptionHelpFormatter if "\n" in text else argparse.HelpFormatter
        return kind._fill_text(self, text, width, indent)  # noqa: SLF001 - argparse has no other way

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Return an option with its value once: `-t, --target DIR`."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _HelpAction(argparse.Action):
    """Option that prints the help on one screen; `--help all` prints all of it."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> NoReturn:
        assert isinstance(parser, Parser)
        sys.stdout.write(parser.help_text(everything=given[1] == "all"))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Parser with help that fits a screen and suggestions for misspelled options."""

    command = ""
    """Command, as far as it is known."""
    short = ""
    """Text in the help instead of a list of commands."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more, add_help=False)
        self.add_argument("-h", "--help", nargs="?", action=_HelpAction, help=argparse.SUPPRESS)

    def format_help(self) -> str:
        """Return the help that fits a screen."""
        return self.help_text()

    def help_text(self, *, everything: bool = False) -> str:
        """Return purpose, example and options of the command; rare options only by name unless `everything` is set."""
        form = self._get_formatter()
        form.add_text(self.description)
        form.add_text(self.epilog)
        first, second, *others = self._action_groups
        named = "arguments and options" if any(map(_is_shown, first._group_actions)) else "options"  # noqa: SLF001
        groups = [(named, first._group_actions + second._group_actions)]  # noqa: SLF001
        groups += [(str(group.title), group._group_actions) for group in others]  # noqa: SLF001
        for title, actions in groups:
            shown = list(filter(_is_shown, actions))
            if shown and (everything or title != MORE) and (everything or not self.short):
                form.start_section(title)
                form.add_arguments(shown)
                form.end_section()
            elif shown and title == MORE:
                names = ", ".join(map(_named, shown))
                text = textwrap.fill(f"{MORE} (--help\xa0all explains them): {names}", 80, break_on_hyphens=False)
                form.add_text(text.replace("\xa0", " ") + "\n")
        form.add_text(self.short if not everything else None)
        return form.format_help()

    def format_usage(self) -> str:
        """Return one line: the command, its required arguments, and `[options]`."""
        needed = [f"[{one.metavar}]" if one.nargs in ("?", "*") else str(one.metavar)
                  for one in self._actions if not one.option_strings]  # fmt: skip
        return f"usage: {' '.join([self.prog, *needed, '[options]'])}\n"

    def error(self, message: str) -> NoReturn:
        """Exit with the usage and the message."""
        from warehouse.base.errors import nearest_hint

        wrong = message.partition("unrecognized arguments: ")[2].split()
        groups = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001
        known = [
            option
            for group in groups
            if self.command
            for option in group.choices[self.command]._option_string_actions  # noqa: SLF001
        ]
        hints = [hint for one in wrong if one.startswith("-") and (hint := nearest_hint(one.partition("=")[0], known))]
        super().error("\n       ".join([message, *hints]))


def _is_shown(action: argparse.Action) -> bool:
    return action.help != argparse.SUPPRESS


def _named(action: argparse.Action) -> str:
    """Return an option with its value's placeholder, joined by a non-breaking space."""
    value = [] if action.nargs == 0 else [f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar)]
    return "\xa0".join([action.option_strings[-1], *value])


def more(one: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of rarely used options."""
    found = [group for group in one._action_groups if group.title == MORE]  # noqa: SLF001
    return found[0] if found else one.add_argument_group(MORE)


def command(commands: Commands, name: str, about: str, example: str, **given: object) -> argparse.ArgumentParser:
    """Add a command with its help, its example and further arguments of argparse."""
    return commands.add_parser(  # type: ignore[no-any-return]
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=Help,
        **given,
    )


def add_target(one: argparse.ArgumentParser) -> None:
    """Add `--target`."""
    one.add_argument("-t", "--target", metavar="DIR", help="the warehouse's folder (default build/warehouse)")


def add_data(one: argparse.ArgumentParser, *, rare: bool = False) -> None:
    """Add `--data`, `--follow-links`, `--cluster`, `--max-rejected`."""
    (more(one) if rare else one).add_argument(
        "-d",
        "--data",
        metavar="DIR",
        action="append",
        help="a release, a part of it, or its archive; may be repeated",
    )
    more(one).add_argument(
        "--follow-links", action="store_true", default=None, help="follow links that lead out of the data folders"
    )
    more(one).add_argument("--cluster", metavar="NAME", help="name for files below no cluster's folder")
    more(one).add_argument(
        "--max-rejected", metavar="SHARE", help="rows of a job file that may be unreadable (default 1%% of them)"
    )


def add_project(one: argparse.ArgumentParser) -> None:
    """Add `--project`."""
    more(one).add_argument("--project", metavar="DIR", help="a folder with models of your own, see `warehouse init`")


def add_engine(one: argparse.ArgumentParser) -> None:
    """Add `--threads`, `--memory`."""
    more(one).add_argument("--threads", metavar="N", help="cores to use (default all)")
    more(one).add_argument("--memory", metavar="SIZE", help="memory that the engine may use (default 3GB)")


def settings(given: argparse.Namespace) -> Settings:
    """Return the settings of a command."""
    return settle({key: getattr(given, key, None) for key in KEYS})
