"""Compressed port files: whole, truncated, and compressed by name only."""

from __future__ import annotations

import pytest

from tests.ingest.spoiling import PACK, pack
from tests.release import Release, Rows, done


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_hour_gives_the_same_rows(release: Release, expected: Rows, suffix: str) -> None:
    for path in list(release.hour.rglob("*.csv")):
        pack(path, suffix)
    done(release.build())
    assert release.rows() == expected


@pytest.mark.parametrize("suffix", PACK)
def test_a_truncated_compressed_file_keeps_the_rows_before_the_cut(release: Release, suffix: str) -> None:
    path = pack(release.access, suffix, cut=9)
    done(release.build())
    status, reason = release.listed(path)
    assert status == "partial"
    assert "the compressed stream is damaged here" in str(reason)
    assert release.access_rows() > 100
    assert "1 file read in part" in release.doctor().out


@pytest.mark.parametrize("suffix", PACK)
def test_a_file_that_is_compressed_by_name_only_is_skipped(release: Release, suffix: str) -> None:
    path = release.access.rename(f"{release.access}{suffix}")
    done(release.build())
    status, reason = release.listed(path)
    assert status == "skipped"
    assert "cannot be decompressed" in str(reason)
