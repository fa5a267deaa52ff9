"""Time and memory limits for queries, enforced in a child process.

The engine checks for interrupts and counts memory only between chunks of rows. A single function call can block both
for any time. So the child limits its address space once the warehouse is open, and is killed after the timeout.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.reader.request import EXPLANATION_SECONDS, INTERRUPTED, Request
from warehouse.store.atomic import output_path, scratch_folder

START_SECONDS = 30.0
"""Time in which the child opens the warehouse, before the clock of the query begins."""
GRACE_SECONDS = 0.5
"""Time after an interrupt or an explanation in which the child may end by itself."""
HEADROOM = 160 * 2**20
"""Address space in addition to the engine's own memory: Python, threads, result buffers."""
_MOST_MILLISECONDS = 2**31 - 1  # poll(2) takes a C int
BEGUN, ANSWERED = b"b", b"a"
"""Messages of the child; any other is its pickled error."""
_STATEMENT = "import sys; sys.path[:] = {path!r}; from warehouse.reader.bounded_query import child; child({descriptor})"


def run_in_child(work: Callable[..., int], request: Request) -> int:
    """Run a function with a request in a child process, which writes to stdout and stderr, and return its exit status.

    The function is called as `work(request, begins=..., answered=...)`, and returns a status.

    Raises
    ------
    QueryError
        If the query fails, or exceeds its time or memory limit.
    """
    try:
        sys.stdout.fileno()
    except (OSError, ValueError) as error:
        # A stdout of Python's own: a process cannot write to it.
        raise QueryError("a limit of time or memory needs a stdout that a process can write to") from error
    sys.stdout.flush()
    reading, writing = os.pipe()
    with (
        scratch_folder("sql") as folder,
        os.fdopen(reading, "rb", buffering=0) as told,
    ):
        # An empty entry of sys.path is the working folder, and `python -c` puts none of the parent's entries there.
        code = _STATEMENT.format(path=[one or str(Path.cwd()) for one in sys.path], descriptor=writing)
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=sys.stdout,
            stderr=sys.stderr,
            pass_fds=[writing],
            # Each arena of malloc reserves 64 MB of address space, which the limit counts.
            # A killed child cannot remove what it spilled, so it spills to the folder of its parent.
            env={
                **os.environ,
                "TMPDIR": str(folder),
                "MALLOC_ARENA_MAX": "2",
                "PYTHONIOENCODING": f"{sys.stdout.encoding}:backslashreplace",
            },
        )
        # While the parent holds this end, the pipe does not end with the child.
        os.close(writing)
        try:
            return _status(process, work, request, told)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            _kill(process, request.output)
            return INTERRUPTED


def _status(process: subprocess.Popen[bytes], work: Callable[..., int], request: Request, told: FileIO) -> int:
    """Wait for the child to begin, for its answer within the timeout, and for its explanations; return its status."""
    timeout = request.timeout
    assert process.stdin
    # A child that died before it read is reported below, by its status.
    with suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(pickle.dumps((work, request)))
    message = BEGUN
    for grace in (START_SECONDS, 0):
        if message == BEGUN:
            if not _is_readable(told, None if timeout is None else timeout + grace):
                _kill(process, request.output)
                hint = "--timeout SECONDS gives it more, --limit N asks for less"
                raise QueryError(f"the query took longer than {timeout:g} s", hint=hint)
            message = told.read(1)
    if message not in (b"", ANSWERED):
        process.wait()
        # The byte that was taken for a message is the first of the pickle.
        raise pickle.loads(message + told.readall())  # noqa: S301 - of our own child
    try:
        status = process.wait(EXPLANATION_SECONDS + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        status = -signal.SIGKILL
    # Killed by a signal: without an answer, the limit of the address space is the usual cause.
    if status < 0:
        _kill(process, request.output)
        if message != ANSWERED:
            raise too_much(request.memory)
    return max(status, 0)


def child(descriptor: int) -> None:
    """Do the work that stdin describes; write to the descriptor when it begins and has answered, or its error."""
    work, request = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    # A shell's background job ignores SIGINT, and Python would keep that; but the parent stops the child by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def begins() -> None:
        if request.memory:
            _limit_memory(request.memory)
        os.write(descriptor, BEGUN)

    error: Exception | None = None
    status = 1
    try:
        status = work(request, begins=begins, answered=lambda: os.write(descriptor, ANSWERED))
        # `os._exit` flushes nothing, and a full disk must become an error here.
        sys.stdout.flush()
    except (WarehouseError, OSError) as raised:
        error = raised
    except MemoryError:
        error = too_much(request.memory)
    except KeyboardInterrupt:
        status = INTERRUPTED
    if error:
        os.write(descriptor, pickle.dumps(error))
    os._exit(status)  # skip cleanup: the engine's threads may hold locks that a normal exit waits for


def _is_readable(pipe: FileIO, seconds: float | None) -> bool:
    """Wait until a pipe has bytes or is closed; return False if it takes too long."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(None if seconds is None else min(1000 * seconds, _MOST_MILLISECONDS)))


def too_much(memory: str | None) -> QueryError:
    """Return the error for a query that exceeded its memory limit."""
    limit = f"--memory {memory}" if memory else "the machine"
    return QueryError(f"the query needs more memory than {limit} allows", hint="--memory SIZE gives it more")


def _limit_memory(size: str) -> None:
    """Limit this process to its current memory plus `size` (such as `200MB`) plus `HEADROOM`."""
    import resource

    from warehouse.base.settings import memory_bytes

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    # RLIMIT_AS counts all reserved addresses, of which Python and the engine already hold many.
    limit = pages * resource.getpagesize() + memory_bytes(size) + HEADROOM
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _kill(process: subprocess.Popen[bytes], output: Path | None) -> None:
    """Kill the child and remove its partly written output file."""
    process.kill()
    process.wait()
    if output:
        # The name has the child's process id, so no other writer's file is removed.
        output_path(output, process.pid).unlink(missing_ok=True)
