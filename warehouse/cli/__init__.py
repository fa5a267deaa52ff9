"""The command line: one module a group of commands; each imports what it needs when it runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

INTERRUPTED = 130
GARBAGE = 1_000_000
"""Objects between two looks for circles of garbage: most commands end before the first, which costs a twentieth.

At the end Python looks once more; with gc.freeze() it would not, but DuckDB's module reports what is left as leaks."""
GROUPS = {
    "build_commands": ("build", "plan"),
    "test_commands": ("test",),
    "query_commands": ("sql", "findings", "cite"),
    "find_commands": ("ls", "show", "lineage", "render"),
    "doctor_commands": ("doctor",),
    "history_commands": ("diff", "verify", "builds", "rollback", "relocate", "clean"),
    "publish_commands": ("export", "publish", "report", "docs"),
    "start_commands": ("sample", "demo", "init"),
    "completion_commands": ("completion",),
}
"""The modules of this package and their commands: a command's start-up imports its own module alone."""
EXAMPLES = """\
examples:
  warehouse demo                              a planted sample, built and shown
  warehouse doctor -d ~/downloads/release     what is in there, what is not
  warehouse build -d ~/downloads/release      read, join, check, publish
  warehouse findings                          what to look at first
  warehouse sql -q nic --server GPU-35        a named query
  warehouse sql "FROM metrics.leaf_hour"      your own
  warehouse report report.html                one page with charts, to send
"""
SHORT = """\
commands (warehouse COMMAND --help; warehouse --help all says what each is for):
  read a release  doctor  plan  build  test
  ask it          findings  sql  ls  show  lineage  render  cite
  hand it on      report  docs  export  publish
  keep builds     builds  diff  verify  rollback  relocate  clean
  begin           demo  sample  init  completion

Options can also stand in warehouse.toml, or in WAREHOUSE_DATA and the like.
Exit status: 0 done, 1 model or check failed, 2 usage or SQL, 3 target is held.
"""


def parser(command: str = "") -> argparse.ArgumentParser:
    """The whole command line, or, where a command is given, as much of it as that one needs."""
    from importlib import import_module

    from warehouse.base.version import __version__
    from warehouse.cli.options import Help, Parser

    top = Parser(
        prog="warehouse",
        description="A SQL warehouse for the public traces of GPU clusters that train large language models.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    top.short = SHORT
    top.add_argument("--version", action="version", version=f"warehouse {__version__}")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True, prog="warehouse")
    for group in [group for group, names in GROUPS.items() if command in names] or GROUPS:
        import_module(f"warehouse.cli.{group}").add(commands)
    top.said = command if command in commands.choices else ""
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status. Errors are one sentence on stderr, never a traceback."""
    gc.set_threshold(GARBAGE)
    try:
        with _no_interrupt_lost():
            said = list(sys.argv[1:] if arguments is None else arguments)
            unchanged = None
            if said[:1] == ["build"]:
                from warehouse.cli.up_to_date import repeated

                if unchanged := repeated(said):
                    return 0
            if said[:1] == ["sql"]:
                from warehouse.cli.query_commands import with_parameters

                said = with_parameters(said)
            if not said:
                from warehouse.cli.state import say_state

                return say_state()
            _known_command(said)
            given = parser(said[0] if said else "").parse_args(said)
            given.words, given.has_changed = said, unchanged is False
            status = int(given.run(given))
        sys.stdout.flush()  # a reader that is gone is noticed here, not when Python ends
        return status
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n" if sys.stderr.isatty() else "interrupted\n")  # a terminal has shown ^C
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from warehouse.base.error_text import told
        from warehouse.base.errors import WarehouseError

        if isinstance(error, OSError):  # a disk that is full, a file that went away
            where = f"{error.filename}: " if error.filename else ""
            error = WarehouseError(f"{where}{error.strerror or error}")
        if isinstance(error, ImportError | MemoryError):  # a library that cannot start, such as NumPy in little memory
            name = getattr(error, "name", None) or "a library"
            problem = "the memory is too small" if isinstance(error, MemoryError) else f"{name} cannot be loaded"
            error = WarehouseError(problem, hint="ulimit -v limits the memory; more of it, or --threads 1, may help")
        if not isinstance(error, WarehouseError):
            raise
        import shutil

        width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
        sys.stderr.write(f"{told(error, width)}\n")
        if arguments is None:  # the engine's module would tell of what the error still holds, dozens of lines
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(error.exit_status)
        return error.exit_status


def _known_command(said: Sequence[str]) -> None:
    """Refuse a command that there is not, with the nearest one. Raises SettingsError."""
    known = [name for names in GROUPS.values() for name in names]
    if said and not said[0].startswith("-") and said[0] not in known:
        from warehouse.base.errors import SettingsError, nearest_hint

        hint = nearest_hint(said[0], known) or "warehouse --help lists the commands"
        raise SettingsError(f"no command {said[0]}", hint=hint)


@contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Make a KeyboardInterrupt of what is not one yet: Ctrl-C meets us in odd places.

    DuckDB has an error of its own for it, and Python drops it where an object is being deleted.
    """
    usual = sys.unraisablehook

    def again(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is KeyboardInterrupt:
            import signal
            import threading

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
