"""Hours of a build on the workers of a Dask cluster: `warehouse build --scheduler`.

A task is a share of the hours (`share.py`); its parts go to the target. Dask is imported inside functions alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import Any

from warehouse.base.errors import ProcessError, SettingsError
from warehouse.base.interrupts import interrupts_postponed
from warehouse.base.settings import Settings, renamed
from warehouse.base.text import plural
from warehouse.ingest.shares import Deal, sizes_of_hours
from warehouse.runner.options import BuildOptions
from warehouse.runner.preparation import check_folders
from warehouse.runner.reporter import Reporter
from warehouse.runner.share import Answer, Job, make_for, versions, why_unfit
from warehouse.store.atomic import temporary_path
from warehouse.store.lock import hold
from warehouse.store.manifest import current_build
from warehouse.store.snapshot import recent_walk

LOCAL = {
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "2s",
    "distributed.scheduler.allowed-failures": 30,  # workers that may die during a share
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.profile.enabled": False,
    **{f"distributed.worker.memory.{limit}": False for limit in ("pause", "spill", "target", "terminate")},
}
"""Settings of Dask for workers on this machine: with its own they are busy while they wait (docs/cluster.md)."""


def make_shares(settings: Settings, options: BuildOptions, scheduler: str, reporter: Reporter) -> None:
    """Make the parts of all hours on the workers of a scheduler, `tcp://HOST:PORT` or `local:N`.

    Raises WarehouseError without Dask, scheduler or fit worker, and when a share fails. Parts that were made stay.
    """
    check_folders(settings)
    reporter.stage_started("workers")
    sizes = sizes_of_hours(recent_walk(settings))
    keep_hours = settings.keep_hours if current_build(settings.target) else None  # no detail is dropped yet
    probe = temporary_path(settings.target.absolute() / "probe")
    with hold(settings.target, wait=options.wait, shared=True), ExitStack() as opened:  # workers wait in silence
        probe.touch()
        opened.callback(probe.unlink, missing_ok=True)
        with _connected(scheduler) as client:
            there = settings.on_workers()._replace(threads=1), options, renamed(probe, settings.worker_paths)
            cluster = Cluster(client, Job(*there, type(reporter).of_share, versions()), reporter)
            cluster.make(Deal.all_of(sizes, cluster.threads(), keep_hours))


class Cluster:
    """Workers of a scheduler that make the shares of one build; `client` is the connection to the scheduler."""

    def __init__(self, client: Any, job: Job, reporter: Reporter) -> None:
        self._client, self._job, self._reporter = client, job, reporter
        self._unfit: set[str] = set()

    def threads(self) -> int:
        """Return the threads of workers that can make parts; note others. Raises SettingsError for other versions."""
        for worker, found in sorted(self._client.run(Job.look, self._job, on_error="return").items()):
            if not isinstance(found, OSError):  # else the worker has ended
                self._leave(worker, why_unfit(worker, found))
        return sum(self._fit().values())

    def make(self, deals: Sequence[Deal]) -> None:
        """Make all shares; those of dead and unfit workers again, elsewhere."""
        topic = f"warehouse {self._job.probe.name}"
        self._client.subscribe_topic(topic, lambda event: self._reporter.started_elsewhere(event[1]))
        self._reporter.started(sum(len(deal.hours) for deal in deals))
        given: dict[str, Deal] = {}

        def submit(deal: Deal) -> Any:
            key = f"share {deal.share} of {topic} ({len(given)})"  # builds at once on one scheduler have other keys
            given[key] = deal
            how = {"workers": list(self._fit()), "allow_other_workers": True} if self._unfit else {}
            return self._client.submit(_make, self._job, deal, topic, key=key, **how)

        waiting, made = import_module("distributed").as_completed(map(submit, deals)), 0
        for future in waiting:
            deal, (worker, answer) = given[future.key], future.result()
            if answer.error:
                raise answer.error
            self._leave(worker, answer.unfit)
            if answer.unfit:
                waiting.add(submit(deal))
                continue
            made += answer.made
            for note in answer.notes:
                self._reporter.note(note)
            self._reporter.finished_elsewhere(len(deal.hours), answer.costs)
        self._reporter.note(f"{plural(made, 'part')} made by workers, in {plural(len(deals), 'share')}")

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


def _make(job: Job, deal: Deal, topic: str) -> tuple[str, Answer]:
    """Make a share in a thread of a worker; return the worker's address and its answer."""
    worker: Any = import_module("distributed").get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    told = make_for(job, deal, lambda part: worker.log_event(topic, part), lambda: task.state == "executing")
    return worker.address, told


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """Connect to a scheduler, or start one with processes of one thread; explain its end in one sentence."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        hint = "pip install 'gpu-warehouse[cluster]'"
        raise SettingsError("--scheduler needs Dask, which is not installed", hint=hint) from error
    for name in ("distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said in a sentence
    local = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    kind, _, count = scheduler.partition(":")
    how = {"n_workers": int(count), **local} if kind == "local" else {"address": scheduler, "timeout": 10}
    try:
        config = import_module("dask").config.set(LOCAL if kind == "local" else {})
        with config, interrupts_postponed() if kind == "local" else nullcontext():
            client = distributed.Client(**how)
        client.wait_for_workers(1, timeout=30)
    except (OSError, ValueError, RuntimeError) as error:
        missing = "worker" if isinstance(error, TimeoutError) else "scheduler"
        raise SettingsError(f"no {missing} answers at {scheduler}", hint=f"dask {missing} starts one") from error
    with client:
        hint = "Parts that were made stay: the next build goes on from them."
        try:
            yield client
        except distributed.scheduler.KilledWorker as error:
            raise ProcessError(f"workers died repeatedly in {error.task.split(' of ')[0]}", hint=hint) from error
        except (distributed.client.FutureCancelledError, distributed.comm.CommClosedError) as error:
            raise ProcessError(f"the scheduler {scheduler} has ended", hint=hint) from error
