"""The topology workbook `<cluster>.xlsx`: which NIC hangs on which leaf port, and what its NICs are called.

Docs: docs/formats/workbook.md. Two sheets, two relations, no join: they share no address. Nothing is filled
in or repaired here; gaps and contradictions are for the models to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from warehouse.errors import DataError, Place
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.headers import Columns, Row, ignored_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class _Sheet:
    relation: RawRelation
    titles: tuple[str, ...]
    """How the sheet may be called, the published name first."""
    columns: Columns
    identifying: tuple[str, ...]
    """A row that has none of these says nothing."""
    anonymous: str
    """Why such a row is rejected."""


_PUBLISHED = ("accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname")

_SHEETS = {
    sheet.relation.name: sheet
    for sheet in (
        _Sheet(
            RawRelation(
                "cluster_topology",
                "Which NIC of which server hangs on which leaf port, as published.",
                {**dict.fromkeys(_PUBLISHED, "VARCHAR"), "sheet_row": "INTEGER"},
            ),
            titles=("cluster topology",),
            columns={name: (name,) for name in _PUBLISHED},
            identifying=("accessport", "portname", "serverIP", "sysname"),
            anonymous="names neither a port nor a server",
        ),
        _Sheet(
            RawRelation(
                "gpu_nics",
                "What the logs and the operating system call the NICs of each server, as published.",
                {"gpu_ip": "VARCHAR", "nic_name1": "VARCHAR", "nic_name2": "VARCHAR", "sheet_row": "INTEGER"},
            ),
            titles=("GPU NIC info", "server NIC info"),
            columns={
                "gpu_ip": ("GPU IP", "server IP"),
                "nic_name1": ("NIC name 1",),
                "nic_name2": ("NIC name 2",),
            },
            identifying=("gpu_ip",),
            anonymous="names no server",
        ),
    )
}


class TopologyWorkbook:
    """The format `zhejiang.workbook`."""

    name = "zhejiang.workbook"
    version = 1
    relations: Sequence[RawRelation] = tuple(sheet.relation for sheet in _SHEETS.values())

    def claims(self, path: Path) -> bool:
        """Tell whether it is an `.xlsx` and not the lock file that an open one leaves."""
        return path.suffix.lower() == ".xlsx" and not path.name.startswith("~$")

    def inspect(self, file: RawFile) -> RawFile:
        """Look for both sheets and compare their headers.

        One good sheet makes the file `partial`; with none it is no topology workbook.
        """
        try:
            tables = list(_tables(file.path, file.bytes, file.mtime_ns).values())
        except DataError as error:
            return file.but(status=SKIPPED, reason=error.message)
        problems = [table.problem for table in tables if table.problem]
        if len(problems) == len(tables):
            return file.but(status=SKIPPED, reason=f"not a topology workbook: {', '.join(problems)}")
        read = [f"only sheet {table.title!r} is read" for table in tables if problems and not table.problem]
        extra = [name for table in tables if not table.problem for name in table.ignored]
        reason = "; ".join([*read, *problems, *ignored_columns(extra)])
        return file.but(status=PARTIAL if problems else READ, reason=reason or None)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Give the rows of one sheet of each file; a file that lacks only this sheet gives none.

        Raises
        ------
        DataError
            When a file cannot be opened, or is no longer what it was when it was inspected.
        """
        sheet = _SHEETS[relation]
        for file in files:
            try:
                now = file.path.stat()
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error
            table = _tables(file.path, now.st_size, now.st_mtime_ns)[relation]
            if table.problem:
                if file.status == READ:
                    raise DataError(f"changed while it was read: {table.problem}", place=Place(file.path))
                continue
            for row in table.rows:
                problem = row.problem
                if problem is None and not any(row.values[name] for name in sheet.identifying):
                    problem = sheet.anonymous
                if problem:
                    reject.append(Rejected(file.release_path, row.number, problem, row.text))
                else:
                    yield {**row.values, "sheet_row": row.number, "filename": str(file.read_path)}


class _Table(NamedTuple):
    """A sheet that was read."""

    title: str
    problem: str | None
    ignored: tuple[str, ...]
    rows: tuple[Row, ...]


@lru_cache(maxsize=2)
def _tables(path: Path, size: int, mtime_ns: int) -> Mapping[str, _Table]:
    """Read both sheets at once: opening a workbook costs more than its few thousand rows.

    Size and time are only there to tell a changed file from the one that was read before.
    """
    found = {}
    with xlsx.opened(path) as book:
        for name, sheet in _SHEETS.items():
            table = book.table(sheet.titles, sheet.columns)
            good = table.problem is None
            found[name] = _Table(
                table.titles[0] if table.titles else "",
                table.problem,
                tuple(table.header.ignored) if good else (),
                tuple(table.rows()) if good else (),
            )
    return found


WORKBOOK = TopologyWorkbook()
