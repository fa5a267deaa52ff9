"""Raw formats, in order of precedence. A new format is one module here and one line in `known_formats`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warehouse.formats.base import Format


def known_formats(log_lines: Sequence[Path] = (), hour_columns: Sequence[Path] = ()) -> tuple[Format, ...]:
    """Return all formats. They are imported on first call: a build that is up to date needs none.

    `log_lines` are a project's own files of kinds of log lines, `hour_columns` those of headers of hour tables.
    """
    from warehouse.formats.acme import jobs as acme
    from warehouse.formats.acme.ipmi import POWER
    from warehouse.formats.acme.pickles import PUBLISHED
    from warehouse.formats.acme.utilization_wide import WIDE
    from warehouse.formats.itp import jobs as itp
    from warehouse.formats.itp.archives import ARCHIVE
    from warehouse.formats.own.task_list import TASK_LIST
    from warehouse.formats.zhejiang.hour_tables import hour_formats
    from warehouse.formats.zhejiang.pod_starts import POD_STARTS
    from warehouse.formats.zhejiang.port_counters import PORT_COUNTERS
    from warehouse.formats.zhejiang.task_log import TaskLog
    from warehouse.formats.zhejiang.workbook import WORKBOOK

    hours: Sequence[Format] = hour_formats(hour_columns)
    shipped: tuple[Format, ...] = (
        *(PORT_COUNTERS, *hours, WORKBOOK, POD_STARTS, TaskLog(log_lines)),
        *(*acme.FORMATS, PUBLISHED, WIDE, POWER),
        *(*itp.FORMATS, ARCHIVE, TASK_LIST),
    )
    return shipped
