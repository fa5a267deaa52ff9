"""Share of a build in a worker of Dask: the functions that the build sends there, and the reporter of a share."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from warehouse.base.settings import Settings
from warehouse.base.version import __version__
from warehouse.ingest.shares import Deal, OtherFilesError
from warehouse.runner.disk_full import DiskFullError
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.runner.share import make_share
from warehouse.store.layout import ALL

if TYPE_CHECKING:
    from warehouse.graph.plan import Key

LOCAL = {
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "2s",
    "distributed.scheduler.allowed-failures": 30,  # workers that may die during a share
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.memory.pause": False,  # --memory limits the engine
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
}
"""Settings of Dask for workers on this machine. With the defaults, scheduler and worker take 7 % of a core while they
wait for a task; with these 0.8 % (docs/cluster.md)."""
_MESSAGE_SECONDS = 0.5
"""Time between two messages of a worker about the part that it makes."""


class Job(NamedTuple):
    """Work on one build, with the paths that workers see."""

    settings: Settings
    options: BuildOptions
    probe: Path
    """A file that a worker sees if it has the same target."""
    reporter: Callable[[Reporter], Reporter]
    """Returns the reporter of a share, around the one that keeps its notes."""
    versions: dict[str, str]


class Answer(NamedTuple):
    """Answer of a worker that was asked to make a share."""

    worker: str = ""
    unfit: str = ""
    """Why the worker cannot make parts; empty if it made them."""
    made: int = 0
    """Number of parts made."""
    notes: tuple[str, ...] = ()
    costs: dict[Key, Any] = {}  # noqa: RUF012 - never changed


class _Notes(Reporter):
    """Reporter that keeps the notes, and sends the names of parts."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.notes: list[str] = []
        self._say, self._said = say, 0.0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def part_started(self, model: str, partition: str) -> None:
        if time.monotonic() - self._said > _MESSAGE_SECONDS:
            self._said = time.monotonic()
            self._say(model if partition == ALL else f"{model} {partition}")


def make_on_worker(job: Job, deal: Deal, topic: str) -> Answer:
    """Make a share in a thread of a worker."""
    worker: Any = import_module("distributed").get_worker()
    notes = _Notes(lambda text: worker.log_event(topic, text))
    reporter = job.reporter(notes)
    unfit, made = next(filter(None, look(job)), ""), 0
    if not unfit:
        try:
            options = job.options._replace(share=deal.share, wait=True)
            made = len(make_share(job.settings, reporter, options, deal).outcome.made)
        except (OtherFilesError, DiskFullError) as error:
            unfit = error.message
    return Answer(worker.address, unfit, made, tuple(notes.notes), reporter.costs_of_parts())


def versions() -> dict[str, str]:
    """Return the versions that the bytes of parts depend on."""
    return {"warehouse": __version__, "duckdb": duckdb.__version__, "Python": platform.python_version()}


def look(job: Job) -> tuple[str, str]:
    """Return two reasons why this machine cannot make parts, or empty texts: another version, missing files."""
    pairs = ((name, found, job.versions[name]) for name, found in versions().items())
    other = next((f"it has {name} {found}, not {wanted}" for name, found, wanted in pairs if found != wanted), "")
    missing = next((f"there is no {path}" for path in job.settings.data if not path.exists()), "")
    return other, missing or ("" if job.probe.exists() else f"it has another {job.settings.target}")
