"""The report: one HTML file on what a warehouse holds, and its charts as files.

Each section is a module: queries of `sql/report/`, a chart and a sentence for each. `page` writes the HTML,
`paper` the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import QueryError
from warehouse.reader.citations import keep
from warehouse.reader.connection import connect
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.named_queries import load_queries
from warehouse.report import balance, claims, data_quality, fabric, heatmap, job_figures, server_figures, task_figures
from warehouse.report.figure import Answer, Figure, Section, ask
from warehouse.report.page import page
from warehouse.report.paper import write_figures

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb


MOST_TASKS = 24
"""Tasks with figures of their own; all are in the table."""


class Made(NamedTuple):
    """What was written."""

    figures: int
    without: int
    """Figures without data."""
    bytes: int
    files: int
    """Of `--figures`."""


def write_report(
    target: Path,
    path: Path,
    query_folders: Iterable[Path],
    *,
    figures: Path | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Made:
    """Write the report of a warehouse.

    Parameters
    ----------
    target
        The folder of the warehouse; citations of the figures are kept for `warehouse cite`.
    path
        The HTML file.
    query_folders
        The folders of the report's queries; a later one's replace an earlier one's.
    figures
        A folder for each chart as SVG and PDF.
    memory, threads
        Limits of the engine.

    Raises
    ------
    QueryError
        When there is no warehouse, a library is missing, or a place lies in the target.
    """
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise QueryError(
            f"the report needs {error.name}, which is not installed", hint="pip install 'gpu-warehouse[report]'"
        ) from error
    for place in (path, figures):
        if place and place.resolve().is_relative_to(target.resolve()):
            raise QueryError(
                f"{place} lies in the target, which only `warehouse build` writes", hint="choose another place"
            )
    queries = load_queries(query_folders)
    connection = connect(target, memory=memory, threads=threads)
    try:
        refuse_damage(connection, target)
        build = connection.execute("SELECT build_id, published_utc, version, engine FROM meta.build").fetchall()[0]
        answered = [
            (section, [(figure, ask(connection, target, figure, queries)) for figure in section.figures])
            for section in sections(connection)
        ]
    finally:
        connection.close()
    answers = [answer for _, asked in answered for _, answer in asked if answer and answer.rows]
    kept = _keep(target, answers)
    text = page(build, answered, kept=kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    files = write_figures(figures, answers) if figures else 0
    asked_for = sum(len(asked) for _, asked in answered)
    return Made(asked_for, asked_for - len(answers), len(text.encode()), files)


def sections(connection: duckdb.DuckDBPyConnection) -> list[Section]:
    """The sections for what this warehouse holds: figures a cluster and a task."""
    clusters = [row[0] for row in _rows(connection, "SELECT DISTINCT cluster FROM topology.switches ORDER BY cluster")]
    found = _rows(connection, "SELECT DISTINCT cluster, task FROM metrics.task_summary ORDER BY cluster, task")
    return [
        data_quality.SECTION,
        fabric.section(clusters),
        heatmap.section(clusters),
        balance.BALANCE,
        balance.LOCALITY,
        server_figures.SECTION,
        task_figures.section([(row[0], row[1]) for row in found[:MOST_TASKS]]),
        job_figures.section(),
        claims.SECTION,
    ]


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, ...]]:
    from warehouse.base.startup import duckdb

    try:
        return connection.execute(sql).fetchall()
    except duckdb.CatalogException:  # a project without these models
        return []


def _keep(target: Path, answers: Iterable[Answer]) -> bool:
    """Keep the citations for `warehouse cite`; false where no folder for them can be written."""
    try:
        for answer in answers:
            keep(target, answer.citation)
    except QueryError:
        return False
    return True


__all__ = ["Answer", "Figure", "Made", "Section", "sections", "write_report"]
