"""Raw formats, in order of precedence. A shipped format is one module here and one line in `known_formats`.

Other packages add formats by the entry point `warehouse.formats`: docs/own-format.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import SettingsError
from warehouse.formats.base import ArchiveFormat, CsvFormat, Format, TableFormat

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from warehouse.formats.traces import Trace

GROUP = "warehouse.formats"
"""Group of the entry points of other packages; each is a format, or a tuple of formats."""


def known_formats(
    log_lines: Sequence[Path] = (), hour_columns: Sequence[Path] = (), traces: Sequence[Trace] | None = None
) -> tuple[Format, ...]:
    """Return all formats. They are imported on first call: a build that is up to date needs none.

    `log_lines` are a project's own files of kinds of log lines, `hour_columns` those of headers of hour tables.
    `traces` are its mappings; None for the shipped ones.
    """
    from warehouse.formats.acme import POWER, PUBLISHED, WIDE
    from warehouse.formats.task_list import TASK_LIST
    from warehouse.formats.traces import ARCHIVE, shipped_traces
    from warehouse.formats.zhejiang.hour_tables import hour_formats
    from warehouse.formats.zhejiang.port_counters import PORT_COUNTERS
    from warehouse.formats.zhejiang.task_log import POD_STARTS, TaskLog
    from warehouse.formats.zhejiang.workbook import WORKBOOK

    hours: Sequence[Format] = hour_formats(hour_columns)
    shipped: tuple[Format, ...] = (
        *(PORT_COUNTERS, *hours, WORKBOOK, POD_STARTS, TaskLog(log_lines)),
        *(one for trace in (shipped_traces() if traces is None else traces) for one in trace.formats),
        *(PUBLISHED, WIDE, POWER, ARCHIVE, TASK_LIST),
    )
    return (*shipped, *_installed(shipped))


def _installed(shipped: Sequence[Format]) -> Iterator[Format]:
    """Yield the formats of other packages, by name of their entry points.

    Raises
    ------
    SettingsError
        If one cannot be loaded, is no format, or has the name or relation of another format.
    """
    names = {one.name for one in shipped} | {fed.full_name for one in shipped for fed in one.relations}
    for point in _entry_points(tuple(sys.path)):  # sys.path is only the key of the cache
        package = point.dist.name if point.dist else "another package"
        hint = f"repair or uninstall {package}; docs/own-format.md says what a format is"
        try:
            loaded = point.load()
        except Exception as error:  # code of another package
            raise SettingsError(
                f"the format {point.value} of {package} cannot be loaded: {error}", hint=hint
            ) from error
        for one in loaded if isinstance(loaded, tuple) else (loaded,):
            if not isinstance(one, CsvFormat | TableFormat | ArchiveFormat):
                raise SettingsError(f"{point.value} of {package} is no format", hint=hint)
            taken = sorted(names & {one.name, *(fed.full_name for fed in one.relations)})
            if taken:
                raise SettingsError(f"{point.value} of {package}: there is a {taken[0]} already", hint=hint)
            names |= {one.name, *(fed.full_name for fed in one.relations)}
            yield one


@cache
def _entry_points(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of other packages by name; a build asks several times, and looks at all packages once."""
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)))
