"""Every planted truth of the sample is found, nothing more and nothing less: exact values, layer by layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

from tests.models.conftest import Planted, Rows

HOUR = "strftime(hour_utc, '%Y-%m-%d %H:%M:%S')"
LOGGED = "evidence IN ('log', 'inferred:nic_sheet_order')"
ENDS = [f"{side}_{name}" for side in ("src", "dst") for name in ("server", "hca", "port", "evidence")]
PAGE = Path(__file__).parents[2] / "docs" / "metrics" / "utilization.md"
[POWER] = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
Truth = dict[str, Any]


class Case(NamedTuple):
    """Rows of a query, and the planted rows that they must be."""

    sql: str
    truth: Callable[[Truth], Iterable[tuple[object, ...]]]


def told(rows: Iterable[dict[str, Any]], names: str, *before: object) -> Iterator[tuple[object, ...]]:
    """Yield these values of planted rows, after those that all rows share."""
    for row in rows:
        yield (*before, *(row[name] for name in names.split(", ")))


def of_hours(truth: Truth, table: str, kind: str, names: str) -> Iterator[tuple[object, ...]]:
    """Yield values of the planted rows of a table of the hour."""
    for hour, tables in zip(truth["hours"], truth["hour_tables"], strict=True):
        yield from told(tables[table][kind], names, hour["hour_utc"])


def localities(truth: Truth) -> Iterator[tuple[object, ...]]:
    for hour, tables in zip(truth["hours"], truth["hour_tables"], strict=True):
        for name, row in tables["flow"]["localities"].items():
            if row["rows"]:
                yield (hour["hour_utc"], name, row["flows"], row["packets"], row["nak_packets"])


def peers(truth: Truth) -> Iterator[tuple[object, ...]]:
    """Yield queue pairs of NICs; one that the workbook maps to no port stands under its address."""
    mapped = {(nic["server"], nic["hca"]) for nic in truth["nic_ports"] if nic["status"] != "unresolved"}
    for hour, server, hca, address, *numbers in of_hours(truth, "flow", "nics", "server, hca, ip, queue_pairs, peers"):
        yield (hour, server, hca if (server, hca) in mapped else address, *numbers)


def of_tasks(truth: Truth, part: str, names: str) -> Iterator[tuple[object, ...]]:
    for task in truth["tasks"]:
        yield from told(task[part], names, task["task"])


def files(truth: Truth) -> Iterator[tuple[object, ...]]:
    for group in truth["utilization"]["groups"]:
        for file in group["files"]:
            names = (file[name] for name in ("path", "rows", "columns", "covered_rows", "longest_gap_seconds"))
            yield (*names, len(file["columns_in_doubt"]))


CASES = {
    "metrics.port_hour": Case(
        f"SELECT switch, port, {HOUR}, polls, missing_polls, in_bytes, out_bytes, in_packets, out_packets, wraps "
        "FROM metrics.port_hour WHERE resets = 0",
        lambda truth: told(
            truth["ports"],
            "switch, port, hour_utc, rows, missing_polls, in_bytes, out_bytes, in_packets, out_packets, wraps",
        ),
    ),
    "staging.port_counters": Case(
        f"SELECT switch, port, {HOUR}, sum(in_bytes_raw)::BIGINT, sum(out_bytes_raw)::BIGINT "
        "FROM staging.port_counters GROUP BY ALL",
        lambda truth: told(truth["ports"], "switch, port, hour_utc, in_bytes_raw, out_bytes_raw"),
    ),
    "topology.nic_ports": Case(
        "SELECT server, hca, nic, switch, port, status, reason, evidence FROM topology.nic_ports",
        lambda truth: told(truth["nic_ports"], "server, hca, nic, switch, port, status, reason, evidence"),
    ),
    "topology.uplinks": Case(
        "SELECT leaf, leaf_port, spine, spine_port, source FROM topology.uplinks",
        lambda truth: told(truth["uplinks"], "leaf, leaf_port, spine, spine_port, source"),
    ),
    "metrics.suspect_links": Case(
        "SELECT kind, switch, port, server, nic, candidate_port FROM metrics.suspect_links WHERE hours = 2",
        lambda truth: told(truth["suspects"], "kind, switch, port, server, nic, candidate_port"),
    ),
    "topology.hour_owners": Case(
        "SELECT DISTINCT switch, port, server, evidence FROM topology.hour_owners WHERE evidence <> 'workbook'",
        lambda truth: told(truth["unlisted_ports"], "switch, port, owner, evidence"),
    ),
    "metrics.flow_locality_hour": Case(
        f"SELECT {HOUR}, locality, flows, packets, round(nak_ratio * packets)::BIGINT FROM metrics.flow_locality_hour",
        localities,
    ),
    "metrics.nic_hour": Case(
        f"SELECT {HOUR}, server, hca, queue_pairs, peers FROM metrics.nic_hour WHERE peers > 0", peers
    ),
    "metrics.port_loss_hour, marks": Case(
        f"SELECT {HOUR}, switch, port, ecn_marked FROM metrics.port_loss_hour WHERE ecn_marked IS NOT NULL",
        lambda truth: of_hours(truth, "link", "ports", "switch, port, ecn_marked"),
    ),
    "metrics.port_loss_hour, losses": Case(
        f"SELECT {HOUR}, switch, port, in_loss_packets, out_loss_packets FROM metrics.port_loss_hour "
        "WHERE in_loss_packets IS NOT NULL",
        lambda truth: of_hours(truth, "port", "ports", "switch, port, in_loss_packets, out_loss_packets"),
    ),
    "topology.task_pods": Case(
        "SELECT task, pod, server, strftime(start_utc, '%Y-%m-%d %H:%M:%S'), first_rank, ranks "
        "FROM topology.task_pods WHERE source = 'log'",
        lambda truth: of_tasks(truth, "pods", "pod, server, start_utc, first_rank, ranks"),
    ),
    "topology.task_ports": Case(
        f"SELECT task, pod, hca, hca_index, nic, switch, port, evidence FROM topology.task_ports WHERE {LOGGED}",
        lambda truth: of_tasks(truth, "ports", "pod, hca, hca_index, nic, switch, port, evidence"),
    ),
    "topology.rank_paths": Case(
        "SELECT task, communicator, channel, kind, src_rank, dst_rank, evidence, "
        f"{', '.join(ENDS)} FROM topology.rank_paths",
        lambda truth: of_tasks(
            truth, "paths", ", ".join(["communicator, channel, kind, src_rank, dst_rank, evidence", *ENDS])
        ),
    ),
    "metrics.task_summary": Case(
        "SELECT task, trainer, iterations, params, tokens_per_iteration FROM metrics.task_summary WHERE source = 'log'",
        lambda truth: told(truth["tasks"], "task, trainer, iterations, params, tokens_per_iteration"),
    ),
    "metrics.task_expected_bytes": Case(
        "SELECT task, expected_nominal_bytes, expected_implemented_bytes FROM metrics.task_expected_bytes",
        lambda truth: told(truth["tasks"], "task, expected_nominal_bytes, expected_implemented_bytes"),
    ),
    "metrics.task_iterations": Case(
        "SELECT task, count(DISTINCT iteration), max(iteration) FROM metrics.task_iterations GROUP BY ALL",
        lambda truth: told(truth["tasks"], "task, iterations, iterations"),
    ),
    "metrics.task_restarts": Case(
        "SELECT task, after_iteration, lost_iterations, down_seconds, reason FROM metrics.task_restarts",
        lambda truth: of_tasks(truth, "restarts", "after_iteration, lost_iterations, down_seconds, reason"),
    ),
    "metrics.utilization_distribution": Case(
        "SELECT cluster, metric, samples, round(zero_share * samples)::BIGINT, "
        "round(mean * samples * 1000)::BIGINT, p50, max_value FROM metrics.utilization_distribution",
        lambda truth: told(
            truth["utilization"]["groups"], "cluster, metric, samples, zero_samples, sum_thousandths, median, max"
        ),
    ),
    "metrics.utilization_minute": Case(
        "SELECT cluster, metric, count(*), sum(samples)::BIGINT, sum(zero_samples)::BIGINT, "
        "round(sum(mean * samples) * 1000)::BIGINT FROM metrics.utilization_minute GROUP BY ALL",
        lambda truth: told(
            truth["utilization"]["groups"], "cluster, metric, minutes, samples, zero_samples, sum_thousandths"
        ),
    ),
    "metrics.utilization_quality": Case(
        "SELECT replace(file, 'acme/utilization/', ''), rows, columns, covered_rows, longest_gap_seconds, "
        "columns_in_doubt FROM metrics.utilization_quality",
        files,
    ),
    "staging.server_power": Case(
        "SELECT server_kind, server_type, measure, servers, samples, round(mean_watts * samples)::BIGINT, p50 "
        f"FROM ({POWER})",
        lambda truth: told(
            truth["utilization"]["power"], "server_kind, server_type, measure, servers, samples, sum, median"
        ),
    ),
}
"""Each table with the planted values that it must have. Sums over other columns are checks of the models."""


@pytest.mark.parametrize("name", CASES)
def test_the_planted_rows_are_found_and_no_others(name: str, planted: Planted) -> None:
    case = CASES[name]
    expected: Rows = sorted(case.truth(planted.truth), key=str)
    assert expected
    assert planted.rows(case.sql) == expected


def test_seconds_stay_near_the_planted_physical_bytes(planted: Planted) -> None:
    """A second is off by what a window smears, a window is about a second: sums over half a minute agree."""
    truth = planted.root / "truth" / "second.parquet"
    [(outside, compared)] = planted.rows(
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
    assert compared > 500
    assert outside < compared / 100
    assert planted.rows("SELECT sum(seconds_over_line_rate)::BIGINT FROM metrics.sampling_quality") == [(0,)]


def test_planted_pairs_come_back_with_packets_round_trips_and_bytes(planted: Planted) -> None:
    """Counts are exact. A server sends to one other server, so the bytes of its counters are those of the pair."""
    rows = planted.connection.execute(
        "SELECT src_server, dst_server, (epoch(p.minute_utc) - epoch(min(p.minute_utc) OVER ()))::BIGINT // 60,"
        " queue_pairs, read_packets, write_packets, send_packets, nak_packets, rtt_p50_ns, rtt_p99_ns,"
        " bytes_estimate, bytes_factor, s.tx_bytes FROM metrics.flow_pairs AS p"
        " LEFT JOIN metrics.server_minute AS s ON s.server = src_server AND s.minute_utc = p.minute_utc"
    ).fetchall()
    found = {row[:3]: row[3:] for row in rows}
    pairs = [pair for hour in planted.truth["hour_tables"] for pair in hour["flow"]["pairs"]]
    assert len(rows) == len(pairs) > 300
    first = min(pair["minute"] for pair in pairs)
    counted = 0
    for pair in pairs:
        *counts, middle, late, estimate, factor, sent = found[
            pair["src_server"], pair["dst_server"], pair["minute"] - first
        ]
        names = ("queue_pairs", "read_packets", "write_packets", "send_packets", "nak_packets")
        assert counts == [pair[name] for name in names]
        assert [middle, late] == pytest.approx(numpy.quantile(pair["round_trips"], [0.5, 0.99]), rel=1e-12)
        payload = 4096 * (pair["read_packets"] + pair["write_packets"]) + 64 * pair["send_packets"]
        assert estimate == pytest.approx(payload * (1 if factor is None else factor), rel=1e-9, abs=1)
        assert factor is None or estimate == sent
        counted += factor is not None
    assert 100 < counted < len(pairs), "with counters, and without"
    assert any(pair["nak_packets"] for pair in pairs)


def test_polls_have_the_windows_of_the_seconds(planted: Planted) -> None:
    seconds = """
        SELECT p.cluster, p.switch, p.port, p.hour_utc, sum(covered_ms) AS milliseconds, sum(in_bytes), sum(out_bytes)
        FROM staging.port_seconds JOIN staging.port_files AS p USING (file_key) GROUP BY ALL"""
    polls = """
        SELECT cluster, switch, port, hour_utc, sum(greatest(1, epoch_ms(time_utc) - epoch_ms(window_start_utc))),
            sum(in_bytes), sum(out_bytes)
        FROM staging.port_counters WHERE window_start_utc IS NOT NULL GROUP BY ALL"""
    assert planted.rows(seconds) == planted.rows(polls) != []
