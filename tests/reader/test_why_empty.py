from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.reader.connection import connect
from warehouse.reader.why_empty import why_empty

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-q", "nic", "--server", "GPU-999"], "no server GPU-999; near: GPU-"),
        (["-q", "hottest-uplinks", "--leaf", "leaf_1"], "no switch leaf_1; near: Leaf-1"),
        (["-q", "busiest-servers", "--hour", "2020-01-01"], "the hour 2020-01-01 is not loaded; loaded"),
        (["-q", "suspect-links", "--kind", "none"], "none meets the conditions of the query"),
        (["FROM metrics.published_distribution"], "metrics.published_distribution is empty: "),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)  # fmt: skip
def test_an_empty_answer_has_a_reason(command: Command, built: Path, arguments: list[str], reason: str) -> None:
    said = command("sql", *arguments, "--format", "csv", "-t", built)
    assert said.status == 0
    assert said.err.startswith(f"no rows: {reason}")


def test_an_empty_table_names_the_missing_files(command: Command, small: Path, tmp_path: Path) -> None:
    assert command("sql", "-q", "jobs", "-t", small).err == (
        "no rows: metrics.job_totals is empty: no files of AcmeTrace or ITP in the data folders (warehouse doctor)\n"
    )
    assert "metrics.flow_locality_hour is empty: no files of flow" in command(
        "show", "metrics.flow_locality_hour", "-t", small
    ).out.replace("\n  ", " ")
    connection = connect(small)
    try:
        assert why_empty(connection, "metrics.port_hour") is None
        assert why_empty(connection, "no.such") is None
    finally:
        connection.close()


@pytest.fixture(scope="module")
def small(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build of one port file."""
    import shutil

    import warehouse

    folder = tmp_path_factory.mktemp("small")
    [file, *_] = sorted(sample.rglob("Leaf-1_1_*.csv"))
    place = folder / "data" / file.relative_to(sample)
    place.parent.mkdir(parents=True)
    shutil.copy(file, place)
    warehouse.build(folder / "data", folder / "target")
    return folder / "target"


def test_a_build_of_an_earlier_version_has_no_reason(command: Command, target: Path) -> None:
    said = command("sql", "FROM metrics.leaf_hour WHERE false", "--format", "csv", "-t", target)
    assert said.err == "no rows\n"
