"""Commands `warehouse diff`, `verify`, `builds`, `rollback`, `relocate`, `clean`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warehouse.base.settings import KEPT_BUILDS
from warehouse.base.text import for_target, grouped, plural, size
from warehouse.cli.commands import say, say_json, settings, tell
from warehouse.history.builds import builds, find_build, relocate, rollback
from warehouse.history.clean import Item, clean
from warehouse.history.diff import as_json, as_lines, diff, lines_of, paragraphs
from warehouse.history.sides import find, side_of
from warehouse.history.verify import DIFFERS, NOT_COMPARABLE, SAME, Verdict, compare_reference, verify
from warehouse.reader.result import Column
from warehouse.reader.text_table import print_rows
from warehouse.runner.reporter import Bar, Reporter

_SHOWN = 10


def run_diff(given: argparse.Namespace) -> int:
    """Compare two builds; return 1 if anything differs."""
    settled = settings(given)
    target = settled.target
    old = find(given.old, target) if given.old else side_of(target, find_build(target))
    new = find(given.new or str(target), target)
    with Bar(sys.stderr, "Diff", "reading both") as bar:
        found = diff(
            old,
            new,
            examples=max(0, given.rows),
            where_from=given.where_from,
            select=given.select or ("*",),
            memory=settled.memory,
            threads=settled.threads,
            bar=bar,
        )
    tell(given, lambda: as_json(found), lambda: as_lines(found))
    return 1 if found.differing else 0


def run_verify(given: argparse.Namespace) -> int:
    """Check the parts, rebuild and compare; return 1 if anything is damaged or differs."""
    if given.reference:
        return _run_reference(given)
    settled = settings(given)
    with Bar(sys.stderr, "Verify") as bar:
        found = verify(
            settled,
            data=[Path(folder) for folder in given.data or ()],
            quick=given.quick,
            hour=given.hour,
            wait=given.wait,
            say=lambda text: None if given.json else bar.print(f"Again  {text}"),
            reporter=Reporter(bar=bar),
        )
    tell(given, lambda: _verdict_json(found), lambda: _verdict(found, settled.target))
    return 0 if found.is_good else 1


def _run_reference(given: argparse.Namespace) -> int:
    """Compare the build with the rows of the public hour; return 1 if one differs or none is comparable."""
    found = compare_reference(settings(given).target)
    counts = Counter(one["verdict"] for one in found)
    total = ", ".join(f"{count} {name}" for name, count in counts.items())
    tell(given, lambda: found, lambda: [*_reference_lines(found), total])
    return 0 if counts[SAME] and not counts[DIFFERS] else 1


def _reference_lines(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line a query, its differences below it; queries that lack the same files share their lines."""
    for one in found:
        if one["verdict"] != NOT_COMPARABLE:
            yield f"{one['verdict']:<8} {one['name']}: {one['about']}"
            for detail in one["details"]:
                yield from lines_of(f"    {detail}", " " * 15)
    lacking = grouped((one["details"][0], one["name"]) for one in found if one["verdict"] == NOT_COMPARABLE)
    for reason, names in lacking.items():
        yield from lines_of(f"{NOT_COMPARABLE}: {reason}")
        yield from lines_of(f"    {', '.join(names)}")


def _verdict(found: Verdict, target: Path) -> Iterator[str]:
    build = found.manifest.build
    if found.damages:
        yield f"Damaged: {plural(len(found.damages), 'file')} of build {build[:8]}"
        for damage in found.damages[:_SHOWN]:
            yield f"  {damage.path}"
            yield from lines_of(f"    {damage.problem}") + lines_of(f"    {for_target(damage.advice, target)}")
        yield from _more(len(found.damages))
        return
    name = f"hour {found.hour} of build {build[:8]}" if found.hour else f"build {build[:8]}"
    catalog = "" if found.hour else ", and the catalog"
    yield f"Whole  {name}: {plural(found.parts, 'part')}, {size(found.bytes)}{catalog}"
    if not found.seconds:
        return
    if found.manifest.stale:
        stale = ", ".join(found.manifest.stale)
        yield from lines_of(f"       not compared, not selected in that build: {stale}", " " * 7)
    now = f": now build {found.rebuilt[:8]}" if found.rebuilt else ""
    if found.is_good:
        yield f"Same   every part, byte by byte; {found.seconds:.1f} s"
    elif not found.others:
        yield f"Differs in what is promised, not in any part{now}"
    else:
        yield f"Differs in {plural(len(found.others), 'part')}{now}"
        yield from (f"  {other.model} {other.partition}: {other.how}" for other in found.others[:_SHOWN])
        yield from _more(len(found.others))
        shown = found.comparison.tables if found.comparison else ()
        yield from paragraphs([table for table in shown if table.change != "equal" or table.rewritten])


def _more(count: int) -> list[str]:
    return [f"  … {count - _SHOWN:,} more: --json lists them"] if count > _SHOWN else []


def _verdict_json(found: Verdict) -> dict[str, object]:
    return {
        "good": found.is_good,
        "build": found.manifest.build,
        "rebuilt": found.rebuilt,
        "hour": found.hour,
        "parts": found.parts,
        "bytes": found.bytes,
        "stale": list(found.manifest.stale),
        "damages": [vars(damage) for damage in found.damages],
        "others": [other._asdict() for other in found.others],
        "comparison": as_json(found.comparison) if found.comparison else None,
    }


def run_builds(given: argparse.Namespace) -> None:
    """List the kept builds."""
    kept = builds(settings(given).target)
    if given.json:
        say_json([vars(one) for one in kept])
    else:
        kinds = {"build": "text", "published (UTC)": "text", "parts": "number", "size": "number"}
        columns = [Column(name, kind, "") for name, kind in {**kinds, "": "text"}.items()]
        rows = [
            (one.build, one.published_utc, f"{one.parts:,}", size(one.bytes), "published" * one.current) for one in kept
        ]
        print_rows(columns, rows, sys.stdout)


def run_rollback(given: argparse.Namespace) -> None:
    """Publish an earlier build again."""
    target = settings(given).target
    before, now = rollback(target, given.build, wait=given.wait)
    was = f", before it {before[:8]}" if before else ""
    again = for_target("warehouse build publishes again what data and models say now", target)
    say(f"Published  {now.build[:8]}, built {now.published_utc} UTC{was}", f"           {again}")


def run_relocate(given: argparse.Namespace) -> None:
    """Rewrite the catalogs for the folder that they are in now."""
    target = settings(given).target
    build, moved, left = relocate(target, wait=given.wait)
    say(*(f"left   {what}: {why}" for what, why in left.items()))
    if moved:
        places = ", ".join(sorted(set(moved.values())))
        say(f"Moved  {plural(len(moved), 'build')} of {places} to {target.absolute()}")
    else:
        say(f"Nothing to do: build {build[:8]} is of {target.absolute()}")


def run_clean(given: argparse.Namespace) -> None:
    """Print what can be removed; with --yes, remove it."""
    target = settings(given).target
    items, kept = clean(target, given.keep, dry_run=not given.yes, wait=given.wait)
    total = sum(item.bytes for item in items)
    tell(
        given,
        lambda: {
            "removed": given.yes,
            "bytes": total,
            "kept": kept,
            "items": [{**vars(item), "path": item.path.relative_to(target.absolute()).as_posix()} for item in items],
        },
        lambda: _cleaning(items, kept, total, given),
    )


def _cleaning(items: Sequence[Item], builds: Sequence[str], total: int, given: argparse.Namespace) -> Iterator[str]:
    kept = f"{plural(len(builds), 'build')} kept: {', '.join(build[:8] for build in builds)}"
    if not items:
        yield f"Nothing to remove; {kept}"
        return
    yield f"{'Removed' if given.yes else 'Can go '}  {size(total)}; {kept}"
    for kind, sizes in grouped((item.kind, item.bytes) for item in items).items():
        yield f"{plural(len(sizes), kind):>20}, {size(sum(sizes))}"
    if not given.yes:
        with_keep = "" if given.keep == KEPT_BUILDS else f" --keep {given.keep}"
        yield f"Nothing was removed yet: {for_target(f'warehouse clean{with_keep} --yes', settings(given).target)}"
