"""The follower's rows of a kernel become its part, or nothing of them stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.release import keep_switches
from warehouse.base.errors import WarehouseError
from warehouse.base.settings import Settings, settle
from warehouse.engine import workers
from warehouse.kernels import port_readings
from warehouse.runner import kernel_parts
from warehouse.runner.build import build
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.sample import SampleOptions, write_sample

READINGS, SECONDS = MODELS = ("staging.port_readings", "staging.port_seconds")
pytestmark = pytest.mark.usefixtures("only_own_models")


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return port files of two switches in two hours, a minute each."""
    folder = tmp_path_factory.mktemp("ports")
    write_sample(folder, SampleOptions(hours=2, seconds=60, hour_tables=False, utilization=False, jobs=False))
    for hour in folder.rglob("trafficinfo/*"):
        keep_switches(hour, "ROCE-Leaf-1_", "ROCE-ST-leaf-1_")
    return folder


@pytest.fixture(scope="module")
def expected(ports: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the parts that one process writes."""
    target = tmp_path_factory.mktemp("expected")
    _build(settle({"data": [str(ports)], "target": str(target), "threads": 1}), SECONDS)
    return _parts(target)


@pytest.fixture
def settings(ports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a build whose small files are work for worker processes."""
    monkeypatch.setattr(workers, "FEWEST_BLOCKS", 2)
    monkeypatch.setattr(port_readings, "BLOCK_BYTES", 30_000)
    return settle({"data": [str(ports)], "target": str(tmp_path / "target"), "threads": 2})


@pytest.fixture
def spools(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Spool files that builds wrote."""
    written: list[Path] = []
    write = kernel_parts.KernelParts._write_spool

    def noted(self: kernel_parts.KernelParts, follower: object, rows: object, spool: Path) -> int:
        written.append(spool)
        return write(self, follower, rows, spool)  # type: ignore[arg-type]

    monkeypatch.setattr(kernel_parts.KernelParts, "_write_spool", noted)
    yield written
    assert not any(path.exists() for path in written)


def _build(settings: Settings, *select: str) -> None:
    build(settings, Reporter(), BuildOptions(select=select))


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_parts_have_the_same_bytes_at_any_number_of_workers(
    threads: int, settings: Settings, expected: dict[str, bytes], spools: list[Path]
) -> None:
    _build(settings._replace(threads=threads, memory="4GB"), SECONDS)
    assert len(spools) == 2  # hours
    assert _parts(settings.target) == expected


def test_parts_have_the_same_bytes_without_memory_for_workers(settings: Settings, expected: dict[str, bytes]) -> None:
    _build(settings._replace(memory="300MB"), SECONDS)
    assert _parts(settings.target) == expected


def test_a_follower_that_is_not_selected_is_not_computed(settings: Settings, spools: list[Path]) -> None:
    _build(settings, SECONDS)
    spools.clear()
    _lose(settings.target, READINGS)
    _build(settings, READINGS)
    assert spools == []


def test_a_follower_that_is_there_already_leaves_no_spool(
    settings: Settings, expected: dict[str, bytes], spools: list[Path]
) -> None:
    _build(settings, SECONDS)
    _lose(settings.target, READINGS)
    spools.clear()
    _build(settings, SECONDS)
    assert len(spools) == 2
    assert _parts(settings.target) == expected


def test_an_error_of_the_follower_ends_the_build_and_leaves_nothing(
    settings: Settings, spools: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: object, _follower: object, rows: kernel_parts._Rows, spool: Path) -> int:
        spools.append(spool)
        spool.write_bytes(b"")
        next(rows.of_follower())
        raise OSError(28, "No space left on device", str(spool))

    monkeypatch.setattr(kernel_parts.KernelParts, "_write_spool", full)
    with pytest.raises(WarehouseError, match="is full"):
        _build(settings, SECONDS)
    assert spools
    assert not (settings.target / "warehouse.duckdb").exists()


def _lose(target: Path, model: str) -> None:
    for path in (target / "parts" / model).rglob("*.*"):
        path.unlink()


def _parts(target: Path) -> dict[str, bytes]:
    return {
        path.relative_to(target).as_posix(): path.read_bytes()
        for model in (READINGS, SECONDS)
        for path in (target / "parts" / model).rglob("*.parquet")
    }
