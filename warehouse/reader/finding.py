"""Search for tables, columns and named queries: by question, word or synonym."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from warehouse.base import startup
from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.text import few, for_target, grouped, plural, wrapped
from warehouse.reader.named_queries import Query
from warehouse.reader.query_errors import START
from warehouse.reader.table_info import Table, list_tables
from warehouse.reader.text_table import escape, width_of

QUESTIONS = {
    "What should I look at first?": ("metrics.findings", "metrics.own_findings"),
    "What is loaded, and how well was it observed?": (
        "metrics.sampling_quality", "metrics.*_quality", "raw.files", "*.rejected_rows",
    ),
    "How full is the fabric, and how even?": (
        "metrics.port_*", "metrics.leaf_*", "metrics.uplink_*", "metrics.spine_*", "metrics.flow_*",
    ),
    "Which links carry no data, or are cabled elsewhere?": (
        "metrics.suspect_*", "topology.nic_ports", "topology.ports", "topology.uplinks", "topology.servers",
        "topology.switches", "topology.*_owners", "topology.hour_uplinks", "topology.sheet_servers",
    ),
    "What does a server do, and where is it plugged in?": (
        "metrics.server_hour", "metrics.server_minute", "metrics.nic_*", "metrics.rail_seconds",
    ),
    "Who trains together, over which ports, how much?": (
        "metrics.task_*", "metrics.traffic_*", "topology.task_*", "topology.rank_paths",
        "topology.ring_edges", "topology.logged_*",
    ),
    "How long do jobs run and wait?": (
        "metrics.job*", "metrics.gpu_allocation", "metrics.node*", "metrics.idle_gpus",
    ),
    "What do GPUs and servers of AcmeTrace do?": ("metrics.utilization_*",),
    "Do published figures come out?": ("metrics.published_*", "metrics.claim_*"),
    "Where do I begin?": ("start.*",),
}  # fmt: skip
"""Questions and the tables that answer them. The first match of a table wins."""
OTHERS, BELOW = "Models of your own, and others", "Published rows, typed, and their inputs"
SYNONYMS = {
    "bandwidth": ("bps", "throughput", "utilization"),
    "throughput": ("bps", "bandwidth", "utilization"),
    "speed": ("bps", "line_rate"),
    "load": ("utilization", "bytes", "busy"),
    "traffic": ("bytes", "flow"),
    "wait": ("queue_seconds", "time_cdf"),
    "queueing": ("queue_seconds", "time_cdf"),
    "duration": ("run_seconds", "seconds"),
    "latency": ("rtt",),
    "loss": ("loss", "nak"),
    "drop": ("loss",),
    "cable": ("uplink", "suspect", "nic_ports"),
    "miscabled": ("suspect",),
    "dead": ("suspect",),
    "balance": ("uplink_balance", "cov", "spine_hour", "jain"),
    "imbalance": ("uplink_balance", "cov", "spine_hour"),
    "power": ("watts", "power"),
    "gpu": ("gpu",),
    "capacity": ("allocation", "idle_gpus"),
    "simulator": ("matrix",),
    "training": ("task", "iteration"),
    "period": ("period", "pulse"),
}
"""Search words and the words that names and sentences use instead."""
_SEARCH = f"""
WITH columns AS (
    SELECT model, list(column_name ORDER BY position) FILTER (regexp_matches(lower(column_name), $2)) AS named,
        list(column_name ORDER BY position)
            FILTER (contains(lower(concat_ws(' ', column_name, unit, about)), $1)) AS meant
    FROM meta.columns GROUP BY model
)

SELECT model, kind, rows, bytes, coalesce(about, ''), CASE WHEN $1 = '' THEN [] ELSE coalesce(named, meant, []) END
FROM meta.models LEFT JOIN columns USING (model)
WHERE (starts_with($1, '{START.rstrip(".")}') OR NOT starts_with(model, '{START}'))
    AND (regexp_matches(model, $2) OR contains(lower(about), $1) OR coalesce(named, meant) IS NOT NULL)
ORDER BY
    CASE WHEN $1 IN ('', model, split_part(model, '.', 2)) THEN 0
        WHEN regexp_matches(model, $2) THEN 1
        WHEN named IS NOT NULL THEN 2
        WHEN contains(lower(about), $1) THEN 3 END,
    model
"""
"""Tables that match $1 or the pattern $2 of its synonyms, with the columns that match."""
_NAMES = f"""
SELECT split_part(model, '.', 2) FROM meta.models WHERE NOT starts_with(model, '{START}')
UNION SELECT column_name FROM meta.columns
"""
_HIDDEN = ("staging.", "raw.", "reference.", "meta.")


class Found(NamedTuple):
    """Search hit: a table and its matching columns."""

    table: Table
    columns: tuple[str, ...] = ()


def question_of(name: str) -> str:
    """Return the question that a table answers.

    >>> question_of("metrics.job_totals")
    'How long do jobs run and wait?'
    """
    if name.startswith(_HIDDEN):
        return BELOW
    return next((one for one, names in QUESTIONS.items() if any(fnmatch.fnmatchcase(name, n) for n in names)), OTHERS)


def find_tables(connection: startup.duckdb.DuckDBPyConnection, word: str) -> list[Found]:
    """Return the tables whose name, columns or meaning match a word or its synonym: names first, then columns.

    The table of exactly that name comes first. A pattern (`metrics.*`) matches names alone. Without a word, all tables
    are returned.

    Raises
    ------
    QueryError
        If nothing matches; the message has the nearest word.
    """
    lowered = word.lower()
    if any(mark in word for mark in "*?["):
        tables = list_tables(connection)
        found = [Found(table) for table in tables if fnmatch.fnmatchcase(table.name, lowered)]
        if not found:
            raise QueryError(f"no table matches {word}", hint=nearest_hint(word, (table.name for table in tables)))
        return found
    singular = lowered.removesuffix("s") if len(lowered) > 3 else lowered  # `bps` is no plural
    words = (lowered, singular, *SYNONYMS.get(lowered, SYNONYMS.get(singular, ())))
    given = [lowered, "|".join(map(re.escape, words))]
    found = [Found(Table(*row), tuple(columns)) for *row, columns in connection.execute(_SEARCH, given).fetchall()]
    if not found:
        known = {name for (name,) in connection.execute(_NAMES).fetchall()}
        raise QueryError(
            f"no table, column or meaning holds {word}", hint=nearest_hint(word, sorted(known | {*SYNONYMS}))
        )
    return found


def print_by_question(
    found: Sequence[Found],
    stream: TextIO,
    *,
    word: str,
    everything: bool,
    empty: Mapping[str, str],
    target: Path,
) -> None:
    """Print tables below the questions that they answer, each with its full description.

    Questions keep their fixed order; after a search, the question of the best hit comes first.

    Staging, raw and reference tables are only counted, unless `everything` is set or their name contains the word. So
    are empty tables without a search. After a search they are listed with the reason from `empty`.
    """
    wide = width_of(stream)
    everything = everything or any(mark in word for mark in "*?[")
    without_rows = {one.table.name for one in found if one.table.rows == 0} | set(empty)

    def is_shown(name: str) -> bool:
        named = bool(word) and word.lower() in name
        return everything or named or not (name.startswith(_HIDDEN) or (name in without_rows and not word))

    shown = [one for one in found if is_shown(one.table.name)] or list(found)
    answers = grouped((question_of(one.table.name), one) for one in shown)
    order = (*(answers if word else ()), *QUESTIONS, OTHERS, BELOW)  # after a search, the best hit comes first
    for question in (one for one in dict.fromkeys(order) if one in answers):
        stream.write(f"{question}\n")
        for one in answers[question]:
            table = one.table
            if table.name in empty:
                reason = for_target(f"  {table.name}  (empty: {empty[table.name]})", target)
                stream.writelines(wrapped(reason, wide, indent="    "))
                continue
            rows = "" if table.rows is None else f"  {plural(table.rows, 'row')}"
            stream.write(f"  {table.name}{rows}\n")
            stream.writelines(wrapped(f"    {escape(table.about)}", wide, indent="    "))
            if one.columns:
                stream.writelines(wrapped(f"    columns: {few(one.columns)}", wide, indent="    "))
        stream.write("\n")
    if left := len(found) - len(shown):
        stream.writelines(wrapped(f"{left:,} more, of rows as published or empty (--all shows them)", wide))
    else:
        text = "Next:  warehouse show TABLE\n       warehouse ls WORD\n       warehouse sql --list\n"
        stream.write(for_target(text, target))


def find_columns(connection: startup.duckdb.DuckDBPyConnection, name: str) -> list[dict[str, str | None]]:
    """Return the columns of that name: `cov`, `uplink_balance.cov` or `metrics.uplink_balance.cov`.

    Each has table, name, type, unit, meaning (`about`), and how to sum it over several rows (`how`).
    """
    table, _, column = name.lower().rpartition(".")
    rows = connection.execute(
        "SELECT c.model, c.column_name, c.type, c.unit, c.about, m.how "
        "FROM meta.columns AS c LEFT JOIN meta.measures AS m USING (model, column_name) "
        "WHERE lower(c.column_name) = $1 "
        "AND ($2 = c.model OR ($2 IN ('', split_part(c.model, '.', 2)) AND NOT starts_with(c.model, $3))) "
        "ORDER BY NOT starts_with(c.model, 'metrics.'), c.model",
        [column, table, START],
    )
    return [dict(zip(("table", "name", "type", "unit", "about", "how"), row, strict=True)) for row in rows.fetchall()]


def print_columns(found: Sequence[Mapping[str, str | None]], stream: TextIO, *, target: Path) -> None:
    """Print each column with its unit, its meaning and a link for details."""
    wide = width_of(stream)
    for one in found:
        unit = f" [{one['unit']}]" if one["unit"] else ""
        stream.write(f"{one['table']}.{one['name']}  {one['type']}{unit}\n")
        stream.writelines(wrapped(f"    {escape(one['about'] or '')}", wide, indent="    "))
        if one["how"]:
            stream.write(f"    over several rows: {one['how']}\n")
    table, name = found[0]["table"], found[0]["name"]
    text = f"\nNext:  warehouse lineage {table}.{name}\n       warehouse show {table}\n"
    stream.write(for_target(text, target))


def by_question(queries: Mapping[str, Query]) -> dict[str, list[Query]]:
    """Return the queries below the questions that they answer, in the order of `QUESTIONS`; other questions last."""
    found: dict[str, list[Query]] = {question: [] for question in QUESTIONS}
    for query in sorted(queries.values(), key=lambda one: (not one.question, one.name)):
        found.setdefault(query.question or "Others", []).append(query)
    return {question: some for question, some in found.items() if some}


def print_queries(queries: Mapping[str, Query], stream: TextIO, *, target: Path) -> None:
    """Print the names of the queries below the questions that they answer, on one screen."""
    wide = width_of(stream)
    for question, some in by_question(queries).items():
        names = [
            (one.name + "".join(f" --{of.name} {of.name.upper()}" for of in one.parameters.values() if of.required))
            for one in some
        ]
        stream.write(f"{question}\n")
        # A name and its options must not be parted at the end of a line.
        lines = wrapped("  " + ", ".join(name.replace(" ", "\xa0") for name in names), wide)
        stream.writelines(line.replace("\xa0", " ") for line in lines)
    text = "\nNext:  warehouse sql -q NAME\n       warehouse sql --list NAME  columns and parameters\n"
    stream.write(for_target(text, target))


def print_query(query: Query, stream: TextIO) -> None:
    """Print one query with its names and parameters."""
    wide = width_of(stream)
    also = f"  (also {', '.join(query.aliases)})" if query.aliases else ""
    stream.write(f"{query.name}{also}\n")
    stream.writelines(wrapped(f"    {query.about}", wide, indent="    "))
    for parameter in query.parameters.values():
        default = "required" if parameter.required else f"default {parameter.default}"
        if parameter.default is None and not parameter.required:
            default = "optional"
        name = parameter.name.replace("_", "-")
        line = f"    --{name} {parameter.type}  {parameter.about} ({default})"
        stream.writelines(wrapped(line, wide, indent="      "))


def matching_queries(queries: Mapping[str, Query], word: str) -> list[Query]:
    """Return the query of that name or alias, else the queries whose text contains the word.

    Raises
    ------
    QueryError
        If nothing matches; the message has the nearest name.
    """
    exact = [one for one in queries.values() if word in (one.name, *one.aliases)]
    words = (word.lower(), *SYNONYMS.get(word.lower(), ()))
    found = exact or [
        one
        for one in queries.values()
        if any(part in f"{one.name} {' '.join(one.aliases)} {one.about}".lower() for part in words)
    ]
    if not found:
        names = [*queries, *(alias for one in queries.values() for alias in one.aliases)]
        raise QueryError(f"no query is named {word} or says so", hint=nearest_hint(word, names))
    return found
