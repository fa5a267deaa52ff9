"""Commands `warehouse export`, `publish`, `report`, `docs`: output for readers elsewhere."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warehouse.base.errors import SettingsError
from warehouse.base.text import plural, size
from warehouse.cli.commands import say, settings
from warehouse.runner.reporter import Bar


def run_export(given: argparse.Namespace) -> None:
    """Export and print what was written."""
    from warehouse.publish.descriptions import DATAPACKAGE
    from warehouse.publish.export import FORMATS, export
    from warehouse.publish.simulators import export_matrix
    from warehouse.store.manifest import MANIFEST

    settled, directory = settings(given), Path(given.directory)
    # A forgotten folder would otherwise make a folder named like the table, with all tables.
    if re.fullmatch(r"(metrics|topology|staging|reference|raw)\.\w+", directory.name) and not directory.exists():
        raise SettingsError(f"{directory} is a table, and the folder to write is missing", hint="warehouse export DIR")
    tables = [*(given.select or ()), *given.tables] or None
    if given.simulator:
        if tables or given.all or given.format or given.semantics:
            raise SettingsError(
                "--for writes the leaf matrix alone", hint=f"warehouse export DIR --for {given.simulator}"
            )
        folder = export_matrix(settled.target, directory, given.simulator)
    else:
        with Bar(sys.stderr, "Export", "tables") as bar:
            folder = export(
                settled.target,
                directory,
                tables=tables,
                everything=given.all,
                formats=given.format or (() if given.semantics else FORMATS),
                semantics=given.semantics is not None,
                memory=given.memory,
                bar=bar,
            )
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    data = {file["path"] for file in manifest["files"]} - {DATAPACKAGE}
    about = sorted(path.name for path in folder.iterdir() if path.name not in data)
    say(f"Wrote  {plural(len(data), 'file')} of data to {given.directory}, and {', '.join(about)}")
    _print_citation(settled.target, manifest)
    say(*(f"       not {one['table']}.{one['format']}: {one['reason']}" for one in manifest["left_out"]))


def _print_citation(target: Path, manifest: Mapping[str, Any]) -> None:
    """Print how to cite the exported tables: build, tables, and the traces that they are from."""
    from warehouse.reader.citations import source_lines
    from warehouse.reader.connection import connect

    tables = list(dict.fromkeys(file["table"] for file in manifest["files"] if file["table"]))
    if not tables:
        return
    named = f"table {tables[0]}" if len(tables) == 1 else f"{len(tables)} tables"
    with connect(target) as connection:
        sources = source_lines(connection, tables)
    say(f"Cite   warehouse build {manifest['build']}, {named}", *(f"       {line}" for line in sources))


def run_publish(given: argparse.Namespace) -> None:
    """Publish and print what was sent."""
    from warehouse.publish.postgres.publisher import publish

    with Bar(sys.stderr, "Publish", "tables") as bar:
        result = publish(
            settings(given).target,
            given.url,
            tables=given.select,
            readers=given.reader or (),
            schema_prefix=given.schema_prefix,
            dry_run=given.dry_run,
            verify=given.verify,
            lock_timeout=given.lock_timeout,
            memory=given.memory,
            warn=lambda what: bar.print(f"lost   {what}"),
            bar=bar,
        )
    kept = sum(not table.rows_of for table in result.changed) - len(result.sent)
    text = f"{plural(len(result.sent), 'table')} {'to send' if given.dry_run else 'sent'}"
    text += f", {kept} there already" if kept else ""
    rest = f", {len(result.unchanged)} unchanged" if result.unchanged else ""
    dropped = f", {len(result.gone)} {'to drop' if given.dry_run else 'dropped'}" if result.gone else ""
    if given.dry_run:
        say(*result.actions(), f"Would publish  build {result.build[:8]}: {text}{rest}{dropped}")
    else:
        say(
            f"Published  build {result.build[:8]}: {text}{rest}{dropped}",
            "       Next time only what changed is sent; --verify compares the rows that are there",
        )


def run_report(given: argparse.Namespace) -> None:
    """Write the report; print its size and what it lacks."""
    from warehouse.project.project import Project
    from warehouse.report.report_file import write_report

    settled = settings(given)
    with Bar(sys.stderr, "Report", "tables and figures") as bar:
        made = write_report(
            settled.target,
            Path(given.file),
            Project.open(settled.project).report_folders,
            site=given.site,
            memory=settled.memory,
            bar=bar,
        )
    lacks = f", {made.without} without data" if made.without else ""
    say(
        f"Wrote  {given.file}: {plural(made.figures, 'figure')}{lacks}, {size(made.bytes)}",
        "       Open it in a browser, or send it: it needs no network",
    )


def run_docs(given: argparse.Namespace) -> None:
    """Write the site and print where to begin."""
    from warehouse.project.project import Project
    from warehouse.site.site_folder import write_docs

    settled = settings(given)
    project, place = Project.open(settled.project), Path(given.directory)
    with Bar(sys.stderr, "Docs", "models") as bar:
        made = write_docs(place, project, settled.target, memory=settled.memory, threads=settled.threads, bar=bar)
    of = f"build {made.build[:8]}" if made.build else f"the models alone, as no warehouse is in {settled.target}"
    say(f"Wrote  {made.pages} pages on {of}, {size(made.bytes)}")
    if made.unknown:
        without = f"{plural(len(made.unknown), 'table')} of the build without a page: {made.unknown[0]}"
        say(f"       {without}; its model is in another project (--project DIR)")
    say(f"       Open {place / 'index.html'}")
