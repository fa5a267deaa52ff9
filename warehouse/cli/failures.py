"""Failures of the system, of a library or of the engine, as errors with one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

from warehouse.base.errors import WarehouseError

_MANY_FILES = "Too many open files"


def print_error(error: Exception, target: str | Path | None, *, for_agent: bool = False) -> int:
    """Print an error as one sentence on stderr and return its exit status; raise an error in this program.

    For an agent, it is one line of JSON.
    """
    from warehouse.base.text import error_text

    told = as_warehouse_error(error)
    if told is None:
        raise error
    if told.hint and target:
        from warehouse.base.text import for_target

        told.hint = for_target(told.hint, Path(target))
    if for_agent:
        from warehouse.reader.output import error_line

        sys.stderr.write(error_line(told))
        return told.exit_status
    import shutil

    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    sys.stderr.write(f"{error_text(told, width)}\n")
    return told.exit_status


def as_warehouse_error(error: Exception) -> WarehouseError | None:
    """Return an error to print as a sentence, or None for an error in this program."""
    # First, as the limit shows as an error of the system, of the engine or of an import.
    if _MANY_FILES in str(error):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
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
    engine = sys.modules.get("duckdb")
    if engine and isinstance(error, engine.Error):
        from warehouse.engine.duckdb_errors import is_full_disk, sentence
        from warehouse.reader.query_errors import FULL

        return WarehouseError(FULL if is_full_disk(str(error)) else f"the engine failed: {sentence(error)}")
    return None
