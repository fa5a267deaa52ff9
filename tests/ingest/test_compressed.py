"""Compressed port files: whole, truncated, and compressed by name only."""

from __future__ import annotations

from itertools import cycle

from tests.ingest.spoiling import PACK, pack
from tests.release import Release, Rows, done


def test_a_compressed_hour_gives_the_same_rows(release: Release, expected: Rows) -> None:
    for path, suffix in zip(sorted(release.hour.rglob("*.csv")), cycle(PACK), strict=False):
        pack(path, suffix)
    done(release.build())
    assert release.rows() == expected


def test_a_truncated_compressed_file_keeps_the_rows_before_the_cut(release: Release) -> None:
    ports = {release.access: "TwoHundredGigE1/0/1:1", release.uplink: "FourHundredGigE1/0/33"}
    packed = [pack(path, suffix, cut=9) for path, suffix in zip(ports, PACK, strict=True)]
    done(release.build())
    for path, port in zip(packed, ports.values(), strict=True):
        status, reason = release.listed(path)
        assert status == "partial"
        assert "the compressed stream is damaged here" in str(reason)
        asked = f"SELECT count(*) > 100 FROM staging.port_counters WHERE switch = 'Leaf-1' AND port = '{port}'"
        assert release.ask(asked) == [(True,)]
    assert "2 files read in part" in release.doctor().out


def test_a_file_that_is_compressed_by_name_only_is_skipped(release: Release) -> None:
    files = zip((release.access, release.uplink), PACK, strict=True)
    named = [path.rename(f"{path}{suffix}") for path, suffix in files]
    done(release.build())
    for path in named:
        status, reason = release.listed(path)
        assert status == "skipped"
        assert "cannot be decompressed" in str(reason)
