"""Command `warehouse doctor`: files found and skipped in the data folders, with reasons; state of the target."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from warehouse.base.next_step import for_target
from warehouse.base.settings import Settings
from warehouse.base.text import on_one_line, plural, size
from warehouse.cli.options import Commands, add_data, add_target, command, settings
from warehouse.formats.base import IGNORED, PARTIAL, READ, SKIPPED, UNKNOWN, RawFile

_SHOWN = 20
_NAMED = 4
"""Up to this many clusters of a format are named; more are only counted."""


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(
        commands, "doctor", "list the files that are read, those that are not and why",
        "warehouse doctor -d ~/downloads/release",
    )  # fmt: skip
    add_data(one)
    add_target(one)
    one.add_argument("--all", action="store_true", help="list every file that is not read, not the first 20")
    one.add_argument("--json", action="store_true", help="the inventory as JSON, a file an object")
    one.set_defaults(run=run_doctor)


def run_doctor(given: argparse.Namespace) -> int:
    """Scan the data folders and print what was found."""
    from warehouse.history.doctor import examine, never_skipped, remarks
    from warehouse.reader.text_table import for_terminal

    settled = settings(given)
    found = examine(settled)
    if given.json:
        print(json.dumps([_as_json(file) for file in found.files], indent=1, default=str))  # noqa: T201
        return 0
    lines = [
        *_hour_lines(found.files),
        *_format_lines(found.files),
        *_remarks(remarks(found.files, settled), given.all),
    ]
    lines += _not_read(found.files, given.all)
    if not found.files:
        lines.append(f"no files in {', '.join(str(root) for root in found.roots)}")
    for name, why in never_skipped(settled):
        lines.append(f"{name} is never skipped: {why}")
    for line in [*lines, *_target(settled)]:
        sys.stdout.writelines(for_terminal([on_one_line(line)], sys.stdout))
    return 0


def _hour_lines(files: Iterable[RawFile]) -> list[str]:
    """Return a paragraph per hour, with UTC and local hour side by side."""
    hours: dict[tuple[str, object], list[RawFile]] = {}
    for file in files:
        if file.hour_utc is not None:
            hours.setdefault((file.cluster or "", file.hour_utc), []).append(file)
    lines = []
    for (cluster, _), inside in sorted(hours.items(), key=lambda item: str(item[0])):
        hour = inside[0].hour_utc
        assert hour is not None
        local = hour + timedelta(hours=8)
        lines.append(f"{cluster}  {hour:%Y-%m-%d %H:%M} UTC  ({local:%Y-%m-%d %H:%M} UTC+8)")
        for name in sorted({file.format or "" for file in inside}):
            mine = [file for file in inside if file.format == name]
            read = sum(file.is_read for file in mine)
            switches = {file.switch for file in mine if file.switch}
            over = f" of {plural(len(switches), 'switch').replace('switchs', 'switches')}" if switches else ""
            lines.append(f"  {name}: {read:,} of {plural(len(mine), 'file')} read{over}")
            remarks = [f"    {file.path.name}: {file.reason}" for file in mine if file.status == READ and file.reason]
            lines += remarks[:_SHOWN]
    return lines


def _format_lines(files: Iterable[RawFile]) -> list[str]:
    """Return a line per format, with the clusters that have files of it."""
    clusters: dict[str, Counter[str]] = {}
    for file in files:
        if file.is_read and file.hour_utc is None:
            clusters.setdefault(file.format or "", Counter())[file.cluster or ""] += 1
    return [
        f"{name}: {plural(sum(counts.values()), 'file')} read of {_named(sorted(counts))}"
        for name, counts in sorted(clusters.items())
    ]


def _named(clusters: list[str]) -> str:
    if len(clusters) <= _NAMED:
        return ", ".join(clusters)
    return f"{len(clusters)} clusters, {clusters[0]} to {clusters[-1]}"


def _remarks(found: list[tuple[RawFile, str]], everything: bool) -> list[str]:
    """Return a paragraph per remark, with its files."""
    files: dict[str, list[str]] = {}
    for file, remark in found:
        files.setdefault(remark, []).append(file.release_path)
    lines = []
    for remark, paths in sorted(files.items()):
        shown = paths if everything else paths[:_SHOWN]
        lines += [f"{plural(len(paths), 'file')} {remark}", *(f"  {path}" for path in shown)]
        if len(paths) > len(shown):
            lines.append(f"  … {len(paths) - len(shown):,} more: --all lists them")
    return lines


def _not_read(files: Iterable[RawFile], everything: bool) -> list[str]:
    lines = []
    for status, word in (
        (PARTIAL, "read in part"),
        (SKIPPED, "skipped"),
        (UNKNOWN, "not recognised"),
        (IGNORED, "ignored"),
    ):
        selected = [file for file in files if file.status == status]
        if not selected:
            continue
        if status == IGNORED and not everything:
            lines.append(f"{plural(len(selected), 'file')} {word} · --all lists them")
            reasons = Counter(file.reason for file in selected).most_common()
            lines += [f"  {count:,} × {reason}" for reason, count in reasons[:_SHOWN]]
            lines += [f"  … {len(reasons) - _SHOWN:,} more reasons"] if len(reasons) > _SHOWN else []
            continue
        lines.append(f"{plural(len(selected), 'file')} {word}")
        shown = selected if everything else selected[:_SHOWN]
        for file in shown:
            lines += [f"  {file.release_path}", f"    {file.reason}"]
        if len(selected) > len(shown):
            lines.append(f"  … {len(selected) - len(shown):,} more: --all lists them")
    if any(file.cluster == "unknown" and file.is_read for file in files):
        lines.append("cluster `unknown`: no folder above these files holds trafficinfo/, taskinfo/ or a workbook;")
        lines.append("  --cluster NAME names it")
    return lines


def _target(settled: Settings) -> list[str]:
    from warehouse.store.layout import PUBLISHED
    from warehouse.store.manifest import last_manifest

    target = settled.target
    last = last_manifest(target) if target.is_dir() else None
    if last is None:
        given = "".join(f" -d {shlex.quote(str(folder))}" for folder in settled.data)
        return [f"target {target}: nothing built yet · {for_target(f'warehouse build{given}', target)}"]
    parts = sum(path.stat().st_size for path in (target / "parts").rglob("*.parquet"))
    file = target / PUBLISHED
    state = f"{size(file.stat().st_size)} in {file.name}" if file.is_file() else f"{file.name} is missing: build again"
    lines = [
        f"target {target}: build {last.build} of {last.published_utc} UTC, {last.engine}",
        f"  {plural(len(last.parts), 'part')}, {size(parts)} in parts/, {state}",
    ]
    lines += [f"  {one}" for one in _target_warnings(target)]
    rejected = sum(int(str(part["rows"])) for part in last.parts if part["model"] == "staging.rejected_rows")
    if rejected:
        listed = for_target("warehouse sql 'FROM staging.rejected_rows'", target)
        lines.append(f"  {plural(rejected, 'line')} could not be read · {listed}")
    return lines


def _target_warnings(target: Path) -> list[str]:
    """Return a line if the target was moved or cannot be opened, and the warnings of its checks."""
    from contextlib import closing

    from warehouse.base.errors import QueryError
    from warehouse.reader.check_results import warnings
    from warehouse.reader.connection import connect
    from warehouse.reader.text_table import WIDTH, escape, wrapped

    moved: list[str] = []
    try:
        with closing(connect(target, tell_moved=moved.append)) as connection:
            warned = [f"warn {escape(one)}" for one in warnings(connection)]
            return [*moved, *(line.rstrip() for one in warned for line in wrapped(one, WIDTH - 2))]
    except QueryError as error:
        return [f"{error.message} · {error.hint}" if error.hint else error.message]


def _as_json(file: RawFile) -> dict[str, object]:
    columns = ("release_path", "bytes", "format", "cluster", "hour_utc", "switch", "port", "file_group")
    keep = (*columns, "status", "reason")
    return {"path": str(file.path), **{name: getattr(file, name) for name in keep}}
