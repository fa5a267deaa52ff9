"""A catalog that starts as a copy of the previous one equals one written from scratch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Restored, call
from tests.tiny import Tiny
from warehouse.base.errors import WarehouseError
from warehouse.ingest import content_hashes
from warehouse.runner import catalog, catalog_entries, early_catalog
from warehouse.runner.catalog import Base, Entry, read_base
from warehouse.runner.early_catalog import EarlyCatalog
from warehouse.store.layout import CATALOG, CATALOG_HASHES

COLUMNS = {"port": "VARCHAR the port", "speed": "BIGINT [bit/s] line rate"}
HOUR = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}
HOURLY = (
    "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes "
    "FROM raw.port_counters GROUP BY ALL"
)


@pytest.fixture
def built(tiny: Tiny, restored: Restored) -> Tiny:
    """Relations of every kind."""
    return tiny.restore(restored, "every-kind", _write_every_kind)


def _write_every_kind(tiny: Tiny) -> None:
    for name in "abcd":
        tiny.model(f"topology.{name}", "SELECT port, speed FROM staging.ports", COLUMNS)
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports", COLUMNS, "materialize: view")
    tiny.model("staging.hour", HOURLY, HOUR, "partition: hour_utc")


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The relations written since the list was last cleared."""
    found: list[str] = []
    create = catalog.create

    def noted(connection: duckdb.DuckDBPyConnection, entry: Entry, held: dict[str, str]) -> None:
        found.append(entry.name)
        create(connection, entry, held)

    monkeypatch.setattr(catalog, "create", noted)
    return found


def folder(tiny: Tiny) -> Path:
    """Return the folder of the published build."""
    return tiny.target / "builds" / (tiny.target / "builds" / "current").read_text(encoding="utf-8").strip()


def everything(target: Path) -> dict[str, object]:
    """Return the content of a catalog without publish time and place; for views their SQL and rows."""
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as asked:
        names = asked.execute(
            "SELECT schema_name, table_name, comment, '' FROM duckdb_tables() UNION ALL "
            "SELECT schema_name, view_name, comment, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        said: dict[str, object] = {
            "relations": [(*row[:3], str(row[3]).replace(str(target), "")) for row in names],
            "columns": asked.execute(
                "SELECT schema_name, table_name, column_name, column_index, data_type, comment FROM duckdb_columns() "
                "WHERE NOT internal ORDER BY ALL"
            ).fetchall(),
            "schemas": asked.execute(
                "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal ORDER BY 1"
            ).fetchall(),
        }
        for schema, table, _, _ in names:
            without = " EXCLUDE (published_utc, target)" if (schema, table) == ("meta", "build") else ""
            said[f"{schema}.{table}"] = asked.execute(
                f"SELECT *{without} FROM {schema}.{table} ORDER BY ALL"
            ).fetchall()
        return said


CHANGES: dict[str, tuple[Callable[[Tiny], object], set[str]]] = {
    "rows of a table": (
        lambda t: t.model("topology.a", "SELECT port, speed + 1 AS speed FROM staging.ports", COLUMNS),
        {"topology.a"},
    ),
    "what a column means": (
        lambda t: t.model(
            "topology.a", "SELECT port, speed FROM staging.ports", {"port": "VARCHAR", "speed": "BIGINT how fast"}
        ),
        {"topology.a"},
    ),
    "another column": (
        lambda t: t.model("topology.a", "SELECT port, speed, 1 AS n FROM staging.ports", {**COLUMNS, "n": "BIGINT"}),
        {"topology.a"},
    ),
    "a table that becomes a view": (
        lambda t: t.model("topology.a", "SELECT port, speed FROM staging.ports", COLUMNS, "materialize: view"),
        {"topology.a"},
    ),
    "a view that becomes a table": (
        lambda t: t.model("topology.fast", "SELECT port, speed FROM staging.ports", COLUMNS),
        {"topology.fast"},
    ),
    "a model gone": (lambda t: (t.folder / "models/topology/a.sql").unlink(), set()),
    "a schema gone": (lambda t: (t.folder / "models/metrics/total.sql").unlink(), set()),
    "a new model": (
        lambda t: t.model("topology.e", "SELECT port, speed FROM staging.ports", COLUMNS),
        {"topology.e"},
    ),
    "rows of a reviewed table": (
        lambda t: t.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth1,40", "eth0,10"),
        {"reference.speeds", "staging.ports"},  # its part has another name and equal rows
    ),
    "a new hour": (
        lambda t: t.file(2, "1,7,2,200,0,0.5"),
        {"raw.files", "raw.port_counters", "staging.hour"},
    ),
    "only a check": (
        lambda t: t.model(
            "topology.a", "SELECT port, speed FROM staging.ports", COLUMNS, "checks:", "  - warn: speed > 20"
        ),
        set(),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_tables_are_replaced_and_the_catalog_equals_one_from_scratch(
    built: Tiny, created: list[str], change: str
) -> None:
    make, expected = CHANGES[change]
    make(built)
    assert built.build().status == 0
    assert set(created) == expected
    mine = everything(built.target)
    created.clear()
    other = built.base / "other"
    assert call("build", "-d", built.data, "-t", other, cwd=built.base).status == 0
    assert len(created) > len(expected), "written from nothing"
    assert mine == everything(other)


def test_a_modified_catalog_is_not_reused(built: Tiny, created: list[str]) -> None:
    path = folder(built) / CATALOG
    assert read_base(folder(built)) is not None
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(bytes(content))
    assert read_base(folder(built)) is None
    CHANGES["rows of a table"][0](built)
    assert built.build().status == 0
    assert "staging.ports" in created
    (folder(built) / CATALOG_HASHES).unlink()
    assert read_base(folder(built)) is None


def test_paranoid_builds_write_the_catalog_from_scratch(built: Tiny, created: list[str]) -> None:
    assert built.build("--paranoid").status == 0
    assert "staging.ports" in created


def test_a_grown_catalog_is_written_from_scratch(tiny: Tiny, created: list[str]) -> None:
    """Replacing a large table may leave a hole in the file; holes must not accumulate."""
    tiny.model(
        "staging.large",
        "SELECT i AS n, hash(i) % 1000000 AS k FROM range(100000) AS r(i)",
        {"n": "BIGINT", "k": "BIGINT"},
    )
    for name in "abcdef":
        tiny.model(f"topology.{name}", "SELECT port, speed FROM staging.ports", COLUMNS)
    assert tiny.build().status == 0
    first, sizes = (folder(tiny) / CATALOG).stat().st_size, []
    for step in range(8):
        tiny.model(
            "staging.large",
            f"SELECT i AS n, hash(i + {step}) % 1000000 AS k FROM range(100000) AS r(i)",
            {"n": "BIGINT", "k": "BIGINT"},
        )
        assert tiny.build().status == 0
        sizes.append((folder(tiny) / CATALOG).stat().st_size)
    assert max(sizes) <= 2.6 * first


def test_a_catalog_begun_while_parts_are_made_equals_one_from_scratch(
    built: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_hashes, "FEWEST_BLOCKS", 1)
    begun: list[Base | None] = []
    base = EarlyCatalog.base

    def noted(self: EarlyCatalog) -> Base | None:
        begun.append(base(self))
        return begun[0]

    monkeypatch.setattr(EarlyCatalog, "base", noted)
    early = tmp_path / "early"
    options = ("-d", built.data, "-t", early, "--threads", "2", "--memory", "4GB")
    assert call("build", *options, cwd=built.base).status == 0
    assert begun[0] is not None
    assert "raw.port_counters" in begun[0].hashes
    assert everything(early) == everything(built.target)
    assert not list(early.glob(".*"))


def test_a_catalog_is_begun_with_tables_that_are_copied_in_any_case(
    built: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, created: list[str]
) -> None:
    """A table that would be a view in the end would leave its space free in the file."""
    monkeypatch.setattr(content_hashes, "FEWEST_BLOCKS", 1)
    sizes = [path.stat().st_size for path in (built.target / "parts" / "topology.a").rglob("*.parquet")]
    for module in (catalog_entries, early_catalog):
        monkeypatch.setattr(module, "COPIED_BYTES", 6 * sizes[0])  # of seven tables

    def look(self: EarlyCatalog) -> None:
        for entry in self._made() if self._connection else ():
            self._put(entry)

    monkeypatch.setattr(EarlyCatalog, "_write", lambda _: None)
    monkeypatch.setattr(EarlyCatalog, "look", look)
    created.clear()
    options = ("-d", built.data, "-t", tmp_path / "small", "--threads", "2", "--memory", "4GB")
    assert call("build", *options, cwd=built.base).status == 0
    assert len(created) == len(set(created)), "nothing is written twice"


def test_a_failed_build_leaves_no_file_of_a_catalog_that_was_begun(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_hashes, "FEWEST_BLOCKS", 1)
    tiny.model("metrics.total", "SELECT error('late') AS speed FROM staging.ports", {"speed": "BIGINT"})
    assert tiny.build("--threads", "2", "--memory", "4GB").status == 1
    assert not list(tiny.target.glob(".*"))


def test_a_catalog_that_could_not_be_begun_is_written_at_the_end(
    built: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_hashes, "FEWEST_BLOCKS", 1)
    failed = []

    def full(self: EarlyCatalog, entry: Entry) -> None:
        failed.append(entry.name)
        raise WarehouseError("no space left")

    monkeypatch.setattr(EarlyCatalog, "_put", full)
    late = tmp_path / "late"
    options = ("-d", built.data, "-t", late, "--threads", "2", "--memory", "4GB")
    assert call("build", *options, cwd=built.base).status == 0
    assert len(failed) == 1
    assert everything(late) == everything(built.target)
    assert not list(late.glob(".*"))
