"""Small published warehouse: two leaves, three servers, one hour; a part, a raw CSV, `meta`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.publish.postgres_server import server
from warehouse.reader.connection import connect
from warehouse.runner.catalog import META
from warehouse.store.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Restored

HOUR = "TIMESTAMP '2024-05-23 16:00:00'"
BUILD = "7f3a91c2d0e1f2a3"
ACCESS, UPLINK = "TwoHundredGigE1/0/1", "FourHundredGigE1/0/33"

TABLES = {
    "topology.switches": """
        SELECT * FROM (VALUES
            ('demo', 'Leaf-1', 'NH-Leaf-1', '10.0.0.1', 'leaf', 'Leaf-1..4', true),
            ('demo', 'Leaf-2', 'NH-Leaf-2', '10.0.0.2', 'leaf', 'Leaf-1..4', true),
            ('demo', 'spine-1', NULL, NULL, 'spine', NULL, false)
        ) t(cluster, switch, device_name, switch_ip, role, leaf_group, has_counters)""",
    "topology.ports": f"""
        SELECT 'demo' AS cluster, switch, port, port_class, gbps * 1000000000::BIGINT AS line_rate_bps,
            server, nic, peer_switch, NULL::VARCHAR AS peer_port, source, true AS has_counters
        FROM (VALUES
            ('Leaf-1', '{ACCESS}:1', 'access', 200, 'GPU-1', 'ens10np0', NULL, 'workbook'),
            ('Leaf-1', '{ACCESS}:2', 'access', 200, NULL, NULL, NULL, NULL),
            ('Leaf-1', '{UPLINK}', 'uplink', 400, NULL, NULL, 'spine-1', 'inferred:uplink_formula'),
            ('Leaf-2', '{ACCESS}:1', 'access', 200, 'GPU-1', 'ens11np0', NULL, 'workbook'),
            ('Leaf-2', '{UPLINK}', 'uplink', 400, NULL, NULL, 'spine-1', 'inferred:uplink_formula')
        ) t(switch, port, port_class, gbps, server, nic, peer_switch, source)""",
    "topology.hour_owners": f"""
        SELECT cluster, switch, port, {HOUR} AS hour_utc, 1::BIGINT AS file_key,
            coalesce(server, 'unlisted:' || switch || ':1/0/1:2') AS server, coalesce(nic, switch || ':1/0/1:2') AS nic,
            NULL::VARCHAR AS hca, coalesce(source, 'inferred:port') AS evidence
        FROM topology.ports WHERE port_class = 'access'""",
    "topology.port_owners": """
        SELECT cluster, switch, port, server, nic, NULL::VARCHAR AS hca, source AS evidence
        FROM topology.ports WHERE server IS NOT NULL""",
    "topology.servers": """
        SELECT * FROM (VALUES
            ('demo', 'GPU-1', 'gpu1', '10.1.0.1', true, true, 'ens10', 'Leaf-1..4'),
            ('demo', 'GPU-2', 'gpu2', '10.1.0.2', false, true, 'ens24', NULL)
        ) t(cluster, server, sysname, host_ip, in_topology_sheet, in_nic_sheet, nic_family, leaf_group)""",
    "topology.nic_ports": f"""
        SELECT 'demo' AS cluster, * FROM (VALUES
            ('GPU-1', 'mlx5_0', 'ens10np0', '10.2.0.1', 'Leaf-1', '{ACCESS}:1', 'resolved', NULL),
            ('GPU-1', 'mlx5_1', 'ens11np0', '10.2.0.2', 'Leaf-2', '{ACCESS}:1', 'inferred', NULL),
            ('GPU-2', 'mlx5_0', 'ens24np0', '10.2.0.3', NULL, NULL, 'unresolved', 'no_topology_row')
        ) t(server, hca, nic, nic_ip, switch, port, status, reason)""",
    "metrics.leaf_hour": f"""
        SELECT cluster, switch, {HOUR} AS hour_utc,
            10000::BIGINT AS access_in_bytes, 20000::BIGINT AS access_out_bytes,
            2500::BIGINT AS uplink_in_bytes, 5000::BIGINT AS uplink_out_bytes,
            12500::BIGINT AS in_bytes, 25000::BIGINT AS out_bytes,
            -0.5::DOUBLE AS in_out_difference, 0.5::DOUBLE AS leaving_share
        FROM topology.switches WHERE role = 'leaf'""",
    "metrics.server_hour": f"""
        SELECT * FROM (VALUES
            ('demo', 'GPU-1', {HOUR}, 2, 1, 3000::BIGINT, 5000::BIGINT, 6.5::DOUBLE, 11.0::DOUBLE)
        ) t(cluster, server, hour_utc, nics, rails_used, rx_bytes, tx_bytes, rx_mean_bps, tx_mean_bps)""",
    "metrics.suspect_links": f"""
        SELECT 'demo' AS cluster, 'Leaf-2' AS switch, '{UPLINK}' AS port, 'uplink_silent_in' AS kind,
            NULL::VARCHAR AS server, NULL::VARCHAR AS nic, 'no byte came in' AS evidence,
            NULL::VARCHAR AS candidate_port, 1::BIGINT AS hours""",
    "reference.clusters": "SELECT 'demo' AS cluster, 24::INTEGER AS leaves",
}
PARTITIONED = {
    "metrics.port_hour": f"""
        SELECT cluster, switch, port, {HOUR} AS hour_utc, 3600::BIGINT AS polls, 0::BIGINT AS missing_polls,
            (row_number() OVER (ORDER BY switch, port) * 1000)::BIGINT AS in_bytes,
            (row_number() OVER (ORDER BY switch, port) * 1500)::BIGINT AS out_bytes,
            in_bytes // 100 AS in_packets, out_bytes // 100 AS out_packets,
            in_bytes * 8 / 3600 AS in_mean_bps, out_bytes * 8 / 3600 AS out_mean_bps,
            in_mean_bps / line_rate_bps AS in_utilization, out_mean_bps / line_rate_bps AS out_utilization,
            1.0::DOUBLE AS in_p50_bps, 2.0::DOUBLE AS in_p99_bps, 3.0::DOUBLE AS in_max_bps,
            1.0::DOUBLE AS out_p50_bps, 2.0::DOUBLE AS out_p99_bps, 3.0::DOUBLE AS out_max_bps,
            3600::BIGINT AS busy_seconds, 0::BIGINT AS wraps,
            CASE WHEN port LIKE '%:2' THEN ['gap', 'wrapped'] ELSE [] END::VARCHAR[] AS flags
        FROM topology.ports ORDER BY ALL""",
    "metrics.port_minute": f"""
        SELECT cluster, switch, port, {HOUR} + m * INTERVAL 1 minute AS minute_utc, {HOUR} AS hour_utc,
            (m * 10)::BIGINT AS in_bytes, (m % 7)::BIGINT AS out_bytes,
            60000::BIGINT AS covered_ms, 'fine' AS quality
        FROM topology.ports, range(60) t(m) ORDER BY ALL""",
}
GRAIN = {
    "topology.switches": ["cluster", "switch"],
    "topology.ports": ["cluster", "switch", "port"],
    "topology.servers": ["cluster", "server"],
    "topology.nic_ports": ["cluster", "server", "hca"],
    "metrics.port_hour": ["cluster", "switch", "port", "hour_utc"],
    "metrics.port_minute": ["cluster", "switch", "port", "minute_utc"],
    "metrics.leaf_hour": ["cluster", "switch", "hour_utc"],
    "metrics.server_hour": ["cluster", "server", "hour_utc"],
    "metrics.suspect_links": ["cluster", "switch", "port", "kind"],
}


def make_target(target: Path, data: Path, build: str = BUILD) -> Path:
    """Publish the small warehouse into `target`; its raw view reads `data`."""
    parts = target / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    (data / "ports.csv").write_text("switch,bytes\nLeaf-1,10\nLeaf-2,20\n", encoding="utf-8")
    path = target / "warehouse.duckdb.new"
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{path}' AS published (STORAGE_VERSION 'v1.4.0')")
    connection.execute("USE published")
    for schema in ("raw", "staging", "topology", "metrics", "reference", "meta"):
        connection.execute(f"CREATE SCHEMA {schema}")
    for name, columns in META.items():
        connection.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})")
    for name, sql in TABLES.items():
        connection.execute(f"CREATE TABLE {name} AS {sql}")
    for name, sql in PARTITIONED.items():
        part = parts / f"{name}.parquet"
        connection.execute(f"COPY ({sql}) TO '{part}' (FORMAT parquet)")
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet(['{part}'], hive_partitioning = false)")
    connection.execute("CREATE TABLE staging.port_counters AS SELECT 'demo' AS cluster, 1.5::DOUBLE AS ratio")
    connection.execute(
        f"CREATE VIEW raw.port_counters AS SELECT * FROM read_csv('{data}/*.csv', filename = true, "
        "columns = {'switch': 'VARCHAR', 'bytes': 'BIGINT'})"
    )
    connection.execute(
        "INSERT INTO meta.build VALUES (?, '2024-06-01 12:00:00', '0.1.0', 'duckdb 2.0.0', ?, NULL)",
        [build, [str(data)]],
    )
    relations = connection.execute(
        "SELECT schema || '.' || name FROM (SHOW ALL TABLES) WHERE schema <> 'meta' ORDER BY 1"
    ).fetchall()
    for (name,) in relations:
        kind = {"raw": "raw", "reference": "reference"}.get(name.split(".")[0], "table")
        if name in PARTITIONED:
            kind = "partitioned"
        (rows,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,)
        connection.execute(
            "INSERT INTO meta.models VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, [], false, [])",
            [
                name,
                f"What {name} is.",
                GRAIN.get(name, []),
                "hour_utc" if kind == "partitioned" else None,
                kind,
                None if kind == "raw" else rows,
                None if kind == "raw" else rows * 100,
                f"models/{name.replace('.', '/')}.sql",
                "docs/formats/traffic.md",
            ],
        )
    connection.execute(
        "INSERT INTO meta.columns "
        "SELECT schema_name || '.' || table_name, column_index, column_name, data_type, "
        "CASE WHEN column_name LIKE '%bytes' THEN 'B' END, 'meaning of ' || column_name "
        "FROM duckdb_columns() WHERE schema_name NOT IN ('meta', 'main') AND NOT internal"
    )
    connection.execute(
        "INSERT INTO meta.checks VALUES "
        "('metrics.port_hour', '2024-05-23T16', 'grain is unique', 'error', 'passed', 0), "
        "('metrics.port_hour', '2024-05-23T16', 'in_utilization <= 1', 'warn', 'warned', 3)"
    )
    connection.execute("USE memory; DETACH published")
    connection.close()
    path.chmod(0o444)
    path.replace(target / "warehouse.duckdb")
    kept = target / "builds" / build
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "catalog.duckdb").unlink(missing_ok=True)
    (kept / "catalog.duckdb").write_bytes((target / "warehouse.duckdb").read_bytes())
    Manifest(build, "duckdb 2.0.0", [], [], [str(data)], "2024-06-01 12:00:00").write(kept / "manifest.json")
    return target


@pytest.fixture(scope="session")
def publish() -> Callable[..., Path]:
    """Return `make_target`, for tests that publish more than once."""
    return make_target


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a published warehouse that no test changes."""
    base = tmp_path_factory.mktemp("published")
    return make_target(base / "build" / "warehouse", base / "data")


@pytest.fixture
def own_target(restored: Restored) -> Path:
    """Return a published warehouse of one test's own."""
    base = restored("small", lambda folder: make_target(folder / "warehouse", folder / "data"))
    return base / "warehouse"


@pytest.fixture(scope="session")
def host() -> Iterator[str]:
    """Start a PostgreSQL server with an unprivileged role: `publisher`."""
    psycopg = pytest.importorskip("psycopg")
    with server() as url:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as made:
            made.execute("CREATE ROLE publisher LOGIN CREATEROLE")
        yield url


@pytest.fixture
def admin(host: str, request: pytest.FixtureRequest) -> str:
    """Create a database of the test's own; return its URL for a superuser."""
    import psycopg

    name = f"t{abs(hash(request.node.nodeid)) % 10**12}"
    with psycopg.connect(f"{host}/postgres", autocommit=True) as made:
        made.execute(f"CREATE DATABASE {name}")
        made.execute(f"GRANT CREATE ON DATABASE {name} TO publisher")
    return f"{host}/{name}"


@pytest.fixture
def url(admin: str) -> str:
    """Return the database's URL for the publisher."""
    return admin.replace("postgres@", "publisher@")


@pytest.fixture
def connection(target: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection to the warehouse that no test changes."""
    opened = connect(target, json_errors=True)
    yield opened
    opened.close()


@pytest.fixture
def snapshot() -> Callable[[Path], dict[str, bytes]]:
    """Return a function that reads every file below a folder, to show that nothing was written."""

    def files(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
        }

    return files
