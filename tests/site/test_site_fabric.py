"""Pages of switches, servers and raw formats, and the findings: planted facts are shown where expected."""

from __future__ import annotations

import csv
import json
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from warehouse.site.fabric import _Given
from warehouse.site.pages import NUMBER_OF
from warehouse.site.people_rows import NO_ROWS
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


@pytest.fixture(scope="session")
def cluster(site: Path) -> Path:
    """The folder of the pages of the sample's cluster."""
    [found] = (site / "fabric").iterdir()
    return found


def _short(port: str) -> str:
    return re.sub("^[A-Za-z]+", "", port)


def test_every_switch_and_named_server_has_a_page(site: Path, cluster: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        switches = [name for (name,) in asked.sql("SELECT switch FROM topology.switches").fetchall()]
        servers = [name for (name,) in asked.sql("SELECT server FROM topology.servers").fetchall()]
    named = [name for name in servers if not name.startswith("unlisted:")]
    assert {path.stem for path in cluster.iterdir()} == {one.replace("/", "-") for one in (*switches, *named)}
    assert [row[0] for row in _rows(site / "fabric.html", "switches")][:3] == ["Leaf-1", "Leaf-2", "Leaf-3"]
    assert {row[0] for row in _rows(site / "fabric.html", "servers")} == set(named)
    assert f"{len(switches)} switches and {len(named)} servers" in _text(site / "index.html")


def test_a_planted_uplink_without_data_is_marked_at_both_ends(site: Path, cluster: Path, truth: dict[str, Any]) -> None:
    one_way = [one for one in truth["suspects"] if one["kind"].startswith("uplink_")]
    assert one_way
    ends = {(one["leaf"], one["leaf_port"]): one["spine"] for one in truth["uplinks"]}
    for one in one_way:
        said = "is silent" if "silent" in one["kind"] else "carries no data"
        leaf, port = one["switch"], _short(one["port"])
        marked = [row for row in _rows(cluster / f"{leaf}.html", "ports") if row[-1]]
        assert [row[0] for row in marked if row[-1] == one["kind"].replace("_", " ")] == [port]
        spine = ends[leaf, one["port"]]
        assert [leaf, port] in [row[:2] for row in _rows(cluster / f"{spine}.html", "ports") if row[-1]]
        for page in (leaf, spine):
            assert f"The uplink {leaf} {port} {said}" in _text(cluster / f"{page}.html").partition("Neighbors")[0]
    others = {path.stem for path in cluster.iterdir()} - {
        page for one in one_way for page in (one["switch"], *ends.values())
    }
    assert not any("The uplink " in _text(cluster / f"{name}.html") for name in others)


def test_a_server_cabled_elsewhere_is_marked(site: Path, cluster: Path, truth: dict[str, Any]) -> None:
    planted = {one["server"] for one in truth["suspects"] if one["server"]}
    assert planted
    listed = {row[0] for row in _rows(site / "fabric.html", "servers") if "to look at" in " ".join(row)}
    assert planted <= listed
    for name in planted:
        wanted = {(one["switch"], _short(one["port"])) for one in truth["suspects"] if one["server"] == name}
        marked = {(row[3], row[4]) for row in _rows(cluster / f"{name}.html", "nics") if row[-1]}
        assert marked == wanted


def test_nics_and_bytes_of_a_server_match_the_planted_truth(cluster: Path, truth: dict[str, Any], built: Path) -> None:
    rows = _rows(cluster / "GPU-1.html", "nics")
    listed = [one for one in truth["nic_ports"] if one["server"] == "GPU-1"]
    assert {(row[0], row[1], row[3], row[4]) for row in rows} == {
        (one["hca"], one["nic"], one["switch"], _short(one["port"])) for one in listed
    }
    with warehouse.open(built) as asked:
        bytes_of = asked.sql("SELECT rx_bytes FROM metrics.server_hour WHERE server = 'GPU-1' ORDER BY hour_utc")
        expected = [f"{received / 1e12:.3g} TB" for (received,) in bytes_of.fetchall()]
        members = asked.sql(
            "SELECT server FROM metrics.traffic_groups WHERE (cluster, hour_utc, group_id) IN "
            "(SELECT (cluster, max(hour_utc), arg_max(group_id, hour_utc)) FROM metrics.traffic_groups "
            "WHERE server = 'GPU-1' GROUP BY cluster) AND server <> 'GPU-1'"
        ).fetchall()
    hours = [row[3] for row in _rows(cluster / "GPU-1.html", "hours")]
    assert [float(one.split()[0]) for one in hours] == [pytest.approx(float(one.split()[0])) for one in expected]
    said = _text(cluster / "GPU-1.html")
    assert all(f"{name} " in f"{said} " or f"{name}," in said for (name,) in members)


def test_groups_have_the_period_of_their_job_with_its_error(site: Path, cluster: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        jobs = asked.sql(
            "SELECT job_id, period_seconds, period_error_seconds FROM metrics.traffic_jobs "
            "WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.traffic_jobs)"
        ).fetchall()
        members = asked.sql(
            "SELECT g.server, j.period_seconds FROM metrics.traffic_groups AS g JOIN metrics.traffic_jobs AS j "
            "ON (j.cluster, j.hour_utc, j.job_id) = (g.cluster, g.hour_utc, g.group_id) "
            "WHERE j.hour_utc = (SELECT max(hour_utc) FROM metrics.traffic_jobs)"
        ).fetchall()
    listed = {int(row[0]): row[2] for row in _rows(site / "fabric.html", "groups")}
    assert set(listed) == {number for number, _, _ in jobs}
    for number, period, error in jobs:
        if period is None:
            assert listed[number] == "not resolved"
            continue
        told, about = (float(one) for one in listed[number].removesuffix(" s").split(" ± "))
        assert told == pytest.approx(period, abs=about)
        assert about == pytest.approx(error, rel=0.5)
    for server, period in members:
        assert (", period " in _text(cluster / f"{server.replace('/', '-')}.html")) == (period is not None)


def test_findings_come_first_one_card_per_kind(site: Path, built: Path) -> None:
    with warehouse.open(built) as asked:
        found = asked.sql(
            "SELECT kind, sentence FROM metrics.findings WHERE kind <> 'claims_differ' ORDER BY rank"
        ).fetchall()
    page = (site / "index.html").read_text(encoding="utf-8")
    cards = re.findall(r'<li class="is-\w+">.*?</p>\s*</li>', page, re.DOTALL)
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
    assert all(re.search(r'class="number">(\S+ \d/\d/\d+|[\d,.]+ \S)', one) for one in cards)
    assert all(
        re.search(r'class="scope">(\d{4}-\d\d-\d\d \d\d:00 UTC|all loaded (hours|files))<', one) for one in cards
    )
    assert 'href="queries.html#suspect-links"' in cards[0]
    for card in cards:  # the first link is the column of the number
        name, anchor = re.findall(r'See <a href="(.*?)#(\w+)"', card)[0]
        assert f'id="{anchor}"' in (site / name).read_text(encoding="utf-8")


def test_each_kind_of_finding_links_to_a_column() -> None:
    root = Path(__file__).parents[2]
    with (root / "data" / "finding_kinds.csv").open(encoding="utf-8", newline="") as stream:
        assert list(NUMBER_OF) == [row["kind"] for row in csv.DictReader(stream)]


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
    assert "Three OutOctets are negative" in said
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


def test_units_and_words_link_to_the_glossary(site: Path) -> None:
    page = (site / "tables" / "metrics.port_hour.html").read_text(encoding="utf-8")
    assert '<a class="term" href="../docs/glossary.html#word-bits">bit/s</a>' in page
    assert '<a class="term" href="../docs/glossary.html#word-line-rate">line rate</a>' in page


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


def test_names_become_safe_file_names() -> None:
    names = ("ports", "nics", "switch-hours", "server-hours", "suspects", "switches", "servers", "traffic-groups")
    given = _Given(dict.fromkeys(names, NO_ROWS), [])
    paths = [given.path("..", "a/b"), given.path("..", "a b"), given.path("c", "../../x"), given.path("c", "A-B")]
    assert paths == ["fabric/-/a-b.html", "fabric/-/a-b-.html", "fabric/c/-..-x.html", "fabric/c/A-B.html"]
