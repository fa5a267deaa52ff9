"""Files of jobs that cannot be read, or that the engine refuses: each costs itself, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import warehouse
from tests.conftest import Command
from warehouse.formats.named_csv import NamedCsv

MODELS = ("staging.itp_jobs", "staging.rejected_rows")
ROWS = 50
pytestmark = pytest.mark.usefixtures("only_own_models")
ITP = "job_id,submission_time,duration,num_gpu"


def itp(folder: Path, name: str, *rows: str, header: str = ITP) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{line}\n" for line in (header, *rows)), encoding="utf-8")
    return folder / name


def jobs(begin: str) -> list[str]:
    return [f"{begin}{number},{10 * number},600,8" for number in range(ROWS)]


def files(target: Path) -> list[tuple[object, ...]]:
    with warehouse.open(target) as connection:
        return connection.sql("SELECT path, status, reason FROM raw.files ORDER BY path").fetchall()


def test_a_file_that_the_engine_refuses_costs_that_file_alone(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for bad lines must know what the engine refuses. Here it knows nothing."""
    monkeypatch.setattr(NamedCsv, "problems", lambda *_: lambda *_: None)
    data, target = tmp_path / "data", tmp_path / "target"
    itp(data, "cluster01.csv", *jobs("j"))
    bad = itp(data, "cluster02.csv", *jobs("k"), "k,10,many,8")

    assert command("build", "-d", data, "-t", target).status == 0
    with warehouse.open(target) as connection:
        assert connection.sql("SELECT count(*) FROM staging.itp_jobs").fetchall() == [(ROWS,)]
    refused = (str(bad), "skipped", "the engine refuses it: duration has another form than it should: many")
    assert files(target)[1] == refused
    first = (target / "builds" / "current").read_text(encoding="utf-8")
    assert command("build", "-d", data, "-t", target, "--paranoid").status == 0  # refused again
    assert (target / "builds" / "current").read_text(encoding="utf-8") == first

    alone = command("build", "-d", bad, "-t", tmp_path / "alone")
    assert alone.status == 2
    assert f"error: nothing readable in {bad}" in alone.err
    assert f"cluster02.csv: {refused[2]}" in alone.err


def test_data_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, command: Command) -> None:
    itp(tmp_path / "data", "cluster02.csv", "a,1,2,3", header=f"sep=,\n{ITP}")
    outside = itp(tmp_path / "elsewhere", "cluster01.csv", *jobs("j"))
    (tmp_path / "data" / "cluster01.csv").symlink_to(outside)
    said = command("build", "-d", tmp_path / "data", "-t", tmp_path / "target")
    assert said.status == 2
    assert "cluster02.csv: the first line is `sep=,`, not the header: delete this line" in said.err_text
    assert "cluster01.csv: link out of the data folder: --follow-links reads it" in said.err_text
    assert "--follow-links reads it" in command("doctor", "-d", tmp_path / "data").out
    assert "itp.jobs: 1 file read of cluster01" in command("doctor", "-d", tmp_path / "data", "--follow-links").out
