"""Commands `warehouse diff`, `verify`, `builds`, `rollback`, `relocate`, `clean`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import SettingsError
from warehouse.base.next_step import for_target
from warehouse.cli.options import Commands, add_data, add_engine, add_project, add_target, command, settings
from warehouse.store.layout import KEPT_BUILDS

if TYPE_CHECKING:
    from warehouse.history.clean import Cleaning
    from warehouse.history.reference import Compared
    from warehouse.history.verify import Verdict

_SHOWN = 10


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(
        commands, "diff", "compare two builds, targets or exports: tables, columns, rows, totals",
        "warehouse diff 7f3a91c2 --where-from\n  warehouse diff old/target new/target --json",
        )  # fmt: skip
    one.add_argument(
        "old", metavar="OLD", nargs="?", help="a build id or its beginning, a target, TARGET@BUILD, or an export"
    )
    one.add_argument("new", metavar="NEW", nargs="?", help="the same (default the published build)")
    one.add_argument("--where-from", action="store_true", help="print which file, table or model each change came from")
    one.add_argument("-s", "--select", metavar="TABLE", action="append", help="only this table, or a glob of names")
    one.add_argument("--rows", metavar="N", type=int, default=3, help="rows to show of each kind of change (default 3)")
    one.add_argument("--json", action="store_true")
    add_target(one)
    add_engine(one)
    one.set_defaults(run=run_diff)

    _add_verify(commands)
    one = command(commands, "builds", "list the builds that the target keeps", "warehouse builds")
    add_target(one)
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_builds)

    one = command(commands, "rollback", "publish an earlier build again", "warehouse rollback 7f3a91c2")
    one.add_argument(
        "build", metavar="BUILD", nargs="?", help="its id or the beginning of it (default the build before)"
    )
    add_target(one)
    _add_wait(one)
    one.set_defaults(run=run_rollback)

    one = command(
        commands,
        "relocate",
        "make a moved or copied target read its own parts; needs no raw data",
        "warehouse relocate -t /srv/traces",
    )
    add_target(one)
    _add_wait(one)
    one.set_defaults(run=run_relocate)

    one = command(
        commands, "clean", "list what the target no longer needs; with --yes, remove it", "warehouse clean --yes"
    )
    one.add_argument(
        "--keep", metavar="N", type=int, default=KEPT_BUILDS, help=f"builds to keep (default {KEPT_BUILDS})"
    )
    one.add_argument("--yes", action="store_true", help="remove it")
    add_target(one)
    _add_wait(one)
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_clean)


def _add_verify(commands: Commands) -> None:
    one = command(
        commands, "verify", "check for damage, rebuild in a temporary folder, and compare",
        "warehouse verify\n  warehouse verify --hour 2024-05-23T16\n  warehouse verify --reference",
        )  # fmt: skip
    one.add_argument("--reference", action="store_true", help="only compare with the published rows of the public hour")
    one.add_argument("--quick", action="store_true", help="only check for damage, do not rebuild")
    one.add_argument("--hour", metavar="HOUR", help="only the parts of this hour (UTC), as 2024-05-23T16")
    add_data(one)
    add_target(one)
    add_project(one)
    add_engine(one)
    _add_wait(one)
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_verify)


def _add_wait(one: argparse.ArgumentParser) -> None:
    one.add_argument("--wait", action="store_true", help="wait for a build of this target to end")


def run_diff(given: argparse.Namespace) -> int:
    """Compare two builds; return 1 if anything differs."""
    from warehouse.history.diff.compare import diff
    from warehouse.history.diff.diff_text import as_json, as_text
    from warehouse.history.diff.sides import find
    from warehouse.runner.reporter import Bar

    settled = settings(given)
    if given.old is None:
        raise _without_old(given, settled.target)
    old, new = find(given.old, settled.target), find(given.new or str(settled.target), settled.target)
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
    print(json.dumps(as_json(found), indent=1, ensure_ascii=False) if given.json else as_text(found))  # noqa: T201
    return 0 if found.is_equal else 1


def _without_old(given: argparse.Namespace, target: Path) -> SettingsError:
    """Print the builds to choose from; return the error that no build is named."""
    from warehouse.history.builds import builds, print_builds

    kept = builds(target)
    if not given.json:
        print_builds(kept, sys.stdout)
    other = next((one.build[:8] for one in kept if not one.current), None)
    hint = f"warehouse diff {other}" if other else "no earlier build is kept: warehouse diff OTHER_TARGET"
    return SettingsError("which build is the published one compared with?", hint=hint)


def run_verify(given: argparse.Namespace) -> int:
    """Check the parts, rebuild and compare; return 1 if anything is damaged or differs."""
    if given.reference:
        return _run_reference(given)
    from warehouse.history.verify import verify
    from warehouse.runner.reporter import Bar, BarReporter

    settled = settings(given)
    with Bar(sys.stderr, "Verify") as bar:

        def say(text: str) -> None:
            if not given.json:
                bar.print(f"Again  {text}")

        found = verify(
            settled,
            data=[Path(folder) for folder in given.data or ()],
            quick=given.quick,
            hour=given.hour,
            wait=given.wait,
            say=say,
            reporter=BarReporter(bar),
        )
    print(json.dumps(_verdict_json(found), indent=1) if given.json else "\n".join(_verdict(found, settled.target)))  # noqa: T201
    return 0 if found.is_good else 1


def _run_reference(given: argparse.Namespace) -> int:
    """Compare the build with the rows of the public hour; return 1 if one differs or none is comparable."""
    from warehouse.history.reference import DIFFERS, SAME, compare

    found = compare(settings(given).target)
    counts = Counter(one.verdict for one in found)
    if given.json:
        print(json.dumps([vars(one) for one in found], indent=1))  # noqa: T201
    else:
        print("\n".join([*_reference_lines(found), ", ".join(f"{count} {name}" for name, count in counts.items())]))  # noqa: T201
    return 0 if counts[SAME] and not counts[DIFFERS] else 1


def _reference_lines(found: Sequence[Compared]) -> list[str]:
    """Return a line a query, its differences below it; queries that lack the same files share their lines."""
    from warehouse.history.diff.diff_text import wrapped
    from warehouse.history.reference import NOT_COMPARABLE

    lines: list[str] = []
    lacking: dict[str, list[str]] = {}
    for one in found:
        if one.verdict == NOT_COMPARABLE:
            lacking.setdefault(one.details[0], []).append(one.name)
            continue
        lines.append(f"{one.verdict:<8} {one.name}: {one.about}")
        for detail in one.details:
            lines += wrapped(f"    {detail}", " " * 15)
    for reason, names in lacking.items():
        lines += [*wrapped(f"{NOT_COMPARABLE}: {reason}"), *wrapped(f"    {', '.join(names)}")]
    return lines


def _verdict(found: Verdict, target: Path) -> list[str]:
    from warehouse.base.text import plural, size
    from warehouse.history.diff.diff_text import paragraphs, wrapped

    build = found.manifest.build
    if found.damages:
        lines = [f"Damaged: {plural(len(found.damages), 'file')} of build {build[:8]}"]
        for damage in found.damages[:_SHOWN]:
            advice = for_target(damage.advice, target)
            lines += [f"  {damage.path}", *wrapped(f"    {damage.problem}"), *wrapped(f"    {advice}")]
        return [*lines, *_more(len(found.damages))]
    name = f"hour {found.hour} of build {build[:8]}" if found.hour else f"build {build[:8]}"
    catalog = "" if found.hour else ", and the catalog"
    lines = [f"Whole  {name}: {plural(found.parts, 'part')}, {size(found.bytes)}{catalog}"]
    if not found.seconds:
        return lines
    if found.manifest.stale:
        lines += wrapped(f"       not compared, not selected in that build: {', '.join(found.manifest.stale)}", " " * 7)
    if found.is_good:
        return [*lines, f"Same   every part, byte by byte; {found.seconds:.1f} s"]
    now = f": now build {found.rebuilt[:8]}" if found.rebuilt else ""
    if not found.others:
        return [*lines, f"Differs in what is promised, not in any part{now}"]
    lines.append(f"Differs in {plural(len(found.others), 'part')}{now}")
    lines += [f"  {other.model} {other.partition}: {other.how}" for other in found.others[:_SHOWN]]
    lines += _more(len(found.others))
    shown = found.comparison.tables if found.comparison else ()
    return lines + paragraphs([table for table in shown if table.change != "equal" or table.rewritten])


def _more(count: int) -> list[str]:
    return [f"  … {count - _SHOWN:,} more: --json lists them"] if count > _SHOWN else []


def _verdict_json(found: Verdict) -> dict[str, object]:
    from warehouse.history.diff.diff_text import as_json

    return {
        "good": found.is_good,
        "build": found.manifest.build,
        "rebuilt": found.rebuilt,
        "hour": found.hour,
        "parts": found.parts,
        "bytes": found.bytes,
        "stale": list(found.manifest.stale),
        "damages": [vars(damage) for damage in found.damages],
        "others": [vars(other) for other in found.others],
        "comparison": as_json(found.comparison) if found.comparison else None,
    }


def run_builds(given: argparse.Namespace) -> int:
    """List the kept builds."""
    from warehouse.history.builds import builds, print_builds

    kept = builds(settings(given).target)
    if given.json:
        print(json.dumps([one.summary() for one in kept], indent=1))  # noqa: T201
    else:
        print_builds(kept, sys.stdout)
    return 0


def run_rollback(given: argparse.Namespace) -> int:
    """Publish an earlier build again."""
    from warehouse.history.builds import rollback

    target = settings(given).target
    before, now = rollback(target, given.build, wait=given.wait)
    was = f", before it {before[:8]}" if before else ""
    print(f"Published  {now.build[:8]}, built {now.published_utc} UTC{was}")  # noqa: T201
    again = for_target("warehouse build publishes again what data and models say now", target)
    print(f"           {again}")  # noqa: T201
    return 0


def run_relocate(given: argparse.Namespace) -> int:
    """Rewrite the catalogs for the folder that they are in now."""
    from warehouse.base.text import plural
    from warehouse.history.relocate import relocate

    target = settings(given).target
    done = relocate(target, wait=given.wait)
    for what, why in done.left.items():
        print(f"left   {what}: {why}")  # noqa: T201
    if not done.moved:
        print(f"Nothing to do: build {done.build[:8]} is of {target.absolute()}")  # noqa: T201
        return 0
    places = ", ".join(sorted(set(done.moved.values())))
    print(f"Moved  {plural(len(done.moved), 'build')} of {places} to {target.absolute()}")  # noqa: T201
    return 0


def run_clean(given: argparse.Namespace) -> int:
    """Print what can be removed; with --yes, remove it."""
    from warehouse.history.clean import clean

    target = settings(given).target
    found = clean(target, given.keep, dry_run=not given.yes, wait=given.wait)
    if given.json:
        print(json.dumps(_cleaning_json(found), indent=1))  # noqa: T201
        return 0
    print("\n".join(_cleaning(found)))  # noqa: T201
    if found.items and not found.removed:
        keep = "" if given.keep == KEPT_BUILDS else f" --keep {given.keep}"
        print(f"Nothing was removed yet: {for_target(f'warehouse clean{keep} --yes', target)}")  # noqa: T201
    return 0


def _cleaning(found: Cleaning) -> list[str]:
    from warehouse.base.text import plural, size
    from warehouse.history.clean import BUILD, CACHE, LEFTOVER, PART

    kept = f"{plural(len(found.kept), 'build')} kept: {', '.join(build[:8] for build in found.kept)}"
    if not found.items:
        return [f"Nothing to remove; {kept}"]
    counts = Counter(item.kind for item in found.items)
    lines = [f"{'Removed' if found.removed else 'Can go '}  {size(found.bytes)}; {kept}"]
    for kind, what in (
        (BUILD, "builds older than those"),
        (PART, "files of parts that none of these uses"),
        (CACHE, "repaired, unpacked or listed again when needed"),
        (LEFTOVER, "left behind by builds that were killed"),
    ):
        if counts[kind]:
            total = sum(item.bytes for item in found.items if item.kind == kind)
            lines.append(f"{counts[kind]:>9,} {what}, {size(total)}")
    return lines


def _cleaning_json(found: Cleaning) -> dict[str, object]:
    return {
        "removed": found.removed,
        "bytes": found.bytes,
        "kept": list(found.kept),
        "items": [
            {"kind": item.kind, "path": item.path.relative_to(found.target).as_posix(), "bytes": item.bytes}
            for item in found.items
        ],
    }
