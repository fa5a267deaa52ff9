"""Command line: one module per group of commands, whose imports happen when a command runs."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from warehouse.base.errors import WarehouseError
from warehouse.cli.commands import COMMANDS, parser, with_parameters

__all__ = ["main", "parser", "print_error"]

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; print errors as one sentence on stderr, never a traceback.

    Without `arguments`, those of the process, the process ends here. Python would clean up first. Then the engine
    prints dozens of lines about objects that are still there, and a library that was interrupted may fail.
    """
    if arguments is not None:
        return _run(list(arguments))
    sys.stdout, sys.stderr = (  # a stream that the caller closed is None
        stream or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w") for stream in (sys.stdout, sys.stderr)
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")  # a character that the encoding lacks
    status = _run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it
            stream.flush()
    os._exit(status)


def _run(words: list[str]) -> int:
    """Run one command and return its exit status."""
    # Most commands end before the first run of the garbage collector, which costs 5% of a start. Python runs it once
    # more at exit: gc.freeze() would avoid that, but DuckDB's module then reports leaks.
    gc.set_threshold(1_000_000)
    given = argparse.Namespace()
    try:
        with _interrupts_raised():
            if not words:
                from warehouse.cli.find_commands import say_state

                say_state()
                return 0
            # So that the command's own parser names the nearest of its options.
            given, unknown = parser(words[0]).parse_known_args(with_parameters(words))
            if unknown:
                given.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
            module = import_module(f"warehouse.cli.{COMMANDS[given.command][0]}")
            status = getattr(module, f"run_{given.command}")(given) or 0
        sys.stdout.flush()  # detect a closed pipe here, not when Python exits
        return status
    except KeyboardInterrupt:
        # A terminal has already shown ^C.
        sys.stderr.write("\ninterrupted\n" if sys.stderr.isatty() else "interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Otherwise the flush at Python's exit fails once more, with a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as raised:
        return print_error(raised, getattr(given, "target", None), for_agent=_is_for_agent(words))


@contextmanager
def _interrupts_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt for interrupts that arrive in another form.

    DuckDB raises an error of its own for Ctrl-C, and Python drops the exception while an object is being deleted.
    """
    usual = sys.unraisablehook

    def again(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is KeyboardInterrupt:
            import signal
            import threading

            # Later, as an exception that is raised at once would be dropped, too.
            later = threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
            later.daemon = True
            later.start()
        else:
            usual(lost)

    sys.unraisablehook = again
    try:
        yield
    except Exception as error:
        # After a second Ctrl-C, the engine may still be busy when its connection is closed, and say so.
        is_second = isinstance(error.__context__, KeyboardInterrupt)
        if not is_second and (not isinstance(error, RuntimeError) or str(error) != "Query interrupted"):
            raise
        raise KeyboardInterrupt from error
    finally:
        sys.unraisablehook = usual


def _is_for_agent(words: Sequence[str]) -> bool:
    """Return True if an error of a command is written for an agent: a format or file that is given to `sql` wins.

    The words may be wrong, so they are not parsed.
    """
    from warehouse.reader.output import is_agent

    chosen = {"--format", "--json", "-o", "--output"} & {word.partition("=")[0] for word in words}
    return not (words[:1] == ["sql"] and chosen) and not sys.stdout.isatty() and is_agent()


def print_error(error: Exception, target: str | Path | None, *, for_agent: bool = False) -> int:
    """Print an error as one sentence on stderr and return its exit status; raise an error in this program.

    For an agent, it is one line of JSON.
    """
    from warehouse.base.text import error_text, for_target

    told = _as_warehouse_error(error)
    if told is None:
        raise error
    if told.hint and target:
        told.hint = for_target(told.hint, Path(target))
    if for_agent:
        from warehouse.reader.output import error_line

        sys.stderr.write(error_line(told))
        return told.exit_status
    import shutil

    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    sys.stderr.write(f"{error_text(told, width)}\n")
    return told.exit_status


def _as_warehouse_error(error: Exception) -> WarehouseError | None:
    """Return a failure of the system, of a library or of the engine with its sentence; None for one of this program."""
    import resource

    # First, as the limit shows as an error of the system, of the engine or of an import, and a low one as anything.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if "Too many open files" in str(error) or (0 <= most < 64 and not isinstance(error, WarehouseError)):
        return WarehouseError(f"only {most} files may be open at once, and more are needed", hint="ulimit -n 1024")
    if isinstance(error, WarehouseError):
        return error
    if isinstance(error, OSError):  # for example, a full disk or a file deleted meanwhile
        where = f"{error.filename}: " if error.filename else ""
        return WarehouseError(f"{where}{error.strerror or error}")
    if isinstance(error, ImportError | MemoryError):  # a library that fails to load, such as NumPy with little memory
        name = getattr(error, "name", None) or "a library"
        problem = "the memory is too small" if isinstance(error, MemoryError) else f"{name} cannot be loaded"
        return WarehouseError(problem, hint="ulimit -v limits the memory; more of it, or --threads 1, may help")
    # Not imported for this: an error of the engine exists only if its module does.
    engine = sys.modules.get("_duckdb") or sys.modules.get("duckdb")
    if engine and isinstance(error, engine.Error):
        from warehouse.engine.duckdb_errors import is_full_disk, sentence
        from warehouse.reader.query_errors import FULL

        return WarehouseError(FULL if is_full_disk(str(error)) else f"the engine failed: {sentence(error)}")
    return None
