"""Training jobs: rings of servers whose NICs pulse together; and tasks, which leave logs.

A task has servers, a model and the end of each iteration. A task with traffic belongs to a job. Each pulse is the
exchange of one iteration, which ends in the middle of the pause after the pulse. A task makes no progress in unrecorded
time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from warehouse.sample.basics import HOUR, RAILS, Ints, SampleOptions, draw, draw_one, home_group, moment_utc
from warehouse.sample.fabric import OTHER_RAILS, PAUSING, Place

GIGABIT = 125_000_000
"""1 Gb/s in bytes per second."""

QUIET = 4
"""Divisor of a job's activity in the last two seconds of an hour.

The bytes left for the first row of the next hour then fit the time before that row.
"""

VARY = 200
"""Thousandths by which a pulse is higher or lower than usual, on all servers of the job alike."""


@dataclass(frozen=True)
class Job:
    """Ring of servers. Seconds count from the start of the first hour."""

    name: str
    servers: tuple[int, ...]
    rails: int
    period_ms: int
    on_ms: int
    phase_ms: int
    plateau: int
    """Bytes per second that each NIC sends during a pulse."""
    start: int
    end: int
    pauses: tuple[tuple[int, int], ...] = ()
    """First second, and the second after the last, of each pause."""
    other_rails: tuple[int, ...] = ()
    """Servers that use the rails after those of the others. Of those, the first two move little on one of these.

    In such a job, each rail sends to one rail of the next server, so that only bytes of these servers leave a leaf.
    """

    def rail(self, server: int, rail: int) -> int:
        """Return the place, among the NICs of a server, of one of the job's rails."""
        return rail + self.rails if server in self.other_rails else rail

    def activity(self, options: SampleOptions) -> Ints:
        """Return the milliseconds of each second during which the job communicates, times the height of the pulse."""
        edges = np.arange(options.hours * HOUR + 1, dtype=np.int64) * 1000 - self.phase_ms
        whole, rest = np.divmod(edges, self.period_ms)
        first = int(whole[0])
        heights = 1000 + draw(options.seed, f"height/{self.name}", int(whole[-1]) - first + 1, -VARY, VARY)
        before = np.concatenate([[0], np.cumsum(self.on_ms * heights)])
        active = np.diff(before[whole - first] + np.minimum(rest, self.on_ms) * heights[whole - first]) // 1000
        for begin, end in ((0, self.start), (self.end, len(active)), *self.pauses):
            active[begin:end] = 0
        second = np.arange(options.hours * HOUR) % HOUR
        active[second >= options.seconds] = 0
        active[second >= options.seconds - 2] //= QUIET
        return np.asarray(active)


def recorded(options: SampleOptions) -> np.typing.NDArray[np.bool_]:
    """Return a mask of the recorded seconds of the timeline."""
    return np.arange(options.hours * HOUR) % HOUR < options.seconds


def plan_jobs(places: list[Place], options: SampleOptions) -> list[Job]:
    """Return the jobs: five across the groups, the rest within one group each. About a third of the servers is idle.

    A planted sample has one more, which pauses, and one of whose servers is on other rails.
    """
    listed = [p for p in places if p.in_topology and not p.is_visitor and not p.role]
    # At most four servers that only the NIC sheet lists.
    hidden = [p for p in places if not p.in_topology and p.group is not None][:4]
    whole = options.hours * HOUR
    pairs, thirds, fourths = ([p for p in listed if p.slot in slots] for slots in ((1, 2), (3,), (4,)))
    jobs = [
        _job(options, "job-1", pairs, RAILS, 8_000, 3_600, 76, 0, whole),
        _job(options, "job-2", fourths, 2, 13_500, 5_400, 64, 0, whole),
        _job(options, "job-3", hidden, RAILS, 6_400, 2_600, 104, 0, whole),
        _job(options, "job-4", thirds, RAILS, 11_000, 5_000, 82, 0, options.seconds * 7 // 10),
    ]
    if options.hours > 1:
        start = HOUR + options.seconds // 10
        jobs.append(_job(options, "job-5", thirds, RAILS, 9_250, 3_700, 94, start, whole))
    jobs += _local_jobs([p for p in listed if p.slot > 4], options)
    pausing = [p for p in places if p.role in (PAUSING, OTHER_RAILS)]
    if pausing:
        job = _job(options, "job-6", pausing, 2, 10_000, 4_000, 90, 0, whole)
        # Seconds of each hour: of a pause, and of one that is shorter than the period.
        within = ((500, 515), (620, 626))
        pauses = tuple((hour * HOUR + a, hour * HOUR + b) for hour in range(options.hours) for a, b in within)
        other = tuple(p.number for p in pausing if p.role == OTHER_RAILS)
        jobs.append(replace(job, pauses=pauses, other_rails=other))
    return jobs


def _local_jobs(servers: list[Place], options: SampleOptions) -> list[Job]:
    """Return jobs of four neighbors each; every third four servers stay idle, every fifth four use only two rails."""
    chunks: dict[tuple[int, int], list[Place]] = {}
    for place in servers:
        chunks.setdefault((home_group(place.number), (place.slot - 5) // 4), []).append(place)
    jobs = []
    for (group, chunk), members in sorted(chunks.items()):
        if chunk % 3 == 2 or len(members) < 2:
            continue
        name = f"job-{group + 1}-{chunk + 1}"
        period = 250 * draw_one(options.seed, f"period/{name}", 20, 64)
        on = period * draw_one(options.seed, f"duty/{name}", 30, 50) // 100
        rate = draw_one(options.seed, f"rate/{name}", 60, 108)
        rails = 2 if chunk % 5 == 3 else RAILS
        jobs.append(_job(options, name, members, rails, period, on, rate, 0, options.hours * HOUR))
    return jobs


def _job(
    options: SampleOptions,
    name: str,
    members: list[Place],
    rails: int,
    period_ms: int,
    on_ms: int,
    gigabits: int,
    start: int,
    end: int,
) -> Job:
    phase = draw_one(options.seed, f"phase/{name}", 0, period_ms - 1)
    ordered = sorted(members, key=lambda place: (home_group(place.number), place.slot))
    return Job(
        name, tuple(place.number for place in ordered), rails, period_ms, on_ms, phase, gigabits * GIGABIT, start, end
    )


GPUS = 8
"""GPUs per server, and ranks per server."""
EARLY = 15
"""Iterations of the first task before the recorded time."""
JITTER_MS = 20
"""Maximum shift of the end of an iteration."""
LAST_WORDS_MS = 5_000
"""Time from the last iteration to the last line."""
DOWN_MS = 431_000
"""Time from the last line before a crash to the start of training after it."""
WEEK_MS = 7 * 24 * HOUR * 1000
VOCABULARY = 32_000


@dataclass(frozen=True)
class Shape:
    """Model and its training parameters."""

    model: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    sequence: int
    micro_batch: int
    accumulation: int
    zero_stage: int | None = None
    tensor_parallel: int = 1

    @property
    def params(self) -> int:
        """Parameters of a Llama-like model of this shape: three feed-forward matrices, two embeddings."""
        h = self.hidden
        return 2 * VOCABULARY * h + self.layers * (4 * h * h + 3 * h * self.ffn + 2 * h) + h


@dataclass(frozen=True)
class Iteration:
    """One iteration in milliseconds of the timeline; negative values are before the first hour."""

    number: int
    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Pod:
    """Name, server, first rank and start of one pod."""

    name: str
    server: int
    first_rank: int
    start_ms: int


@dataclass(frozen=True)
class Task:
    """One training task."""

    name: str
    """Name of the task's folder."""
    trainer: str
    shape: Shape
    pods: tuple[Pod, ...]
    """Pods by name: master, worker-1 .."""
    iterations: tuple[Iteration, ...]
    logged: int
    """Iterations that the first pod's log holds in full; fewer than all if the logs are truncated."""
    checkpoints: tuple[tuple[int, int], ...]
    """(iteration, extra milliseconds of the next iteration)."""
    job: str | None
    """Name of the job with the task's traffic; None if it has no traffic."""
    lost: tuple[Iteration, ...] = ()
    """Iterations from the last checkpoint to a crash; they are computed again."""
    resumed_ms: int | None = None
    """When training starts again after the crash."""

    @property
    def printed(self) -> tuple[Iteration, ...]:
        """All iterations in the order of the log, with those that a crash lost."""
        at = self.lost[0].number - 1 if self.lost else len(self.iterations)
        return (*self.iterations[:at], *self.lost, *self.iterations[at:])

    @property
    def by_rank(self) -> list[Pod]:
        """Pods in the order of their ranks."""
        return sorted(self.pods, key=lambda pod: pod.first_rank)

    @property
    def world(self) -> int:
        """Number of ranks of the task."""
        return GPUS * len(self.pods)

    @property
    def data_parallel(self) -> int:
        """Number of copies of the model."""
        return self.world // self.shape.tensor_parallel

    @property
    def global_batch(self) -> int:
        """Samples per iteration."""
        return self.shape.micro_batch * self.shape.accumulation * self.data_parallel

    @property
    def is_cut(self) -> bool:
        """True if the logs are truncated inside a line."""
        return self.logged < len(self.iterations)

    @property
    def last_line_ms(self) -> int:
        """Time of the last line that has a timestamp."""
        if self.trainer == "megatron" or self.is_cut:
            return self.iterations[self.logged - 1].end_ms
        return self.iterations[-1].end_ms + LAST_WORDS_MS + self.by_rank[-1].first_rank

    def line_ms(self, pod: Pod, iteration: Iteration, options: SampleOptions) -> int:
        """Return the time of a pod's line about an iteration.

        The pod with the first ranks writes its line as the iteration ends, the others up to 60 ms later.
        """
        if pod.first_rank == 0:
            return iteration.end_ms
        return iteration.end_ms + draw_one(options.seed, f"skew/{self.name}/{pod.name}/{iteration.number}", 0, 60)


PRETRAIN = Shape("model/sample-24b", 51, 6144, 16384, 48, 2048, 1, 4, zero_stage=1)
MEGATRON = Shape("", 65, 8064, 21504, 64, 2048, 1, 16, tensor_parallel=8)
FINETUNE = Shape("model/sample-31b", 57, 6656, 17920, 52, 2048, 3, 1, zero_stage=2)
PROBE = Shape("model/sample-1b", 22, 2048, 5632, 32, 2048, 2, 1)
CRASHED = Shape("model/sample-3b", 26, 3200, 8640, 32, 2048, 2, 2, zero_stage=1)
EARLIER = Shape("model/sample-7b", 32, 4096, 11008, 32, 4096, 1, 2, zero_stage=3)


def plan_tasks(jobs: list[Job], options: SampleOptions) -> list[Task]:
    """Return the tasks of a sample.

    - on job-1: two groups of leaves, started before the recorded time, with a checkpoint before it;
    - on job-4: Megatron-LM; every rank logs its connections, the last rank logs the iterations;
    - on job-5: the same servers an hour later; the logs are truncated;
    - on servers of job-4, at the same time for a while: no traffic, only progress bars;
    - on two servers of job-1, a week earlier: its traffic is not in the sample;
    - on the same servers, two weeks earlier: the task crashes two iterations after its checkpoint, and is restarted.
    """
    by_name = {job.name: job for job in jobs}
    first, fourth = by_name["job-1"], by_name["job-4"]
    tasks = _on_job(first, "deepspeed", PRETRAIN, options, before=EARLY, checkpoints=((EARLY // 2, 6_500),))
    tasks += _on_job(fourth, "megatron", MEGATRON, options)
    if "job-5" in by_name:
        tasks += _on_job(by_name["job-5"], "deepspeed", FINETUNE, options, is_cut=True)
    begin = options.seconds * 1000 // 3
    probe = _without_job("hf_trainer", PROBE, fourth.servers[:2], begin, 15_000, 4, options)
    if any(task.name == probe.name for task in tasks):  # in the same minute
        probe = _without_job("hf_trainer", PROBE, fourth.servers[:2], begin + 60_000, 15_000, 4, options)
    costs = ((10, 5_250), (30, 6_750))
    earlier = _without_job("deepspeed", EARLIER, first.servers[-2:], -WEEK_MS, 12_500, 40, options, costs)
    return sorted([*tasks, probe, earlier, _crashed(first.servers[-2:], options)], key=lambda task: task.name)


def _on_job(
    job: Job,
    trainer: str,
    shape: Shape,
    options: SampleOptions,
    *,
    before: int = 0,
    checkpoints: tuple[tuple[int, int], ...] = (),
    is_cut: bool = False,
) -> list[Task]:
    """Return the task with an iteration for each complete recorded pulse, and `before` more ahead of the first."""
    quiet = job.period_ms - job.on_ms
    pulse = -((job.phase_ms - quiet - job.start * 1000) // job.period_ms)
    ends = [
        begin + job.on_ms + quiet // 2
        for begin in range(job.phase_ms + pulse * job.period_ms, job.end * 1000 - job.period_ms + 1, job.period_ms)
        # In a shorter hour, a pulse at its edge would be cut, and its iteration would have no end.
        if options.seconds == HOUR or quiet <= begin % (HOUR * 1000) <= options.seconds * 1000 - job.period_ms
    ]
    if not ends:
        return []
    ahead = [
        ends[0] - (before + 1 - number) * job.period_ms - sum(cost for after, cost in checkpoints if after >= number)
        for number in range(before + 1)
    ]
    task = _task(trainer, shape, job.servers, [*ahead, *ends], options, checkpoints, job)
    return [replace(task, logged=task.logged * 4 // 5) if is_cut else task]


def _without_job(
    trainer: str,
    shape: Shape,
    servers: tuple[int, ...],
    begin_ms: int,
    each_ms: int,
    count: int,
    options: SampleOptions,
    checkpoints: tuple[tuple[int, int], ...] = (),
) -> Task:
    """Return a task that has no traffic, or whose traffic is not recorded."""
    ends = [
        begin_ms + number * each_ms + sum(cost for after, cost in checkpoints if after < number)
        for number in range(count + 1)
    ]
    return _task(trainer, shape, servers, ends, options, checkpoints)


def _task(
    trainer: str,
    shape: Shape,
    servers: tuple[int, ...],
    ends: list[int],
    options: SampleOptions,
    checkpoints: tuple[tuple[int, int], ...],
    job: Job | None = None,
) -> Task:
    """Return the task whose start and whose iterations end at about these milliseconds, with one pod per server.

    The ranks of the last two pods are swapped: the number in a name is not a rank.
    """
    jitter = job.name if job else f"{trainer}/{ends[0]}"
    noise = draw(options.seed, f"jitter/{jitter}", len(ends), -JITTER_MS, JITTER_MS).tolist()
    stamps = [end + shift for end, shift in zip(ends, noise, strict=True)]
    iterations = tuple(Iteration(number, *pair) for number, pair in enumerate(pairwise(stamps), start=1))
    name = f"{trainer}-{job.name if job else len(iterations)}"
    blocks = list(range(len(servers)))
    if len(blocks) > 2:
        blocks[-1], blocks[-2] = blocks[-2], blocks[-1]
    begin = stamps[0] // 1000 - 200  # pods start 200 s before the training
    pods = tuple(
        Pod(
            f"{name}-{f'worker-{number}' if number else 'master'}",
            servers[block],
            block * GPUS,
            (begin + draw_one(options.seed, f"pod/{name}/{number}", 0, 9 if number else 0)) * 1000,
        )
        for number, block in enumerate(blocks)
    )
    folder = f"{moment_utc(pods[0].start_ms):%Y%m%d-%H%M}-{len(pods)}"
    return Task(folder, trainer, shape, pods, iterations, len(iterations), checkpoints, job.name if job else None)


def _crashed(servers: tuple[int, ...], options: SampleOptions) -> Task:
    """Return a task that crashes two iterations after its checkpoint, and goes on from there after `DOWN_MS`."""
    saved, crashed, cost_ms = 8, 10, 3_000
    whole = _without_job("deepspeed", CRASHED, servers, -2 * WEEK_MS, 9_000, 20, options, ((saved, cost_ms),))
    lost = whole.iterations[saved:crashed]
    resumed_ms = lost[-1].end_ms + DOWN_MS
    later = resumed_ms - lost[0].start_ms - cost_ms  # the checkpoint is not written again
    first, *others = (
        Iteration(one.number, one.start_ms + later, one.end_ms + later) for one in whole.iterations[saved:]
    )
    iterations = (*whole.iterations[:saved], replace(first, start_ms=resumed_ms), *others)
    return replace(whole, iterations=iterations, lost=lost, resumed_ms=resumed_ms)
