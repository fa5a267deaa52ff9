"""Options shared by several commands, and the settings derived from them."""

from __future__ import annotations

import argparse
from typing import Any

from warehouse.base.settings import KEYS, Settings, settle

Commands = Any  # argparse._SubParsersAction has no public name


def in_80_columns(prog: str) -> argparse.HelpFormatter:
    """Return a formatter that does not ask the terminal for its width: that imports much, for each option."""
    return argparse.RawDescriptionHelpFormatter(prog, width=80)


def command(commands: Commands, name: str, about: str, example: str) -> argparse.ArgumentParser:
    """Add a command with its help and its example."""
    one: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=in_80_columns,
    )
    one.set_defaults(parser=one)
    return one


def add_target(one: argparse.ArgumentParser) -> None:
    """Add `--target`."""
    one.add_argument("-t", "--target", metavar="DIR", help="the warehouse's folder (default build/warehouse)")


def add_data(one: argparse.ArgumentParser) -> None:
    """Add `--data`, `--follow-links`, `--cluster`, `--max-rejected`."""
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
    """Add `--project`."""
    one.add_argument("--project", metavar="DIR", help="a folder with models of your own, see `warehouse init`")


def add_engine(one: argparse.ArgumentParser) -> None:
    """Add `--threads`, `--memory`."""
    one.add_argument("--threads", metavar="N", help="cores to use (default all)")
    one.add_argument("--memory", metavar="SIZE", help="memory that the engine may use (default 3GB)")


def settings(given: argparse.Namespace) -> Settings:
    """Return the settings of a command."""
    return settle({key: getattr(given, key, None) for key in KEYS})
