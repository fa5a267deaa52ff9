"""Facts of a project's models: lineage of columns in both directions, contracts of tables, raw formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import NamedTuple

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, SqlLexer

from warehouse.base.text import grouped
from warehouse.formats import known_formats
from warehouse.lineage.column_lineage import Columns
from warehouse.lineage.select_steps import KINDS, ROWS, Node, Step
from warehouse.project.contract import Column
from warehouse.project.model import Model
from warehouse.project.project import Project
from warehouse.reader.result import unit_of
from warehouse.reader.table_info import Check
from warehouse.reader.text_table import readable
from warehouse.site.build_facts import Facts
from warehouse.site.prose import Page

LAYERS = ("metrics", "topology", "staging", "reference", "raw")
"""Layers, most useful first."""
_NUMBERS = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "HUGEINT", "DOUBLE", "FLOAT")


@dataclass(frozen=True)
class Origins:
    """Lineage of all relations and columns."""

    reads: Mapping[str, Sequence[str]]
    read_by: Mapping[str, Sequence[str]]
    made_of: Mapping[Node, Sequence[Node]]
    """Columns of other relations that a column derives from; `*` stands for rows."""
    used_by: Mapping[Node, Sequence[Node]]
    kinds: Mapping[Node, str]
    """Kind of each column: copied, computed, aggregated or literal; the most complex step counts."""
    clauses: Mapping[str, Sequence[Step]]
    """Clauses that decide the rows of a model."""
    decides: Mapping[Node, Sequence[str]]
    """Models whose rows a column decides."""


def origins_of(columns: Columns, tables: Mapping[str, Sequence[str]]) -> Origins:
    """Return the lineage of columns in both directions.

    Parameters
    ----------
    columns
        From `warehouse.lineage.column_lineage`.
    tables
        All relations with their columns.
    """
    reads = {name: columns.reads(name) for name in tables}
    clauses = {name: columns.clauses(name) for name in tables if columns.blocks(name)}
    made_of = {Node(name, "", one): columns.made_of(name, one) for name in clauses for one in tables[name]}
    return Origins(
        reads,
        grouped((read, name) for name, several in reads.items() for read in several),
        made_of,
        grouped((given, node) for node, several in made_of.items() for given in several),
        {node: columns.kind(node.relation, node.column) for node in made_of},
        clauses,
        grouped(
            (given, name)
            for name, some in clauses.items()
            for given in dict.fromkeys(one for clause in some for one in clause.inputs)
        ),
    )


def as_graph(origins: Origins, tables: Mapping[str, Sequence[str]], abouts: Mapping[str, str]) -> dict[str, object]:
    """Return the lineage as indexes, for the page that draws the graph.

    `tables` are [name, meaning, columns]; a column is a pair of numbers, of its table and of itself in that, -1
    for the rows; `made` has for each table and column [kind, pairs], `rows` for each table [how, place, pairs].
    """
    names = {name: at for at, name in enumerate(tables)}
    places = {Node(name, "", column): at for name, columns in tables.items() for at, column in enumerate(columns)}

    def pairs(nodes: Sequence[Node]) -> list[list[int]]:
        return [[names[node.relation], -1 if node.column == ROWS else places[node]] for node in nodes]

    return {
        "tables": [[name, abouts.get(name, ""), list(columns)] for name, columns in tables.items()],
        "reads": [[names[read] for read in origins.reads[name]] for name in tables],
        "made": [
            [
                [KINDS.index(origins.kinds.get(node, KINDS[0])), pairs(origins.made_of.get(node, ()))]
                for node in (Node(name, "", column) for column in columns)
            ]
            for name, columns in tables.items()
        ],
        "rows": [
            [[one.kind, one.place, pairs(one.inputs)] for one in origins.clauses.get(name, ())] for name in tables
        ],
    }


@dataclass(frozen=True)
class TableView:
    """A table: its contract, its facts in the build, and its file."""

    name: str
    about: str
    columns: Sequence[Column]
    model: Model | None
    facts: Facts | None
    sums: Mapping[str, str]
    """How to sum each column that is a measure."""
    as_run: str
    """The SELECT with macros expanded, if it has any."""
    read_from: str

    @property
    def layer(self) -> str:
        """Layer of the table."""
        return self.name.partition(".")[0]

    @property
    def code(self) -> list[tuple[int, Markup]]:
        """Return the lines of the model below its contract as HTML, with their numbers in the file."""
        if self.model is None:
            return []
        # By default a lexer drops empty lines at the start, and the numbers would no longer be those of the file.
        lexer = PythonLexer(stripnl=False) if self.model.is_python else SqlLexer(stripnl=False)
        lines = Markup(highlight(self.model.sql.rstrip(), lexer, HtmlFormatter(nowrap=True))).split("\n")  # noqa: S704 - it is escaped
        return list(dropwhile(lambda one: not one[1], enumerate(lines, 1)))

    @property
    def checks(self) -> Sequence[Check]:
        """Return the checks with their results; without a build, the declared checks."""
        if self.facts is not None and self.facts.relation.checks:
            return self.facts.relation.checks
        declared = self.model.checks if self.model else ()
        return [Check(one.text, "warn" if one.warn else "error", "", 0) for one in declared]

    def node(self, column: Column) -> Node:
        """Return a column's place in the lineage."""
        return Node(self.name, "", column.name)

    def ends(self, column: Column) -> list[str]:
        """Return the lowest and highest value of a column as readable text."""
        values = self.facts.values[column.name] if self.facts else None
        ends = [values.lowest, values.highest] if values else []
        if column.type in _NUMBERS:
            unit = unit_of(column.name, column.type, column.unit)
            ends = readable(ends, unit, exact=column.type not in ("DOUBLE", "FLOAT"))
        return [(end or "").strip() for end in ends]


def table_path(name: str) -> str:
    """Return the path of a table's page in the site."""
    return f"tables/{name}.html"


def view(
    project: Project, name: str, about: str, columns: Sequence[Column], facts: Facts | None, read_from: str
) -> TableView:
    """Collect the facts of a table."""
    model = project.models.get(name)
    rendered = project.render(model) if model else ""
    as_run = rendered.strip() if model and rendered != model.sql else ""
    sums = {one.column: str(one) for one in model.semantics.measures} if model else {}
    return TableView(name, about, columns, model, facts, sums, as_run, read_from)


class FormatView(NamedTuple):
    """A format: its name, the relations of `raw` that it fills, each with its description, and the pages about it."""

    name: str
    tables: Sequence[tuple[str, str]]
    pages: Sequence[Page]

    @property
    def path(self) -> str:
        """Place in the site."""
        return f"formats.html#{self.name}"


def format_views(project: Project, origins: Origins, pages: Sequence[Page]) -> list[FormatView]:
    """Return the facts on each format, in the order of the formats' list."""
    of_formats = [page for page in pages if page.group == "formats"]
    found = []
    for one in known_formats(traces=project.traces):
        tables = [(relation.full_name, relation.about) for relation in one.relations]
        readers = {model for name, _ in tables for model in origins.read_by.get(name, ()) if model in project.models}
        sources = {project.models[model].sources for model in readers}
        mine = [page for page in of_formats if page.source in sources]
        found.append(FormatView(one.name, tables, mine or [page for page in of_formats if one.name in page.html]))
    return found
