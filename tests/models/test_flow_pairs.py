"""Pairs of servers by minute, against the flows that were planted in the sample."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

import numpy as np
import pytest

from tests.models.conftest import Planted

NAMES = ("queue_pairs", "read_packets", "write_packets", "send_packets", "nak_packets")


def test_sample_truth_planted_pairs_come_back_with_packets_round_trips_and_bytes(planted: Planted) -> None:
    """Counts and round-trip times are exact, bytes are the planted payload times the stated factor."""
    first = datetime.fromisoformat(planted.truth["hour_tables"][0]["hour_utc"]).replace(tzinfo=None)
    rows = planted.connection.execute(
        f"SELECT src_server, dst_server, minute_utc, {', '.join(NAMES)}, rtt_p50_ns, rtt_p99_ns,"
        " bytes_estimate, bytes_factor FROM metrics.flow_pairs"
    ).fetchall()
    found = {row[:3]: row[3:] for row in rows}
    pairs = [pair for hour in planted.truth["hour_tables"] for pair in hour["flow"]["pairs"]]
    assert len(rows) == len(pairs) > 300
    for pair in pairs:
        key = (pair["src_server"], pair["dst_server"], first + timedelta(minutes=pair["minute"]))
        *counts, middle, late, estimate, factor = found[key]
        assert counts == [pair[name] for name in NAMES]
        assert [middle, late] == pytest.approx(np.quantile(pair["round_trips"], [0.5, 0.99]), rel=1e-12)
        payload = 4096 * (pair["read_packets"] + pair["write_packets"]) + 64 * pair["send_packets"]
        assert estimate == pytest.approx(payload * (1 if factor is None else factor), rel=1e-9, abs=1)
    assert sum(1 for *_, nak, _, _, _, _ in found.values() if nak) > 0
    assert len({factor is None for *_, factor in found.values()}) == 2, "with counters, and without"


def test_the_bytes_of_a_sender_are_those_of_its_counters(planted: Planted) -> None:
    """In the sample, a server sends to one other server, so the estimate is exact."""
    rows = planted.connection.execute(
        "SELECT p.src_server, p.minute_utc, p.bytes_estimate, p.bytes_factor, p.read_packets, p.write_packets,"
        " p.send_packets, s.tx_bytes FROM metrics.flow_pairs AS p"
        " JOIN metrics.server_minute AS s ON s.server = p.src_server AND s.minute_utc = p.minute_utc"
        " WHERE p.bytes_factor IS NOT NULL"
    ).fetchall()
    sent: dict[tuple[object, object], list[int]] = defaultdict(list)
    for server, minute, estimate, factor, read, write, send, counted in rows:
        sent[server, minute].append(estimate)
        assert estimate == pytest.approx(factor * (4096 * (read + write) + 64 * send), rel=1e-9, abs=1)
        assert estimate == counted
    assert len(sent) == len(rows) > 100
