"""Hours of a build on the workers of a Dask cluster: `warehouse build --scheduler`.

A task is a share of the hours (`share.py`). Workers write its parts to the target, which all machines see; what travels
over the network is some kilobytes a task. The build then finds the parts. Dask is imported inside functions alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from warehouse.base.errors import ProcessError, SettingsError
from warehouse.base.settings import Settings, renamed
from warehouse.base.text import plural
from warehouse.ingest.shares import Deal, Share, sizes_of_hours
from warehouse.runner.cluster_worker import LOCAL, Job, look, make_on_worker, versions
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.store.atomic import temporary_path
from warehouse.store.snapshot import recent_walk

SHARES_A_THREAD = 4
"""Shares for each thread of a worker: more of them even out the work, and each costs the start of a share once more."""
SHARE_BYTES = 100_000_000
"""Bytes of raw files that are worth the start of one more share, which costs a quarter of a second of CPU."""


class Cluster:
    """Workers of a scheduler that make the shares of one build; `client` is the connection to the scheduler."""

    def __init__(self, client: Any, job: Job, reporter: Reporter) -> None:
        self._client, self._job, self._reporter = client, job, reporter
        self._unfit: set[str] = set()

    def threads(self) -> int:
        """Return the threads of workers that can make parts; note others. Raises SettingsError for other versions."""
        for worker, found in sorted(self._client.run(look, self._job, on_error="return").items()):
            if isinstance(found, OSError):  # the worker has ended
                continue
            other, why = ("", f"it cannot run warehouse ({found})") if isinstance(found, Exception) else found
            if other:
                hint = "Bytes could differ: install the same versions on all machines."
                raise SettingsError(f"the worker {worker} is of another version: {other}", hint=hint)
            self._leave(worker, why)
        return sum(self._fit().values())

    def _leave(self, worker: str, why: str) -> None:
        if why and worker not in self._unfit:
            self._unfit.add(worker)
            self._reporter.note(f"the worker {worker} makes nothing: {why}")

    def _fit(self) -> dict[str, int]:
        """Return the threads of the workers that can make parts. Raises SettingsError if there is none."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        found = {name: int(one["nthreads"]) for name, one in workers.items() if name not in self._unfit}
        if not found and self._unfit:
            raise SettingsError("the scheduler has no worker that can make parts", hint="see docs/cluster.md")
        return found

    def make(self, deals: Sequence[Deal]) -> None:
        """Make all shares; those of dead and unfit workers again, elsewhere."""
        as_completed: Any = import_module("distributed").as_completed
        topic = f"warehouse {self._job.probe.name}"
        self._client.subscribe_topic(topic, lambda event: self._reporter.started_elsewhere(event[1]))
        self._reporter.stage_started("shares on workers")
        self._reporter.started(sum(len(deal.hours) for deal in deals))
        given: dict[str, Deal] = {}

        def submit(deal: Deal) -> Any:
            key = f"share-{deal.share.number}-{len(given)}"
            given[key] = deal
            how = {"workers": list(self._fit()), "allow_other_workers": True} if self._unfit else {}
            return self._client.submit(make_on_worker, self._job, deal, topic, key=key, **how)

        waiting, made = as_completed(map(submit, deals)), 0
        for future in waiting:
            deal, answer = given[future.key], future.result()
            if answer.unfit:
                self._leave(answer.worker, answer.unfit)
                waiting.add(submit(deal))
                continue
            made += answer.made
            for note in answer.notes:
                self._reporter.note(note)
            self._reporter.finished_elsewhere(len(deal.hours), answer.costs)
        self._reporter.note(f"{plural(made, 'part')} made by workers, in {plural(len(deals), 'share')}")


def make_shares(settings: Settings, options: BuildOptions, scheduler: str, reporter: Reporter) -> None:
    """Make the parts of all hours on the workers of a scheduler, `tcp://HOST:PORT` or `local:N`.

    Raises
    ------
    WarehouseError
        Without Dask, a scheduler, or a worker that fits; and when a share fails. Parts that were made stay.
    """
    sizes = sizes_of_hours(recent_walk(settings))
    settings.target.mkdir(parents=True, exist_ok=True)
    probe = temporary_path(settings.target.absolute() / "probe")
    probe.touch()
    try:
        with _connected(scheduler) as client:
            seen = renamed(probe, settings.worker_paths)
            job = Job(settings.on_workers()._replace(threads=1), options, seen, type(reporter).of_share, versions())
            cluster = Cluster(client, job, reporter)
            threads = cluster.threads()
            worth = max(threads, sum(sizes.values()) // SHARE_BYTES)
            count = max(1, min(len(sizes), SHARES_A_THREAD * threads, worth))
            shares = (Share(number, count) for number in range(1, count + 1))
            cluster.make([Deal.of(share, sizes, settings.keep_hours) for share in shares])
    finally:
        probe.unlink(missing_ok=True)


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """Connect to a scheduler, or start one with processes of one thread; explain its end in one sentence."""
    kind, _, count = scheduler.partition(":")
    if kind == "local" and not (count.isdigit() and 1 <= int(count) <= 1024):
        raise SettingsError(f"--scheduler is {scheduler!r}", hint="for instance local:4 or tcp://10.0.0.1:8786")
    local = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    how = {"n_workers": int(count), **local} if kind == "local" else {"address": scheduler, "timeout": 30}
    try:
        distributed: Any = import_module("distributed")
        lost = distributed.client.FutureCancelledError, distributed.comm.CommClosedError
    except ImportError as error:
        hint = "pip install 'gpu-warehouse[cluster]'"
        raise SettingsError("--scheduler needs Dask, which is not installed", hint=hint) from error
    for name in ("distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said in a sentence
    try:
        with import_module("dask").config.set(LOCAL if kind == "local" else {}):
            client = distributed.Client(**how)
        client.wait_for_workers(1, timeout=30)
    except (OSError, ValueError, RuntimeError) as error:
        hint = "dask scheduler and dask worker start them"
        raise SettingsError(f"no scheduler with a worker answers at {scheduler}", hint=hint) from error
    with client:
        try:
            yield client
        except distributed.scheduler.KilledWorker as error:
            raise ProcessError(f"workers died again and again during {error.task}") from error
        except lost as error:
            hint = "Parts that were made stay: the next build goes on from them."
            raise ProcessError(f"the scheduler {scheduler} has ended", hint=hint) from error
