"""`warehouse export`: files for readers."""

from __future__ import annotations

import argparse
from pathlib import Path

from warehouse.cli.options import Commands, add_engine, add_target, command, settings


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(
        commands,
        "export",
        "write tables as Parquet and CSV with a manifest and checksums",
        "warehouse export tables/",
    )
    one.add_argument("directory", metavar="DIR", help="a new folder, or an earlier export, which is replaced")
    one.add_argument("-s", "--select", metavar="TABLE", action="append", help="only this table; may be repeated")
    one.add_argument("--all", action="store_true", help="the staging layer too")
    one.add_argument("--format", choices=("parquet", "csv"), action="append", help="only this form (default both)")
    add_target(one)
    add_engine(one)
    one.set_defaults(run=run_export)


def run_export(given: argparse.Namespace) -> int:
    """Export, and say what was written."""
    from warehouse.report import plural
    from warehouse.serve.export import FORMATS, MANIFEST, export

    settled = settings(given)
    folder = export(
        settled.target,
        Path(given.directory),
        tables=given.select,
        everything=given.all,
        formats=given.format or FORMATS,
        memory=given.memory,
    )
    files = [path for path in folder.rglob("*") if path.suffix in (".parquet", ".csv")]
    print(f"Wrote  {plural(len(files), 'file')} to {given.directory}, listed in {MANIFEST}")  # noqa: T201
    return 0
