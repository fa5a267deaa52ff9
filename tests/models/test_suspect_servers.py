"""A server that is made to use other rails than its traffic group is found, and no other one."""

from __future__ import annotations

import csv
import io
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from bench.jobs_traffic import group_of_moved
from tests.conftest import call
from tests.models.planted_hours import planted as planted_hour
from warehouse.signals.rails import clusters
from warehouse.signals.together import together

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from tests.models.conftest import Planted

COUNTERS = ("InPkts", "InOctets", "OutPkts", "OutOctets", "InRatio", "OutRatio")


def _quiet(path: Path) -> None:
    """Let a port's file show nothing but a poll."""
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    with path.open("w", encoding="utf-8", newline="") as stream:
        out = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(row | dict.fromkeys(COUNTERS, 0) for row in rows)


def test_a_server_that_leaves_a_rail_out_is_found(planted: Planted, tmp_path: Path) -> None:
    """GPU-62 leaves out a rail that GPU-1 and GPU-2 use; GPU-61, of the same job, is in suspect_links."""
    shutil.copytree(planted.root / "zhejiang", tmp_path / "release", ignore=shutil.ignore_patterns("2024052401"))
    truth = json.loads((planted.root / "truth.json").read_text(encoding="utf-8"))
    [nic] = [one for one in truth["nic_ports"] if one["server"] == "GPU-62" and one["switch"] == "Leaf-8"]
    number, half = nic["port"].rpartition("/")[2].split(":")
    [file] = (tmp_path / "release").glob(f"*/trafficinfo/2024052400/*Leaf-8_*/Leaf-8_{number}_{half}.csv")
    _quiet(file)

    said = call("build", "-d", "release", "-t", "t", "-s", "metrics.findings", cwd=tmp_path)

    assert said.status == 0, said.err
    with warehouse.open(tmp_path / "t") as asked:
        found = asked.execute(
            "SELECT server, hour_utc::VARCHAR, kind, rails, evidence FROM metrics.suspect_servers WHERE group_id = 1"
        )
        assert found.fetchall() == [
            (
                "GPU-62",
                "2024-05-23 16:00:00",
                "rails_differ",
                "1, 2, 3",
                "rail 4 is used by all 2 others, not by it",
            )
        ]
        told = asked.execute(
            "SELECT where_, severity, number, sentence, look_further FROM metrics.findings "
            "WHERE kind = 'rails_differ' AND where_ = 'GPU-62'"
        ).fetchall()
    assert told == [
        (
            "GPU-62",
            "warning",
            1.0,
            (
                "GPU-62 uses rails 1, 2, 3, unlike the others of its traffic group: "
                "rail 4 is used by all 2 others, not by it."
            ),
            "warehouse sql -q nic --server GPU-62 --hour 2024-05-23T16:00",
        )
    ]


def test_only_the_planted_server_of_the_sample_uses_other_rails(planted: Planted) -> None:
    """The others of its group move bytes on one of its rails, too: under a tenth of those of the busiest rail."""
    [trap] = [trap for trap in planted.truth["traps"] if trap["kind"] == "rails_differ"]
    hours = [hour for (hour,) in planted.rows("SELECT DISTINCT hour_utc FROM metrics.port_hour")]
    found = planted.rows("SELECT server, hour_utc, rails, evidence FROM metrics.suspect_servers")
    told = "rails 1, 2 are used by all 2 others, not by it; rails 3, 4 are used by none of 2 others"
    assert found == [(trap["server"], hour, "3, 4", told) for hour in hours]
    [(least, most)] = planted.rows(
        "SELECT min(share), max(share) FROM (SELECT min(bytes) FILTER (WHERE rail = 3) / max(bytes) AS share "
        "FROM (SELECT server, hour_utc, (regexp_extract(switch, '[0-9]+')::INT - 1) % 4 + 1 AS rail, "
        "in_bytes + out_bytes AS bytes FROM metrics.port_hour JOIN topology.hour_owners "
        f"USING (cluster, switch, port, hour_utc) WHERE server IN {tuple(trap['little_on_another_rail'])}) "
        "GROUP BY server, hour_utc)"
    )
    assert 0.05 < least <= most < 0.1


@pytest.mark.parametrize("seed", [22, 49])
def test_a_member_without_a_common_rail_is_in_its_group(seed: int) -> None:
    """Seen by the sums of rails. One that moves the same bytes there, in iterations of its own, is in none."""
    rails, truth = planted_hour(seed)
    (hour,) = clusters(rails)
    groups = [{hour.servers[one] for one in found.group.members} for found in together(hour)]
    jobs: dict[str, list[dict[str, Any]]] = {}
    for row in truth:
        jobs.setdefault(row["job_id"], []).append(row)
    [(member, *others)] = [
        [one, *(row["server"] for row in rows if row is not one)]
        for rows in jobs.values()
        for one in rows
        if len(rows) > 2 and all(row is one or not {*row["rails"]} & {*one["rails"]} for row in rows)
    ]
    assert [group for group in groups if member["server"] in group] == [{member["server"], *others}]
    [near] = [
        row["server"]
        for row in truth
        if row["kind"] == "single" and row["bytes_per_iteration"] == member["bytes_per_iteration"]
    ]
    assert near in hour.servers
    assert not any(near in group for group in groups)


@pytest.mark.real
def test_a_real_server_on_rails_of_its_own_is_in_the_group_of_its_job_alone(
    real_built: duckdb.DuckDBPyConnection,
) -> None:
    """Members of groups of four and more, those with the largest lags among them, and the busiest servers in none."""
    table = real_built.sql("FROM metrics.rail_seconds ORDER BY hour_utc, cluster, server, rail").to_arrow_table()
    (hour,) = clusters(table)
    groups = [found.group for found in together(hour)]
    for group in groups:
        if len(group.members) > 3:
            member = max(zip(group.lags, group.members, strict=True), key=lambda one: abs(one[0]))[1]
            assert len(group_of_moved(hour, member) & {*group.members}) > len(group.members) / 2
            assert group_of_moved(hour, member) <= {*group.members}
    single = {*range(len(hour.servers))} - {member for group in groups for member in group.members}
    busiest = sorted(single, key=lambda server: -int(hour.moved[server].sum()))
    assert busiest
    for server in busiest[:3]:
        assert group_of_moved(hour, server) == set()


@pytest.mark.real
def test_no_server_at_hand_can_be_seen_to_use_other_rails(real_built: duckdb.DuckDBPyConnection) -> None:
    """One leaf of each group is loaded."""
    assert real_built.execute("FROM metrics.suspect_servers").fetchall() == []
