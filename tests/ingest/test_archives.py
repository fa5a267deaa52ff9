"""A release given as an archive."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.release import Release, Rows, done, fails


def as_zip(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for file in sorted(folder.rglob("*.*")):
            package.write(file, file.relative_to(folder))


def as_tar(folder: Path, path: Path) -> None:
    with tarfile.open(path, "w:gz") as package:
        package.add(folder, "release")


ARCHIVES = {"download.zip": as_zip, "download.tar.gz": as_tar}


def test_a_release_can_be_given_as_its_archive(release: Release, expected: Rows) -> None:
    archive = release.base / "download.tar.gz"
    as_tar(release.root, archive)
    shutil.rmtree(release.root)
    done(release.build(data=archive))
    assert done(release.build(data=archive)).err.startswith("Up to date")
    assert release.rows() == expected
    assert release.ask("SELECT count(*) > 0 FROM raw.port_counters") == [(True,)]
    assert "5 of 5 files read" in done(release.doctor(archive)).out
    shutil.unpack_archive(archive, release.base / "again")
    next((release.base / "again").rglob(release.access.name)).unlink()
    as_tar(release.base / "again", archive)
    assert not done(release.build(data=archive)).err.startswith("Up to date")
    assert release.access_rows() == 0


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_damaged_archive_is_an_error_and_the_last_warehouse_stays(published: Release, name: str) -> None:
    before = published.state()
    archive = published.base / name
    ARCHIVES[name](published.root, archive)
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    for said in (published.build(data=archive), published.doctor(archive)):
        fails(said, str(archive), "truncated or damaged")
    assert published.state() == before
