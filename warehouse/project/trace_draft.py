"""First mapping of a job trace, guessed from its CSV files: `warehouse init --trace`. A line with a doubt says so."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from warehouse.base.errors import DataError
from warehouse.base.sql_text import identifier
from warehouse.base.startup import regex
from warehouse.formats import compressed
from warehouse.formats.named_csv import CELLS, first_rows, split

_ROWS, _LOOKED_AT, _SHOWN = 1000, 2**20, 2
"""Rows of a file that are looked at, in so many bytes, and rows that become an example."""
_GUESSES = {
    "job_id": regex(r"(job|task|pod|instance|inst)?_?(id|name|sn)|job|instance|pod"),
    "user_id": regex(r"user(_?(id|name))?|owner"),
    "num_gpus": regex(r"(num_?gpus?|gpus?(_?(num|count|request|req))?|plan_gpu)"),
    "num_cpus": regex(r"(num_?cpus?|cpus?(_?(num|count))?)"),
    "node": regex(r"node(_?(name|id))?|machine|host(name)?"),
    "gpu_model": regex(r"gpu_?(type|model|spec)"),
    "job_type": regex(r"(job_?)?type|kind|role|qos"),
    "state_raw": regex(r".*(state|status|phase)"),
    "submit": regex(r"(submi|creat|arriv).*"),
    "start": regex(r"(start|sched|begin).*"),
    "end": regex(r"(end|finish|dele|stop).*"),
    "run_seconds": regex(r"duration|run_?time"),
}
"""Column of jobs -> names that it may have in a file; the first column that fits is taken."""
_TIMES = ("submit", "start", "end")
_MARKS = ",;\t|"
_EPOCH, _EPOCH_MS = 1e9, 1e12


def draft(folder: Path) -> tuple[str, str]:
    """Return the name and the text of a first mapping of the CSV files below a folder.

    Raises
    ------
    DataError
        If no file below it is a CSV file with a header.
    """
    groups = _groups(folder)
    if not groups:
        raise DataError(f"no CSV file with a header in {folder}", hint="docs/traces.md says how to write a mapping")
    name = re.sub(r"^[^a-z]*|[^a-z0-9]", "", folder.stem.lower()) or "trace"
    (mark, names), paths = max(groups.items(), key=lambda one: sum(path.stat().st_size for path in one[1]))
    others = ", ".join(path.name for found in groups.values() if found is not paths for path in found)[:300]
    head = compressed.head(paths[0], _LOOKED_AT)
    rows = [row for row in first_rows(head, mark, most=_ROWS) if len(row) == len(names)]
    cells = {column: [row[at] for row in rows if row[at]] for at, column in enumerate(names)}
    kinds = {column: _kind(found) for column, found in cells.items()}
    taken = dict[str, str]()
    for target, pattern in _GUESSES.items():
        fits = [one for one in names if one not in taken.values() and pattern.fullmatch(one.lower())]
        taken |= {target: fits[0]} if fits else {}
    key = taken.get("job_id")
    is_unique = key is not None and len({*cells[key]}) == len(rows)
    order = [taken[one] for one in _TIMES if one in taken and kinds[taken[one]] != "text"]
    least = min((float(one) for name in order if kinds[name] == "integer" for one in cells[name]), default=0)
    lines = [
        f"title: {name}  # ? the trace by its published name",
        "url: https://example.org  # ? where it is published",
        "license: none stated  # ?",
        "origin: 1970-01-01 00:00:00  # ? times count from 1970" if least >= _EPOCH else "",
        "time unit: milliseconds  # ?" if least >= _EPOCH_MS else "",
        f"# ? other columns, so not read: {others}" if others else "",
        "files:",
        f"  {name}_jobs:",
        "    about: Jobs as published.",
        f"    name: {json.dumps('|'.join(re.escape(path.name) for path in paths))}"
        + ("  # ? lists that repeat each other: see `list`" if paths[1:] else ""),
        f"    cluster: {name}  # ?",
        f"    delimiter: {json.dumps(mark)}" if mark != "," else "",
        f"    key: {json.dumps(key)}  # ? unique in the first {len(rows):,} rows" if is_unique else "",
        f"    order: {json.dumps(order)}  # ? rows against it are rejected" if order[1:] else "",
        "    columns:",
        *(f"      {json.dumps(one)}: {_column(kinds[one], cells[one], one == key)}" for one in names),
        "jobs:",
        f"  from: {name}_jobs",
        *_jobs(taken, kinds, is_unique=is_unique, is_epoch=least >= _EPOCH),
        *_extra([one for one in names if one not in taken.values()]),
        *_example(paths[0].name, head, mark, names, key),
    ]
    return name, "".join(f"{line}\n" for line in lines if line)


def _groups(folder: Path) -> dict[tuple[str, tuple[str, ...]], list[Path]]:
    """Return the CSV files below a folder by separator and names of columns."""
    groups: dict[tuple[str, tuple[str, ...]], list[Path]] = {}
    for path in sorted(folder.rglob("*.csv*")) if folder.is_dir() else [folder]:
        with suppress(ValueError, OSError, *compressed.STREAM_ERRORS):
            line = compressed.head(path, _LOOKED_AT).removeprefix(codecs.BOM_UTF8).partition(b"\n")[0]
            mark = max(_MARKS, key=lambda one: line.count(one.encode()))
            names = tuple(split(line, mark))
            if names[1:]:
                groups.setdefault((mark, names), []).append(path)
    return groups


def _kind(cells: Sequence[str]) -> str:
    """Return the strictest kind that all cells have."""
    kinds = ("integer", "number", "signed", "time", "clock") if cells else ()
    return next((kind for kind in kinds if all(map(CELLS[kind].pattern.fullmatch, cells))), "text")


def _column(kind: str, cells: Sequence[str], is_key: bool) -> str:
    doubt = "" if kind in ("time", "clock") else "  # ? unit"
    if kind == "text":
        doubt = "" if cells else "  # ? blank in the rows that were looked at"
    return f"{kind}{'!' if is_key else ''}{doubt}"


def _jobs(taken: Mapping[str, str], kinds: Mapping[str, str], *, is_unique: bool, is_epoch: bool) -> Iterator[str]:
    """Yield the lines of `jobs`: guesses by the names of columns."""
    if "job_id" not in taken:
        yield "  job_id: TODO  # ? no column is named like the id of a job"
    for target, column in taken.items():
        name, doubt, sql = target, "", _quoted(column)
        if target == "job_id":
            doubt = "" if is_unique else "  # ? values repeat"
        elif target not in _TIMES:
            doubt = "  # ?"
        elif kinds[column] in ("time", "clock"):
            name, doubt = f"{target}_utc", "" if kinds[column] == "time" else "  # ? no zone: taken as UTC"
            sql = json.dumps(f"{{{{ utc_of('{identifier(column)}') }}}}") if kinds[column] == "time" else sql
        else:
            name, doubt = f"{target}_seconds", "" if is_epoch else "  # ? from an origin that is not published"
        yield f"  {name}: {sql}{doubt}"


def _extra(columns: Sequence[str]) -> list[str]:
    lines = [f"    {re.sub(r'[^a-z0-9]+', '_', one.lower())}: {_quoted(one)}" for one in columns]
    return ["  extra:", *lines] if lines else []


def _example(name: str, head: bytes, mark: str, names: Sequence[str], key: str | None) -> list[str]:
    """Return an example of the first rows, whose jobs have their ids."""
    shown = head.removeprefix(codecs.BOM_UTF8).split(b"\n", _SHOWN + 1)[: _SHOWN + 1]
    rows = first_rows(head, mark, most=_SHOWN)
    if key is None or len(rows) < _SHOWN or len({len(row) for row in rows} | {len(names)}) > 1:
        return []
    ids = [row[names.index(key)] for row in rows]
    lines = [one.decode("utf-8").rstrip("\r") for one in shown]
    blocks = {json.dumps(name): lines, "jobs": ["job_id", *ids]}
    return ["examples:", *(f"  {of}: |\n    " + "\n    ".join(block) for of, block in blocks.items())]


def _quoted(column: str) -> str:
    """Return an expression as YAML."""
    sql = column if re.fullmatch(r"[A-Za-z_]\w*", column) else identifier(column)
    return sql if sql == column else json.dumps(sql)
