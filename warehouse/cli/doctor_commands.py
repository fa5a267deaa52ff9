"""Command `warehouse doctor`: files found and skipped in the data folders, with reasons; state of the target."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from warehouse.base.settings import Settings
from warehouse.base.text import few, grouped, on_one_line, plural
from warehouse.cli.options import DATA, PROJECT, TARGET, command, flag, settings, tell
from warehouse.formats.base import IGNORED, PARTIAL, READ, SKIPPED, UNKNOWN, Inventory, RawFile

_SHOWN = 20
_NOT_READ = {PARTIAL: "read in part", SKIPPED: "skipped", UNKNOWN: "not recognised", IGNORED: "ignored"}
_FACTS = (
    "release_path", "bytes", "format", "cluster", "hour_utc", "switch", "port", "file_group", "status", "reason",
)  # fmt: skip


@command(
    "doctor",
    "list the files that are read, those that are not and why",
    "warehouse doctor -d ~/downloads/release",
    *DATA,
    TARGET,
    PROJECT,
    flag("--all", "list every file that is not read, not the first 20"),
    flag("--json", "the inventory as JSON, a file an object"),
)
def run_doctor(given: argparse.Namespace) -> int:
    """Scan the data folders and print what was found."""
    from warehouse.history.doctor import examine

    settled = settings(given)
    found = examine(settled)
    tell(
        given,
        lambda: [{"path": file.path} | {name: getattr(file, name) for name in _FACTS} for file in found.files],
        lambda: map(on_one_line, _lines(found, settled, None if given.all else _SHOWN)),
    )
    return 0


def _lines(found: Inventory, settled: Settings, most: int | None) -> Iterator[str]:
    """Yield the lines of a diagnosis, with at most so many files of a kind."""
    from warehouse.history.doctor import never_skipped, plug_ins, remarks

    yield from _hour_lines(found.files)
    yield from _format_lines(found.files)
    remarked = grouped((remark, f"  {file.release_path}") for file, remark in remarks(found.files, settled))
    for remark, paths in sorted(remarked.items()):
        yield f"{plural(len(paths), 'file')} {remark}"
        yield from paths[:most] + _more(len(paths), most)
    yield from _not_read(found.files, most)
    if not found.files:
        yield f"no files in {', '.join(str(root) for root in found.roots)}"
    for name, why in never_skipped(settled):
        yield f"{name} is never skipped: {why}"
    yield from plug_ins(settled)
    yield from _target(settled.target)


def _more(count: int, most: int | None) -> list[str]:
    """Return a line with the number of items that are not shown."""
    return [f"  … {count - most:,} more: --all lists them"] if most is not None and count > most else []


def _hour_lines(files: Iterable[RawFile]) -> Iterator[str]:
    """Yield a paragraph per hour, with UTC and local hour side by side."""
    hours = grouped(((file.cluster or "", hour), file) for file in files if (hour := file.hour_utc))
    for (cluster, hour), inside in sorted(hours.items()):
        yield f"{cluster}  {hour:%Y-%m-%d %H:%M} UTC  ({hour + timedelta(hours=8):%Y-%m-%d %H:%M} UTC+8)"
        for name, mine in sorted(grouped((file.format or "", file) for file in inside).items()):
            read, switches = sum(file.is_read for file in mine), len({file.switch for file in mine if file.switch})
            over = f" of {switches:,} switch{'' if switches == 1 else 'es'}" if switches else ""
            yield f"  {name}: {read:,} of {plural(len(mine), 'file')} read{over}"
            remarks = [f"    {file.path.name}: {file.reason}" for file in mine if file.status == READ and file.reason]
            yield from remarks[:_SHOWN]


def _format_lines(files: Iterable[RawFile]) -> Iterator[str]:
    """Yield a line per format, with the clusters that have files of it."""
    read = grouped((file.format or "", file.cluster or "") for file in files if file.is_read and file.hour_utc is None)
    for name, clusters in sorted(read.items()):
        yield f"{name}: {plural(len(clusters), 'file')} read of {few(sorted(set(clusters)))}"


def _not_read(files: Iterable[RawFile], most: int | None) -> Iterator[str]:
    """Yield a paragraph per status, with its files and their reasons; ignored files are counted."""
    for status, word in _NOT_READ.items():
        selected = [file for file in files if file.status == status]
        if not selected:
            continue
        counted = status == IGNORED and most is not None
        yield f"{plural(len(selected), 'file')} {word}{' · --all lists them' if counted else ''}"
        reasons = Counter(file.reason for file in selected).most_common()
        shown = [[f"  {count:,} × {reason}"] for reason, count in reasons]
        if not counted:
            shown = [[f"  {file.release_path}", f"    {file.reason}"] for file in selected]
        for lines in shown[:most]:
            yield from lines
        yield from _more(len(shown), most)
    if any(file.cluster == "unknown" and file.is_read for file in files):
        yield "cluster `unknown`: no folder above these files holds trafficinfo/, taskinfo/ or a workbook;"
        yield "  --cluster NAME names it"


def _target(target: Path) -> Iterator[str]:
    """Yield the state of the target, or why it cannot be opened."""
    from warehouse.base.errors import QueryError
    from warehouse.cli.state import built

    try:
        yield from built(target)
    except QueryError as error:
        yield " · ".join(filter(None, (error.message, error.hint)))
