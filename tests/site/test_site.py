"""The site: links resolve, pages equal models and warehouse, planted facts stand as expected, text is escaped."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from tests.html_tree import Element, parsed
from warehouse.base.errors import QueryError
from warehouse.base.settings import shipped_root
from warehouse.project.project import Project
from warehouse.reader.named_queries import load_queries
from warehouse.site.site_folder import write_docs

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.tiny import Tiny

HOSTILE = """</script><img src="http://evil.example/x" onerror="alert(1)">&amp;<!--'"""
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
LATEST = "WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.port_hour)"


def _page(path: Path) -> Element:
    return parsed(path.read_text(encoding="utf-8"))


def _text(page: Element, name: str) -> str:
    """Return the text of the elements with this tag, id or class."""
    return "".join(one.text for one in page.all(name))


def _main(path: Path) -> str:
    """Return the text of a page's main part, on one line."""
    return _page(path).all("main")[0].words


def _rows(path: Path, place: str) -> list[list[str]]:
    """Return the cells of the table below a heading, as text."""
    below = list(_page(path).below())
    [heading] = [at for at, one in enumerate(below) if one.attributes.get("id") == place]
    body = next(one for one in below[heading:] if one.tag == "tbody")
    return [[cell.words for cell in row.all("td")] for row in body.all("tr")]


def _asked(built: Path, *queries: str) -> list[list[tuple[Any, ...]]]:
    with warehouse.open(built) as connection:
        return [connection.execute(query).fetchall() for query in queries]


def _given(site: Path, name: str) -> Any:
    """Return the value that a script of the site sets."""
    return json.loads(re.sub(r"^window\.\w+=|;\n$", "", (site / "assets" / name).read_text(encoding="utf-8")))


# the files -----------------------------------------------------------------------------------


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


def test_no_page_asks_the_network_tells_a_local_path_or_shows_a_backtick(
    site: Path, report: Path, sample: Path, built: Path
) -> None:
    for path in (*site.rglob("*.html"), report):
        text = path.read_text(encoding="utf-8")
        assert str(sample) not in text, path
        assert str(built) not in text, path
        assert "default-src 'none'" in text
        assert not re.findall(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["'](?:https?:)?//""", text), path
        assert "`" not in re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", text, flags=re.DOTALL), path
    for path in (site / "assets").iterdir():
        assert not re.search(r"\bfetch\(|XMLHttpRequest|@import|url\(|import\(", path.read_text(encoding="utf-8")), path


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
    page = _page(tmp_path / "site" / "tables" / "metrics.total.html")
    assert "without a published warehouse" in _text(page, "footer")
    assert "not run" in (_text(page, "checks") or "not run")
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
    assert _text(_page(tmp_path / "site" / "queries.html"), "td").strip() == HOSTILE
    assert "<" not in (tmp_path / "site" / "assets" / "search.js").read_text(encoding="utf-8")


# tables --------------------------------------------------------------------------------------


def test_every_model_has_a_page_with_sql_columns_and_checks(site: Path, built: Path) -> None:
    checks, counted = _asked(
        built, "SELECT DISTINCT model, check_text FROM meta.checks",
        "SELECT model, rows FROM meta.models WHERE rows IS NOT NULL",
    )  # fmt: skip
    rows = dict(counted)
    for name, model in Project.open().models.items():
        page = _page(site / "tables" / f"{name}.html")
        assert _text(page, "its-code").strip() == model.sql.strip(), name
        places = {one.attributes["id"]: one for one in page.below() if "id" in one.attributes}
        for column in model.columns:
            said = " ".join(places[column.name].text.split())
            unit = f" [{column.unit}]" if column.unit else ""
            for one in (column.name, " ".join(column.about.replace("`", "").split()), f"{column.type}{unit}"):
                assert one in said, name
        listed = _text(page, "checks")
        assert [check for of, check in checks if of == name and check not in listed] == []
        assert name not in rows or f"{rows[name]:,}" in _text(page, "facts"), name


def test_values_equal_those_of_the_warehouse(site: Path, built: Path) -> None:
    for name in ("metrics.uplink_balance", "staging.log_events"):
        page = _page(site / "tables" / f"{name}.html")
        with warehouse.open(built) as asked:
            frame = asked.execute(f"FROM {name}").fetchall()
            kinds = {one: str(kind) for one, kind, *_ in asked.execute(f"FROM {name} LIMIT 0").description}
        for at, (column, kind) in enumerate(kinds.items()):
            held = [row[at] for row in frame if row[at] is not None]
            nulls = len(frame) - len(held)
            said = "always NULL" if not held else f"{nulls:,} NULL of {len(frame):,}" if nulls else "never NULL"
            [shown] = [one for one in page.all(column) if one.tag == "tr"]
            assert said in shown.text
            if held and kind in ("BIGINT", "INTEGER"):
                titles = [one.attributes["title"] for one in shown.below() if "title" in one.attributes]
                assert titles == [str(one) for one in sorted({min(held), max(held)})], column


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
    assert {("filter", "metrics.port_hour.port_class"), ("group", "metrics.port_hour.switch")} <= deciding
    every = list(zip(graph["tables"], graph["made"], strict=True))
    assert all(len(columns) == len(some) > 0 for (_, _, columns), some in every)
    from_nothing = {name for (name, *_), some in every if not any(inputs for _, inputs in some)}
    assert {name for name in from_nothing if not name.startswith(("raw.", "reference."))} == {"metrics.own_findings"}


def test_a_check_to_look_at_is_a_sentence_where_it_has_one(site: Path, built: Path) -> None:
    [rows] = _asked(
        built, "SELECT model, first(sentence ORDER BY partition, position) FROM meta.failures "
        "WHERE sentence IS NOT NULL GROUP BY model, check_text"
    )  # fmt: skip
    listed = _text(_page(site / "index.html"), "main").partition("Checks to look at")[2]
    assert rows
    for model, sentence in rows:
        assert sentence in listed
        assert sentence in _text(_page(site / "tables" / f"{model}.html"), "checks")


# the fabric, findings and formats ------------------------------------------------------------


def test_every_switch_and_named_server_has_a_row_with_its_bytes_of_the_latest_hour(site: Path, built: Path) -> None:
    switches, servers, leaf_bytes, server_bytes = _asked(
        built, "SELECT switch FROM topology.switches",
        "SELECT server FROM topology.servers WHERE NOT starts_with(server, 'unlisted:')",
        f"SELECT switch, access_in_bytes FROM metrics.leaf_hour {LATEST}",
        f"SELECT server, rx_bytes FROM metrics.server_hour {LATEST}",
    )  # fmt: skip
    assert f"{len(switches)} switches and {len(servers)} servers" in _main(site / "index.html")
    for place, column, every, moved in (("switches", 5, switches, leaf_bytes), ("servers", 3, servers, server_bytes)):
        shown = {row[0]: row[column] for row in _rows(site / "fabric.html", place)}
        assert sorted(shown) == sorted(name for (name,) in every)
        told = {name: cell.partition(" ") for name, cell in shown.items() if cell}
        found = {name: float(number) * UNITS[unit] for name, (number, _, unit) in told.items()}
        assert found == pytest.approx({name: many for name, many in moved if name in shown}, rel=0.01)


def test_planted_suspects_are_marked_at_both_ends(site: Path, sample: Path) -> None:
    truth = json.loads((sample / "truth.json").read_text(encoding="utf-8"))
    ends = {(one["leaf"], one["leaf_port"]): one["spine"] for one in truth["uplinks"]}
    planted = {one["server"] or one["switch"] for one in truth["suspects"]}
    planted |= {ends[at] for one in truth["suspects"] if (at := (one["switch"], one["port"])) in ends}
    listed = ((row[0], row[at]) for place, at in (("switches", 8), ("servers", 6))
              for row in _rows(site / "fabric.html", place))  # fmt: skip
    marked = {name: said for name, said in listed if said}
    assert planted <= marked.keys()
    for one in truth["suspects"]:
        if one["kind"].startswith("uplink_"):
            said = "link silent one way" if "silent" in one["kind"] else "link without data one way"
            assert said in marked[one["switch"]]
    assert "GPU-1" not in marked


def test_the_page_has_commands_and_groups_with_the_period_of_their_job(site: Path, built: Path) -> None:
    [listed_commands] = _page(site / "fabric.html").all("commands")
    named = {one.text for one in listed_commands.all("code")}
    assert (
        {"nic", "leaf-uplinks", "uplink-minutes", "busiest-ports"}
        <= named
        <= load_queries(Project.open().query_folders).keys()
    )
    jobs, members = _asked(
        built, f"SELECT group_id, period_seconds, period_error_seconds FROM metrics.traffic_jobs {LATEST}",
        f"SELECT server, group_id FROM metrics.traffic_groups {LATEST}",
    )  # fmt: skip
    listed = {int(row[0]): row for row in _rows(site / "fabric.html", "groups")}
    assert set(listed) == {number for number, _, _ in jobs}
    for number, period, error in jobs:
        if period is None:
            assert listed[number][2] == "not resolved"
        else:
            shown, about = map(float, listed[number][2].removesuffix(" s").split(" ± "))
            assert shown == pytest.approx(period, abs=about)
            assert about == pytest.approx(error, rel=0.5)
    of_server = {row[0]: row[5] for row in _rows(site / "fabric.html", "servers")}
    listed_members = {name: f"group {number}" for name, number in members if not name.startswith("unlisted:")}
    assert {name: of_server[name] for name in listed_members} == listed_members


def test_pages_open_with_what_was_observed(site: Path, report: Path, built: Path) -> None:
    [[(hours, first, last, ports, polls)], [(loaded,)], jobs] = _asked(
        built,
        "SELECT count(DISTINCT hour_utc), min(hour_utc), max(hour_utc), count(DISTINCT (switch, port)), "
        "sum(polls) FROM metrics.port_hour",
        "SELECT count(DISTINCT switch) FROM metrics.leaf_hour",
        "SELECT trace, count(*) FROM metrics.jobs GROUP BY ALL ORDER BY ALL",
    )
    hours_text = f"{hours} hours, {first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC of cluster_sample"
    said = [f"Observed: {hours_text}: {loaded} of 9 leaves, {ports} ports, {polls:,} polls"]
    said += [f"{count:,} jobs of {trace}" for trace, count in jobs]
    for page in (site / "index.html", report):
        head = _page(page).all("observed")[0].words.replace(" :", ":")
        assert [one for one in said if one not in head] == []


def test_all_findings_and_what_was_loaded_of_each_format_are_told(site: Path, built: Path) -> None:
    sentences, found, rejected = _asked(
        built,
        "SELECT sentence FROM metrics.findings WHERE kind <> 'claims_differ'",
        "SELECT format, status, count(*) FROM raw.files GROUP BY ALL",
        "SELECT format, count(*) FROM raw.rejected_rows AS r JOIN raw.files AS f ON f.release_path = r.file GROUP BY 1",
    )
    text = _main(site / "index.html")
    assert [one for (one,) in sentences if one not in text] == []
    assert "Synthetic sample:" in text
    rows = _rows(site / "formats.html", "loaded")
    for name, status, files in found:
        assert sum(int(row[3].replace(",", "")) for row in rows if row[::2][:2] == [name or "NULL", status]) == files
    assert rejected
    for name, lines in rejected:
        told = [int(row[4]) for row in _rows(site / "formats.html", "rejected") if row[:2] == [name, "line"]]
        assert sum(told) == sum(int(row[6]) for row in rows if row[0] == name) == lines


def test_a_site_without_findings_says_so(tiny: Tiny, tmp_path: Path) -> None:
    def start(name: str) -> str:
        write_docs(tmp_path / name, tiny.project, tiny.target)
        return (tmp_path / name / "index.html").read_text(encoding="utf-8")

    assert "Nothing is published yet" in start("before")
    assert tiny.build().status == 0
    assert "This build did not look for findings" in start("without")
    columns = {one.name: one.type for one in Project((shipped_root(),)).models["metrics.findings"].columns}
    nothing = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns.items())
    tiny.model("metrics.findings", f"SELECT {nothing} WHERE false", columns)
    assert tiny.build().status == 0
    assert "No findings: no link without data" in start("after")
    assert not (tmp_path / "after" / "fabric.html").exists()
    assert "fabric.html" not in start("after")
