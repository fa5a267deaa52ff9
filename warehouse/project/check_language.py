"""Check language: one line per condition on the rows of a model.

    unique(a, b)                              no two rows share these columns
    not null(a, b)                            no NULL in these columns
    references(a, b) -> model(c, d)           every (a, b) without NULL exists in the other relation
    referenced(a, b) by model(c, d)           every (c, d) without NULL of the other relation exists here
    total(x) = total(model.y)                 the two sums are equal (NULL counts as 0)
    total(x) = total(model.y) by a, b         likewise for each (a, b) of either table
    total(x) = total(model.y where condition) likewise, over the rows of the other table that meet a condition
    latest(t) within 2 hours of latest(model.u)   the latest times are no further apart; also `of now()`
    rows >= 1, rows = 24, rows between a and b   the number of rows
    none: SELECT ...                          free SQL that must give no row; `this` is the model's own relation
    x between 0 and 1 or x is null            anything else: a condition that must be true for every row

`warn: ` before a line reports it without stopping the build. The grain is always checked: unique, no NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from warehouse.base.errors import ModelError, nearest_hint
from warehouse.base.sql_text import identifier
from warehouse.base.startup import regex
from warehouse.project.contract import Check
from warehouse.project.model import LAYERS, Model

MEANING = 1
"""Version of the language: another one where a line comes to mean something else, so that builds check again."""
_UNIQUE = regex(r"^unique\((?P<columns>[^)]+)\)$", re.IGNORECASE)
NOT_NULL = regex(r"^not null\((?P<columns>[^)]+)\)$", re.IGNORECASE)
REFERENCES = regex(
    r"^references\((?P<columns>[^)]+)\)\s*->\s*(?P<relation>\w+\.\w+)\((?P<others>[^)]+)\)$", re.IGNORECASE
)
REFERENCED = regex(
    r"^referenced\((?P<columns>[^)]+)\)\s+by\s+(?P<relation>\w+\.\w+)\((?P<others>[^)]+)\)$", re.IGNORECASE
)
_TOTAL = regex(
    r"^total\((?P<mine>.+?)\)\s*=\s*"
    r"total\((?P<relation>\w+\.\w+)\.(?P<other>\w+)(?:\s+where\s+(?P<only>.+?))?\)(?:\s+by\s+(?P<columns>[\w, ]+))?$",
    re.IGNORECASE,
)
_LATEST = regex(
    r"^latest\((?P<mine>\w+)\)\s+within\s+(?P<number>\d+)\s+(?P<unit>second|minute|hour|day)s?\s+of\s+"
    r"(?:latest\((?P<relation>\w+\.\w+)\.(?P<other>\w+)\)|now\(\))$",
    re.IGNORECASE,
)
_ROWS = regex(r"^rows\s+(?P<bound>(?:[<>]=?|=)\s*\d+|between\s+\d+\s+and\s+\d+)$", re.IGNORECASE)
_NONE = regex(r"^none:\s*(?P<select>(?:select|with|from)\b.+)$", re.IGNORECASE)
_RELATION = regex(rf"\b((?:raw|{'|'.join(LAYERS)})\.[a-z_][a-z0-9_]*)\b")


class Compiled(NamedTuple):
    """Check compiled to SQL."""

    failing: str
    """SELECT of the failing rows."""
    predicate: str | None = None
    """Condition of a check on single rows, so that several checks can share one scan."""


@cache  # called for every part
def relations_of(text: str) -> tuple[str, ...]:
    """Return the other relations that the text of a check names."""
    for pattern in (REFERENCES, REFERENCED, _TOTAL, _LATEST):
        match = pattern.match(text)
        if match:
            return (match["relation"],) if match["relation"] else ()
    match = _NONE.match(text)
    return tuple(sorted(set(_RELATION.findall(match["select"])))) if match else ()


def all_checks(model: Model) -> list[Check]:
    """Return the grain check, then the checks that the model lists."""
    return [grain_check(model), *model.checks]


def grain_check(model: Model) -> Check:
    """Return the check that every table has: the columns of its grain are unique and not NULL."""
    return Check(f"grain({', '.join(model.grain)})", model.place(1))


def compile_check(check: Check, model: Model) -> Compiled:
    """Return the SQL of one check.

    Raises
    ------
    ModelError
        With the line of the check, when it names a column that the model does not have.
    """
    this = model.name
    names = {column.name for column in model.columns}
    text = check.text
    if check == grain_check(model):
        grain = [identifier(name) for name in model.grain]
        is_null = " OR ".join(f"{name} IS NULL" for name in grain)
        return Compiled(
            f"SELECT {', '.join(grain)}, count(*) AS rows FROM {this} GROUP BY ALL HAVING count(*) > 1 OR {is_null}"
        )
    if match := _UNIQUE.match(text):
        columns = ", ".join(_known(match["columns"], names, check))
        return Compiled(f"SELECT {columns}, count(*) AS rows FROM {this} GROUP BY {columns} HAVING count(*) > 1")
    if match := NOT_NULL.match(text):
        condition = " AND ".join(f"{name} IS NOT NULL" for name in _known(match["columns"], names, check))
        return _of_rows(condition, model)
    if match := REFERENCES.match(text):
        return Compiled(_lost(this, match["relation"], *_pairs(match, names, check)))
    if match := REFERENCED.match(text):
        here, there = _pairs(match, names, check)
        return Compiled(_lost(match["relation"], this, there, here))
    if match := _TOTAL.match(text):
        other = f"sum({match['other']})" + (f" FILTER (WHERE {match['only']})" if match["only"] else "")
        if match["columns"]:
            return Compiled(_total_by(match, other, _known(match["columns"], names, check), this))
        return Compiled(
            f"SELECT * FROM (SELECT coalesce(sum({match['mine']}), 0) AS total FROM {this}), "
            f"(SELECT coalesce({other}, 0) AS expected FROM {match['relation']}) "
            "WHERE total <> expected"
        )
    if match := _LATEST.match(text):
        _known(match["mine"], names, check)
        return Compiled(_latest(match, this))
    if match := _ROWS.match(text):
        return Compiled(f"SELECT * FROM (SELECT count(*) AS rows FROM {this}) WHERE NOT (rows {match['bound']})")
    if match := _NONE.match(text):
        return Compiled(re.sub(r"\bthis\b", this, match["select"]))
    return _of_rows(text, model)


class Ascent(NamedTuple):
    """Grain check of a part, whose rows are sorted by grain.

    Each row must be greater than the one before, else rows are duplicate or out of order. This takes one pass without
    a hash table, shared with the conditions on single rows.
    """

    rows: str
    """FROM item: the relation with the grain of the previous row added to each row."""
    fails: str
    """Condition that is true if a row is not greater than the previous one or its grain contains NULL."""


def ascent(model: Model) -> Ascent:
    """Return the grain check of a model."""
    names = [identifier(name) for name in model.grain]  # a column name may be a keyword of SQL
    lags = ", ".join(f"lag({name}) OVER () AS previous_{position}" for position, name in enumerate(names))
    nulls = " OR ".join(f"{name} IS NULL" for name in names)
    # IS TRUE: the first row has no previous one, so the comparison gives NULL.
    return Ascent(f"(SELECT *, {lags} FROM {model.name})", f"({_not_ascending(names)} OR {nulls}) IS TRUE")


def _not_ascending(names: Sequence[str]) -> str:
    condition = f"{names[-1]} <= previous_{len(names) - 1}"
    for position, name in reversed(list(enumerate(names[:-1]))):
        condition = f"{name} < previous_{position} OR ({name} = previous_{position} AND ({condition}))"
    return f"({condition})"


def _pairs(match: re.Match[str], names: set[str], check: Check) -> tuple[list[str], list[str]]:
    """Return the columns of the model and those of the other relation that they are compared with."""
    here = _known(match["columns"], names, check)
    there = [name.strip() for name in match["others"].split(",")]
    if len(here) != len(there):
        raise ModelError(f"the check refers {len(here)} columns to {len(there)}", place=check.place)
    return here, there


def _lost(table: str, other: str, columns: Sequence[str], others: Sequence[str]) -> str:
    """Return the SELECT of the rows of a table whose columns, none of them NULL, are not in the other table."""
    present = " AND ".join(f"a.{name} IS NOT NULL" for name in columns)
    same = " AND ".join(f"a.{name} = b.{there}" for name, there in zip(columns, others, strict=True))
    return f"SELECT a.* FROM {table} AS a ANTI JOIN {other} AS b ON {same} WHERE {present}"


def _total_by(match: re.Match[str], other: str, keys: Sequence[str], this: str) -> str:
    """Return the SELECT of the keys with different sums; a missing key counts as 0."""
    listed = ", ".join(keys)
    same = " AND ".join(f"a.{key} IS NOT DISTINCT FROM b.{key}" for key in keys)  # a key may be NULL
    either = ", ".join(f"coalesce(a.{key}, b.{key}) AS {key}" for key in keys)
    return (
        f"SELECT {either}, coalesce(a.total, 0) AS total, coalesce(b.total, 0) AS expected "
        f"FROM (SELECT {listed}, sum({match['mine']}) AS total FROM {this} GROUP BY {listed}) AS a "
        f"FULL JOIN (SELECT {listed}, {other} AS total FROM {match['relation']} GROUP BY {listed}) AS b "
        f"ON {same} WHERE coalesce(a.total, 0) <> coalesce(b.total, 0)"
    )


def _latest(match: re.Match[str], this: str) -> str:
    """Return the SELECT of both times, with a row if they are too far apart or if only the other table has a time."""
    here = f"SELECT max({match['mine']}) AS latest FROM {this}"
    there = (
        f"SELECT max({match['other']}) AS other FROM {match['relation']}"
        if match["relation"]
        else "SELECT make_timestamp(epoch_us(now())) AS other"
    )
    apart = f"INTERVAL '{match['number']} {match['unit'].lower()}'"
    return (
        f"SELECT * FROM ({here}), ({there}) "
        f"WHERE other IS NOT NULL AND (latest IS NULL OR NOT latest BETWEEN other - {apart} AND other + {apart})"
    )


def _of_rows(condition: str, model: Model) -> Compiled:
    return Compiled(f"SELECT * FROM {model.name} WHERE ({condition}) IS NOT TRUE", condition)


def _known(listed: str, names: set[str], check: Check) -> list[str]:
    columns = [name.strip() for name in listed.split(",")]
    for name in columns:
        if name not in names:
            raise ModelError(
                f"the check names {name}, which is no column of the model",
                place=check.place,
                hint=nearest_hint(name, names),
            )
    return [identifier(name) for name in columns]
