"""Tasks of a build in the order in which they are run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from graphlib import TopologicalSorter

from warehouse.graph.plan import Key
from warehouse.runner.build_state import BuildState
from warehouse.runner.executor import Task
from warehouse.store.layout import ALL


class Schedule:
    """Tasks that make and check parts, each handed out once those that it needs are done.

    A part is read as soon as it is made, while its checks may still wait. Of the tasks that could be next, those of the
    first hour come first; of these, those that make parts; of these, the first in build order.

    Parameters
    ----------
    order
        The missing parts in build order, each with the parts that it and its checks read.
    is_checked_first
        Tells whether a part is made together with its checks.
    """

    def __init__(
        self, state: BuildState, order: Mapping[Key, set[Key]], is_checked_first: Callable[[Key], bool]
    ) -> None:
        self._state = state
        self._parts = order
        self._needs = dict(self._tasks(is_checked_first))
        self._urgency = self._urgencies()
        self._sorter = TopologicalSorter(self._needs)
        self._sorter.prepare()
        self._ready: list[tuple[tuple[int, bool, int], Task]] = []
        self._failures: dict[Task, BaseException] = {}
        self._wanted = set(self._needs)

    def _tasks(self, is_checked_first: Callable[[Key], bool]) -> list[tuple[Task, set[Task]]]:
        """Return the tasks, each with those that it needs."""
        plan, found = self._state.plan, []
        for key, needs in self._parts.items():
            is_first = is_checked_first(key)
            read = needs if is_first else plan.upstream_parts(key, with_checks=False)
            found.append((Task(key, is_check=False), self._making(read)))
            if not is_first:
                found.append((Task(key, is_check=True), self._making({key, *needs})))
        for key in self._state.unchecked():
            needs = plan.upstream_parts(key)
            if needs <= self._parts.keys() | self._state.parts.keys():
                found.append((Task(key, is_check=True), self._making(needs)))
        return found

    def _making(self, keys: set[Key]) -> set[Task]:
        return {Task(key, is_check=False) for key in keys & self._parts.keys()}

    def _urgencies(self) -> dict[Task, tuple[int, bool, int]]:
        """Return what tasks are sorted by: the number of partitions up to theirs, kind, place."""
        partitions: set[str] = set()
        places = {}
        for place, key in enumerate(self._parts):
            partitions |= {key.partition} - {ALL}
            places[key] = len(partitions), place
        found = {}
        for task in self._needs:
            group, place = places.get(task.key, (0, 0))
            found[task] = (group, task.is_check, place)
        return found

    def take(self) -> Task | None:
        """Return a task to run now; None if there is none."""
        for task in self._sorter.get_ready():
            heapq.heappush(self._ready, (self._urgency[task], task))
        while self._ready:
            _, task = heapq.heappop(self._ready)
            if task in self._wanted:
                return task
        return None

    def done(self, task: Task) -> None:
        """Note that a task is done."""
        self._sorter.done(task)

    def is_wanted(self, task: Task) -> bool:
        """Return True for tasks to wait for: all, or after a failure those that may explain it."""
        return task in self._wanted

    def failed(self, task: Task, error: BaseException) -> None:
        """Note a failure. From now on, run only checks of parts upstream of the first one that failed.

        If one of them fails, it is the cause.
        """
        self._failures[task] = error
        upstream, found = [self._first_failed().key], set()
        while upstream:
            for key in self._parts.get(upstream.pop(), ()):
                if key not in found:
                    found.add(key)
                    upstream.append(key)
        wanted = [one for one in self._needs if one.is_check and one.key in found]
        self._wanted = set()
        while wanted:
            one = wanted.pop()
            if one not in self._wanted:
                self._wanted.add(one)
                wanted += self._needs[one]

    def raise_failure(self) -> None:
        """Raise the error of the first part that failed, if one failed."""
        if self._failures:
            raise self._failures[self._first_failed()]

    def _first_failed(self) -> Task:
        """Return the task that failed whose part is the first in build order."""
        places = {key: place for place, key in enumerate(self._parts)}
        return min(self._failures, key=lambda task: places.get(task.key, -1))
