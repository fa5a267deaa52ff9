"""First mapping of a job trace, guessed from its CSV files: `warehouse init --trace`. A line with a doubt says so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from warehouse.base.errors import DataError
from warehouse.base.startup import regex
from warehouse.formats import compressed
from warehouse.formats.named_csv import CELLS, first_rows

Samples = Mapping[str, Sequence[str]]
"""First cells of each column."""
ROWS, LOOKED_AT = 1000, 2**20
"""Rows of a file that are looked at, in so many bytes; lines that are no rows are left out."""
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
_MARKS = ",;\t|"
_EPOCH, _EPOCH_MS = 1e9, 1e12


def draft(folder: Path) -> tuple[str, str]:
    """Return the name and the text of a first mapping of the CSV files below a folder.

    Raises
    ------
    DataError
        If no file below it is a CSV file with a header.
    """
    heads: dict[tuple[str, ...], list[Path]] = {}
    marks: dict[tuple[str, ...], str] = {}
    for path in sorted(folder.rglob("*.csv")) if folder.is_dir() else [folder]:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            line = lines.readline().rstrip("\r\n")
        mark = max(_MARKS, key=line.count)
        if mark in line:
            head = tuple(line.replace('"', "").split(mark))
            heads.setdefault(head, []).append(path)
            marks[head] = mark
    if not heads:
        raise DataError(f"no CSV file with a header in {folder}", hint="docs/traces.md says how to write a mapping")
    name = re.sub(r"[^a-z0-9]", "", folder.stem.lower()) or "trace"
    head, paths = max(heads.items(), key=lambda one: (sum(path.stat().st_size for path in one[1]), one[0]))
    others = [path.name for one, found in heads.items() if one != head for path in found]
    samples = _samples(paths[0], head, marks[head])
    return name, "\n".join([*_files(name, samples, paths, marks[head], others), *_jobs(name, samples), ""])


def _files(name: str, samples: Samples, paths: Sequence[Path], mark: str, others: Sequence[str]) -> list[str]:
    stems = [re.escape(path.name) for path in paths]
    lines = [
        f"title: {name}  # ? the trace by its published name",
        "url: https://example.org  # ? where it is published",
        "license: none stated  # ?",
        *([f"# ? other columns, so not read: {', '.join(others)[:300]}"] if others else []),
        "files:",
        f"  {name}_jobs:",
        "    about: Jobs as published.",
        f"    name: {json.dumps('|'.join(stems))}"
        + ("  # ? lists that repeat each other: see `list`" if stems[1:] else ""),
        f"    cluster: {name}  # ?",
        *([f"    delimiter: {json.dumps(mark)}"] if mark != "," else []),
        "    columns:",
    ]
    key = next((one for one in samples if _GUESSES["job_id"].fullmatch(one.lower())), None)
    for column, cells in samples.items():
        kind, doubt = _kind(cells)
        lines.append(f"      {json.dumps(column)}: {kind}{'!' if column == key else ''}{doubt}")
    return lines


def _samples(path: Path, head: Sequence[str], mark: str) -> Samples:
    """Return the first cells of each column."""
    rows = first_rows(compressed.head(path, LOOKED_AT), mark)[:ROWS]
    return {column: [row[at] for row in rows if at < len(row)] for at, column in enumerate(head)}


def _kind(cells: Sequence[str]) -> tuple[str, str]:
    """Return the strictest kind that all cells have, and a doubt as a comment."""
    filled = [cell for cell in cells if cell]
    if not filled:
        return "text", f"  # ? blank in the first {len(cells):,} rows"
    for kind in ("integer", "number", "signed", "time", "clock"):
        if all(CELLS[kind].pattern.fullmatch(cell) for cell in filled):
            unit = "" if kind in ("time", "clock") else "  # ? unit"
            return kind, unit
    return "text", ""


def _jobs(name: str, samples: Samples) -> list[str]:
    """Return the lines of `jobs`: guesses by the names of columns; all others are members of `extra`."""
    taken = dict[str, str]()
    for target, pattern in _GUESSES.items():
        found = next((one for one in samples if one not in taken.values() and pattern.fullmatch(one.lower())), None)
        if found:
            taken[target] = found
    lines, origin = ["jobs:", f"  from: {name}_jobs"], ""
    if "job_id" not in taken:
        lines.append("  job_id: TODO  # ? no column is named like the id of a job")
    for target, column in taken.items():
        text, doubt = _expression(target, column, samples)
        origin = origin or ("1970-01-01 00:00:00" if "since 1970" in doubt else "")
        lines.append(f"  {text}{doubt}")
    rest = [one for one in samples if one not in taken.values()]
    lines += (
        ["  extra:", *(f"    {re.sub(r'[^a-z0-9]+', '_', one.lower())}: {_quoted(one)}" for one in rest)]
        if rest
        else []
    )
    return [f"origin: {origin}", *lines] if origin else lines


def _expression(target: str, column: str, samples: Samples) -> tuple[str, str]:
    """Return a line of `jobs`, and a doubt as a comment."""
    filled = [cell for cell in samples[column] if cell]
    if target == "job_id":
        repeated = len(set(filled)) < len(filled)
        return f"job_id: {_quoted(column)}", "  # ? values repeat" if repeated else ""
    if target not in ("submit", "start", "end"):
        return f"{target}: {_quoted(column)}", "  # ?"
    if filled and all(CELLS["time"].pattern.fullmatch(cell) for cell in filled):
        call = f"{{{{ utc_of('\"{column}\"') }}}}"
        return f"{target}_utc: {json.dumps(call)}", ""
    if filled and all(CELLS["clock"].pattern.fullmatch(cell) for cell in filled):
        return f"{target}_utc: {_quoted(column)}", "  # ? no zone: taken as UTC"
    numbers = [float(cell) for cell in filled if CELLS["signed"].pattern.fullmatch(cell)]
    if numbers and min(numbers) >= _EPOCH_MS:
        return f"{target}_seconds: {json.dumps(f'{_identifier(column)} // 1000')}", "  # ? milliseconds since 1970"
    doubt = "since 1970" if numbers and min(numbers) >= _EPOCH else "seconds since an origin that is not published"
    return f"{target}_seconds: {_quoted(column)}", f"  # ? {doubt}"


def _identifier(column: str) -> str:
    return column if re.fullmatch(r"[A-Za-z_]\w*", column) else '"' + column.replace('"', '""') + '"'


def _quoted(column: str) -> str:
    """Return an expression as YAML."""
    return _identifier(column) if re.fullmatch(r"[A-Za-z_]\w*", column) else json.dumps(_identifier(column))
