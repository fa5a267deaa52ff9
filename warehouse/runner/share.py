"""Share of a build: the parts of some hours, made on any machine and published later by a whole build."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from warehouse.base.errors import DataError, ProcessError, SettingsError, WarehouseError
from warehouse.base.settings import Settings
from warehouse.base.startup import duckdb
from warehouse.base.version import __version__
from warehouse.graph.dag import Graph
from warehouse.graph.partial import PartialGraph
from warehouse.ingest.shares import Deal, OtherFilesError, Share, hour_named, hour_of, sizes_of_hours
from warehouse.project.project import Project
from warehouse.runner.build import open_store
from warehouse.runner.change_guard import ChangeGuard
from warehouse.runner.disk_full import DiskFullError, explaining_full_disk
from warehouse.runner.options import BuildOptions
from warehouse.runner.preparation import check_folders, prepared
from warehouse.runner.reporter import Reporter
from warehouse.runner.result import Outcome
from warehouse.runner.run import make_parts
from warehouse.store.atomic import sync
from warehouse.store.layout import ALL
from warehouse.store.lock import hold

if TYPE_CHECKING:
    from warehouse.graph.plan import Key

_GARBAGE = 1_000_000
"""Objects between two runs of Python's garbage collector. With its default, a share costs 4 % more (bench.cluster)."""
_MESSAGE_SECONDS = 0.5
"""Time between two messages about the part that another machine makes."""


class ShareResult(NamedTuple):
    """Result of a share."""

    share: Share
    partitions: tuple[str, ...]
    """Hours, and partitions of other models."""
    bytes: int
    """Bytes of the raw files in the folders of these hours."""
    outcome: Outcome

    def summary(self) -> dict[str, object]:
        """Return the result as JSON-able values."""
        return {
            "share": str(self.share),
            "partitions": list(self.partitions),
            "bytes": self.bytes,
            "parts": len(self.outcome.parts),
            "made": [{"model": key.model, "partition": key.partition} for key in sorted(self.outcome.made)],
        }


def make_share(settings: Settings, reporter: Reporter, options: BuildOptions, deal: Deal | None = None) -> ShareResult:
    """Make the parts of a share, and what they read. Publish nothing.

    Shares of one target may run at once, on several machines. A whole build, which publishes, waits for them. With a
    `deal` of another machine, files of other hours are not even listed.

    Raises
    ------
    OtherFilesError
        When the hours of the deal have other files here.
    WarehouseError
        When the share fails. The parts that it made stay.
    """
    check_folders(settings)
    with hold(settings.target, wait=options.wait, shared=True), explaining_full_disk(settings):
        return _make_share(settings, reporter, options._replace(share=options.share or Share(1, 1)), deal)


def _make_share(settings: Settings, reporter: Reporter, options: BuildOptions, dealt: Deal | None) -> ShareResult:
    project = Project.open(settings.project)
    guard = ChangeGuard(settings, project, dealt and (lambda name: dealt.is_of_others(hour_named(name))))
    store = open_store(settings, reporter, options)
    share = options.share or Share(1, 1)
    sizes = sizes_of_hours(guard.data)
    deal = dealt or Deal.of(share, sizes, settings.keep_hours)
    deal.check(sizes)
    if settings.data and not any(folder.count for folder in guard.data.folders().values()):
        wanted = f"file of {', '.join(deal.hours)}" if deal.is_alone else "files"
        raise DataError(
            f"no {wanted} in {', '.join(map(str, settings.data))}", hint="see what was found: warehouse doctor -d DIR"
        )

    def narrow(graph: Graph) -> Graph:
        partial = PartialGraph(graph)
        if not partial.is_possible:
            guard.data.look_everywhere()
            return graph
        guard.data.leave_out_folders(lambda folder: deal.is_of_others(hour_of(folder)))
        return partial.graph()

    with ExitStack() as opened, guard.explaining():
        ready = opened.enter_context(prepared(settings, options, project, store, reporter, guard.data, narrow))
        guard.watch(ready)
        outcome = make_parts(ready, reporter, lambda planned: deal.partitions(planned, ready.raw_files))
        guard.refuse_changes()
    for folder in {path for key in outcome.made for path in outcome.parts[key].path.parents[:3]}:
        sync(folder)
    partitions = {key.partition for key in outcome.parts} & deal.partitions(
        {key.partition for key in outcome.parts}, ready.raw_files
    )
    return ShareResult(share, tuple(sorted(partitions)), deal.bytes, outcome)


class Job(NamedTuple):
    """Build that other machines make shares of, with the paths that they see."""

    settings: Settings
    options: BuildOptions
    probe: Path
    """A file that a machine sees if it has the same target."""
    reporter: Callable[[Reporter], Reporter]
    """Returns the reporter of a share, around the one that keeps its notes."""
    versions: dict[str, str]

    def look(self) -> tuple[str, str]:
        """Return two reasons why this machine cannot make parts, or empty texts: another version, missing files."""
        pairs = ((name, found, self.versions[name]) for name, found in versions().items())
        other = next((f"it has {name} {found}, not {wanted}" for name, found, wanted in pairs if found != wanted), "")
        missing = next((f"there is no {path}" for path in self.settings.data if not path.exists()), "")
        if not missing and not self.probe.exists():
            missing = f"it has another {self.settings.target}"
        elif not missing and not os.access(self.settings.target, os.W_OK):
            missing = f"it cannot write to {self.settings.target}"
        return other, missing


class Answer(NamedTuple):
    """Answer of a machine that was asked to make a share."""

    unfit: str
    """Why it cannot make parts; empty if it can."""
    made: int = 0
    """Number of parts made."""
    notes: tuple[str, ...] = ()
    costs: dict[Key, Any] = {}  # noqa: RUF012 - never changed
    error: WarehouseError | None = None
    """Why the build fails. Dask would cut a long error, and replace one with a cause that it cannot send."""


def why_unfit(worker: str, found: object) -> str:
    """Return why a worker cannot make parts, by what it answered to `look`, or an empty text.

    Raises
    ------
    SettingsError
        When the worker has other versions.
    """
    if not isinstance(found, tuple):
        return f"it cannot run warehouse ({found})"
    other, missing = found
    if other:
        hint = "Bytes could differ: install the same versions on all machines."
        raise SettingsError(f"the worker {worker} is of another version: {other}", hint=hint)
    return str(missing)


def versions() -> dict[str, str]:
    """Return the versions that the bytes of parts depend on."""
    return {"warehouse": __version__, "duckdb": duckdb.__version__, "Python": platform.python_version()}


def make_for(
    job: Job, deal: Deal, say: Callable[[str], object], is_wanted: Callable[[], bool] = lambda: True
) -> Answer:
    """Make a share for a build on another machine.

    Parameters
    ----------
    say
        Gets the name of a part that begins, now and then.
    is_wanted
        Returns False if that build has ended. The share ends before its next part then.
    """
    unfit = next(filter(None, job.look()), "")
    if unfit:
        return Answer(unfit)
    notes = _Notes(say, is_wanted)
    reporter = job.reporter(notes)
    before = gc.get_threshold()
    gc.set_threshold(_GARBAGE)
    try:
        result = make_share(job.settings, reporter, job.options._replace(share=deal.share, wait=True), deal)
    except (OtherFilesError, DiskFullError) as error:
        return Answer(error.message)
    except WarehouseError as error:
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return Answer("", error=error)
    finally:
        gc.set_threshold(*before)
    return Answer("", len(result.outcome.made), tuple(notes.notes), reporter.costs_of_parts())


class _Notes(Reporter):
    """Reporter that keeps the notes, and sends the names of parts."""

    def __init__(self, say: Callable[[str], object], is_wanted: Callable[[], bool]) -> None:
        self.notes: list[str] = []
        self._say, self._said = say, 0.0
        self._is_wanted = is_wanted

    def note(self, text: str) -> None:
        self.notes.append(text)

    def part_started(self, model: str, partition: str) -> None:
        if not self._is_wanted():
            raise ProcessError("the build of this share has ended")
        if time.monotonic() - self._said > _MESSAGE_SECONDS:
            self._said = time.monotonic()
            self._say(model if partition == ALL else f"{model} {partition}")
