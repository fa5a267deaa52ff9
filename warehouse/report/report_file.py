"""The report: one HTML file about a warehouse.

The queries of `sql/report/` give rows, titles and conclusions, the modules here their charts. `page` writes the HTML.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from warehouse.base.errors import QueryError
from warehouse.reader.citations import keep
from warehouse.reader.connection import connect, refuse_damage
from warehouse.reader.findings import is_synthetic
from warehouse.reader.named_queries import load_queries
from warehouse.reader.output import refuse_in_target
from warehouse.report import (
    job_figures,
    job_hour_figures,
    link_figures,
    observation_figures,
    port_figures,
    trust_figures,
)
from warehouse.report.figure import Answer, Figure, Section, ask
from warehouse.report.page import page
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import duckdb

    from warehouse.reader.named_queries import Query


MOST_PORTS = 5_000
"""Port limit over all hours with figures, latest hours first; the latest hour is always included."""


class Made(NamedTuple):
    """Result of a report."""

    figures: int
    without: int
    """Number of figures without data."""
    bytes: int


def write_report(
    target: Path,
    path: Path,
    query_folders: Iterable[Path],
    *,
    site: str = "",
    memory: str | None = None,
    threads: int | None = None,
    bar: Bar | None = None,
) -> Made:
    """Write the report of a warehouse.

    Parameters
    ----------
    target
        The folder of the warehouse; citations are stored there for `warehouse cite`.
    path
        The HTML file.
    query_folders
        The folders of the report's queries; later folders override earlier ones.
    site
        URL of the site of `warehouse docs`, for links to table pages; empty if there is none.
    memory, threads
        Limits of the engine.
    bar
        The progress bar, if any.

    Raises
    ------
    QueryError
        When there is no warehouse, or the file lies in the target.
    """
    refuse_in_target(path, target)
    shipped, *_ = folders = list(query_folders)
    queries = load_queries(folders)
    # Also an overridden query keeps its chart: only new names have none.
    own = [query for name, query in queries.items() if name not in load_queries([shipped])]
    with connect(target, memory=memory, threads=threads) as connection:
        refuse_damage(target)
        build = connection.execute("SELECT build_id, published_utc, version, engine FROM meta.build").fetchall()[0]
        of_sections = [*sections(connection), *_own_section(own)]
        asked = [trust_figures.FINDINGS, *(figure for section in of_sections for figure in section.figures)]
        observed = ask(connection, target, trust_figures.OBSERVED, queries)
        found, *rest = (
            (figure, ask(connection, target, figure, queries))
            for figure in with_progress(asked, bar, lambda figure: figure.name)
        )
        others = iter(rest)
        answered = [(section, [next(others) for _ in section.figures]) for section in of_sections]
        left_out, synthetic = hours(connection)[1], is_synthetic(connection)
    all_figures = [found, *(one for _, of in answered for one in of)]
    answers = [(figure, answer) for figure, answer in all_figures if answer and answer.rows]
    kept = _keep(target, [answer for _, answer in answers])
    lines = [str(row["line"]) for row in observed.values] if observed else []
    text = page(build, found, answered, kept=kept, site=site, left_out=left_out, synthetic=synthetic, observed=lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return Made(len(all_figures), len(all_figures) - len(answers), len(text.encode()))


def hours(connection: duckdb.DuckDBPyConnection) -> tuple[list[tuple[str, str]], int]:
    """Return `(cluster, hour)` of the hours with figures, latest first, and the number of hours without."""
    found = _rows(
        connection,
        "SELECT cluster, strftime(hour_utc, '%Y-%m-%d %H:%M:%S'), "
        "sum(count(*)) OVER latest <= $1 OR rank() OVER latest = 1 FROM metrics.port_hour GROUP BY cluster, hour_utc "
        "WINDOW latest AS (ORDER BY hour_utc DESC, cluster) ORDER BY hour_utc DESC, cluster",
        MOST_PORTS,
    )
    kept = [(cluster, hour) for cluster, hour, is_shown in found if is_shown]
    return kept, len(found) - len(kept)


def sections(connection: duckdb.DuckDBPyConnection) -> list[Section]:
    """Return the sections of the report; fabric figures exist per cluster and hour."""
    shown = hours(connection)[0]
    latest: dict[str, str] = {}
    for cluster, hour in shown:
        latest.setdefault(cluster, hour)
    first = next(iter(latest), "")

    def at(figure: Figure, cluster: str, hour: str, *, with_hour: bool = True) -> Figure:
        other = [cluster if cluster != first else "", hour[:13].replace(" ", "T") if hour != latest[cluster] else ""]
        given = {"cluster": cluster, **({"hour": hour} if with_hour else {})}
        return replace(figure, parameters=given, place=" ".join(filter(None, other)))

    def of(*figures: Figure) -> tuple[Figure, ...]:
        return tuple(at(one, cluster, hour) for one in figures for cluster, hour in shown)

    none = "No port counters are loaded."
    suspects = (at(link_figures.SUSPECTS, cluster, hour, with_hour=False) for cluster, hour in latest.items())
    return [
        Section("look", "Which link do I look at?", (*of(link_figures.LINKS, port_figures.PORTS), *suspects), none),
        Section("fair", "Is ECMP fair?", of(link_figures.BALANCE, link_figures.SPINES), none),
        Section(
            "tenant",
            "Who is the largest tenant?",
            of(job_hour_figures.JOBS_IN_HOUR, job_hour_figures.SERVERS, link_figures.PAIRS),
            none,
        ),
        Section(
            "complete",
            "How complete is the observation?",
            of(observation_figures.COVERAGE, observation_figures.MINUTES),
            none,
        ),
        Section("trust", "Can I trust this number?", (*of(trust_figures.CONSERVATION), *trust_figures.FIGURES)),
        job_figures.TASKS,
        job_figures.JOBS,
        trust_figures.LOADED,
    ]


def _own_section(own: Sequence[Query]) -> list[Section]:
    """Return a section with a table for each report query that a project adds."""
    # A table, since nobody knows which chart fits the rows.
    figures = tuple(Figure(one.name, one.about.rstrip("."), "It has no rows.", is_open=True) for one in own)
    return [Section("own", "What does this project add?", figures)] if own else []


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, *given: object) -> list[tuple[Any, ...]]:
    from warehouse.base.startup import duckdb

    try:
        return connection.execute(sql, given).fetchall()
    except duckdb.CatalogException:  # a project without these models
        return []


def _keep(target: Path, answers: Iterable[Answer]) -> bool:
    """Store the citations for `warehouse cite`; return False if their folder cannot be written."""
    try:
        for answer in answers:
            keep(target, answer.citation)
    except QueryError:
        return False
    return True


__all__ = ["Answer", "Figure", "Made", "Section", "sections", "write_report"]
