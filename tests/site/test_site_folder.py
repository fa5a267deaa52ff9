"""The site: links resolve, tables match models and warehouse, text is escaped."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.site.site_folder import write_docs

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.tiny import Tiny

HOSTILE = """</script><img src="http://evil.example/x" onerror="alert(1)">&amp;<!--'"""


class _Page(HTMLParser):
    """Parser that returns the text of a page, and its titles, by element."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.parts: dict[str, list[str]] = defaultdict(list)
        self.titles: dict[str, list[str]] = defaultdict(list)
        self.path: list[tuple[str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.text = {name: "".join(parts) for name, parts in self.parts.items()}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("meta", "link", "br", "input", "hr", "img"):
            self.path.append((tag, given.get("id") or given.get("class") or tag))
        if given.get("title"):
            for _, name in self.path:
                self.titles[name].append(str(given["title"]))

    def handle_endtag(self, tag: str) -> None:
        while self.path and self.path.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, name in self.path:
            self.parts[name].append(data)


def _given(site: Path, name: str) -> Any:
    """Return the value that a script of the site sets."""
    return json.loads(re.sub(r"^window\.\w+=|;\n$", "", (site / "assets" / name).read_text(encoding="utf-8")))


def test_every_link_resolves_to_a_file_and_an_anchor(site: Path) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    places = {path: [unescape(one) for one in re.findall(r' id="([^"]+)"', text)] for path, text in texts.items()}
    found = {
        (path, unescape(one)) for path, text in texts.items() for one in re.findall(r' (?:href|src)="(.+?)"', text)
    }
    found |= {(site / "index.html", href) for *_, href in _given(site, "search.js")["entries"]}
    assert all(len(set(some)) == len(some) for some in places.values())
    for path, link in found:
        if re.match(r"https?:|mailto:|data:", link):
            continue
        name, _, place = link.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.is_file(), f"{path.name} links to {link}"
        assert not place or there.name == "lineage.html" or place in places[there], f"{path.name} links to {link}"


def test_no_network_request_is_made_and_no_local_path_is_told(site: Path, sample: Path, built: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert str(sample) not in text, path
        assert str(built) not in text, path
        assert "default-src 'none'" in text
        assert not re.findall(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["'](?:https?:)?//""", text), path
    for path in (site / "assets").iterdir():
        assert not re.search(r"\bfetch\(|XMLHttpRequest|@import|url\(|import\(", path.read_text(encoding="utf-8")), path


def test_every_model_has_a_page_with_sql_columns_and_checks(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        checks = asked.execute("SELECT DISTINCT model, check_text FROM meta.checks").fetchall()
        rows = dict(asked.execute("SELECT model, rows FROM meta.models WHERE rows IS NOT NULL").fetchall())
    for name, model in Project.open().models.items():
        page = _Page(site / "tables" / f"{name}.html")
        assert page.text["its-code"].strip() == model.sql.strip(), name
        for column in model.columns:
            said = " ".join(page.text[column.name].split())
            unit = f" [{column.unit}]" if column.unit else ""
            for one in (column.name, " ".join(column.about.replace("`", "").split()), f"{column.type}{unit}"):
                assert one in said, name
        assert [check for of, check in checks if of == name and check not in page.text["checks"]] == []
        assert name not in rows or f"{rows[name]:,}" in page.text["facts"], name


def test_values_equal_those_of_the_warehouse(site: Path, built: Path) -> None:
    for name in ("metrics.uplink_balance", "staging.log_events"):
        page = _Page(site / "tables" / f"{name}.html")
        with warehouse.open(built) as asked:
            frame = asked.execute(f"FROM {name}").fetchall()
            kinds = {one: str(kind) for one, kind, *_ in asked.execute(f"FROM {name} LIMIT 0").description}
        for at, (column, kind) in enumerate(kinds.items()):
            held = [row[at] for row in frame if row[at] is not None]
            nulls = len(frame) - len(held)
            said = "always NULL" if not held else f"{nulls:,} NULL of {len(frame):,}" if nulls else "never NULL"
            assert said in page.text[column]
            if held and kind in ("BIGINT", "INTEGER"):
                assert page.titles[column] == [str(one) for one in sorted({min(held), max(held)})], column


def test_lineage_matches_the_models(site: Path) -> None:
    graph = _given(site, "lineage.js")
    names = [name for name, *_ in graph["tables"]]

    def full(pair: list[int]) -> str:
        return f"{names[pair[0]]}.{graph['tables'][pair[0]][2][pair[1]] if pair[1] >= 0 else '*'}"

    at = names.index("metrics.uplink_balance")
    made = {
        column: (kind, {full(one) for one in inputs})
        for column, (kind, inputs) in zip(graph["tables"][at][2], graph["made"][at], strict=True)
    }
    assert made["switch"] == (1, {"metrics.port_hour.switch"})
    assert made["mean_bytes"][0] == 3
    assert {"metrics.port_hour.in_bytes", "metrics.port_hour.out_bytes"} <= made["mean_bytes"][1]
    assert "metrics.port_hour.in_bytes" not in made["flows"][1]
    deciding = {(how, full(one)) for how, _, inputs in graph["rows"][at] for one in inputs}
    assert ("filter", "metrics.port_hour.port_class") in deciding
    assert ("group", "metrics.port_hour.switch") in deciding
    every = list(zip(graph["tables"], graph["made"], strict=True))
    assert all(len(columns) == len(some) > 0 for (_, _, columns), some in every)
    from_nothing = {name for (name, *_), some in every if not any(inputs for _, inputs in some)}
    assert {name for name in from_nothing if not name.startswith(("raw.", "reference."))} == {"metrics.own_findings"}


def test_an_earlier_site_is_replaced_and_other_folders_are_not(tiny: Tiny, tmp_path: Path) -> None:
    place = tmp_path / "site"
    write_docs(place, tiny.project, tiny.target)
    before = {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    write_docs(place, tiny.project, tiny.target)
    assert {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    (place / "assets" / "mine.txt").write_text("mine")
    with pytest.raises(QueryError, match=r"holds files that no docs wrote: assets/mine\.txt"):
        write_docs(place, tiny.project, tiny.target)


def test_a_project_that_is_not_built_has_a_site_that_says_so(tiny: Tiny, command: Command, tmp_path: Path) -> None:
    said = command("docs", "site", "-t", tiny.target)
    assert (said.status, "the models alone" in said.out) == (0, True), said.err
    page = _Page(tmp_path / "site" / "tables" / "metrics.total.html")
    assert "without a published warehouse" in page.text["footer"]
    assert "not run" in page.text.get("checks", "not run")
    assert tiny.build().status == 0
    (tiny.folder / "models" / "metrics" / "total.sql").unlink()
    said = command("docs", "site", "-t", tiny.target)
    assert said.status == 0, said.err
    assert "1 table of the build without a page: metrics.total" in said.out


def test_text_of_models_and_data_is_escaped(tiny: Tiny, tmp_path: Path) -> None:
    quoted = HOSTILE.replace("'", "''")
    tiny.model("metrics.total", f"SELECT '{quoted}' AS name, 1 AS speed", {"name": "VARCHAR", "speed": "BIGINT"})
    tiny.write("sql/queries/q.sql", f"/* ---\nabout: '{quoted}'\n--- */\nSELECT '{quoted}' AS a\n")
    tiny.write("docs/x.md", f"# X\n\n{HOSTILE}\n")
    assert tiny.build().status == 0
    write_docs(tmp_path / "site", tiny.project, tiny.target)
    for path in (tmp_path / "site").rglob("*.html"):
        assert "<img" not in path.read_text(encoding="utf-8"), path
    page = _Page(tmp_path / "site" / "queries.html")
    assert page.text["td"].strip() == HOSTILE
    assert "<" not in (tmp_path / "site" / "assets" / "search.js").read_text(encoding="utf-8")


def test_a_check_to_look_at_is_a_sentence_where_it_has_one(site: Path, built: Path) -> None:
    with warehouse.open(built) as connection:
        rows = connection.execute(
            "SELECT model, first(sentence ORDER BY partition, position) FROM meta.failures "
            "WHERE sentence IS NOT NULL GROUP BY model, check_text"
        ).fetchall()
    start = (site / "index.html").read_text(encoding="utf-8")
    listed = unescape(start[start.index('id="warned"') :])
    assert rows
    for model, sentence in rows:
        assert sentence in listed
        assert sentence in unescape((site / "tables" / f"{model}.html").read_text(encoding="utf-8"))
