"""Worker processes that compute blocks of kernels and look at raw files: Python's lock lets threads only take turns.

Each worker is a Python process with a pipe each way. It reads a block, computes its rows and writes them back, until
its input ends. It therefore ends with this process, however that ends. Results arrive in the order of the blocks, and
only a few are computed ahead, so memory does not grow with the input.
"""

from __future__ import annotations

import pickle
import signal
import struct
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from warehouse.base.errors import ProcessError
from warehouse.kernels import UnsupportedError

if TYPE_CHECKING:
    from warehouse.engine.base import Source
    from warehouse.kernels import Arrays

Answer = tuple["list[Arrays]", "list[Arrays]"]
"""Chunks of a block, and those of its follower."""

WORKER_BYTES = 170_000_000
"""Memory of a worker: Python, NumPy, DuckDB, one block and its rows, and the rows once more where they are written."""
FEWEST_BLOCKS = 8
"""Blocks of a part that are worth the start of workers, which costs a fifth of a second of CPU each."""
_START = "import sys; sys.path[:] = sys.argv[1:]; from warehouse.engine.worker import main; main()"
_END_SECONDS = 1
"""Seconds for a process to end after its pipe: its own status is the reason to show."""
_SIZES = struct.Struct("<QI")
"""Bytes of the pickled answer, and number of the buffers that follow it."""
_SIZE = struct.Struct("<Q")


class Request(NamedTuple):
    """Block of a kernel to compute."""

    kernel: str
    block: object
    sources: Mapping[str, Source]
    """Relations that the kernel reads for a block."""
    follower: str | None = None
    """Kernel that computes its rows from those of this one."""

    @property
    def what(self) -> str:
        """What a worker does with it, in the past tense."""
        return f"computed a part by the kernel {self.kernel}"


class Call(NamedTuple):
    """Call of a function."""

    function: str
    """Module and name, `package.module:name`."""
    arguments: tuple[object, ...]
    what: str
    """What the function does, in the past tense."""


class Workers:
    """Pool of worker processes. Each is started at its first block.

    Parameters
    ----------
    count
        Number of processes; with one, this process computes all blocks itself.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads = ThreadPoolExecutor(count)  # one thread talks to one worker
        self._own = threading.local()
        self._started: list[_Worker] = []
        self._lock = threading.Lock()
        self._turns = _Turns()
        self._parts = 0
        self._is_closed = False

    @property
    def memory_bytes(self) -> int:
        """Memory that the workers may take."""
        return self._count * WORKER_BYTES if self._count > 1 else 0

    def are_worth(self, blocks: int, fewest: int | None = None) -> bool:
        """Return True if so many blocks are computed sooner by workers."""
        return self._count > 1 and blocks >= (FEWEST_BLOCKS if fewest is None else fewest)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._started]

    def rows(self, requests: Iterable[Request]) -> Iterator[Answer]:
        """Yield the rows of all blocks, in order. Raises UnsupportedError when the kernel does not support a block."""
        return self.results(requests)

    def results(self, requests: Iterable[Request | Call]) -> Iterator[Any]:
        """Yield the answers to all requests, in order.

        Raises
        ------
        ProcessError
            When a worker process ended twice during the same request.
        """
        ahead: deque[Future[object]] = deque()
        self._parts += 1
        try:
            for request in requests:
                ahead.append(self._threads.submit(self._compute, request))
                if len(ahead) > max(1, self._count // self._parts):
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            self._parts -= 1
            for one in ahead:
                one.cancel()

    def _compute(self, request: Request | Call) -> object:
        """Return an answer; after the death of a worker, try once more while no other request is answered."""
        try:
            with self._turns.turn():
                return self._worker().answer(request)
        except EOFError:
            if self._is_closed:
                raise
        with self._turns.turn(alone=True):
            try:
                return self._worker().answer(request)
            except EOFError:
                if self._is_closed:
                    raise
                raise self._own.worker.died(request.what) from None

    def _worker(self) -> _Worker:
        """Return the worker of this thread; start one if it has none that lives. Raises EOFError after `close`."""
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None or worker.process.poll() is not None:
            with self._lock:
                if self._is_closed:
                    raise EOFError
                if worker is not None:  # it died between two blocks
                    worker.end()
                    self._started.remove(worker)
                worker = self._own.worker = _Worker()
                self._started.append(worker)
        return worker

    def close(self) -> None:
        """End all workers at once, whatever they do."""
        with self._lock:
            self._is_closed = True
            for worker in self._started:
                worker.process.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._started:
            worker.end()


class _Turns:
    """Turns of threads: beside each other, or one alone, which goes before those that have not begun."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._alone_wanted = 0

    @contextmanager
    def turn(self, *, alone: bool = False) -> Iterator[None]:
        """Wait until no thread is, or wants to be, alone; with `alone`, until no other thread runs."""
        with self._changed:
            self._alone_wanted += alone
            self._changed.wait_for(lambda: not (self._running if alone else self._alone_wanted))
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._alone_wanted -= alone
                self._changed.notify_all()


class _Worker:
    """One worker process, seen from this process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - this package
            [sys.executable, "-P", "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C at a terminal is for the build, which ends its workers
        )

    def answer(self, request: Request | Call) -> object:
        """Send a request and return the answer. Raises EOFError if the process ends before."""
        given, received = self.process.stdin, self.process.stdout
        assert given is not None
        assert received is not None
        try:
            send(given, request)
            answer, error = receive(received)
        except (EOFError, BrokenPipeError):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_SECONDS)
            self.end()
            raise EOFError from None
        if error is not None:
            raise error
        return answer

    def died(self, what: str) -> ProcessError:
        """Return the error for a process that ended twice during the same request."""
        status = self.process.wait()
        what = f"twice, while it {what}"
        if status >= 0:
            return ProcessError(f"a worker process ended with status {status}, {what}")
        name = next((one.name for one in signal.Signals if one == -status), f"signal {-status}")
        return ProcessError(
            f"a worker process was killed ({name}), {what}",
            hint="If memory ran out: build with --threads 1, or with less else on this machine.",
        )

    def end(self) -> None:
        """Kill the process if it still runs, and close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # an unfinished request
                pipe.close()


def send(stream: IO[bytes], message: object) -> None:
    """Write a message; the bytes of arrays follow it as they lie in memory."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    stream.write(_SIZES.pack(len(body), len(buffers)))
    stream.write(body)
    for buffer in buffers:
        raw = buffer.raw()
        stream.write(_SIZE.pack(raw.nbytes))
        stream.write(raw)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read a message of `send`. Raises EOFError if the stream ends before."""
    size, count = _SIZES.unpack(_exactly(stream, _SIZES.size))
    body = _exactly(stream, size)
    buffers = [_exactly(stream, *_SIZE.unpack(_exactly(stream, _SIZE.size))) for _ in range(count)]
    return pickle.loads(body, buffers=buffers)  # noqa: S301 - from a process that this one started


def _exactly(stream: IO[bytes], size: int) -> bytes:
    read = stream.read(size)
    if len(read) < size:
        raise EOFError
    return read


def serve(given: IO[bytes], answers: IO[bytes], compute: Callable[[Request | Call], object]) -> None:
    """Answer requests until the input ends: what a worker process does."""
    while True:
        try:
            request = receive(given)
        except EOFError:
            return
        try:
            answer: tuple[object, Exception | None] = (compute(request), None)
        except UnsupportedError as error:
            answer = (None, error)
        except Exception as error:  # raised where the rows are wanted
            error.add_note(f"in a worker process:\n{traceback.format_exc()}")
            answer = (None, error)
        send(answers, answer)
