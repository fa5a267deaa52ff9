"""Shares of a build on the workers of a Dask cluster: `warehouse build --scheduler`.

A task is a share of the hours (`share.py`). Workers write its parts to the target, which all machines see; what travels
over the network is some kilobytes a task. The build then finds the parts. Dask is imported inside functions alone.
"""

from __future__ import annotations

import itertools
import logging
import platform
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.base.errors import ProcessError, SettingsError
from warehouse.base.text import plural
from warehouse.base.version import __version__
from warehouse.ingest.shares import Deal, OtherFilesError, Share
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.runner.share import make_share
from warehouse.store.atomic import temporary_path
from warehouse.store.snapshot import recent_walk

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.base.settings import Settings

SHARES_A_THREAD = 4
"""Shares for each thread of a worker: more of them even out the work, and each costs the start of a share once more."""
SHARE_BYTES = 100_000_000
"""Bytes of raw files that are worth the start of one more share, which costs half a second of CPU."""
MOST_DEATHS = 10
"""Times that Dask may give a share up, after the death of some workers each, before it counts as the cause."""
Answer = tuple[int, list[str], str, str]
"""Number of parts made; notes; the worker, and why it is unfit to make any (empty if it made them)."""


class _Notes(Reporter):
    """Reporter that keeps the notes, to be printed where the build runs."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class Cluster:
    """Workers of a scheduler that make the shares of one build.

    Parameters
    ----------
    client
        The connection to the scheduler.
    probe
        A file that a worker sees if it has the same target.
    """

    def __init__(self, client: Any, settings: Settings, probe: Path, reporter: Reporter) -> None:
        self._client, self._settings, self._probe, self._reporter = client, settings, probe, reporter
        self._unfit: set[str] = set()
        self._turns = itertools.count()
        self._threads = 1

    def compare(self) -> None:
        """Raise SettingsError for a worker with other versions, or if none can make parts; note those that cannot."""
        mine = versions()
        looked = self._client.run(look, self._settings, self._probe, on_error="return")
        for worker, found in sorted(looked.items()):
            if isinstance(found, Exception):  # it has ended
                continue
            theirs, why = found
            for name in (name for name in mine if theirs[name] != mine[name]):
                raise SettingsError(
                    f"the worker {worker} has {name} {theirs[name]}, and this process {mine[name]}: bytes could differ",
                    hint="Install the same versions on all machines.",
                )
            self._leave(worker, why)
        self._threads = sum(self._fit().values())

    def _leave(self, worker: str, why: str) -> None:
        if why and worker not in self._unfit:
            self._unfit.add(worker)
            self._reporter.note(f"the worker {worker} makes nothing: {why}")

    def _fit(self) -> dict[str, int]:
        """Return the threads of the workers that can make parts. Raises SettingsError if there is none."""
        workers = self._client.scheduler_info()["workers"]
        found = {name: int(one["nthreads"]) for name, one in workers.items() if name not in self._unfit}
        if not found and self._unfit:
            raise SettingsError("the scheduler has no worker that can make parts", hint="see docs/cluster.md")
        return found

    def make(self, options: BuildOptions, deal: Deal) -> None:
        """Make all shares; those of dead and unfit workers again, elsewhere."""
        as_completed: Any = import_module("distributed").as_completed
        killed: Any = import_module("distributed.scheduler").KilledWorker
        worth = max(self._threads, deal.bytes // SHARE_BYTES)
        count = max(1, min(len(deal.hours), SHARES_A_THREAD * self._threads, worth))
        numbers: dict[str, int] = {}

        def submit(number: int) -> Any:
            asked = options._replace(share=Share(number, count), wait=True)
            key, only = f"share-{number}-{next(self._turns)}", list(self._fit()) if self._unfit else None
            numbers[key] = number
            arguments = self._settings, asked, self._probe, deal.digest
            return self._client.submit(make_on_worker, *arguments, key=key, workers=only)

        waiting, deaths, done, made = as_completed(map(submit, range(1, count + 1))), Counter[int](), 0, 0
        for future in waiting:
            number = numbers[future.key]
            is_dead = future.status == "error" and isinstance(future.exception(), killed)
            deaths[number] += is_dead
            if deaths[number] >= MOST_DEATHS:
                raise ProcessError(f"workers died again and again during share {number}/{count}")
            parts, notes, worker, why = (0, [], "", "it died") if is_dead else future.result()
            if why:
                self._leave(worker, "" if is_dead else why)
                waiting.add(submit(number))
                continue
            done, made = done + 1, made + parts
            for note in notes:
                self._reporter.note(note)
            self._reporter.stage_started(f"shares on workers: {done} of {count}")
        self._reporter.note(f"{plural(made, 'part')} made by workers, in {plural(count, 'share')}")


def make_shares(settings: Settings, options: BuildOptions, scheduler: str, reporter: Reporter) -> None:
    """Make the parts of all hours on the workers of a scheduler, `tcp://HOST:PORT` or `local:N`.

    Raises
    ------
    WarehouseError
        Without Dask, a scheduler, or a worker that fits; and when a share fails. Parts that were made stay.
    """
    project = settings.project.absolute() if settings.project else None
    data = tuple(path.absolute() for path in settings.data)
    settings = settings._replace(data=data, target=settings.target.absolute(), project=project)
    deal = Deal(Share(1, 1), recent_walk(settings), settings.keep_hours)
    settings.target.mkdir(parents=True, exist_ok=True)
    probe = temporary_path(settings.target / "probe")
    probe.touch()
    try:
        with _connected(scheduler) as client:
            cluster = Cluster(client, settings, probe, reporter)
            cluster.compare()
            cluster.make(options, deal)
    finally:
        probe.unlink(missing_ok=True)


def make_on_worker(settings: Settings, options: BuildOptions, probe: Path, dealt: str) -> Answer:
    """Make a share in a thread of a worker."""
    worker: Any = import_module("distributed").get_worker()
    reporter = _Notes()
    why = look(settings, probe)[1]
    made = 0
    try:
        made = 0 if why else len(make_share(settings._replace(threads=1), reporter, options, dealt).outcome.made)
    except OtherFilesError as error:
        why = error.message
    return made, reporter.notes, worker.address, why


def versions() -> dict[str, str]:
    """Return the versions that the bytes of parts depend on."""
    return {"warehouse": __version__, "duckdb": duckdb.__version__, "Python": platform.python_version()}


def look(settings: Settings, probe: Path) -> tuple[dict[str, str], str]:
    """Return the versions of this machine, and why it cannot make parts; empty if it can."""
    missing = next((path for path in settings.data if not path.exists()), None)
    why = f"there is no {missing}" if missing else "" if probe.exists() else f"it has another {settings.target}"
    return versions(), why


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """Connect to a scheduler, or start one with processes of one thread; explain its end in one sentence."""
    try:
        distributed: Any = import_module("distributed")
        lost = (
            import_module("distributed.client").FutureCancelledError,
            import_module("distributed.comm").CommClosedError,
        )
    except ImportError as error:
        hint = "pip install 'gpu-warehouse[cluster]'"
        raise SettingsError("--scheduler needs Dask, which is not installed", hint=hint) from error
    kind, _, count = scheduler.partition(":")
    if kind == "local" and not (count.isdigit() and 1 <= int(count) <= 1024):
        raise SettingsError(f"--scheduler is {scheduler!r}", hint="for instance local:4 or tcp://10.0.0.1:8786")
    local = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    how = {"n_workers": int(count), **local} if kind == "local" else {"address": scheduler, "timeout": 30}
    try:
        client = distributed.Client(**how)
    except RuntimeError as error:
        raise ProcessError(f"the workers of {scheduler} do not start") from error
    except (OSError, ValueError) as error:
        raise SettingsError(f"no scheduler answers at {scheduler}", hint="dask scheduler starts one") from error
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(("distributed", "tornado"))]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said in a sentence
    with client:
        try:
            client.wait_for_workers(1, timeout=30)
        except TimeoutError as error:
            hint = f"dask worker {scheduler} starts one"
            raise SettingsError(f"the scheduler {scheduler} has no worker", hint=hint) from error
        try:
            yield client
        except lost as error:
            hint = "Parts that were made stay: the next build goes on from them."
            raise ProcessError(f"the scheduler {scheduler} has ended", hint=hint) from error
