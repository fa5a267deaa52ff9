"""The class `Warehouse`: a published warehouse in Python; and the lineage of its tables and columns."""

from __future__ import annotations

import io
import json
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from warehouse.api.answer import Answer, Rows, html_table
from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.settings import Settings, settle
from warehouse.base.sql_text import qualified
from warehouse.base.startup import duckdb
from warehouse.lineage.table_lineage import names_a_column, table_lineage
from warehouse.project.contract import Column
from warehouse.project.project import Project
from warehouse.reader import table_info
from warehouse.reader.citations import Citation, cite
from warehouse.reader.connection import connect
from warehouse.reader.finding import find_tables
from warehouse.reader.findings import TABLE, Finding, findings_of
from warehouse.reader.named_queries import Query, find_query, load_queries
from warehouse.reader.request import Request
from warehouse.store.manifest import last_manifest


class Warehouse:
    """A published warehouse: its answers, tables, findings and citations.

    A `Warehouse` reads the build that was published when you created the object. After another build, create a new
    object.

    Parameters
    ----------
    target
        The folder that `warehouse build --target` wrote; by default that of the commands: WAREHOUSE_TARGET, `target`
        in warehouse.toml, else `build/warehouse`.
    project
        A folder with models and named queries of your own; by default that of the commands.
    data
        More data folders to allow, where the raw files have moved since the build.

    Raises
    ------
    WarehouseError
        When there is no warehouse in `target`, or it was moved and reads its tables in another folder.
    """

    def __init__(
        self, target: str | Path | None = None, *, project: str | Path | None = None, data: Sequence[str | Path] = ()
    ) -> None:
        self.settings = settle(
            {
                "target": target and str(target),
                "project": project and str(project),
                "data": [str(folder) for folder in data],
            }
        )
        # Errors as JSON have places, but a person who uses `.connection` should not see JSON.
        self._inner = connect(self.settings.target, self.settings.data, json_errors=True, tell_moved=warnings.warn)
        self.connection: duckdb.DuckDBPyConnection = self._inner.cursor()  # with errors for people, and no open result
        """Read-only DuckDB connection. What runs on it directly is not checked by the guard."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Warehouse({str(self.settings.target)!r}, build {self.build_id})"

    def close(self) -> None:
        """Close the connection; answers that were not read are lost."""
        self.connection.close()
        self._inner.close()

    @property
    def build_id(self) -> str:
        """Id of the build, the hash of all its rows and contracts: equal builds have equal ids on every machine."""
        return str(self._inner.execute("SELECT build_id FROM meta.build").fetchall()[0][0])

    def sql(self, query: str, /, **parameters: object) -> Answer:
        """Return the answer to one SELECT; values of `$name` in it are given by name.

        Nothing is read before the rows are asked for. An answer without ORDER BY has no order.

        Raises
        ------
        WarehouseError
            When the SELECT is wrong or does more than read, with the place and the nearest name.
        """
        texts = {name: str(value) for name, value in parameters.items()}
        return self._ask(Request(self.settings.target, query, parameters=texts), parameters)

    def query(self, name: str, /, **parameters: object) -> Answer:
        """Return the answer to a named query: the rows and columns of `warehouse sql -q NAME`, all of them, exact.

        Raises
        ------
        WarehouseError
            When there is no such query, a parameter is missing or wrong, or there is no row because a parameter names a
            server, a switch, an hour or the like that is not loaded.
        """
        texts = {key: str(value) for key, value in parameters.items() if value is not None}
        request = Request(self.settings.target, query=find_query(name, self.queries), parameters=texts)
        return self._ask(request, request.values())

    def _ask(self, request: Request, values: Mapping[str, object]) -> Answer:
        try:
            return Answer(self._inner, self.connection, request, values)
        except WarehouseError as error:
            raise error.with_traceback(None) from None  # the engine's own words are not shown below the sentence

    @property
    def queries(self) -> dict[str, Query]:
        """Named queries by name, each with `.about`, `.sql` and `.parameters`."""
        return load_queries(Project.open(self.settings.project).query_folders)

    def findings(self) -> Rows[Finding]:
        """Return what to look at first, the most important first, one item a finding.

        Each has `.kind`, `.severity`, `.where`, `.sentence`, `.so_what`, `.look_further` (a command), and `.number` in
        `.unit`.

        Raises
        ------
        WarehouseError
            When the build has no findings.
        """
        found = findings_of(self._inner)
        if found is None:
            problem = f"this build did not look for findings: {TABLE} is not part of it"
            raise QueryError(problem, hint="warehouse build -d DIR")
        return Rows(found, ("severity", "what", "sentence", "so_what"))

    def tables(self, word: str | None = None) -> Rows[table_info.Table]:
        """Return the tables, each with `.name`, `.rows`, `.about`; with a word, those that have it in their texts.

        A word may be a part of a name, a column, a word of a meaning, a synonym, or a pattern (`metrics.*`).

        Raises
        ------
        WarehouseError
            When nothing matches, with the nearest word.
        """
        found = [one.table for one in find_tables(self._inner, word)] if word else table_info.list_tables(self._inner)
        return Rows(found, ("name", "rows", "about"))

    def table(self, name: str) -> Table:
        """Return one table, by its full name or, if only one has it, its name without the schema.

        Raises
        ------
        WarehouseError
            When there is no such table, with the nearest name.
        """
        return Table(self, table_info.describe(self._inner, name))

    def cite(self, result: Answer) -> Citation:
        """Keep the citation of an answer: `.id`, `.text()`. `warehouse cite ID` recomputes it.

        Raises
        ------
        WarehouseError
            When the answer has more than 100,000 rows, another build has been published since, or the result is not an
            answer of this Warehouse, but of another one or a part of an answer such as `answer.filter(...)`.
        """
        last, target = last_manifest(self.settings.target), self.settings.target
        if not isinstance(result, Answer) or result.asked.target != target:
            raise QueryError(
                "this is no answer of this Warehouse", hint="cite what its sql, query or relation returned"
            )
        if last is None or last.build != self.build_id:
            raise QueryError(f"{target} has another build now", hint="make a new Warehouse, and ask again")
        query = result.asked.query
        # `warehouse cite` will ask with texts again, so the rows must be those for texts now.
        values = result.values if query else {name: str(value) for name, value in result.values.items()}
        return cite(self._inner, target, result.statement, values, query=query.name if query else None)

    def export(self, folder: str | Path, *tables: str, formats: Sequence[str] = ("parquet", "csv")) -> Path:
        """Write tables as files (`parquet`, `csv`, `xlsx`, `duckdb`), and return their folder.

        Without `tables`, all of `metrics`, `topology` and `reference`.

        Raises
        ------
        WarehouseError
            When the folder cannot be replaced or there is no such table.
        """
        from warehouse.publish.export import export

        return export(self.settings.target, Path(folder), tables=tables or None, formats=formats)

    def report(self, path: str | Path) -> Path:
        """Write the report as one HTML page, and return its path.

        Raises
        ------
        WarehouseError
            When the path lies in the target.
        """
        from warehouse.report.report_file import write_report

        folders = Project.open(self.settings.project).report_folders
        write_report(self.settings.target, Path(path), folders)
        return Path(path)


class Table:
    """A table: its columns with units and meanings, checks, lineage and rows.

    `.name` is its full name (`metrics.port_hour`), `.about` what a row is, and `.grain` the columns that name a row.
    `.columns` has the columns by name, each with `.type`, `.unit` and `.about`. `.checks` has the checks, each with
    `.status`, `.failures` and, if rows failed, the first of them.
    """

    def __init__(self, warehouse: Warehouse, described: table_info.Relation) -> None:
        self._warehouse, self._described = warehouse, described
        self.name = described.name
        self.about = described.about
        self.grain = described.grain
        self.columns: dict[str, Column] = {one.name: one for one in described.columns}
        self.checks = described.checks

    def __repr__(self) -> str:
        out, width = io.StringIO(), shutil.get_terminal_size().columns
        table_info.print_relation(self._described, out, width=width, target=self._warehouse.settings.target)
        return out.getvalue().rstrip("\n")

    def lineage(self, column: str | None = None) -> str:
        """Return what the table, or one of its columns, comes from, down to raw files, as text.

        Raises
        ------
        WarehouseError
            When there is no such column, or the table is of another project.
        """
        return lineage(self._warehouse.settings, f"{self.name}.{column}" if column else self.name)

    def relation(self) -> Answer:
        """Return the rows."""
        return self._warehouse.sql(f"FROM {qualified(self.name)}")

    def _repr_html_(self) -> str:
        sums = {measure.column: str(measure) for measure in self._described.semantics.measures}
        rows = [(one.name, one.type, one.unit, sums.get(one.name), one.about) for one in self.columns.values()]
        headers = [(name, "") for name in ("column", "type", "unit", "sum", "meaning")]
        return html_table(headers, rows, above=f"{self.name}: {self.about} Grain: {', '.join(self.grain)}.")


def lineage(settled: Settings, name: str, *, as_json: bool = False, steps: bool = False) -> str:
    """Return what a table or a column comes from, down to raw files.

    Parameters
    ----------
    settled
        The project, and the target of the command that is named for more.
    name
        A table, or a column of it (`port_hour.in_bytes`).
    as_json
        JSON instead of text.
    steps
        Of a column: each step, with file and line.
    """
    if names_a_column(name):
        from warehouse.lineage.column_lineage import column_lineage  # imports sqlglot, which is slow

        text, values = column_lineage(settled, name, steps=steps)
    else:
        text, values = table_lineage(settled, name)
    return json.dumps(values, indent=1) if as_json else text
