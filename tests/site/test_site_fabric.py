"""Pages of the fabric and of raw formats, and the findings: planted facts are shown where expected."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from tests.conftest import call
from warehouse.reader.finding import by_question
from warehouse.reader.named_queries import load_queries
from warehouse.site.site_folder import write_docs

if TYPE_CHECKING:
    from tests.tiny import Tiny


def _text(page: Path) -> str:
    """Return the text of a page's main part, on one line."""
    main = page.read_text(encoding="utf-8").partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main.partition(">")[2])).split())


def _rows(page: Path, place: str) -> list[list[str]]:
    """Return the cells of the tables below a heading, as text."""
    text = page.read_text(encoding="utf-8").partition(f'id="{place}"')[2].partition("<h2")[0]
    rows = re.findall(r"<tr.*?</tr>", text.partition("<tbody>")[2], re.DOTALL)
    cells = [re.findall(r"<td.*?</td>", row, re.DOTALL) for row in rows]
    return [[" ".join(unescape(re.sub(r"<[^>]+>", " ", cell)).split()) for cell in row] for row in cells if row]


@pytest.fixture(scope="session")
def truth(sample: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sample / "truth.json").read_text(encoding="utf-8"))
    return found


def test_every_switch_and_named_server_has_a_row(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        switches = [name for (name,) in asked.sql("SELECT switch FROM topology.switches").fetchall()]
        servers = [name for (name,) in asked.sql("SELECT server FROM topology.servers").fetchall()]
    named = [name for name in servers if not name.startswith("unlisted:")]
    rows = [row[0] for row in _rows(site / "fabric.html", "switches")]
    assert sorted(rows) == sorted(switches)
    assert rows[:3] == ["Leaf-1", "Leaf-2", "Leaf-3"]
    assert rows[-1].startswith("spine-")
    assert sorted(row[0] for row in _rows(site / "fabric.html", "servers")) == sorted(named)
    assert f"{len(switches)} switches and {len(named)} servers" in _text(site / "index.html")


def test_planted_suspects_are_marked_at_both_ends(site: Path, truth: dict[str, Any]) -> None:
    ends = {(one["leaf"], one["leaf_port"]): one["spine"] for one in truth["uplinks"]}
    planted = {one["server"] or one["switch"] for one in truth["suspects"]}
    planted |= {ends[at] for one in truth["suspects"] if (at := (one["switch"], one["port"])) in ends}
    marked = {
        row[0]: cell
        for place, column in (("switches", 8), ("servers", 6))
        for row in _rows(site / "fabric.html", place)
        if (cell := row[column])
    }
    assert planted <= marked.keys()
    for one in truth["suspects"]:
        if one["kind"].startswith("uplink_"):
            said = "link silent one way" if "silent" in one["kind"] else "link without data one way"
            assert said in marked[one["switch"]]
    assert "GPU-1" not in marked


def test_rows_have_the_bytes_of_the_latest_hour(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        leaves, servers = (
            asked.sql(f"{select} WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.port_hour)").fetchall()
            for select in (
                "SELECT switch, access_in_bytes FROM metrics.leaf_hour",
                "SELECT server, rx_bytes FROM metrics.server_hour",
            )
        )
    for place, column, expected in (("switches", 5, dict(leaves)), ("servers", 3, dict(servers))):
        shown = {row[0]: row[column] for row in _rows(site / "fabric.html", place)}
        units = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
        assert any(shown.values())
        for name, cell in shown.items():
            number, _, unit = cell.partition(" ")
            assert bool(cell) == (name in expected)
            assert not cell or float(number) * units[unit] == pytest.approx(expected[name], rel=0.01)


def test_the_page_has_a_command_for_each_query_on_one_of_them(site: Path, built: Path) -> None:
    text = (site / "fabric.html").read_text(encoding="utf-8")
    commands = [unescape(one) for one in re.findall(r'<a href="queries.html#[\w-]+" title="[^"]+"><code>(.*?)<', text)]
    assert {"nic", "leaf-uplinks", "uplink-minutes", "busiest-ports"} <= {one.partition(" ")[0] for one in commands}
    for one in commands:
        said = call("sql", "-q", *one.split(), "-t", built, cwd=site)
        assert said.status == 0, said


def test_groups_have_the_period_of_their_job_with_its_error(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        jobs = asked.sql(
            "SELECT group_id, period_seconds, period_error_seconds FROM metrics.traffic_jobs "
            "WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.traffic_jobs)"
        ).fetchall()
        members = asked.sql(
            "SELECT server, group_id FROM metrics.traffic_groups "
            "WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.traffic_groups)"
        ).fetchall()
    listed = {int(row[0]): row for row in _rows(site / "fabric.html", "groups")}
    assert set(listed) == {number for number, _, _ in jobs}
    for number, period, error in jobs:
        told = listed[number][2]
        if period is None:
            assert told == "not resolved"
            continue
        value, about = (float(one) for one in told.removesuffix(" s").split(" ± "))
        assert value == pytest.approx(period, abs=about)
        assert about == pytest.approx(error, rel=0.5)
    of_server = {row[0]: row[5] for row in _rows(site / "fabric.html", "servers")}
    for server, number in members:
        assert of_server[server] == f"group {number}"
        assert server in listed[number][3].replace(" ,", ",").split(", ")


def test_pages_open_with_what_was_observed(site: Path, report: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        [(hours, first, last, ports, polls)] = asked.sql(
            "SELECT count(DISTINCT hour_utc), min(hour_utc), max(hour_utc), count(DISTINCT (switch, port)), "
            "sum(polls) FROM metrics.port_hour"
        ).fetchall()
        [(loaded,)] = asked.sql("SELECT count(DISTINCT switch) FROM metrics.leaf_hour").fetchall()
        jobs = asked.sql("SELECT trace, count(*) FROM metrics.jobs GROUP BY ALL ORDER BY ALL").fetchall()
        [(tasks, steps)] = asked.sql(
            "SELECT count(*), sum(iterations) FROM metrics.task_summary WHERE source = 'log'"
        ).fetchall()
    hours_text = f"{hours} hours, {first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC of cluster_sample"
    said = [
        f"Observed: {hours_text}: {loaded} of 9 leaves, {ports} ports, {polls:,} polls",
        f"{tasks} training tasks with logs, {steps:,} iterations",
        *(f"{count:,} jobs of {trace}" for trace, count in jobs),
    ]
    for page in (site / "index.html", report):
        head = page.read_text(encoding="utf-8").partition("<h1>")[2].partition("</p>")[0]
        assert "; ".join(said) in " ".join(unescape(re.sub(r"<[^>]+>", " ", head)).split()).replace(" :", ":"), page


def test_tables_and_formats_without_rows_come_last(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        models = asked.sql("SELECT model FROM meta.models WHERE model LIKE 'metrics.%'").fetchall()
        empty = {
            name.partition(".")[2] for (name,) in models if not asked.sql(f"SELECT 1 FROM {name} LIMIT 1").fetchall()
        }
    text = (site / "index.html").read_text(encoding="utf-8").partition('<h3 id="metrics">')[2].partition("<h3 ")[0]
    filled, _, folded = text.partition("<details>")
    assert empty
    assert set(re.findall(r"<code>(\w+)</code>", folded)) == empty
    assert empty.isdisjoint(re.findall(r"<code>(\w+)</code>", filled))
    formats = re.findall(r'<tr(.*?)><td><a href="formats/', (site / "formats.html").read_text(encoding="utf-8"))
    assert formats == sorted(formats)


def test_no_page_has_a_literal_backtick(site: Path, report: Path) -> None:
    for path in (*site.rglob("*.html"), report):
        text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "`" not in text, path


def test_queries_are_ordered_by_question(site: Path) -> None:
    queries = load_queries([Path(__file__).parents[2] / "sql" / "queries"])
    expected = by_question(queries)
    assert "Others" not in expected, "a shipped query has a question"
    text = (site / "queries.html").read_text(encoding="utf-8")
    assert unescape(" ".join(re.findall(r"<h2>(.*?)</h2>", text))) == " ".join(expected)
    assert re.findall(r'<h3 id="(.*?)"', text) == [one.name for some in expected.values() for one in some]


def test_findings_come_first_one_card_per_kind(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        found = asked.sql(
            "SELECT kind, sentence FROM metrics.findings WHERE kind <> 'claims_differ' ORDER BY rank"
        ).fetchall()
    page = (site / "index.html").read_text(encoding="utf-8")
    cards = re.findall(r'<li class="is-\w+" id="finding-\w+">.*?</p>\s*</li>', page, re.DOTALL)
    assert len(cards) == len({kind for kind, _ in found}) <= 12
    assert page.index('class="trust"') < page.index('class="cards"') < page.index('id="tables"')
    with warehouse.open(built) as asked:
        build, published = asked.execute("SELECT build_id, published_utc FROM meta.build").fetchall()[0]
    first = page[page.index("<h1>") : page.index('class="cards"')]
    assert f"<code>{build}</code>, published {published} UTC. " in first
    assert re.search(r"\d+ checks passed, \d+ <a", first)
    assert "<strong>Synthetic sample:</strong>" in first
    assert "published figures" not in "".join(cards)
    text = _text(site / "index.html")
    assert all(sentence in text for _, sentence in found)
    numbers = [re.sub("<[^>]+>", "", one.partition('class="number">')[2].partition("</h2>")[0]) for one in cards]
    assert all(re.match(r"\S+ \d/\d/\d+|[\d,.]+ \S", one) for one in numbers)
    assert all(
        re.search(r'class="scope">(\d{4}-\d\d-\d\d \d\d:00 UTC|all loaded (hours|files))<', one) for one in cards
    )
    assert 'href="queries.html#suspect-links"' in cards[0]
    for card in cards:  # the switch or server that it names, or a query
        name, anchor = re.findall(r'See <a href="(.*?)#([^"]+)"', card)[0]
        assert f'id="{anchor}"' in (site / name).read_text(encoding="utf-8")


def test_format_pages_list_the_loaded_files(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        found = asked.sql(
            "SELECT format, status, count(*) FROM raw.files WHERE format IS NOT NULL GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        rejected = asked.sql(
            "SELECT format, count(*) FROM raw.rejected_rows AS r "
            "JOIN raw.files AS f ON f.release_path = r.file GROUP BY ALL"
        ).fetchall()
        readings = asked.sql("SELECT count(*) FROM staging.port_readings").fetchall()[0][0]
    assert rejected
    for name, status, files in found:
        rows = _rows(site / "formats" / f"{name}.html", "loaded")
        assert sum(int(row[1].replace(",", "")) for row in rows if row[0] == status) == files, name
    for name, lines in rejected:
        rows = _rows(site / "formats" / f"{name}.html", "loaded")
        assert sum(int(row[4]) for row in rows) == lines, name
    said = _text(site / "formats" / "zhejiang.port_counters.html")
    assert f"staging.port_readings , {readings:,} rows" in said
    page = (site / "formats" / "zhejiang.port_counters.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="../docs/formats/port_counters.html#[\w-]*traps[\w-]*">', page)
    assert "none in this build" in _text(site / "formats.html")


def test_a_table_page_opens_with_rows_and_users(site: Path) -> None:
    said = _text(site / "tables" / "metrics.port_hour.html")
    order = [
        "Bytes, utilization and observation quality of a port",
        "A row is one",
        "Rows look like this",
        "Used by",
        "Columns",
    ]
    places = [said.index(one) for one in order]
    assert places == sorted(places)
    rows = said[places[2] : places[3]]
    assert re.search(r"\d Gb/s", rows)
    assert re.search(r"\d TB", rows)
    users = said[places[3] : places[4]]
    assert "busiest-ports" in users
    assert "metrics.leaf_hour" in users
    assert re.search(r"figures of the report, by query \w", users)


def test_the_site_contains_no_local_path(site: Path, sample: Path, built: Path) -> None:
    for path in (one for one in site.rglob("*") if one.is_file()):
        text = path.read_text(encoding="utf-8")
        assert str(sample) not in text, path
        assert str(built) not in text, path


FINDINGS = {
    "kind": "VARCHAR", "severity": "VARCHAR", "what": "VARCHAR", "where_": "VARCHAR", "number": "DOUBLE",
    "unit": "VARCHAR", "sentence": "VARCHAR", "so_what": "VARCHAR", "look_further": "VARCHAR",
    "hour_utc": "TIMESTAMP", "cluster": "VARCHAR", "rank": "BIGINT", "cause": "VARCHAR",
}  # fmt: skip


def test_a_site_without_findings_says_so(tiny: Tiny, tmp_path: Path) -> None:
    nothing = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in FINDINGS.items())
    tiny.model("metrics.findings", f"SELECT {nothing} WHERE false", FINDINGS)
    write_docs(tmp_path / "before", tiny.project, tiny.target)
    assert tiny.build().status == 0
    write_docs(tmp_path / "after", tiny.project, tiny.target)
    assert "Nothing is published yet" in _text(tmp_path / "before" / "index.html")
    said = _text(tmp_path / "after" / "index.html")
    assert "No findings: no link without data" in said
    assert not (tmp_path / "after" / "fabric.html").exists()
    assert "fabric.html" not in (tmp_path / "after" / "index.html").read_text(encoding="utf-8")


def test_a_build_without_findings_says_so(tiny: Tiny, tmp_path: Path) -> None:
    assert tiny.build().status == 0
    write_docs(tmp_path / "site", tiny.project, tiny.target)
    assert "This build did not look for findings" in _text(tmp_path / "site" / "index.html")
