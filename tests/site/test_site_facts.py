"""Findings, switches, servers and raw formats on the site: planted facts and those of the tables stand as expected."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from tests.conftest import call
from warehouse.base.settings import shipped_root
from warehouse.project.project import Project
from warehouse.site.site_folder import write_docs

if TYPE_CHECKING:
    from tests.tiny import Tiny

UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
LATEST = "WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.port_hour)"


def _plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def _text(page: Path) -> str:
    """Return the text of a page's main part, on one line."""
    main = page.read_text(encoding="utf-8").partition("<main")[2].partition("</main>")[0]
    return _plain(main.partition(">")[2])


def _rows(page: Path, place: str) -> list[list[str]]:
    """Return the cells of the table below a heading, as text."""
    text = page.read_text(encoding="utf-8").partition(f'id="{place}"')[2].partition("<h2")[0]
    rows = re.findall(r"<tr.*?</tr>", text.partition("<tbody>")[2], re.DOTALL)
    return [[_plain(cell) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)] for row in rows]


def _asked(built: Path, *queries: str) -> list[list[tuple[Any, ...]]]:
    with warehouse.open(built) as connection:
        return [connection.execute(query).fetchall() for query in queries]


def test_every_switch_and_named_server_has_a_row_with_its_bytes_of_the_latest_hour(site: Path, built: Path) -> None:
    switches, servers, leaf_bytes, server_bytes = _asked(
        built, "SELECT switch FROM topology.switches",
        "SELECT server FROM topology.servers WHERE NOT starts_with(server, 'unlisted:')",
        f"SELECT switch, access_in_bytes FROM metrics.leaf_hour {LATEST}",
        f"SELECT server, rx_bytes FROM metrics.server_hour {LATEST}",
    )  # fmt: skip
    assert f"{len(switches)} switches and {len(servers)} servers" in _text(site / "index.html")
    for place, column, every, moved in (("switches", 5, switches, leaf_bytes), ("servers", 3, servers, server_bytes)):
        shown = {row[0]: row[column] for row in _rows(site / "fabric.html", place)}
        assert sorted(shown) == sorted(name for (name,) in every)
        told = {name: cell.partition(" ") for name, cell in shown.items() if cell}
        listed = {name: moved_bytes for name, moved_bytes in moved if name in shown}
        found = {name: float(number) * UNITS[unit] for name, (number, _, unit) in told.items()}
        assert found == pytest.approx(listed, rel=0.01)


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
    text = (site / "fabric.html").read_text(encoding="utf-8")
    commands = [unescape(one) for one in re.findall(r'<a href="queries.html#[\w-]+" title="[^"]+"><code>(.*?)<', text)]
    assert {"nic", "leaf-uplinks", "uplink-minutes", "busiest-ports"} <= {one.partition(" ")[0] for one in commands}
    for one in commands:
        said = call("sql", "-q", *one.split(), "-t", built, cwd=site)
        assert said.status == 0, said
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
            value, about = (float(one) for one in listed[number][2].removesuffix(" s").split(" ± "))
            assert value == pytest.approx(period, abs=about)
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
    for page in (site / "index.html", report):
        head = _plain(page.read_text(encoding="utf-8").partition("<h1>")[2].partition("</p>")[0]).replace(" :", ":")
        assert [
            one for one in (*said, *(f"{count:,} jobs of {trace}" for trace, count in jobs)) if one not in head
        ] == []


def test_no_page_has_a_literal_backtick(site: Path, report: Path) -> None:
    for path in (*site.rglob("*.html"), report):
        text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "`" not in text, path


def test_all_findings_and_what_was_loaded_of_each_format_are_told(site: Path, built: Path) -> None:
    sentences, found, rejected = _asked(
        built,
        "SELECT sentence FROM metrics.findings WHERE kind <> 'claims_differ'",
        "SELECT format, status, count(*) FROM raw.files GROUP BY ALL",
        "SELECT format, count(*) FROM raw.rejected_rows AS r JOIN raw.files AS f ON f.release_path = r.file GROUP BY 1",
    )
    text = _text(site / "index.html")
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
