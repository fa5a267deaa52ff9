"""A server that is made to use other rails than its traffic group is found, and no other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.models.planted_hours import planted as planted_hour
from warehouse.signals.rails import clusters
from warehouse.signals.together import together

if TYPE_CHECKING:
    import duckdb

    from tests.models.conftest import Planted


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


def test_a_member_without_a_common_rail_is_in_its_group() -> None:
    """Seen by the sums of rails. One that moves the same bytes there, in iterations of its own, is in none."""
    rails, truth = planted_hour(22)
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
def test_no_server_at_hand_can_be_seen_to_use_other_rails(real_built: duckdb.DuckDBPyConnection) -> None:
    """One leaf of each group is loaded."""
    assert real_built.execute("FROM metrics.suspect_servers").fetchall() == []
