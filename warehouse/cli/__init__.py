"""Command line: one module per group of commands, whose imports happen when a command runs."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
GARBAGE = 1_000_000
"""Objects between two runs of the garbage collector.

Most commands end before the first run, which costs 5% of a start. Python runs the collector once more at exit.
gc.freeze() would avoid that, but DuckDB's module then reports leaks.
"""
GROUPS = {
    "build_commands": ("build", "plan"),
    "test_commands": ("test",),
    "query_commands": ("sql", "findings", "cite"),
    "find_commands": ("ls", "show", "lineage", "render"),
    "doctor_commands": ("doctor",),
    "history_commands": ("diff", "verify", "builds", "rollback", "relocate", "clean"),
    "publish_commands": ("export", "publish", "report", "docs"),
    "start_commands": ("sample", "demo", "init"),
    "agent_commands": ("mcp", "skill"),
}
"""Modules of this package and their commands. A command imports its own module alone, for a fast start."""
EXAMPLES = """\
examples:
  warehouse demo                              a planted sample, built and shown
  warehouse doctor -d ~/downloads/release     what is in there, what is not
  warehouse build -d ~/downloads/release      read, join, check, publish
  warehouse findings                          what to look at first
  warehouse sql -q nic --server GPU-35        a named query
  warehouse sql "FROM metrics.leaf_hour"      your own
  warehouse report report.html                one page with charts, to send

Options can also stand in warehouse.toml, or in WAREHOUSE_DATA and the like.
Exit status: 0 done, 1 model or check failed, 2 usage or SQL, 3 target is held.
"""


def parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of all commands or, for a given command, the part that it needs."""
    from importlib import import_module

    from warehouse.base.version import __version__
    from warehouse.cli.options import COMMANDS, Parser

    top = Parser(
        prog="warehouse",
        description="A SQL warehouse for public traces of GPU clusters that train language models.",
        epilog=EXAMPLES,
    )
    top.add_argument("--version", action="version", version=f"warehouse {__version__}")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True, prog="warehouse")
    groups = [group for group, names in GROUPS.items() if command in names] or GROUPS
    for group in () if command == "--version" else groups:
        module = import_module(f"warehouse.cli.{group}")
        for name in GROUPS[group]:
            COMMANDS[name].add(commands, name, module)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; print errors as one sentence on stderr, never a traceback.

    Without `arguments`, those of the process, the process ends here. Python would clean up first. Then the engine
    prints dozens of lines about objects that are still there, and a library that was interrupted may fail.
    """
    if arguments is not None:
        return _run(arguments)
    sys.stdout, sys.stderr = (  # a stream that the caller closed is None
        stream or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w") for stream in (sys.stdout, sys.stderr)
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")  # a character that the encoding lacks
    status = _run(None)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it
            stream.flush()
    os._exit(status)


def _run(arguments: Sequence[str] | None) -> int:
    """Run one command and return its exit status."""
    gc.set_threshold(GARBAGE)
    given: argparse.Namespace | None = None
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _interrupts_raised():
            if words[:1] == ["sql"]:
                from warehouse.cli.query_commands import with_parameters

                words = with_parameters(words)
            if not words:
                from warehouse.cli.state import say_state

                return say_state()
            # So that the command's own parser names the nearest of its options.
            given, unknown = parser(words[0]).parse_known_args(words)
            if unknown:
                given.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
            status = int(given.run(given))
        sys.stdout.flush()  # detect a closed pipe here, not when Python exits
        return status
    except KeyboardInterrupt:
        sys.stderr.write(
            "\ninterrupted\n" if sys.stderr.isatty() else "interrupted\n"
        )  # a terminal has already shown ^C
        return INTERRUPTED
    except BrokenPipeError:
        # Otherwise the flush at Python's exit fails once more, with a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as raised:
        from warehouse.cli.failures import print_error

        return print_error(raised, getattr(given, "target", None), for_agent=_is_for_agent(words))


def _is_for_agent(words: Sequence[str]) -> bool:
    """Return True if an error of a command is written for an agent: a format or file that is given to `sql` wins.

    The words may be wrong, so they are not parsed.
    """
    from warehouse.reader.output import is_agent

    chosen = {"--format", "--json", "-o", "--output"} & {word.partition("=")[0] for word in words}
    return not (words[:1] == ["sql"] and chosen) and not sys.stdout.isatty() and is_agent()


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
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error
    finally:
        sys.unraisablehook = usual
