"""The report: each figure is its query's answer, nothing is fetched, text stays text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.reader import citations
from warehouse.reader.named_queries import Query, load_queries
from warehouse.report.figure import Answer, Figure, Section
from warehouse.report.page import page
from warehouse.report.report_file import sections, write_report

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

FOLDERS = Project.open().report_folders
HOSTILE = """</script><img src="http://evil.example/x" onerror="alert(1)">&amp;<!--'"""


class _Figures(HTMLParser):
    """Reads back what a page shows: by figure its table, SQL, parameters and caption."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, dict[str, Any]] = {}
        self.now: dict[str, Any] = {}
        self.path: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "figure":
            self.now = self.found.setdefault(
                str(given["id"]), {"rows": [], "sql": "", "code": [], "says": "", "chart": None}
            )
        elif tag == "tr" and "tbody" in self.path:
            self.now["rows"].append([])
        elif tag == "td":
            self.now["rows"][-1].append("")
        elif tag == "code" and "pre" not in self.path and self.now:
            self.now["code"].append("")
        elif tag == "div" and given.get("class") == "chart":
            self.now["chart"] = given.get("aria-label")
        if tag not in ("meta", "link", "br"):
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.path and self.path.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.path[-1:] == ["td"]:
            self.now["rows"][-1][-1] += data
        elif self.path[-2:] == ["pre", "code"]:
            self.now["sql"] += data
        elif self.path[-1:] == ["code"] and self.now:
            self.now["code"][-1] += data
        elif self.path[-1:] == ["figcaption"]:
            self.now["says"] += data


def _data(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a chart of one data set."""
    [rows] = spec["datasets"].values()
    return list(rows)


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


def test_every_figure_is_what_its_query_gives(report: Path, built: Path) -> None:
    shown = {name: one for name, one in _Figures(report.read_text()).found.items() if one["sql"]}
    assert {"files", "observation", "uplink-balance", "leaving", "servers", "suspects", "claims"} <= set(shown)
    assert any(name.startswith("heatmap") for name in shown)
    assert any(name.startswith("fabric") for name in shown)
    with warehouse.open(built) as asked:
        for name, one in shown.items():
            given = dict(code[1:].split(" = ", 1) for code in one["code"] if code.startswith("$"))
            rows = asked.execute(one["sql"], given).fetchall() if given else asked.execute(one["sql"]).fetchall()
            assert len(rows) == len(one["rows"]), name
            for row, cells in zip(rows, one["rows"], strict=True):
                assert all(map(_same, cells, row)), f"{name}: {cells} is not {row}"


def test_charts_draw_the_rows_of_their_tables(report: Path) -> None:
    text = report.read_text()
    specs = json.loads(text.split('<script id="specs" type="application/json">')[1].split("</script>")[0])
    shown = _Figures(text).found
    assert {one["id"] for one in specs} == {name for name, one in shown.items() if one["chart"]}
    [bars] = [one["spec"] for one in specs if one["id"] == "leaving"]
    drawn = {(row["switch"], row["leaving_percent"]) for row in _data(bars)}
    assert drawn == {(row[0], float(row[1])) for row in shown["leaving"]["rows"]}
    [matrix] = [one["spec"] for one in specs if one["id"].startswith("heatmap")]
    rows = next(one["rows"] for name, one in shown.items() if name.startswith("heatmap"))
    assert [row["p"] for row in _data(matrix)] == [json.loads(row[4].replace("NULL", "null")) for row in rows]


def test_sentences_are_those_of_the_tables(report: Path, built: Path) -> None:
    shown = _Figures(report.read_text()).found
    with warehouse.open(built) as asked:
        found = asked.execute("""
            SELECT switch, direction, round(100 * cov, 2) FROM metrics.uplink_balance
            WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.uplink_balance) ORDER BY cov DESC NULLS LAST LIMIT 1
        """).fetchall()[0]
        suspects = asked.execute("SELECT count(*) FROM metrics.suspect_links").fetchall()[0][0]
        fullest = asked.execute("""
            SELECT port || ' of ' || switch || ' to ' || peer_switch,
                round(100 * greatest(in_utilization, out_utilization), 2)
            FROM metrics.port_hour JOIN topology.ports USING (cluster, switch, port)
            WHERE ports.port_class IN ('uplink', 'storage_uplink')
                AND hour_utc = (SELECT max(hour_utc) FROM metrics.port_hour)
            ORDER BY greatest(in_utilization, out_utilization) DESC LIMIT 1
        """).fetchall()[0]
    switch, direction, cov = found
    [fabric] = [one["says"] for name, one in shown.items() if name.startswith("fabric-")]
    assert f"The fullest uplink is {fullest[0]}, {fullest[1]} % over the hour." in fabric
    assert f" {suspects} suspect links, marked" in fabric
    assert f"uplinks of {switch} share the traffic {direction} least evenly" in shown["uplink-balance"]["says"]
    assert f" {cov} %" in shown["uplink-balance"]["says"]
    assert shown["suspects"]["says"].startswith(f"{suspects} links")


def test_every_chart_has_a_text_and_every_figure_a_citation_that_can_be_computed_again(
    report: Path, built: Path
) -> None:
    text = report.read_text()
    shown = _Figures(text).found
    for name, one in shown.items():
        if one["sql"]:
            assert one["says"].strip(), name
            assert one["chart"] is None or one["says"].strip() in " ".join(one["chart"].split()), name
            assert f"sql/report/{name.split('-cluster')[0]}.sql" in one["code"], name
    ids = re.findall(r"<code>warehouse cite ([0-9a-f]{12})</code>", text)
    assert len(ids) == len([one for one in shown.values() if one["sql"]])
    for one in ids:
        assert citations.again(built, citations.load(built, one), {}) == []


def test_nothing_is_fetched(report: Path) -> None:
    text = report.read_text()
    without_scripts = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    for value in re.findall(r"""\b(?:src|href|action|data|poster)\s*=\s*["']?([^"'\s>]+)""", without_scripts):
        assert value.startswith("#"), value
    assert "@import" not in without_scripts
    assert "url(" not in without_scripts
    assert not re.findall(r"<script[^>]+src", text)
    assert "default-src 'none'" in text
    assert len(text.encode()) < 5_000_000


def test_it_is_the_same_text_twice(report: Path, built: Path, tmp_path: Path) -> None:
    write_report(built, tmp_path / "again.html", FOLDERS)
    assert (tmp_path / "again.html").read_bytes() == report.read_bytes()


def _planted(value: str) -> list[tuple[Section, list[tuple[Figure, Answer | None]]]]:
    from pathlib import Path

    from warehouse.report.theme import chart

    figure = Figure(
        "q", value, lambda rows: str(rows[0]["name"]), value, lambda rows: chart(rows).mark_bar(), {"p": value}
    )
    citation = citations.Citation("b", value, {"p": value}, ["name"], 1, "d", [[value]])
    query = Query("q", value, {}, value, Path("q.sql"))
    answer = Answer(figure, query, ("name",), (False,), [(value,)], citation)
    return [(Section("s", value, (figure,)), [(figure, answer), (figure, None)])]


def test_text_of_data_stays_text() -> None:
    text = page((HOSTILE, HOSTILE, HOSTILE, HOSTILE), _planted(HOSTILE), kept=True)
    assert "evil.example" in text
    assert text.count("</script>") == 3
    body = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "onerror=&#34;" in body
    assert "<img" not in body
    specs = json.loads(text.split('<script id="specs" type="application/json">')[1].split("</script>")[0])
    assert _data(specs[0]["spec"]) == [{"name": HOSTILE}]


def test_sections_without_data_say_so(sample: Path, tmp_path: Path) -> None:
    warehouse.build(sample / "zhejiang", tmp_path / "fabric")
    write_report(tmp_path / "fabric", tmp_path / "report.html", FOLDERS)
    text = (tmp_path / "report.html").read_text()
    assert "No job trace is loaded." in text
    assert "No loaded trace says how jobs ended." in text
    assert re.search(r'id="job-durations">\s*<h3>[^<]*</h3>\s*<p class="without">', text)


def test_every_query_of_the_folder_is_used() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warehouse.report.report_file._rows", lambda _, sql: [("c", "t")] if "task" in sql else [("c",)])
        asked = {figure.query for section in sections(None) for figure in section.figures}  # type: ignore[arg-type]
    assert asked == set(load_queries(FOLDERS))


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
    assert "No switch is known." in (tmp_path / "r.html").read_text()


def test_it_never_writes_into_the_target(built: Path) -> None:
    with pytest.raises(QueryError, match="lies in the target"):
        write_report(built, built / "report.html", FOLDERS)


def test_charts_as_files(built: Path, tmp_path: Path) -> None:
    made = write_report(built, tmp_path / "r.html", FOLDERS, figures=tmp_path / "figures")
    vectors = sorted(tmp_path.glob("figures/*.svg"))
    assert made.files == 2 * len(vectors) > 0
    for one in vectors:
        text = one.read_text()
        assert "currentColor" not in text, one.name
        assert (
            abs(int(re.findall(r'width="(\d+)"', text)[0]) - 320) <= 1
            or abs(int(re.findall(r'width="(\d+)"', text)[0]) - 672) <= 1
        ), one.name
        assert one.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
