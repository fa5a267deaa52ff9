"""The report file: figures match their queries, nothing is fetched, text is escaped."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from markupsafe import escape

import warehouse
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.reader import citations
from warehouse.reader.connection import connect
from warehouse.reader.named_queries import Query, load_queries
from warehouse.report.charts import Bar, Bars, bars
from warehouse.report.figure import TEXTS, Answer, Figure, Section
from warehouse.report.page import page
from warehouse.report.report_file import hours, sections, write_report
from warehouse.report.svg import Key
from warehouse.report.trust_figures import FINDINGS, MOST_CARDS, OBSERVED, SHOWN_BY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import Command
    from warehouse.report.figure import Values
    from warehouse.report.svg import Panel

FOLDERS = Project.open().report_folders
HOSTILE = """</script><img src="http://evil.example/x" onerror="alert(1)">&amp;<!--'"""


class _Figures(HTMLParser):
    """Parser that returns each figure of a page: title, table, SQL, parameters, caption and drawing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, dict[str, Any]] = {}
        self.now: dict[str, Any] = {}
        self.path: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "figure" or (tag == "section" and given["id"] == "findings"):
            lists: dict[str, Any] = {"rows": [], "columns": [], "code": [], "marks": []}
            self.now = self.found.setdefault(str(given["id"]), {**lists, "sql": "", "says": "", "title": ""})
        elif tag == "tr" and "tbody" in self.path:
            self.now["rows"].append([])
        elif tag == "td":
            self.now["rows"][-1].append("")
        elif tag == "code" and "pre" not in self.path and self.now:
            self.now["code"].append("")
        elif "svg" in self.path and tag != "title":
            self.now["marks"].append({"tag": tag, "tip": "", "text": "", **given})
        elif tag == "svg":
            self.now["marks"].append({"tag": "svg", **given})
        if tag not in ("meta", "link", "br", "input"):
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.path and self.path.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        last = self.path[-1:]
        if last == ["td"]:
            self.now["rows"][-1][-1] += data
        elif last == ["th"]:
            self.now["columns"].append(data)
        elif self.path[-2:] == ["pre", "code"]:
            self.now["sql"] += data
        elif last == ["code"] and self.now:
            self.now["code"][-1] += data
        elif last == ["figcaption"]:
            self.now["says"] += data
        elif last == ["h3"]:
            self.now["title"] += data.strip()
        elif "svg" in self.path and last in (["title"], ["text"]):
            self.now["marks"][-1]["tip" if last == ["title"] else "text"] += data


def values(one: dict[str, Any]) -> list[dict[str, str]]:
    """Return the rows of a figure by column, as text."""
    return [dict(zip(one["columns"], row, strict=True)) for row in one["rows"]]


def _same(shown: str, value: object) -> bool:
    if value is None:
        return shown == ""
    if isinstance(value, bool):
        return shown == str(value).lower()
    if isinstance(value, int | float):
        return float(shown) == float(value)
    if isinstance(value, list):
        return bool(json.loads(shown.replace("NULL", "null")) == value)
    return shown == str(value)


def test_every_figure_matches_its_query(report: Path, built: Path) -> None:
    shown = {name: one for name, one in _Figures(report.read_text()).found.items() if one["sql"]}
    assert {"findings", "files", "links", "ports", "balance", "coverage", "jobs-in-hour", "suspects", "claims"} <= set(
        shown
    )
    with warehouse.open(built) as asked:
        for name, one in shown.items():
            given = dict(code[1:].split(" = ", 1) for code in one["code"] if code.startswith("$"))
            rows = asked.execute(one["sql"], given).fetchall() if given else asked.execute(one["sql"]).fetchall()
            names = [column[0] for column in asked.description]
            assert len(rows) == len(one["rows"]), name
            for row, cells in zip(rows, one["rows"], strict=True):
                cut = [value for column, value in zip(names, row, strict=True) if not column.endswith(TEXTS)]
                assert len(cells) == len(cut)
                assert all(map(_same, cells, cut)), f"{name}: {cells} is not {row}"
            if name != "findings":
                told = {column: value for column, value in zip(names, rows[0], strict=True) if column.endswith(TEXTS)}
                texts = [[value for column, value in zip(names, row, strict=True) if column in told] for row in rows]
                assert texts == [list(told.values())] * len(rows), f"{name}: a text is about all rows"
                assert one["title"].removesuffix(" #").removesuffix("#").strip() in told.values(), name
                assert any(one["says"].strip().endswith(text) for text in told.values()), name


def test_there_is_one_card_per_kind_of_finding(report: Path, built: Path) -> None:
    text = report.read_text()
    with warehouse.open(built) as asked:
        first = asked.execute(
            "SELECT first(sentence ORDER BY rank) FROM metrics.findings GROUP BY kind "
            "HAVING kind <> 'claims_differ' ORDER BY min(rank)"  # the sample cannot judge published figures
        ).fetchall()
        warnings = asked.execute("SELECT count(*) FROM metrics.findings WHERE severity = 'warning'").fetchall()[0][0]
    cards = re.findall(r'<li class="(?:warning|note)">(.*?)</li>', text, flags=re.DOTALL)
    assert 0 < len(cards) == min(len(first), MOST_CARDS)
    for card, (sentence,) in zip(cards, first[:MOST_CARDS], strict=True):
        assert f"<p>{escape(sentence)}" in card
        number = re.sub("<[^>]+>", "", card.partition('<span class="number">')[2].partition("</h2>")[0])
        assert re.match(r"[\d.,]+ \S+|\S+ \d/\d/\d+", number)
        assert re.search(r'<p class="when">(\d{4}-\d\d-\d\d \d\d:00 UTC|all loaded (hours|files))</p>', card)
        [place] = re.findall(r'<a href="#(.*?)"', card)
        assert f'<figure id="{place}"' in text
    assert f"<strong>{warnings} warnings and " in text


def test_the_report_of_a_sample_says_so_and_judges_no_published_figure(report: Path, built: Path) -> None:
    text = report.read_text()
    header, cards = re.findall(r"<header>.*?</header>|<ul class=\"cards.*?</ul>", text, flags=re.DOTALL)
    with warehouse.open(built) as asked:
        kinds = dict(asked.execute("SELECT kind, count(*) FROM metrics.findings GROUP BY kind").fetchall())
        notes = asked.execute("SELECT count(*) FROM metrics.findings WHERE severity = 'note'").fetchall()[0][0]
    assert kinds["claims_differ"] == 1
    assert "<strong>Synthetic sample:</strong>" in header
    assert f"and {notes - 1} note" in header
    assert "claims that differ" not in cards
    captions = re.findall(r"<figcaption>(.{40})", text)
    assert captions
    assert all(re.match(r'<span class="when">(Synthetic sample|cluster_sam)', one) for one in captions)


def test_every_kind_of_finding_has_its_figure(built: Path) -> None:
    with warehouse.open(built) as asked:
        kinds = {row[0] for row in asked.execute("SELECT kind FROM reference.finding_kinds").fetchall()}
    assert set(SHOWN_BY) == kinds


def test_a_report_without_findings_says_so(built: Path) -> None:
    build = ("b", "2024-05-23", "0", "duckdb")
    empty = page(build, (FINDINGS, _answer(FINDINGS, ("kind",), [])), [], kept=True, site="", left_out=0)
    assert "Nothing found: no threshold" in empty
    without = page(build, (FINDINGS, None), [], kept=True, site="", left_out=0)
    assert "did not look for findings" in without
    with warehouse.open(built) as asked:
        found = asked.execute(load_queries(FOLDERS)["findings"].sql)
        columns = tuple(str(column[0]) for column in found.description)
        notes = [row for row in found.fetchall() if row[1] == "note"]
    text = page(build, (FINDINGS, _answer(FINDINGS, columns, notes)), [], kept=True, site="", left_out=0)
    assert "No warning: " in text
    assert "<strong>No warning and " in text


def test_titles_are_the_planted_findings(report: Path, sample: Path) -> None:
    shown = _Figures(report.read_text()).found
    truth = json.loads((sample / "truth.json").read_text())
    one_way = [trap for trap in truth["suspects"] if trap["kind"].startswith("uplink_")]
    assert one_way
    title = shown["links"]["title"]
    assert title.startswith("Look at ")
    assert title.endswith(": no data that way")
    for one in one_way:
        assert f"{one['switch']} {one['port'].removeprefix('FourHundredGigE')}" in title
    assert title.count("→ spine-") == len(one_way)
    text = report.read_text()
    numbers = [re.sub("<[^>]+>", "", one) for one in re.findall(r'<span class="number">(.*?)</h2>', text)]
    ports = {f"{one['switch']} {one['port'].removeprefix('FourHundredGigE')}" for one in one_way}
    assert ports <= set(numbers)
    cables = [one for one in numbers if re.fullmatch(r"\d cables? of GPU-\d+( and GPU-\d+)?", one)]
    assert len(cables) == 2
    trust = re.findall(r'<p class="trust">.*?</p>', text)[0]
    assert [name in trust for name in ("#checks", "#conservation", "#coverage")] == [True] * 3
    assert "uplinks: standard deviation" in values(shown["failed-checks"])[0]["says"]
    assert text.index("<strong>in</strong> enters it") < text.index('id="findings"')
    assert not re.search(r"\d{6,} B", " ".join(row["evidence"] for row in values(shown["suspects"])))
    texts = [mark["text"] for mark in shown["links"]["marks"] if mark["tag"] == "text"]
    crosses = [text for text in texts if text.startswith("✕ max ")]
    assert len(crosses) == len(one_way)


def test_the_same_quantity_has_one_number_or_says_its_scope(report: Path, site: Path, built: Path) -> None:
    text = report.read_text()
    shown = _Figures(text).found
    with warehouse.open(built) as asked:
        passed, others = asked.execute(
            "SELECT count(*) FILTER (ok), count(*) FILTER (NOT ok) FROM (SELECT bool_and(status = 'passed') AS ok "
            "FROM meta.checks GROUP BY model, check_text)"
        ).fetchall()[0]
        gap = asked.execute("SELECT max(opening_gap_seconds) FROM metrics.sampling_quality").fetchall()[0][0]
    assert shown["checks"]["title"].startswith(f"{passed} checks passed, {others} did not")
    assert f"{passed} checks passed, {others} <a" in (site / "index.html").read_text()
    assert re.match(rf"{others} checks? to look at", shown["failed-checks"]["title"])
    assert f"up to {gap:.0f} s without a poll" in shown["coverage"]["title"]
    assert f"gaps of up to {gap:.0f} s" in text
    assert "In this hour, " in shown["coverage"]["says"]


def test_the_title_about_fairness_covers_leaves_and_spines(report: Path, built: Path) -> None:
    shown = _Figures(report.read_text()).found
    with warehouse.open(built) as asked:
        [(spine, off)] = asked.execute(
            "SELECT spine, abs(over_mean - 1) FROM metrics.spine_hour ORDER BY 2 DESC LIMIT 1"
        ).fetchall()
    assert off > 0.1, "the sample has a spine out of line"
    title = shown["balance"]["title"]
    assert re.match(
        rf"ECMP is fair but for Leaf-.* and {spine} \((gets|sends) {100 * off:.1f} % more\); "
        "standard deviation on other leaves",
        title,
    )
    points = [mark for mark in shown["spines"]["marks"] if mark["tag"] == "circle"]
    assert len(points) == 2 * len({row["spine"] for row in values(shown["spines"])})


def test_every_figure_links_to_its_data(report: Path, built: Path) -> None:
    text = report.read_text()
    shown = {name: one for name, one in _Figures(text).found.items() if one["sql"]}
    for name, one in shown.items():
        assert name == "findings" or (one["title"] and f'href="#{name}"' in text), name
        assert [code for code in one["code"] if code.startswith("sql/report/")], name
        assert [code for code in one["code"] if code.startswith("warehouse ")], name
        assert name == "findings" or one["says"].strip(), name
        panels = [mark for mark in one["marks"] if mark["tag"] == "svg"]
        assert all(panel["aria-label"] for panel in panels), name
    ids = re.findall(r"<code>warehouse cite ([0-9a-f]{12})</code>", text)
    assert len(ids) == len(shown)
    for one_id in set(ids):
        assert citations.again(built, citations.load(built, one_id), {}) == []


def test_lines_for_the_shell_run(report: Path, built: Path, command: Command) -> None:
    text = report.read_text()
    lines = {unescape(one) for one in re.findall(r"shell</dt><dd><code>warehouse (.*?)</code>", text)}
    assert len(lines) > 8
    for line in sorted(lines):
        said = command(*shlex.split(line), "-t", built)
        assert said.status == 0, f"{line}: {said.err}"


def test_links_to_a_site_point_to_table_pages(built: Path, site: Path, tmp_path: Path) -> None:
    write_report(built, tmp_path / "r.html", FOLDERS, site="site")
    pages = set(re.findall(r'href="site/([^"]+)"', (tmp_path / "r.html").read_text()))
    assert "tables/metrics.port_hour.html" in pages
    assert [page for page in pages if not (site / page).is_file()] == []


def test_nothing_is_fetched(report: Path) -> None:
    text = report.read_text()
    without_scripts = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    for value in re.findall(r"""\b(?:src|href|action|data|poster)\s*=\s*["']?([^"'\s>]+)""", without_scripts):
        assert value.startswith("#"), value
    assert "unsafe-eval" not in text
    assert "@import" not in without_scripts
    assert "url(" not in without_scripts
    assert not re.findall(r"<script[^>]+src", text)
    assert "default-src 'none'" in text
    assert len(text.encode()) < 5_000_000


def _answer(figure: Figure, columns: tuple[str, ...], rows: list[Any]) -> Answer:
    text = [tuple(None if value is None else str(value) for value in row) for row in rows]
    asked = dict(figure.parameters)
    citation = citations.Citation("b", "SELECT 1", asked, list(columns), len(rows), "d", [list(row) for row in text])
    query = Query(figure.query, figure.subject, {}, "SELECT 1", Path("q.sql"))
    numeric = tuple(column in ("number", "findings") for column in columns)
    return Answer(figure, query, columns, numeric, text, citation)


def _planted(value: str) -> list[tuple[Section, list[tuple[Figure, Answer | None]]]]:
    def drawn(rows: Sequence[Values]) -> list[Panel]:
        named = Bars(str(rows[0]["name"]), [Bar(1, "in", value)], value, value)
        return bars([named], value, value, keys=[Key("in", value)])

    figure = Figure("q", value, value, drawn, value, value, {"p": value, "hour": value}, value)
    texts = {"title": value, "conclusion": value}
    answer = dataclasses.replace(_answer(figure, ("name",), [(value,)]), texts=texts)
    return [(Section(value, value, (figure,)), [(figure, answer), (figure, None)])]


def _tags(text: str) -> tuple[set[str], set[str]]:
    """Return the elements and attributes of a page."""
    tags: set[str] = set()
    attributes: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.add(tag)
            attributes.update(name for name, _ in attrs)

    Reader().feed(text)
    return tags, attributes


def test_text_of_data_is_escaped() -> None:
    texts = ("kind", "severity", "what", "where_", "sentence", "so_what", "others", "hour_utc")
    hostile = {**dict.fromkeys(texts, HOSTILE), "number": 1, "unit": "B", "findings": 1}
    found = _answer(FINDINGS, tuple(hostile), [tuple(hostile.values())])
    planted = _planted(HOSTILE)
    [(section, [(figure, answer), nothing])] = planted
    figure = dataclasses.replace(figure, parameters={"cluster": HOSTILE, "hour": HOSTILE})
    text = page(
        (HOSTILE,) * 4, (FINDINGS, found), [(section, [(figure, answer), nothing])], kept=True, site=HOSTILE, left_out=2
    )
    assert text.count("</script>") == 1
    assert "evil.example" in text
    tags, attributes = _tags(text)
    assert "img" not in tags
    assert not [name for name in attributes if name.startswith("on")]
    assert "<!--" not in text


def test_every_query_of_the_folder_is_used() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warehouse.report.report_file._rows", lambda _, sql: [("c", "2024-05-23 16:00:00", 1)])
        asked = {figure.query for section in sections(None) for figure in section.figures}  # type: ignore[arg-type]
    assert asked | {FINDINGS.query, OBSERVED.query} == set(load_queries(FOLDERS))


def test_a_warehouse_without_the_shipped_models_has_a_report(command: Command, tmp_path: Path) -> None:
    (tmp_path / "models" / "metrics").mkdir(parents=True)
    (tmp_path / "warehouse.toml").write_text("shipped = false\n")
    (tmp_path / "models" / "metrics" / "one.sql").write_text(
        "/* ---\nabout: One.\ngrain: [one]\ncolumns:\n  one: INTEGER one\n--- */\nSELECT 1 AS one\n"
    )
    assert command("build", "--project", ".", "-t", "w").status == 0
    said = command("report", "r.html", "-t", "w")
    assert said.status == 0, said.err
    assert "without data" in said.out
    text = (tmp_path / "r.html").read_text()
    assert "No port counters are loaded." in text
    assert '<p class="without" id="job-durations">How long jobs run: No job trace is loaded.</p>' in text
    assert "Synthetic sample" not in text


def test_it_never_writes_into_the_target(built: Path) -> None:
    with pytest.raises(QueryError, match="lies in the target"):
        write_report(built, built / "report.html", FOLDERS)


def test_the_latest_hours_have_figures_and_the_rest_is_counted(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(built) as connection:
        assert [hour for _, hour in hours(connection)[0]] == ["2024-05-23 17:00:00", "2024-05-23 16:00:00"]
        monkeypatch.setattr("warehouse.report.report_file.MOST_PORTS", 1)
        assert hours(connection) == ([("cluster_sample", "2024-05-23 17:00:00")], 1)


def test_reports_are_reproducible(report: Path, built: Path, tmp_path: Path) -> None:
    write_report(built, tmp_path / "r.html", FOLDERS)
    assert (tmp_path / "r.html").read_bytes() == report.read_bytes()


def test_questions_without_an_answer_come_last() -> None:
    [(section, [(figure, answer), _])] = _planted("q")
    figure = dataclasses.replace(figure, parameters={})
    empty = Section("empty", "Nothing?", (figure,)), [(figure, None)]
    full = section, [(figure, answer)]
    text = page(("b",) * 4, (FINDINGS, None), [empty, full], kept=True, site="", left_out=0)
    assert text.index('id="section-q"') < text.index('id="section-empty"')
