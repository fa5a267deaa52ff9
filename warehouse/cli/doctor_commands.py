"""Commands `warehouse doctor`, `plan` and `test`: look at raw files, at the next build and at models; build nothing.

The doctor scans data folders as a build does, also damaged files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from warehouse.base.errors import QueryError, SettingsError
from warehouse.base.settings import shipped_root
from warehouse.base.text import few, grouped, on_one_line, plural, wrapped
from warehouse.cli.commands import settings, tell
from warehouse.cli.find_commands import built
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats import GROUP
from warehouse.formats.base import (
    IGNORED,
    PARTIAL,
    READ,
    SKIPPED,
    UNKNOWN,
    Format,
    RawFile,
)
from warehouse.formats.zhejiang.task_log import TaskLog
from warehouse.graph.dag import load_graph, select_models
from warehouse.ingest.raw_files import RawFiles
from warehouse.project.project import Project
from warehouse.runner.dry_run import (
    CHECK,
    DROP,
    KEEP,
    MAKE,
    MAYBE,
    NEW,
    READS,
    DryRun,
    Step,
    dry_run,
)
from warehouse.runner.session import BuildOptions
from warehouse.store.atomic import scratch_folder
from warehouse.store.manifest import ALL, last_manifest
from warehouse.store.parts import Store

_SHOWN = 20
_WIDE = 29
"""Column of the reasons of a plan."""
_NOT_READ = {PARTIAL: "read in part", SKIPPED: "skipped", UNKNOWN: "not recognised", IGNORED: "ignored"}
_FACTS = (
    "release_path", "bytes", "format", "cluster", "hour_utc", "switch", "port", "file_group", "status", "reason",
)  # fmt: skip
OWN_FILES = {
    "model": ("models/**/*.sql", "models/**/*.py"),
    "query file": ("sql/queries/*.sql",),
    "macro file": ("sql/macros/*.sql",),
    "figure": ("sql/report/*.sql",),
    "hour header file": ("data/hour_columns.csv",),
    "table": ("data/*.csv",),
    "log pattern file": ("data/log_lines.yaml",),
    "trace mapping": ("data/traces/*.yaml",),
}
"""Kinds of files of a project, and where they are; a file is of the first kind that has it."""


def run_doctor(given: argparse.Namespace) -> None:
    """Scan the data folders as a build does, with a temporary target, and print what was found."""
    settled = settings(given)
    last = last_manifest(settled.target) if settled.target.is_dir() else None
    data = settled.data or tuple(map(Path, last.data if last else ()))
    if not data:
        raise SettingsError("no data folder given", hint="warehouse doctor -d DIR")
    project = Project.open(settled.project)
    formats = project.formats
    with scratch_folder("doctor") as folder:
        # A build would stop at too many bad lines, which the doctor is to list.
        asked = settled._replace(data=data, max_rejected=1.0)
        found = RawFiles(asked, formats, Store(folder), "").inventory
    most = None if given.all else _SHOWN

    def lines() -> Iterator[str]:
        yield from _hour_lines(found.files)
        yield from _format_lines(found.files)
        yield from _remarks(found.files, formats, most)
        yield from _not_read(found.files, most)
        if not found.files:
            yield f"no files in {', '.join(map(str, found.roots))}"
        yield from plug_ins(project)
        yield from _target(settled.target)

    tell(
        given,
        lambda: [{"path": file.path} | {name: getattr(file, name) for name in _FACTS} for file in found.files],
        lambda: map(on_one_line, lines()),
    )


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


def _remarks(files: Sequence[RawFile], formats: Sequence[Format], most: int | None) -> Iterator[str]:
    """Yield what files lack that are read, with their names."""
    lacking = (
        found
        for one in formats
        if isinstance(one, TaskLog)
        for found in one.remarks([file for file in files if file.format == one.name and file.is_read])
    )
    for remark, paths in sorted(grouped((remark, f"  {file.release_path}") for file, remark in lacking).items()):
        yield f"{plural(len(paths), 'file')} {remark}"
        yield from paths[:most] + _more(len(paths), most)


def _not_read(files: Iterable[RawFile], most: int | None) -> Iterator[str]:
    """Yield a paragraph per status, with its files and their reasons."""
    for status, word in _NOT_READ.items():
        selected = [file for file in files if file.status == status]
        if not selected:
            continue
        yield f"{plural(len(selected), 'file')} {word}"
        for file in selected[:most]:
            yield f"  {file.release_path}"
            yield f"    {file.reason}"
        yield from _more(len(selected), most)
    if any(file.cluster == "unknown" and file.is_read for file in files):
        yield "cluster `unknown`: --cluster NAME names it; no folder above has trafficinfo/, taskinfo/ or a workbook"


def plug_ins(project: Project) -> Iterator[str]:
    """Yield a line for each format of another package, and for each kind of file of a project, with its place."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for point in sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "another package"
        module = find_spec(point.module)
        yield f"format {point.name} of {package}: {module.origin if module else point.module}"
    for folder in project.folders:
        if folder == shipped_root():
            continue
        named: set[str] = set()
        for what, patterns in OWN_FILES.items():
            names = {path.relative_to(folder).as_posix() for one in patterns for path in folder.glob(one)} - named
            if names:
                yield f"{plural(len(names), what)} of {folder}: {few(sorted(names))}"
            named |= names


def _target(target: Path) -> Iterator[str]:
    """Yield the state of the target, or why it cannot be opened."""
    try:
        yield from built(target)
    except QueryError as error:
        yield " · ".join(filter(None, (error.message, error.hint)))


def run_plan(given: argparse.Namespace) -> None:
    """Print what a build would do."""
    settled = settings(given)
    plan = dry_run(settled, BuildOptions(tuple(given.select), max(1, given.keep), paranoid=given.paranoid))
    tell(given, plan.summary, lambda: _plan_lines(plan, settled.target))


def _plan_lines(plan: DryRun, target: Path) -> Iterator[str]:
    """Yield the lines of a dry run."""
    if not plan.publishes:
        yield f"Up to date  {(plan.last or '')[:8]}, nothing to do"
        return
    kept = plan.of(KEEP)
    if plan.last is None:
        if made := [step for step in plan.steps if step.action != KEEP]:
            yield f"make   all: {_counted(made)}; nothing is built in {target} yet"
    else:
        for partition in sorted(plan.new):
            yield from _new(partition, [step for step in plan.of(MAKE, MAYBE) if step.key.partition == partition])
        for partition in sorted(plan.gone):
            steps = [step for step in plan.of(DROP) if step.key.partition == partition]
            yield f"{DROP:<6} {partition}: {plural(len(steps), 'part')}, no file of it is left"
        yield from _changes(plan)
    if kept:
        yield f"{KEEP:<6} {_counted(kept)}"
    if len(kept) == len(plan.steps):
        yield f"Nothing is made; a build publishes again, since {plan.publishes}."


def _counted(steps: Sequence[Step]) -> str:
    return f"{plural(len({step.key.model for step in steps}), 'model')}, {plural(len(steps), 'part')}"


def _new(partition: str, steps: Sequence[Step]) -> Iterator[str]:
    if not steps:
        yield f"add    {partition}: its parts are there already"
        return
    reasons = {reason for step in steps for reason in step.reasons}
    files = sorted(reason for reason in reasons if reason != NEW and not reason.startswith(READS))
    yield from _wrapped(f"{MAKE:<6} {partition}: {plural(len(steps), 'part')}, {'; '.join(files) or NEW}")


def _changes(plan: DryRun) -> Iterator[str]:
    """Yield a line per model and reason, with the partitions below."""
    partitions = grouped(
        ((step.action, step.key.model, _joined(step.reasons)), step.key.partition)
        for step in plan.of(MAKE, MAYBE, CHECK, DROP)
        if step.key.partition not in plan.new | plan.gone
    )
    groups = grouped((tuple(names), row) for row, names in partitions.items())
    for group, rows in sorted(groups.items(), key=lambda item: item[0] != (ALL,)):
        if group != (ALL,):
            yield group[0] if len(group) == 1 else f"{len(group):,} hours, {group[0]} to {group[-1]}"
        for action, model, reasons in rows:
            yield from _wrapped(f"{action:<6} {model:<{_WIDE}} {reasons}")


def _wrapped(line: str) -> list[str]:
    return [one.rstrip("\n") for one in wrapped(line, 80, indent=" " * (_WIDE + 8))]


def _joined(reasons: Sequence[str]) -> str:
    """Return reasons as text: the model's own first, then at most one about its inputs."""
    plain = [reason for reason in reasons if reason.startswith(READS) and len(reason.split()) == 2]
    own = [reason for reason in reasons if reason not in plain]
    return "; ".join([*own, few(plain, 1)] if plain else own)


def run_test(given: argparse.Namespace) -> int:
    """Run tests and print the failures; return 1 if a test fails."""
    from warehouse.quality.model_tests import example_tests, failed_examples, tests_of
    from warehouse.quality.model_tests import run_test as failures_of

    project = Project.open(settings(given).project)
    with_examples = not given.select and (project.log_lines or shipped_root() in project.folders)
    examples, wrong = failed_examples(project.log_lines) if with_examples else (0, [])
    _complain(wrong)
    failed = len(wrong)
    with closing(DuckDBEngine(memory_bytes=2**29, spill=Path("spill"))) as engine, scratch_folder("test") as folder:
        graph = load_graph(project, engine)
        chosen = select_models(graph, given.select)
        # A project without the shipped models may have others of their names.
        mapped = {path.stem for one in project.folders for path in (one / "data" / "traces").glob("*.yaml")}
        traces = [trace for trace in project.traces if trace.examples and trace.name in mapped]
        tests = [test for trace in traces for test in example_tests(trace, graph, folder) if test.model in chosen]
        tests += [test for name in graph.order if name in chosen for test in tests_of(graph.nodes[name], graph)]
        for test in tests:
            if found := failures_of(engine, graph, test):
                failed += 1
                _complain([f"{test.place}: {test.model}: {test.name}", *(f"       {line}" for line in found)])
    if failed or not given.quiet:
        passed, models = examples + len(tests) - failed, len({test.model for test in tests})
        text = f"{plural(passed, 'test')} passed" + (f", {failed:,} failed" if failed else "")
        of = f"{plural(models, 'model')}" + (f" and {plural(examples, 'kind')} of log lines" if examples else "")
        print(f"Test   {text}, of {of}")
    return 1 if failed else 0


def _complain(lines: Iterable[str]) -> None:
    sys.stderr.writelines(f"{on_one_line(line)}\n" for line in lines)
