"""Every JOIN of the fabric and of tasks has a row in `docs/trust.md`, and every row there has its JOIN."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "trust.md"
SECTION = "## Nothing is lost between two tables"
MODELS = ("topology/*", "reference/*", "metrics/*")
OF_JOBS = re.compile(r"claim|elasticflow|allocation|idle_gpus|job|published|server_power|utilization")
"""Models of metrics that read job tables, utilization files or published figures, not the fabric or a task's log."""

_NAME = r"(?P<name>\(\s*VALUES\b|\(|[\w.]+)"
_STEP = re.compile(
    rf"\b(?:(?P<kind>LEFT|RIGHT|FULL|ANTI|SEMI|CROSS)\s+)?JOIN\s+{_NAME}"
    rf"|\b(?P<exists>(?:NOT\s+)?EXISTS)\s*\("
    rf"|(?<!DISTINCT)\s+FROM\s+{_NAME.replace('name', 'read')}"
)
_ROW = re.compile(r"^\| `(?P<model>\w+)` \| (?P<guard>[^|]+) \| (?P<joins>[^|]+) \|$", re.MULTILINE)
_GUARD = re.compile(r"(?:check|warning|grain|once|whole|filter|count)\b")
_LISTED = re.compile(r"`(?P<left>\w+)` (?P<kind>[A-Z ]+) `(?P<right>\w+)`(?: (?P<times>twice|\d+ times))?")


class Join(NamedTuple):
    """A JOIN: the model, the table or CTE after FROM, the kind, the table or CTE that is joined."""

    model: str
    left: str
    kind: str
    right: str


def joins_of(model: str, sql: str) -> list[Join]:
    """Return the JOINs and [NOT] EXISTS of a SELECT; a subquery counts by the table that it reads."""
    found: list[Join] = []
    left, pending = "", ""
    for step in _STEP.finditer(re.sub(r"--[^\n]*", "", sql)):
        kind = step["exists"] or (step["kind"] or "JOIN" if step["name"] else "")
        name = (step["name"] or step["read"] or "(").removeprefix("(").strip().rpartition(".")[2]
        if kind and not name:
            pending = kind  # the table is named by the next FROM
        elif kind or pending:
            found.append(Join(model, left, " ".join((kind or pending).split()), name))
            pending = ""
        elif name:
            left = name
    return found


def joins_of_python(model: str, source: str) -> list[Join]:
    """Return what a Python model puts together: the first table that it reads with each of the others."""
    reads = re.search(r"^reads: \[(.+)\]$", source, re.MULTILINE)
    assert reads, model
    first, *others = (name.strip().rpartition(".")[2] for name in reads[1].split(","))
    return [Join(model, first, "JOIN", other) for other in others]


def joins_of_models() -> Counter[Join]:
    found: Counter[Join] = Counter()
    for pattern in MODELS:
        for path in sorted((ROOT / "models").glob(pattern)):
            if path.suffix == ".sql" and not OF_JOBS.search(path.stem):
                found.update(joins_of(path.stem, path.read_text(encoding="utf-8").split("--- */", 1)[1]))
            elif path.suffix == ".py":
                found.update(joins_of_python(path.stem, path.read_text(encoding="utf-8")))
    return found


def rows_of_page() -> list[re.Match[str]]:
    _, found, section = PAGE.read_text(encoding="utf-8").partition(f"\n{SECTION}\n")
    assert found
    section = re.split(r"^## ", section, maxsplit=1, flags=re.MULTILINE)[0]
    rows = list(_ROW.finditer(section))
    assert len(rows) == section.count("\n| `"), "a row of the table has another form"
    return rows


def test_every_join_has_a_row_and_every_row_a_join() -> None:
    documented: Counter[Join] = Counter()
    for row in rows_of_page():
        assert _GUARD.match(row["guard"]), row[0]
        for listed in row["joins"].split(", "):
            one = _LISTED.fullmatch(listed)
            assert one, f"not a join: {listed}"
            join = Join(row["model"], one["left"], one["kind"], one["right"])
            assert join not in documented, f"{join} is listed twice"
            documented[join] = {None: 1, "twice": 2}.get(one["times"]) or int(one["times"].split()[0])
    joins = joins_of_models()
    assert joins - documented == Counter(), "these JOINs have no row in docs/trust.md"
    assert documented - joins == Counter(), "these rows of docs/trust.md have no JOIN any more"


def test_a_row_names_models_that_are_there_and_have_checks() -> None:
    models = {path.name.partition(".")[0]: path for path in (ROOT / "models").glob("*/*") if path.suffix != ".yaml"}
    for row in rows_of_page():
        others = re.findall(r"(?:checks?|warning) of ((?:`\w+`(?:,? and )?)+)", row["guard"])
        named = [name for other in others for name in re.findall(r"`(\w+)`", other)]
        guards = named or ([row["model"]] if re.search(r"\b(check|warning)", row["guard"]) else [])
        for name in guards:
            assert "\nchecks:\n" in models[name].read_text(encoding="utf-8"), (row[0], name)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1 FROM a.b AS x -- JOIN c\nJOIN d.e AS y ON x.i = y.i", [("b", "JOIN", "e")]),
        ("SELECT 1 FROM a LEFT JOIN b USING (i) ANTI JOIN c USING (i)", [("a", "LEFT", "b"), ("a", "ANTI", "c")]),
        ("SELECT 1 FROM (SELECT i FROM a) AS x FULL JOIN (SELECT i FROM b) AS y USING (i)", [("a", "FULL", "b")]),
        ("SELECT 1 FROM a CROSS JOIN (VALUES (1), (2)) AS h (half)", [("a", "CROSS", "VALUES")]),
        ("SELECT 1 FROM a WHERE NOT EXISTS (SELECT 1 FROM s.b AS x)", [("a", "NOT EXISTS", "b")]),
        ("SELECT 1 FROM a WHERE i IS DISTINCT FROM j UNION ALL SELECT 1 FROM b JOIN c USING (i)", [("b", "JOIN", "c")]),
    ],
)
def test_joins_are_read_off_a_select(sql: str, expected: list[tuple[str, str, str]]) -> None:
    assert joins_of("m", sql) == [Join("m", *join) for join in expected]
