"""Table pages: the contract, and the origin and values of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from warehouse.lineage.column_lineage import Node
from warehouse.lineage.steps import ROWS
from warehouse.reader.readable import readable
from warehouse.reader.relation import Check
from warehouse.reader.units import unit_of
from warehouse.site.highlighted_code import highlighted

if TYPE_CHECKING:
    from warehouse.project.contract import Column
    from warehouse.project.model import Model
    from warehouse.project.project import Project
    from warehouse.site.column_origins import Origins
    from warehouse.site.table_facts import Facts, Values

LAYERS = ("metrics", "topology", "staging", "reference", "raw")
"""Layers, most useful first."""
_NUMBERS = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "HUGEINT", "DOUBLE", "FLOAT")


@dataclass(frozen=True)
class Link:
    """A text and its target."""

    text: str
    href: str


@dataclass(frozen=True)
class ColumnView:
    """A column on the page of its table."""

    name: str
    type: str
    unit: str | None
    about: str
    sum: str
    kind: str
    made_of: Sequence[Link]
    used_by: Sequence[Link]
    decides: Sequence[Link]
    values: Values | None

    @property
    def ends(self) -> tuple[str, str]:
        """Return the lowest and highest value as readable text."""
        if self.values is None:
            return "", ""
        ends = [self.values.lowest, self.values.highest]
        if self.type in _NUMBERS:
            unit = unit_of(self.name, self.type, self.unit)
            ends = readable(ends, unit, exact=self.type not in ("DOUBLE", "FLOAT"))
        low, high = [(end or "").strip() for end in ends]
        return low, high


@dataclass(frozen=True)
class Clause:
    """A clause that decides rows: kind, place in the SQL, columns."""

    how: str
    place: Link
    columns: Sequence[Link]


@dataclass(frozen=True)
class TableView:
    """All facts on a table's page."""

    name: str
    about: str
    layer: str
    model: Model | None
    columns: Sequence[ColumnView]
    checks: Sequence[Check]
    clauses: Sequence[Clause]
    reads: Sequence[Link]
    read_by: Sequence[Link]
    facts: Facts | None
    sql: Markup | None
    as_run: str | None
    """The SELECT with macros expanded, if it has any."""
    read_from: str = ""


def table_path(name: str) -> str:
    """Return the path of a table's page in the site."""
    return f"tables/{name}.html"


def view(
    project: Project,
    name: str,
    about: str,
    columns: Sequence[Column],
    origins: Origins,
    facts: Facts | None,
    *,
    read_from: str = "",
) -> TableView:
    """Collect the facts of a table; links are relative to the folder of tables."""
    model = project.models.get(name)
    links = {other: f"{other}.html" for other in origins.reads if other != name}
    sql = as_run = None
    if model is not None:
        sql = highlighted(model.sql, links, python=model.is_python)
        rendered = project.render(model)
        as_run = rendered.strip() if rendered != model.sql else None
    sums = {one.column: str(one) for one in model.semantics.measures} if model else {}
    values = facts.values if facts else {}
    return TableView(
        name,
        about,
        name.partition(".")[0],
        model,
        [_column(name, one, sums, origins, values) for one in columns],
        _checks(model, facts),
        [_clause(name, one.kind, one.place, one.inputs) for one in origins.clauses.get(name, ())],
        [_table_link(one) for one in origins.reads.get(name, ())],
        [_table_link(one) for one in origins.read_by.get(name, ())],
        facts,
        sql,
        as_run,
        read_from,
    )


def _column(
    table: str, column: Column, sums: Mapping[str, str], origins: Origins, values: Mapping[str, Values]
) -> ColumnView:
    node = Node(table, "", column.name)
    return ColumnView(
        column.name,
        column.type,
        column.unit,
        column.about,
        sums.get(column.name, ""),
        origins.kinds.get(node, ""),
        [_column_link(one) for one in origins.made_of.get(node, ())],
        [_column_link(one) for one in origins.used_by.get(node, ())],
        [_table_link(one) for one in origins.decides.get(node, ())],
        values.get(column.name),
    )


def _checks(model: Model | None, facts: Facts | None) -> Sequence[Check]:
    """Return the checks with their results; without a build, the declared checks."""
    if facts is not None and facts.relation.checks:
        return facts.relation.checks
    return [Check(one.text, "warn" if one.warn else "error", "", 0) for one in (model.checks if model else ())]


def _clause(table: str, how: str, place: str, columns: Sequence[Node]) -> Clause:
    return Clause(how, Link(place, f"{table}.html#L{place.rpartition(':')[2]}"), [_column_link(one) for one in columns])


def _table_link(name: str) -> Link:
    return Link(name, f"{name}.html")


def _column_link(node: Node) -> Link:
    if node.column == ROWS:
        return Link(f"the rows of {node.relation}", f"{node.relation}.html")
    return Link(f"{node.relation}.{node.column}", f"{node.relation}.html#{node.column}")
