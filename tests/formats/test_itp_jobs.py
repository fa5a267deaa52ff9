"""ITP archives and files: told apart by header, bad members refused one by one, equal rows read once."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

import warehouse
from tests.conftest import Command

MODELS = (
    *("metrics.jobs", "staging.itp_jobs", "staging.elasticflow_jobs", "staging.testbed_jobs"),
    "staging.rejected_rows",
)
pytestmark = pytest.mark.usefixtures("only_own_models")
RAW = b"job_id,submission_time,duration,num_gpu\na-1,10,600,4\na-2,20,700,1"
ELASTIC = (
    b"job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
    b"a-1,10,500,bert,700,64,4,600\na-2,20,500,gpt2,800,128,1,700"
)
Member = tuple[str, bytes] | tarfile.TarInfo


def archive(path: Path, *members: Member) -> Path:
    """Write a tar.gz file; a member that is not a (name, content) pair is added unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


def link(name: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    """Return a link to a path outside the archive, or a device."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def query(target: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query on a built warehouse."""
    with warehouse.open(target) as connection:
        return connection.execute(sql).fetchall()


def test_members_of_both_archives_are_told_apart_by_their_headers(tmp_path: Path) -> None:
    archive(tmp_path / "d" / "raw-traces.tar.gz", ("cluster01.csv", RAW), ("LICENSE", b"MIT"))
    archive(tmp_path / "d" / "my-other-traces.tgz", ("195job.csv", ELASTIC), ("cluster01.csv", ELASTIC))

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT cluster, job_id, run_seconds, gpu_seconds FROM metrics.jobs ORDER BY 2") == [
        ("cluster01", "a-1", 600, 2400),
        ("cluster01", "a-2", 700, 700),
    ]
    assert query(tmp_path / "t", "SELECT count(*) FROM staging.elasticflow_jobs") == [(2,)]
    assert query(tmp_path / "t", "SELECT count(*) FROM staging.testbed_jobs") == [(2,)]
    assert query(tmp_path / "t", "SELECT status, count(*) FROM raw.files GROUP BY 1 ORDER BY 1") == [
        ("ignored", 1),
        ("read", 5),
    ]


def test_an_unpacked_folder_beside_its_archive_counts_once(tmp_path: Path) -> None:
    archive(tmp_path / "d" / "raw-traces.tar.gz", ("cluster01.csv", RAW))
    (tmp_path / "d" / "raw-traces").mkdir()
    (tmp_path / "d" / "raw-traces" / "cluster01.csv").write_bytes(RAW)

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT count(*) FROM metrics.jobs") == [(2,)]
    assert query(tmp_path / "t", "SELECT reason FROM raw.files WHERE status = 'ignored'") == [
        ("the same content as itp/raw-traces/cluster01.csv",)
    ]


def test_the_archive_alone_can_be_given(tmp_path: Path) -> None:
    warehouse.build(archive(tmp_path / "x.tar.gz", ("cluster07.csv", RAW)), tmp_path / "t")

    assert query(tmp_path / "t", "SELECT DISTINCT cluster FROM metrics.jobs") == [("cluster07",)]


def test_a_file_that_changed_its_columns_order_is_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "cluster01.csv").write_bytes(b"num_gpu,note,job_id,duration,submission_time\n8,x,b,60,5")
    (tmp_path / "d" / "cluster02.csv").write_bytes(RAW)

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(
        tmp_path / "t", "SELECT job_id, submission_seconds, duration_seconds, num_gpus FROM staging.itp_jobs ORDER BY 1"
    ) == [("a-1", 10, 600, 4), ("a-2", 20, 700, 1), ("b", 5, 60, 8)]
    assert query(tmp_path / "t", "SELECT num_gpu, job_id FROM raw.itp_jobs ORDER BY ALL")[-1] == (8, "b")
    assert query(tmp_path / "t", "SELECT reason FROM raw.files ORDER BY path")[0] == ("columns ignored: note",)


HOSTILE: tuple[tuple[Member, str], ...] = (
    (("/cluster02.csv", RAW), "leads out"),
    (("../cluster03.csv", RAW), "leads out"),
    (("a/../../cluster04.csv", RAW), "leads out"),
    (link("cluster05.csv"), "a link"),
    (link("cluster06.csv", tarfile.LNKTYPE), "a link"),
    (link("cluster07.csv", tarfile.CHRTYPE), "a device"),
    (("cluster01.csv", b"again"), "twice"),
)
"""Members of an archive, and what their reasons say."""


def test_hostile_members_are_refused_by_name_and_the_others_are_read(tmp_path: Path, command: Command) -> None:
    archive(tmp_path / "d" / "raw-traces.tar.gz", ("cluster01.csv", RAW), *(member for member, _ in HOSTILE))

    completed = command("build", "-d", tmp_path / "d", "-t", tmp_path / "t")

    assert completed.status == 0, completed
    found = query(tmp_path / "t", "SELECT release_path, reason FROM raw.files WHERE status = 'skipped'")
    found.sort(key=lambda row: str(row[0]).rpartition("/")[2])
    output = command("doctor", "-d", tmp_path / "d").out
    named = ((one.name if isinstance(one, tarfile.TarInfo) else one[0], said) for one, said in HOSTILE)
    names = sorted((name.rpartition("/")[2], said) for name, said in named)
    for (path, reason), (name, said) in zip(found, names, strict=True):
        assert str(path).endswith(name)
        assert said in str(reason)
        assert str(path) in output
    assert query(tmp_path / "t", "SELECT count(*) FROM metrics.jobs") == [(2,)]


def test_a_damaged_archive_is_skipped_with_its_reason(tmp_path: Path) -> None:
    archive(tmp_path / "d" / "raw-traces.tar.gz", ("cluster01.csv", RAW))
    whole = archive(tmp_path / "d" / "other-traces.tar.gz", ("195job.csv", ELASTIC * 500))
    whole.write_bytes(whole.read_bytes()[:-40])

    warehouse.build(tmp_path / "d", tmp_path / "t")

    [(path, reason)] = query(tmp_path / "t", "SELECT release_path, reason FROM raw.files WHERE status = 'skipped'")
    assert path == "itp/other-traces.tar.gz"
    assert "truncated or damaged" in str(reason)


def test_an_archive_that_grows_too_large_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from warehouse.formats.itp.archives import ItpArchive

    monkeypatch.setattr(ItpArchive, "max_bytes", 1000)
    archive(tmp_path / "d" / "raw-traces.tar.gz", ("cluster01.csv", RAW))
    archive(tmp_path / "d" / "bomb-traces.tar.gz", ("cluster02.csv", RAW + b"\n" * 100_000))

    warehouse.build(tmp_path / "d", tmp_path / "t")

    assert query(tmp_path / "t", "SELECT release_path, reason FROM raw.files WHERE status = 'skipped'") == [
        ("itp/bomb-traces.tar.gz", "member 'cluster02.csv': unpacks to more than 1,000 bytes")
    ]
