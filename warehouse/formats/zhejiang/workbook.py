"""The topology workbook `<cluster>.xlsx`: NICs on leaf ports, and the names of each server's NICs.

Docs: docs/formats/workbook.md. Two sheets feed two relations. They are not joined here, since they share no address. No
cell is filled in or repaired here. A row is rejected with its number if a cell lacks its published form. So is a row
that repeats a port or NIC of a row above. The models report other gaps and contradictions.

The release's document and its files disagree about names (`NIC name1`, `NIC name 2`, `server IP`). So names are
compared without case, blanks and underscores. A missing or repeated column is a problem; the reader never guesses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.csv_headers import COLUMNS_IGNORED
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.values import ADDRESS, OCTET, PORT_NAME

if TYPE_CHECKING:
    from pathlib import Path

Columns = Mapping[str, Sequence[str]]
"""Column of a relation -> its spellings in headers."""
MOST_BAD = xlsx.LAST_ROW // 100
"""Maximum number of rejected rows of a sheet: a million would fill the memory."""


def fold(name: str) -> str:
    """Return a name without case, blanks, hyphens and underscores, for comparison.

    >>> fold("NIC name 2") == fold("nic_name2")
    True
    """
    written = unicodedata.normalize("NFKC", name)  # Chinese input methods can write full-width letters
    return "".join(written.split()).replace("_", "").replace("-", "").casefold()


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

    def parsed(self, found: Sequence[tuple[str, Iterator[xlsx.Line]]]) -> _Table:
        """Return the rows of the sheet with one of these titles, by the names in its header."""
        wanted = {fold(title) for title in self.titles}
        mine = [one for one in found if fold(one[0]) in wanted]
        if not mine:
            return _Table("", f"no sheet {self.titles[0]!r}")
        title, lines = mine[0]
        if len(mine) > 1:
            both = " and ".join(repr(title) for title, _ in mine)
            return _Table(title, f"sheets {both} both stand for {self.titles[0]!r}")
        header = next((line for line in lines if line.broken or any(line.cells)), None)
        if header is None:
            return _Table(title, f"sheet {title!r} is empty")
        if header.broken:
            return _Table(title, f"sheet {title!r}: {header.broken}")
        places, problem, ignored = self._matched(header.cells)
        if problem:
            return _Table(title, f"sheet {title!r}: {problem}")
        rejected: list[Rejected] = []
        return _Table(title, None, ignored, [*self._good(lines, places, title, rejected)], rejected)

    def _matched(self, names: Sequence[str | None]) -> tuple[Mapping[str, int], str, list[str]]:
        """Return the positions of the columns in a header, its missing or repeated columns, and all others."""
        column_of = {fold(spelling): column for column, known in self.columns.items() for spelling in known}
        places: dict[str, int] = {}
        repeated, ignored = [], []
        for at, name in enumerate(names):
            column = column_of.get(fold(name or ""))
            if name and fold(name) and not column:
                ignored.append(name.strip())
            elif name and column and places.setdefault(column, at) != at:
                repeated.append(name.strip())
        missing = [column for column in self.columns if column not in places]
        problems = [f"no column {', '.join(missing)}"] if missing else []
        problems += [f"column {', '.join(repeated)} stands twice"] if repeated else []
        return places, " and ".join(problems), ignored

    def _good(
        self, lines: Iterable[xlsx.Line], places: Mapping[str, int], title: str, reject: list[Rejected]
    ) -> Iterator[Mapping[str, object]]:
        """Yield the good rows; append the others to `reject`."""
        seen: dict[tuple[str, ...], int] = {}
        for line in lines:
            if not (line.broken or any(line.cells)):
                continue
            cells = {name: line.cells[at] if at < len(line.cells) else None for name, at in places.items()}
            values = {name: (cell or "").strip() or None for name, cell in cells.items()}
            if problem := line.broken or self._problem(values, line.number, seen):
                text = ",".join(cell or "" for cell in line.cells)[:500]
                reject.append(Rejected("", line.number, f"{problem} (sheet {title!r})", text))
            else:
                yield {**values, "sheet_row": line.number}
            if len(reject) == MOST_BAD:
                reject.append(Rejected("", line.number + 1, "not read from here on: too many rows are bad", ""))
                return

    def _problem(self, values: Mapping[str, str | None], number: int, seen: dict[tuple[str, ...], int]) -> str | None:
        """Return the problem of a row, or record the row's keys in `seen` and return None."""
        names: dict[str, str] = {}
        for column, form in self.forms.items():
            value, header = values[column], self.columns[column][0]
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
        seen.update(dict.fromkeys(keys, number))
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
    version = 4
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
            If a file cannot be opened, changed since it was inspected, or if two different workbooks of a cluster
            have this sheet.
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
            reject += (one._replace(file=file.release_path) for one in table.rejected)
            yield from ({**row, "filename": str(file.read_path)} for row in table.rows)


class _Table(NamedTuple):
    """Parsed sheet."""

    title: str
    problem: str | None
    ignored: Sequence[str] = ()
    rows: Sequence[Mapping[str, object]] = ()
    """Good rows."""
    rejected: Sequence[Rejected] = ()


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
    with xlsx.opened(path) as sheets:
        return {name: sheet.parsed(sheets) for name, sheet in _SHEETS.items()}


WORKBOOK = TopologyWorkbook()
