"""Time and memory limits for queries, enforced in a child process.

The engine checks for interrupts and counts memory only between chunks of rows. A single function call can block both
for any time. So the child limits its address space once the warehouse is open, and is killed after the timeout.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from warehouse.base.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

GRACE_SECONDS = 0.5
"""Time after the timeout in which a query may end by itself and finish its output."""
HEADROOM = 160 * 2**20
"""Address space in addition to the engine's own memory: Python, threads, result buffers."""
INTERRUPTED = 130
_STATEMENT = "import sys; sys.path[:] = {path!r}; from warehouse.reader.query_child import child; child({descriptor})"


def run_in_child(arguments: Mapping[str, Any], stream: TextIO) -> int:
    """Run `run_query` with these arguments in a child process and return its exit status.

    Raises
    ------
    QueryError
        If the query fails, or exceeds its time or memory limit.
    """
    timeout, memory, output = arguments["timeout"], arguments["memory"], arguments["output"]
    stream.flush()
    reading, writing = os.pipe()
    folder = tempfile.mkdtemp(prefix="warehouse-")
    code = _STATEMENT.format(path=[one or str(Path.cwd()) for one in sys.path], descriptor=writing)
    out, err = _descriptor(stream), _descriptor(sys.stderr)
    try:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            pass_fds=[writing],
            env={**os.environ, "TMPDIR": folder, "MALLOC_ARENA_MAX": "2"},
        )
        os.close(writing)
        try:
            seconds = None if timeout is None else timeout + GRACE_SECONDS
            child_out, child_err = process.communicate(pickle.dumps(dict(arguments)), seconds)
        except subprocess.TimeoutExpired as error:
            _kill(process, output)
            raise too_long(timeout) from error
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                _kill(process, output)
            return INTERRUPTED
        stream.write((child_out or b"").decode())
        sys.stderr.write((child_err or b"").decode())
        with os.fdopen(os.dup(reading), "rb") as pipe:
            content = pipe.read()
    finally:
        os.close(reading)
        shutil.rmtree(folder, ignore_errors=True)
    if content:
        raise _as_error(pickle.loads(content))  # noqa: S301 - of our own child
    if process.returncode < 0:
        _kill(process, output)
        raise too_much(memory)
    return process.returncode


def too_long(timeout: float) -> QueryError:
    """Return the error for a query that exceeded its timeout."""
    hint = "--timeout SECONDS gives it more, --limit N asks for less"
    return QueryError(f"the query took longer than {timeout:g} s", hint=hint)


def too_much(memory: str | None) -> QueryError:
    """Return the error for a query that exceeded its memory limit."""
    limit = f"--memory {memory}" if memory else "the machine"
    return QueryError(f"the query needs more memory than {limit} allows", hint="--memory SIZE gives it more")


def limit_memory(size: str) -> None:
    """Limit this process to its current memory plus `size` (such as `200MB`) plus `HEADROOM`."""
    import resource

    from warehouse.base.settings import memory_bytes

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + memory_bytes(size) + HEADROOM
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _descriptor(stream: TextIO) -> int | IO[bytes]:
    """Return the stream's file descriptor for the child, or a pipe if the stream has none."""
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return subprocess.PIPE


def _kill(process: subprocess.Popen[bytes], output: Path | None) -> None:
    """Kill the child and remove its partly written output file."""
    process.kill()
    process.communicate()
    if output:
        output.absolute().with_name(f".{output.name}.{process.pid}").unlink(missing_ok=True)


def _as_error(fields: tuple[Any, ...]) -> QueryError:
    message, place, hint, details, source = fields
    error = QueryError(message, place=place, hint=hint, details=details)
    error.source = source
    return error
