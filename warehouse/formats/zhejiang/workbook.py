"""The topology workbook `<cluster>.xlsx`: NICs on leaf ports, and the names of each server's NICs.

Docs: docs/formats/workbook.md. Two sheets feed two relations. They are not joined here, since they share no address. No
cell is filled in or repaired here. A row is rejected with its number if a cell lacks its published form. So is a row
that repeats a port or NIC of a row above. The models report other gaps and contradictions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.csv_headers import COLUMNS_IGNORED
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.values import ADDRESS, OCTET, PORT_NAME
from warehouse.formats.zhejiang.xlsx import Columns, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


class _Form(NamedTuple):
    """Pattern that a whole cell must match. If it has a group `name`, only that group is compared."""

    pattern: re.Pattern[str]
    like: str
    may_be_blank: bool = False


class _Unique(NamedTuple):
    """Columns whose values must be unique in a sheet. A row with one of them blank is exempt."""

    what: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class _Sheet:
    relation: RawRelation
    titles: tuple[str, ...]
    """Accepted titles of the sheet, the published title first."""
    columns: Columns
    forms: Mapping[str, _Form]
    unique: tuple[_Unique, ...]
    same: tuple[str, ...] = ()
    """Columns that must agree within a row."""

    def good(self, rows: Iterable[Row], title: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the good rows; append the others to `reject`."""
        seen: dict[tuple[str, ...], int] = {}
        for row in rows:
            stripped = {name: value and value.strip() for name, value in row.values.items()}
            problem = self.problem(row._replace(values=stripped), seen)
            if problem:
                reject.append(Rejected("", row.number, f"{problem} (sheet {title!r})", row.text))
            else:
                yield {**stripped, "sheet_row": row.number}

    def problem(self, row: Row, seen: dict[tuple[str, ...], int]) -> str | None:
        """Return the problem of a row, or record the row's keys in `seen` and return None."""
        if row.problem:
            return row.problem
        names: dict[str, str] = {}
        for column, form in self.forms.items():
            value, header = row.values[column], self.columns[column][0]
            if value is None:
                if not form.may_be_blank:
                    return f"{header} is blank"
                continue
            found = form.pattern.fullmatch(value)
            if found is None:
                return f"{header} is {value[:60]!r}, not like {form.like}"
            names[column] = found.groupdict().get("name", value)
        if len({names[column] for column in self.same if column in names}) > 1:
            return " and ".join(f"{column} {names[column]}" for column in self.same) + " differ"
        keys = [
            (key.what, *(names[column] for column in key.columns))
            for key in self.unique
            if names.keys() >= {*key.columns}
        ]
        for what, *parts in keys:
            if (what, *parts) in seen:
                return f"the {what} {' '.join(parts)} stands in row {seen[what, *parts]} already"
        seen.update(dict.fromkeys(keys, row.number))
        return None


def _form(pattern: str, like: str, *, may_be_blank: bool = False) -> _Form:
    return _Form(regex(pattern, re.ASCII), like, may_be_blank)


_PORT = _form(PORT_NAME, "TwoHundredGigE1/0/1:1")
_NIC = _form(r"[A-Za-z][A-Za-z0-9_.-]{0,14}", "ens10np0")
_PUBLISHED = ("accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname")

_SHEETS = {
    sheet.relation.name: sheet
    for sheet in (
        _Sheet(
            RawRelation(
                "cluster_topology",
                "Leaf port of each server NIC, as published.",
                {**dict.fromkeys(_PUBLISHED, "VARCHAR"), "sheet_row": "INTEGER"},
                limited=True,
            ),
            titles=("cluster topology",),
            columns={name: (name,) for name in _PUBLISHED},
            forms={
                "accessport": _PORT,
                "portname": _PORT._replace(may_be_blank=True),
                "serverIP": _form(ADDRESS, "10.107.222.1", may_be_blank=True),
                "nicname": _NIC._replace(may_be_blank=True),
                "switchIP": _form(ADDRESS, "10.107.208.111", may_be_blank=True),
                "switchname": _form(
                    r"(?:[A-Za-z0-9._-]*-)?(?P<name>(?:ST-leaf|Leaf)-[0-9]{1,4})(?:[.][A-Za-z0-9._-]*)?",
                    "NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825",
                ),
                "sysname": _form(r".*(?P<name>GPU-[1-9][0-9]{0,5})", "NH-DC-NM129-A01-28U-GPU-1"),
            },
            unique=(_Unique("port", ("switchname", "accessport")), _Unique("NIC", ("sysname", "nicname"))),
            same=("accessport", "portname"),
        ),
        _Sheet(
            RawRelation(
                "gpu_nics",
                "Names of each server's NICs in logs (HCA) and in the operating system, as published.",
                {"gpu_ip": "VARCHAR", "nic_name1": "VARCHAR", "nic_name2": "VARCHAR", "sheet_row": "INTEGER"},
                limited=True,
            ),
            titles=("GPU NIC info", "server NIC info"),
            columns={
                "gpu_ip": ("GPU IP", "server IP"),
                "nic_name1": ("NIC name1",),
                "nic_name2": ("NIC name 2",),
            },
            forms={
                # GPU-n is 10.107.254.n, GPU-(240 + n) is 10.107.255.n: no number has two addresses
                "gpu_ip": _form(
                    r"10[.]107[.](?:254[.](?:240|2[0-3][0-9]|1[0-9]{2}|[1-9][0-9]?)|255[.](?!0)" + OCTET + ")",
                    "10.107.254.1 to .240, or 10.107.255.1 to .255",
                ),
                "nic_name1": _form(r"mlx5_[0-9]{1,3}", "mlx5_2"),
                "nic_name2": _NIC,
            },
            unique=(_Unique("adapter", ("gpu_ip", "nic_name1")), _Unique("NIC", ("gpu_ip", "nic_name2"))),
        ),
    )
}


class TopologyWorkbook:
    """Format `zhejiang.workbook`."""

    name = "zhejiang.workbook"
    version = 3
    relations: Sequence[RawRelation] = tuple(sheet.relation for sheet in _SHEETS.values())

    def claims(self, path: Path) -> bool:
        """Return True if the file is an `.xlsx` and not the lock file of an open workbook."""
        return path.suffix.lower() == ".xlsx" and not path.name.startswith("~$")

    def inspect(self, file: RawFile) -> RawFile:
        """Compare the headers of both sheets.

        With one good sheet the file is `partial`; with none it is not a topology workbook.
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
        ignored = [f"{COLUMNS_IGNORED}{', '.join(extra)[:200]}"] if extra else []
        reason = "; ".join([*read, *problems, *ignored])
        return file.but(status=PARTIAL if problems else READ, reason=reason or None)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of one sheet of each file; a file without this sheet yields none.

        Raises
        ------
        DataError
            If a file cannot be opened, changed since it was inspected or has too many bad rows, or if two different
            workbooks of a cluster have this sheet.
        """
        file_of_cluster: dict[str | None, RawFile] = {}
        for file in files:
            table = _table(file, relation)
            if table is None:
                continue
            first = file_of_cluster.setdefault(file.cluster, file)
            if first is not file and first.digest == file.digest:
                reject.append(Rejected(file.release_path, 1, f"not read: the same file as {first.release_path}", ""))
                continue
            if first is not file:
                raise DataError(
                    f"two different workbooks of {file.cluster} have the sheet {table.title!r}",
                    details=[f"  {first.path}", f"  {file.path}"],
                    hint="Keep one of them: move the other out of the data folders.",
                )
            if table.excess:
                raise table.excess
            reject += (one._replace(file=file.release_path) for one in table.rejected)
            yield from ({**row, "filename": str(file.read_path)} for row in table.rows)


class _Table(NamedTuple):
    """Parsed sheet."""

    title: str
    problem: str | None
    ignored: tuple[str, ...]
    rows: Sequence[Mapping[str, object]] = ()
    """Good rows."""
    rejected: Sequence[Rejected] = ()
    excess: DataError | None = None
    """Error of a sheet with too many bad rows, which is not read to its end."""


def _table(file: RawFile, relation: str) -> _Table | None:
    """Return a sheet of a file; None if the file has only the other sheet."""
    try:
        now = file.path.stat()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error
    table = _tables(file.path, now.st_size, now.st_mtime_ns)[relation]
    if table.problem and file.status == READ:
        raise DataError(f"changed while it was read: {table.problem}", place=Place(file.path))
    return None if table.problem else table


@lru_cache(maxsize=2)
def _tables(path: Path, size: int, mtime_ns: int) -> Mapping[str, _Table]:
    """Parse both sheets at once: opening a workbook takes longer than parsing its few thousand rows.

    `size` and `mtime_ns` only invalidate the cache when the file changes.
    """
    found = {}
    with xlsx.opened(path) as book:
        for name, sheet in _SHEETS.items():
            table = book.table(sheet.titles, sheet.columns)
            title = table.titles[0] if table.titles else ""
            found[name] = _Table(title, table.problem, ())
            if table.problem is None:
                rejected = xlsx.Rejects(path, title)
                rows, excess = [], None
                try:
                    rows = list(sheet.good(table.rows(), title, rejected))
                except DataError as error:
                    excess = error
                found[name] = _Table(title, None, tuple(table.matched.ignored), rows, rejected, excess)
    return found


WORKBOOK = TopologyWorkbook()
