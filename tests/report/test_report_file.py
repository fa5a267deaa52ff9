"""The report file: figures match their queries, titles say what was planted, nothing is fetched, text is escaped."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from markupsafe import escape

import warehouse
from tests.html_tree import parsed
from tests.report.conftest import values
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.reader import citations
from warehouse.reader.connection import connect
from warehouse.reader.findings import Card, Finding
from warehouse.reader.named_queries import Query
from warehouse.report.charts import Bar, Bars, Key, bars
from warehouse.report.page import MOST_CARDS, SHOWN_BY, TEXTS, Answer, Figure, Section, page
from warehouse.report.report_file import FINDINGS, hours, write_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import Command
    from tests.report.conftest import Figures
    from tests.tiny import Tiny
    from warehouse.report.charts import Panel, Values

BUILD = ("id", "published", "version", "engine")
FOLDERS = Project.open().report_folders
HOSTILE = """</script><img src="http://evil.example/x" onerror="alert(1)">&amp;<!--'"""


def _same(shown: str, value: object) -> bool:
    if isinstance(value, bool):
        return shown == str(value).lower()
    if isinstance(value, int | float | list):
        return bool(json.loads(shown.replace("NULL", "null")) == value)
    return shown == ("" if value is None else str(value))


def test_every_figure_matches_its_query(figures: Figures, built: Path) -> None:
    assert {"findings", "files", "links", "ports", "balance", "coverage", "jobs-in-hour", "claims"} <= set(figures)
    with warehouse.open(built) as asked:
        for name, one in figures.items():
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
        [(warnings, notes)] = asked.execute(
            "SELECT count(*) FILTER (severity = 'warning'), count(*) FILTER (severity = 'note') FROM metrics.findings"
        ).fetchall()
        kinds = {row[0] for row in asked.execute("SELECT kind FROM reference.finding_kinds").fetchall()}
    assert set(SHOWN_BY) == kinds, "each kind leads to a figure"
    cards = re.findall(r'<li class="(?:warning|note)">(.*?)</li>', text, flags=re.DOTALL)
    assert 0 < len(cards) == min(len(first), MOST_CARDS)
    for card, (sentence,) in zip(cards, first[:MOST_CARDS], strict=True):
        assert f"<p>{escape(sentence)}" in card
        assert re.search(r'<p class="when">(\d{4}-\d\d-\d\d \d\d:00 UTC|all loaded (hours|files))</p>', card)
        [place] = re.findall(r'<a href="#(.*?)"', card)
        assert f'<figure id="{place}"' in text
    [header] = re.findall(r"<header>.*?</header>", text, flags=re.DOTALL)
    assert f"<strong>{warnings} warnings and {notes - 1} note" in header
    assert "<strong>Synthetic sample:</strong>" in header


def test_a_report_without_findings_says_so() -> None:
    def page_of(answer: Answer | None) -> str:
        cards: list[Card] | None = None if answer is None else []
        return page(dict.fromkeys(BUILD, "0"), cards, (FINDINGS, answer), [], kept=True, site="", left_out=0)

    assert "Nothing found: no threshold" in page_of(_answer(FINDINGS, ("kind",), []))
    assert "did not look for findings" in page_of(None)


def test_titles_are_the_planted_findings(figures: Figures, report: Path, sample: Path) -> None:
    truth = json.loads((sample / "truth.json").read_text())
    ports = {
        f"{one['switch']} {one['port'].removeprefix('FourHundredGigE')}"
        for one in truth["suspects"]
        if one["kind"].startswith("uplink_")
    }
    assert ports
    title = figures["links"]["title"]
    assert all(port in title for port in ports)
    assert title.count("→ spine-") == len(ports)
    text = report.read_text()
    numbers = [re.sub("<[^>]+>", "", one) for one in re.findall(r'<span class="number">(.*?)</h2>', text)]
    assert ports <= set(numbers)
    assert len([one for one in numbers if re.fullmatch(r"\d cables? of GPU-\d+( and GPU-\d+)?", one)]) == 2
    assert not re.search(r"\d{6,} B", " ".join(row["evidence"] for row in values(figures["suspects"])))


def test_the_same_quantity_has_one_number_or_says_its_scope(
    figures: Figures, report: Path, site: Path, built: Path
) -> None:
    with warehouse.open(built) as asked:
        [(passed, others)] = asked.execute(
            "SELECT count(*) FILTER (ok), count(*) FILTER (NOT ok) FROM (SELECT bool_and(status = 'passed') AS ok "
            "FROM meta.checks GROUP BY model, check_text)"
        ).fetchall()
        [(gap,)] = asked.execute("SELECT max(opening_gap_seconds) FROM metrics.sampling_quality").fetchall()
        [(spine, off)] = asked.execute(
            "SELECT spine, abs(over_mean - 1) FROM metrics.spine_hour ORDER BY hour_utc DESC, 2 DESC LIMIT 1"
        ).fetchall()
    assert figures["checks"]["title"].startswith(f"{passed} checks passed, {others} did not")
    assert f"{passed} checks passed, {others} <a" in (site / "index.html").read_text()
    assert re.match(rf"{others} checks? to look at", figures["failed-checks"]["title"])
    assert f"up to {gap:.0f} s without a poll" in figures["coverage"]["title"]
    assert f"gaps of up to {gap:.0f} s" in report.read_text()
    assert "In this hour, " in figures["coverage"]["says"]
    assert off > 0.1, "the sample has a spine out of line"
    fairness = rf"ECMP is fair but for Leaf-.* and {spine} \((gets|sends) {100 * off:.1f} % more\); "
    assert re.match(fairness, figures["balance"]["title"])


def test_every_figure_links_to_its_data(figures: Figures, report: Path, built: Path, command: Command) -> None:
    text = report.read_text()
    assert "default-src 'none'" in text
    assert 'data-l="Leaf-1"' in text
    assert 'data-l="spine-' not in text, "a filter of leaves leaves spines alone"
    assert len(text.encode()) < 5_000_000
    for name, one in figures.items():
        assert name == "findings" or (one["title"] and one["says"].strip() and f'href="#{name}"' in text), name
        assert [code for code in one["code"] if code.startswith("sql/report/")], name
        assert all(mark["aria-label"] for mark in one["marks"] if mark["tag"] == "svg"), name
    latest = [one["code"] for name, one in figures.items() if "2024" not in name]
    commands = {code for codes in latest for code in codes if code.startswith("warehouse ")}
    ids = [code.removeprefix("warehouse cite ") for code in commands if code.startswith("warehouse cite ")]
    assert len(ids) > 10
    assert all(any(code.startswith("warehouse cite ") for code in codes) for codes in latest)
    kept = [citations.load(built, one_id) for one_id in sorted(ids)]
    assert citations.again(built, kept[0], {})[1] == []
    for line in sorted(code for code in commands if not code.startswith(("warehouse cite ", "warehouse show "))):
        said = command(*shlex.split(unescape(line))[1:], "-t", built)
        assert said.status == 0, f"{line}: {said.err}"


def test_a_report_is_the_same_every_time_and_links_to_a_site(
    report: Path, built: Path, site: Path, tmp_path: Path
) -> None:
    write_report(built, tmp_path / "r.html", FOLDERS, site="site")
    text = (tmp_path / "r.html").read_text()
    pages = set(re.findall(r'href="site/([^"]+)"', text))
    assert "tables/metrics.port_hour.html" in pages
    assert [page for page in pages if not (site / page).is_file()] == []
    without = report.read_text().replace(" (<code>warehouse show TABLE</code>)", "")
    assert re.sub(r'<a href="site/[^"]+">(.*?)</a>', r"<code>\1</code>", text) == without
    with pytest.raises(QueryError, match="lies in the target"):
        write_report(built, built / "report.html", FOLDERS)


def _answer(figure: Figure, columns: tuple[str, ...], rows: list[Any]) -> Answer:
    text = [tuple(None if value is None else str(value) for value in row) for row in rows]
    asked = dict(figure.parameters)
    citation = citations.Citation("b", "SELECT 1", asked, list(columns), len(rows), "d", [list(row) for row in text])
    query = Query(figure.query, figure.subject, {}, "SELECT 1", Path("q.sql"))
    numeric = tuple(column in ("number", "findings") for column in columns)
    return Answer(query, columns, numeric, text, citation)


def test_text_of_data_is_escaped() -> None:
    def drawn(rows: Sequence[Values]) -> list[Panel]:
        named = Bars(str(rows[0]["name"]), [Bar(1, "in", HOSTILE)], HOSTILE, HOSTILE)
        return bars([named], HOSTILE, HOSTILE, keys=[Key("in", HOSTILE)])

    first = Finding._make([*[HOSTILE] * 4, 1, *[HOSTILE] * 7])
    cards = [Card(first, HOSTILE, (first,), HOSTILE)]
    found = _answer(FINDINGS, ("kind",), [(HOSTILE,)])
    given = {"cluster": HOSTILE, "hour": HOSTILE}
    figure = Figure("q", HOSTILE, HOSTILE, drawn, HOSTILE, HOSTILE, given, HOSTILE)
    told = {"title": HOSTILE, "conclusion": HOSTILE}
    answer = dataclasses.replace(_answer(figure, ("name",), [(HOSTILE,)]), texts=told)
    section = Section(HOSTILE, HOSTILE, (figure,)), [(figure, answer), (figure, None)]
    text = page(dict.fromkeys(BUILD, HOSTILE), cards, (FINDINGS, found), [section], kept=True, site=HOSTILE, left_out=2)
    assert text.count("</script>") == 1
    assert "evil.example" in text
    elements = list(parsed(text).below())
    assert "img" not in {one.tag for one in elements}
    assert not [name for one in elements for name in one.attributes if name.startswith("on")]
    assert "<!--" not in text


def test_a_warehouse_without_the_shipped_models_has_a_report(tiny: Tiny, tmp_path: Path) -> None:
    assert tiny.build().status == 0
    write_report(tiny.target, tmp_path / "r.html", FOLDERS)
    text = (tmp_path / "r.html").read_text()
    assert "No port counters are loaded." in text
    assert '<p class="without" id="job-durations">How long jobs run: No job trace is loaded.</p>' in text
    assert "Synthetic sample" not in text


def test_the_latest_hours_have_figures_and_the_rest_is_counted(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(built) as connection:
        assert [hour for _, hour in hours(connection)[0]] == ["2024-05-23 17:00:00", "2024-05-23 16:00:00"]
        monkeypatch.setattr("warehouse.report.report_file.MOST_PORTS", 1)
        assert hours(connection) == ([("cluster_sample", "2024-05-23 17:00:00")], 1)
