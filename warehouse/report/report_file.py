"""The report: one HTML file about a warehouse.

The queries of `sql/report/` give rows, titles and conclusions, the modules here their charts. `page` writes the HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import QueryError
from warehouse.base.startup import duckdb
from warehouse.reader.citations import keep
from warehouse.reader.connection import connect, refuse_damage
from warehouse.reader.findings import build_of, cards_of, is_synthetic
from warehouse.reader.named_queries import Query, load_queries
from warehouse.reader.output import refuse_in_target
from warehouse.report import figures
from warehouse.report.page import Figure, Section, ask, page
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import replacing

MOST_PORTS = 5_000
"""Port limit over all hours with figures, latest hours first; the latest hour is always included."""
NO_PORTS = "No port counters are loaded."
NO_UPLINKS = "No uplinks with traffic are loaded."
NO_SERVER = "No server with traffic is loaded."
NO_JOBS = "No job trace is loaded."
NO_LEAF = "No leaf with traffic is loaded."
FINDINGS = Figure(
    "findings", "Findings", "Nothing found: no threshold of reference.finding_kinds is crossed.", further="findings"
)
OBSERVED = Figure("observed", "What was observed", "No file was loaded.")
"""Lines at the top of the page; no figure of its own."""
SECTIONS = (
    Section(
        "look",
        "Which link do I look at?",
        (
            Figure(
                "links", "Links between leaves and spines", NO_UPLINKS, figures.links, "sql -q hottest-uplinks",
                each="hour",
            ),
            Figure(
                "ports", "Ports by utilization", NO_PORTS, figures.ports, "sql -q busiest-ports", each="hour"
            ),
            Figure("suspects", "Suspect links", "No link is suspect.", further="sql -q suspect-links", each="cluster"),
        ),
    ),
    Section(
        "fair",
        "Is ECMP fair?",
        (
            Figure(
                "balance", "How evenly uplinks share the traffic", NO_UPLINKS, figures.balance,
                "sql -q most-unbalanced", each="hour",
            ),
            Figure(
                "links", "How evenly spines are used", NO_UPLINKS, figures.spines, "sql -q spine-balance",
                "spines", each="hour",
            ),
        ),
    ),
    Section(
        "tenant",
        "Who is the largest tenant?",
        (
            Figure(
                "jobs-in-hour", "Jobs in this hour", NO_SERVER, figures.jobs_in_hour, "sql -q traffic-jobs",
                each="hour",
            ),
            Figure(
                "servers", "The busiest servers", NO_SERVER, figures.servers, "sql -q busiest-servers",
                each="hour",
            ),
            Figure(
                "matrix", "Who talks to whom", NO_LEAF, figures.pairs, "sql -q who-talks-to-whom", each="hour"
            ),
        ),
    ),
    Section(
        "complete",
        "How complete is the observation?",
        (
            Figure(
                "observation", "What was observed", NO_PORTS, figures.coverage, "sql -q hour-quality",
                "coverage", each="hour",
            ),
            Figure(
                "observation", "Traffic by the minute", NO_PORTS, figures.minutes,
                'sql "FROM metrics.leaf_hour"', "minutes", each="hour",
            ),
        ),
    ),
    Section(
        "trust",
        "Can I trust this number?",
        (
            Figure(
                "conservation", "Bytes in against bytes out", NO_LEAF, figures.conservation,
                'sql "FROM metrics.leaf_hour"', each="hour",
            ),
            Figure(
                "claims", "Published figures beside ours", "The loaded files answer none of the published figures.",
                figures.claims, "sql -q claims",
            ),
            Figure("checks", "Checks", "The build has no checks.", further='sql "FROM meta.checks"'),
            Figure(
                "failed-checks", "Checks that did not pass", "None.", further='sql "FROM meta.failures"', is_open=True
            ),
        ),
    ),
    Section(
        "tasks",
        "How fast do training tasks run?",
        (
            Figure(
                "task-iterations", "Times of iterations", "No task logged an iteration.", figures.iterations,
                'sql "FROM metrics.task_summary"',
            ),
            Figure(
                "task-traffic", "Traffic of tasks", "No NIC of a task is known.", figures.traffic,
                'sql "FROM metrics.task_traffic"',
            ),
            Figure("tasks", "Training tasks", "No task logs are loaded.", further='sql "FROM metrics.task_summary"'),
        ),
    ),
    Section(
        "jobs",
        "What do jobs look like?",
        (
            Figure("job-durations", "How long jobs run", NO_JOBS, figures.durations, "sql -q jobs"),
            Figure(
                "job-sizes", "How many GPUs jobs ask for", NO_JOBS, figures.sizes,
                "sql \"FROM metrics.job_share WHERE quantity = 'num_gpus'\"",
            ),
            Figure(
                "gpu-allocation", "How many GPUs are in use",
                "No loaded trace has start times and the size of its cluster.", figures.allocation,
                "sql -q gpu-allocation",
            ),
            Figure(
                "job-states", "How jobs end", "No loaded trace says how jobs ended.", figures.states,
                'sql "FROM metrics.job_share"',
            ),
        ),
    ),
    Section(
        "loaded",
        "What was loaded?",
        (Figure("files", "Files", "No file was loaded.", further='sql "FROM raw.files"'),),
    ),
)  # fmt: skip
"""Questions and their figures, in the order of the page."""


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
        build = build_of(connection)
        shown, left_out = hours(connection)
        of_sections = [*sections(shown), *_own_section(own)]
        asked = [FINDINGS, *(figure for section in of_sections for figure in section.figures)]
        observed = ask(connection, target, OBSERVED, queries)
        found, *rest = (
            (figure, ask(connection, target, figure, queries))
            for figure in with_progress(asked, bar, lambda figure: figure.name)
        )
        others = iter(rest)
        answered = [(section, [next(others) for _ in section.figures]) for section in of_sections]
        cards, synthetic = cards_of(connection), is_synthetic(connection)
    all_figures = [found, *(one for _, of in answered for one in of)]
    answers = [(figure, answer) for figure, answer in all_figures if answer and answer.rows]
    kept = True
    try:
        for _, answer in answers:
            keep(target, answer.citation)
    except QueryError:  # their folder cannot be written
        kept = False
    lines = [str(row["line"]) for row in observed.values] if observed else []
    text = page(
        build, cards, found, answered, kept=kept, site=site, left_out=left_out, synthetic=synthetic, observed=lines
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return Made(len(all_figures), len(all_figures) - len(answers), len(text.encode()))


def hours(connection: duckdb.DuckDBPyConnection) -> tuple[list[tuple[str, str]], int]:
    """Return `(cluster, hour)` of the hours with figures, latest first, and the number of hours without."""
    try:
        found = connection.execute(
            "SELECT cluster, strftime(hour_utc, '%Y-%m-%d %H:%M:%S'), "
            "sum(count(*)) OVER latest <= $1 OR rank() OVER latest = 1 FROM metrics.port_hour "
            "GROUP BY cluster, hour_utc "
            "WINDOW latest AS (ORDER BY hour_utc DESC, cluster) ORDER BY hour_utc DESC, cluster",
            [MOST_PORTS],
        ).fetchall()
    except duckdb.CatalogException:  # a project without these models
        return [], 0
    kept = [(cluster, hour) for cluster, hour, is_shown in found if is_shown]
    return kept, len(found) - len(kept)


def sections(shown: Sequence[tuple[str, str]]) -> list[Section]:
    """Return the sections with each figure of the network once per cluster and hour, the latest hour first."""
    latest: dict[str, str] = {}
    for cluster, hour in shown:
        latest.setdefault(cluster, hour)
    first = next(iter(latest), "")

    def placed(figure: Figure) -> Iterator[Figure]:
        for cluster, hour in shown if figure.each == "hour" else latest.items():
            given = {"cluster": cluster, "hour": hour} if figure.each == "hour" else {"cluster": cluster}
            other = cluster if cluster != first else ""
            earlier = hour[:13].replace(" ", "T") if hour != latest[cluster] else ""
            yield replace(figure, parameters=given, place=" ".join(filter(None, [other, earlier])))

    return [
        replace(one, figures=tuple(at for of in one.figures for at in (placed(of) if of.each else [of])))
        for one in SECTIONS
    ]


def _own_section(own: Sequence[Query]) -> list[Section]:
    """Return a section with a table for each report query that a project adds."""
    # A table, since nobody knows which chart fits the rows.
    figures = tuple(Figure(one.name, one.about.rstrip("."), "It has no rows.", is_open=True) for one in own)
    return [Section("own", "What does this project add?", figures)] if own else []
