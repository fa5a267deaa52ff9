"""Every planted truth of the sample is found, nothing more and nothing less."""

from __future__ import annotations

from tests.models.conftest import Planted

HOUR = "strftime(hour_utc, '%Y-%m-%d %H:%M:%S')"


def _sorted(rows: object) -> list[tuple[object, ...]]:
    assert isinstance(rows, list)
    return sorted((tuple(row) for row in rows), key=str)


def test_port_hour_has_the_planted_bytes_rows_and_polls(planted: Planted) -> None:
    expected = _sorted(
        [
            (p["switch"], p["port"], p["hour_utc"], p["rows"], p["missing_polls"], p["in_bytes"], p["out_bytes"],
             p["in_packets"], p["out_packets"], p["wraps"], 0)
            for p in planted.truth["ports"]
        ]
    )  # fmt: skip
    found = planted.rows(
        f"SELECT switch, port, {HOUR}, polls, missing_polls, in_bytes, out_bytes, in_packets, out_packets, "
        "wraps, resets FROM metrics.port_hour"
    )
    assert expected == found


def test_raw_bytes_are_kept_beside_the_corrected_ones(planted: Planted) -> None:
    expected = _sorted(
        [(p["switch"], p["port"], p["hour_utc"], p["in_bytes_raw"], p["out_bytes_raw"]) for p in planted.truth["ports"]]
    )
    found = planted.rows(
        f"SELECT switch, port, {HOUR}, sum(in_bytes_raw)::BIGINT, sum(out_bytes_raw)::BIGINT "
        "FROM staging.port_counters GROUP BY ALL"
    )
    assert expected == found


def test_every_nic_has_its_port_or_its_reason(planted: Planted) -> None:
    names = ("server", "hca", "nic", "switch", "port", "status", "reason", "evidence")
    expected = _sorted([tuple(nic[name] for name in names) for nic in planted.truth["nic_ports"]])
    assert expected == planted.rows(f"SELECT {', '.join(names)} FROM topology.nic_ports")


def test_uplinks_are_the_planted_ones_and_the_link_table_wins(planted: Planted) -> None:
    names = ("leaf", "leaf_port", "spine", "spine_port", "source")
    expected = _sorted([tuple(link[name] for name in names) for link in planted.truth["uplinks"]])
    assert expected == planted.rows(f"SELECT {', '.join(names)} FROM topology.uplinks")


def test_suspects_are_the_planted_ones_and_no_others(planted: Planted) -> None:
    names = ("kind", "switch", "port", "server", "nic", "candidate_port")
    expected = _sorted([tuple(link[name] for name in names) for link in planted.truth["suspects"]])
    assert expected == planted.rows(f"SELECT {', '.join(names)} FROM metrics.suspect_links")
    assert {(2,)} == set(planted.rows("SELECT hours FROM metrics.suspect_links"))


def test_ports_that_no_sheet_names_belong_to_the_planted_servers(planted: Planted) -> None:
    """A pair where either of two servers could be it, the server where its cage mate leaves one half, else the port."""
    expected = _sorted([(port["switch"], port["port"], port["owner"], port["evidence"])
                        for port in planted.truth["unlisted_ports"]])  # fmt: skip
    found = planted.rows(
        "SELECT DISTINCT switch, port, server, evidence FROM topology.hour_owners WHERE evidence <> 'workbook'"
    )
    assert expected == found
    assert {"GPU-7", "GPU-5/6", "unlisted:Leaf-5:1/0/1:1"} == {owner for _, _, owner, _ in found}


def test_each_byte_of_an_access_port_has_an_owner(planted: Planted) -> None:
    owned = planted.rows(
        f"SELECT {HOUR}, sum(tx_bytes)::BIGINT, sum(rx_bytes)::BIGINT FROM metrics.server_hour GROUP BY ALL"
    )
    moved: dict[str, list[int]] = {}
    for port in planted.truth["ports"]:
        if port["port"].startswith("TwoHundredGigE"):
            sums = moved.setdefault(port["hour_utc"], [0, 0])
            sums[0] += port["in_bytes"]
            sums[1] += port["out_bytes"]
    assert owned == _sorted([(hour, *sums) for hour, sums in moved.items()])
    of_seconds = f"SELECT {HOUR}, sum(tx_bytes)::BIGINT, sum(rx_bytes)::BIGINT FROM metrics.nic_second GROUP BY ALL"
    assert owned == planted.rows(of_seconds)


def test_seconds_stay_near_the_planted_physical_bytes(planted: Planted) -> None:
    """A second is off by what a window smears, a window is about a second: sums over half a minute agree."""
    truth = planted.root / "truth" / "second.parquet"
    off = planted.rows(
        f"""
        WITH truth AS (
            SELECT switch, port, time_bucket(INTERVAL '30 seconds', second_utc) AS bucket, sum(in_bytes) AS planted
            FROM '{truth}' GROUP BY ALL),
        found AS (
            SELECT switch, port, time_bucket(INTERVAL '30 seconds', second_utc) AS bucket, sum(in_bytes) AS spread,
                bool_and(quality = 'fine') AS fine
            FROM metrics.port_second GROUP BY ALL)
        SELECT count(*) FILTER (WHERE abs(spread - planted) > 0.12 * planted), count(*)
        FROM truth JOIN found USING (switch, port, bucket) WHERE fine AND planted > 1e10
        """
    )
    outside, compared = off[0]
    assert compared > 500
    assert outside < compared / 100


def test_no_port_second_is_above_line_rate(planted: Planted) -> None:
    assert planted.rows("SELECT sum(seconds_over_line_rate)::BIGINT FROM metrics.sampling_quality") == [(0,)]


def test_bytes_are_the_same_in_seconds_minutes_and_hours(planted: Planted) -> None:
    sums = {
        planted.rows(f"SELECT sum(in_bytes)::BIGINT, sum(out_bytes)::BIGINT FROM metrics.{table}")[0]
        for table in ("port_second", "port_minute", "port_hour", "leaf_hour")
    }
    assert len(sums) == 1


def test_leaves_and_spines_pass_on_what_they_get(planted: Planted) -> None:
    leaves = planted.rows("SELECT max(abs(in_out_difference)) FROM metrics.leaf_hour WHERE switch LIKE 'Leaf-%'")
    spines = planted.rows("SELECT bool_and(checkable), max(abs(in_out_difference)) FROM metrics.spine_hour")
    assert leaves[0][0] < 1e-4
    assert spines[0][0] is True
    assert spines[0][1] < 1e-4


def test_uplinks_without_data_unbalance_their_leaf_and_no_other(planted: Planted) -> None:
    one_way = {
        (suspect["switch"], suspect["kind"].rpartition("_")[2])
        for suspect in planted.truth["suspects"]
        if suspect["kind"].startswith("uplink_")
    }
    hot = {("Leaf-4", "in"), ("Leaf-4", "out")}  # the uplink that is hotter from the second hour on
    found = set(planted.rows("SELECT switch, direction FROM metrics.uplink_balance WHERE cov > 0.1"))
    assert one_way <= found <= one_way | hot | {("ST-leaf-1", "in"), ("ST-leaf-1", "out")}


def test_flow_locality_counts_flows_and_packets(planted: Planted) -> None:
    expected = _sorted(
        [
            (hour["hour_utc"], locality, told["flows"], told["packets"], told["nak_packets"])
            for hour, tables in zip(planted.truth["hours"], planted.truth["hour_tables"], strict=True)
            for locality, told in tables["flow"]["localities"].items()
            if told["rows"]
        ]
    )
    found = planted.rows(
        f"SELECT {HOUR}, locality, flows, packets, round(nak_ratio * packets)::BIGINT FROM metrics.flow_locality_hour"
    )
    assert expected == found


def test_queue_pairs_and_peers_of_each_nic(planted: Planted) -> None:
    """A NIC that the workbook maps to no port stands under its address."""
    mapped = {(nic["server"], nic["hca"]) for nic in planted.truth["nic_ports"] if nic["status"] != "unresolved"}
    expected = _sorted(
        [
            (hour["hour_utc"], nic["server"], nic["hca"] if (nic["server"], nic["hca"]) in mapped else nic["ip"],
             nic["queue_pairs"], nic["peers"])
            for hour, tables in zip(planted.truth["hours"], planted.truth["hour_tables"], strict=True)
            for nic in tables["flow"]["nics"]
        ]
    )  # fmt: skip
    assert expected == planted.rows(
        f"SELECT {HOUR}, server, hca, queue_pairs, peers FROM metrics.nic_hour WHERE peers > 0"
    )


def test_marks_and_losses_of_each_port(planted: Planted) -> None:
    marked, lost = [], []
    for hour, tables in zip(planted.truth["hours"], planted.truth["hour_tables"], strict=True):
        marked += [(hour["hour_utc"], p["switch"], p["port"], p["ecn_marked"]) for p in tables["link"]["ports"]]
        lost += [
            (hour["hour_utc"], p["switch"], p["port"], p["in_loss_packets"], p["out_loss_packets"])
            for p in tables["port"]["ports"]
        ]
    loss = "FROM metrics.port_loss_hour"
    assert _sorted(marked) == planted.rows(
        f"SELECT {HOUR}, switch, port, ecn_marked {loss} WHERE ecn_marked IS NOT NULL"
    )
    assert _sorted(lost) == planted.rows(
        f"SELECT {HOUR}, switch, port, in_loss_packets, out_loss_packets {loss} WHERE in_loss_packets IS NOT NULL"
    )


def test_nic_counters_agree_with_their_ports(planted: Planted) -> None:
    expected = _sorted(
        [
            (hour["hour_utc"], nic["server"], nic["hca"], nic["rx_bytes"])
            for hour, tables in zip(planted.truth["hours"], planted.truth["hour_tables"], strict=True)
            for nic in tables["nic"]["nics"]
        ]
    )
    found = planted.rows(f"SELECT {HOUR}, server, hca, rx_bytes FROM metrics.nic_hour WHERE rx_bytes >= 0")
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    # readings in the opening gap are left out; above 2^53 the release's counters are exact to 2 bytes only
    assert all(0 <= int(str(one[3])) <= int(str(other[3])) + 2 for one, other in zip(found, expected, strict=True))
    observed = planted.rows(
        f"SELECT {HOUR}, server, hca, max(received_bytes) - min(received_bytes) FROM staging.hour_nic AS n "
        "WHERE NOT EXISTS (SELECT 1 FROM metrics.nic_second AS s WHERE s.server = n.server AND s.hca = n.hca "
        "AND s.second_utc = date_trunc('second', n.time_utc) AND s.quality = 'gap') GROUP BY ALL ORDER BY ALL"
    )
    assert _sorted(found) == _sorted(observed)
    worst = planted.rows("SELECT max(abs(difference_ratio)) FROM metrics.nic_hour WHERE rx_bytes > 1e11")
    # the recording ends with the last poll, up to a second before the last reading of the NICs
    assert worst[0][0] < 0.01
