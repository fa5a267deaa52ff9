"""Table pages: the contract, with the facts of the build and the lineage of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import TYPE_CHECKING

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, SqlLexer

from warehouse.lineage.column_lineage import Node
from warehouse.reader.result import unit_of
from warehouse.reader.table_info import Check
from warehouse.reader.text_table import readable

if TYPE_CHECKING:
    from warehouse.project.contract import Column
    from warehouse.project.model import Model
    from warehouse.project.project import Project
    from warehouse.site.table_facts import Facts

LAYERS = ("metrics", "topology", "staging", "reference", "raw")
"""Layers, most useful first."""
_NUMBERS = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "HUGEINT", "DOUBLE", "FLOAT")


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
