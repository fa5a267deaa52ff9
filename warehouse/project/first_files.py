"""Files of `warehouse init`: a new project, and the first mapping of a job trace, guessed from its CSV files."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from warehouse.base.errors import DataError, SettingsError
from warehouse.base.sql_text import identifier, literal
from warehouse.base.startup import regex
from warehouse.formats import streams
from warehouse.formats.named_csv import CELLS, first_rows, split

# a project ----------------------------------------------------------------------------------------

_CONFIG = """\
# Read by every command that runs in this folder. Flags and WAREHOUSE_* variables win over it.

# Releases as downloaded: a root, a part of it or the archive. The folder "sample" is a synthetic one, to begin with.
data = {data}

# Where the warehouse is built.
target = "build/warehouse"

# Memory and cores of the engine.
memory = "3GB"
# threads = 4

# Without the models that are shipped, only those of this folder are built.
# shipped = false
"""
_MODEL = """\
/* ---
about: The ten servers that moved most in each hour. A model of your own, on top of the shipped ones.
grain: [cluster, hour_utc, place]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  place: BIGINT [1] 1 for the server that moved most
  server: VARCHAR GPU-n
  moved_bytes: BIGINT [B] received and sent
checks:
  - moved_bytes >= 0
--- */
WITH placed AS (
    SELECT
        cluster,
        hour_utc,
        row_number() OVER (PARTITION BY cluster, hour_utc ORDER BY rx_bytes + tx_bytes DESC, server) AS place,
        server,
        rx_bytes + tx_bytes AS moved_bytes
    FROM metrics.server_hour
)

SELECT cluster, hour_utc, place, server, moved_bytes
FROM placed
WHERE place <= 10
"""
_TEST = """\
# Rows that the model is given, and those that it must make of them: warehouse test metrics.top_servers
everywhere: {cluster: c, hour_utc: 2024-05-23 16:00:00}

the server that moved most in an hour is the first, of equals by name:
  given:
    metrics.server_hour: |
      server, rx_bytes, tx_bytes
      GPU-1,  10,       5
      GPU-2,  20,       5
      GPU-3,  5,        10
  expect: |
    place, server, moved_bytes
    1,     GPU-2,  25
    2,     GPU-1,  15
    3,     GPU-3,  15

only ten are kept:
  given:
    metrics.server_hour: |
      server, rx_bytes, tx_bytes
      GPU-1,  1..11,    0
  expect: |
    place
    1..10
"""
_IGNORE = "build/\nsample/\n"
SAMPLE = "sample"
"""The folder of the synthetic release, in the project."""


def start_project(folder: Path, data: Sequence[str] = ()) -> list[Path]:
    """Write a warehouse.toml, one model with its test and a .gitignore. Existing files are never changed.

    Parameters
    ----------
    folder
        The project.
    data
        Its data folders; default: the project's `sample/`, which the caller writes.

    Raises
    ------
    SettingsError
        When the folder already contains a project, or cannot be written.
    """
    files = {
        # A JSON list of texts is TOML, too.
        folder / "warehouse.toml": _CONFIG.replace("{data}", json.dumps(list(data) or [SAMPLE], ensure_ascii=False)),
        folder / "models" / "metrics" / "top_servers.sql": _MODEL,
        folder / "models" / "metrics" / "top_servers.test.yaml": _TEST,
        folder / ".gitignore": _IGNORE,
    }
    existing = next((path for path in files if path.exists()), None)
    if existing is not None:
        raise SettingsError(f"{existing} is there already", hint="give a new folder")
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{folder} cannot be written: {error.strerror}") from error
    return list(files)


# a trace ------------------------------------------------------------------------------------------

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
_OUTCOMES = {
    "completed": regex(r"succe|compl|finish|pass|done"),
    "cancelled": regex(r"cancel|kill"),
    "failed": regex(r"fail|error|timeout"),
}
_RESERVED = ("all", "case", "desc", "end", "from", "group", "limit", "order", "select", "table", "to", "user", "when")
"""Words of SQL that a column may be named."""
_MARKS = ",;\t|"
# Seconds and milliseconds since 1970 of September 2001: less is counted from another origin.
_EPOCH, _EPOCH_MS = 1e9, 1e12


def draft(folder: Path) -> tuple[str, str]:
    """Return the name and the text of a first mapping of the CSV files below a folder. A line with a doubt says so.

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
    head = streams.head(paths[0], _LOOKED_AT)
    rows = [row for row in first_rows(head, mark, most=_ROWS) if len(row) == len(names)]
    cells = {column: [row[at] for row in rows if row[at]] for at, column in enumerate(names)}
    kinds = {column: _kind(found) for column, found in cells.items()}
    taken = dict[str, str]()
    for target, pattern in _GUESSES.items():
        plain = {re.sub(r"\W+", "_", one.lower()): one for one in names if one not in taken.values()}
        fits = [one for like, one in plain.items() if pattern.fullmatch(like)]
        taken |= {target: fits[0]} if fits else {}
    key = taken.get("job_id")
    is_unique = key is not None and len({*cells[key]}) == len(rows)
    order = [taken[one] for one in _TIMES if one in taken and kinds[taken[one]] != "text"]
    counted = [name for name in order if kinds[name] in ("integer", "number")]
    least = min((float(one) for name in counted for one in cells[name]), default=0)
    since = "1970" if least >= _EPOCH else "an origin that is not published"
    rest = [one for one in names if one not in taken.values()]
    doubts = {column: "" if kind in ("text", "time", "clock") else "  # ? unit" for column, kind in kinds.items()}
    doubts |= {column: f"  # ? blank in the first {len(rows):,} rows" for column in names if not cells[column]}
    lines = [
        f"title: {name}  # ? the trace by its published name",
        "url: https://example.org  # ? where it is published",
        "license: none stated  # ?",
        "origin: 1970-01-01 00:00:00  # ?" if least >= _EPOCH else "",
        "time unit: milliseconds  # ?" if least >= _EPOCH_MS else "",
        f"# ? other columns, so not read: {others}" if others else "",
        "files:",
        f"  {name}_jobs:",
        "    about: Jobs as published.",
        f"    name: {json.dumps('|'.join(re.escape(path.name) for path in paths))}"
        + ("  # ? lists that repeat each other: see `list`" if paths[1:] else ""),
        f"    cluster: {name}  # ?",
        f"    delimiter: {json.dumps(mark)}" if mark != "," else "",
        f"    key: {_plain(key)}  # ? unique in the first {len(rows):,} rows" if key and is_unique else "",
        f"    order: [{', '.join(map(_plain, order))}]  # ? rows against it are rejected"
        if order[1:] and len(counted) in (0, len(order))
        else "",
        "    columns:",
        *(f"      {_plain(one)}: {kinds[one]}{'!' if one == key else ''}{doubts[one]}" for one in kinds),
        "jobs:",
        f"  from: {name}_jobs",
        "" if key else "  job_id: TODO  # ? no column is named like the id of a job",
        "  # ? values of the id repeat" if key and not is_unique else "",
        *(f"  {_expression(target, column, kinds[column], since)}" for target, column in taken.items()),
        "  extra:" if rest else "",
        *(f"    {re.sub(r'[^a-z0-9]+', '_', one.lower())}: {_sql(one)}" for one in rest),
        *_states(cells.get(taken.get("state_raw", ""), ())),
        *_example(paths[0].name, head, first_rows(head, mark, most=_SHOWN), names.index(key) if key else None),
    ]
    return name, "".join(f"{line}\n" for line in lines if line)


def _groups(folder: Path) -> dict[tuple[str, tuple[str, ...]], list[Path]]:
    """Return the CSV files below a folder by separator and names of columns."""
    groups: dict[tuple[str, tuple[str, ...]], list[Path]] = {}
    for path in sorted(folder.rglob("*.csv*")) if folder.is_dir() else [folder]:
        with suppress(ValueError, OSError, *streams.STREAM_ERRORS):
            line = streams.head(path, _LOOKED_AT).removeprefix(codecs.BOM_UTF8).partition(b"\n")[0]
            mark = max(_MARKS, key=lambda one: line.count(one.encode()))
            names = tuple(split(line, mark))
            if names[1:]:
                groups.setdefault((mark, names), []).append(path)
    return groups


def _kind(cells: Sequence[str]) -> str:
    """Return the strictest kind that all cells have."""
    kinds = ("integer", "number", "signed", "time", "clock") if cells else ()
    return next((kind for kind in kinds if all(map(CELLS[kind].pattern.fullmatch, cells))), "text")


def _expression(target: str, column: str, kind: str, since: str) -> str:
    """Return a line of `jobs` with its doubt."""
    if target == "job_id" or target not in _TIMES:
        return f"{target}: {_sql(column)}{'' if target == 'job_id' else '  # ?'}"
    if kind == "time":
        return f"{target}_utc: {json.dumps(f'{{{{ utc_of({literal(identifier(column))}) }}}}')}"
    if kind == "clock":
        return f"{target}_utc: {_sql(column)}  # ? no zone: taken as UTC"
    return f"{target}_seconds: {_sql(column)}  # ? since {since}"


def _states(cells: Sequence[str]) -> list[str]:
    """Return the states of the first rows, with outcomes by their names."""
    found = sorted({*cells})
    outcomes = {one: next((of for of, like in _OUTCOMES.items() if like.search(one.lower())), "") for one in found}
    lines = [f"  {_plain(one)}: {_plain(f'{(of or one).upper()} {of}'.strip())}  # ?" for one, of in outcomes.items()]
    return ["states:", *lines] if lines else []


def _example(name: str, head: bytes, rows: Sequence[Sequence[str]], key: int | None) -> list[str]:
    """Return an example of the first rows, whose jobs have their ids."""
    shown = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").splitlines()[: _SHOWN + 1]
    if key is None or len(rows) < _SHOWN:
        return []
    blocks = {_plain(name): shown, "jobs": ["job_id", *(row[key] for row in rows)]}
    return ["examples:", *(f"  {of}: |\n    " + "\n    ".join(block) for of, block in blocks.items())]


def _plain(text: str) -> str:
    """Return a text as YAML, in quotes where it needs them."""
    return text if re.fullmatch(r"[A-Za-z_][\w. -]*", text) else json.dumps(text)  # JSON is YAML, too


def _sql(column: str) -> str:
    """Return a column as an SQL expression in YAML."""
    is_plain = re.fullmatch(r"[A-Za-z_]\w*", column) and column.lower() not in _RESERVED
    return column if is_plain else json.dumps(identifier(column))
