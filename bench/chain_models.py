"""Chain of small models, in the project layout of each runner.

The chain has three layers of equal width. A staging model generates rows with `range()`, so no file is read. A topology
model joins two staging models; a metrics model sums two topology models. Apart from names of models, the SELECT is the
same in every layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

LAYERS = ("staging", "topology", "metrics")
MODELS = 30
ROWS = 10_000
Models = Mapping[str, str]
"""SELECT of each model by `layer.name`, in topological order."""

_STAGING = """\
SELECT
    n AS poll_id,
    n % 64 AS port_id,
    TIMESTAMP '2024-01-01 00:00:00' + INTERVAL (n % 3600) SECOND AS polled_at,
    (n * {factor}) % 1000003 AS in_bytes,
    (n * {factor} + {number}) % 9973 AS out_bytes
FROM range({rows}) AS polls(n)
"""
_TOPOLOGY = """\
WITH busiest AS (
    SELECT port_id, max(in_bytes) AS peak_bytes
    FROM {beside}
    GROUP BY port_id
)

SELECT
    polls.poll_id,
    polls.port_id,
    polls.polled_at,
    polls.in_bytes + polls.out_bytes AS moved_bytes,
    busiest.peak_bytes
FROM {below} AS polls
INNER JOIN busiest ON polls.port_id = busiest.port_id
"""
_METRICS = """\
WITH minutes AS (
    SELECT
        port_id,
        date_trunc('minute', polled_at) AS minute,
        sum(moved_bytes) AS moved_bytes,
        max(peak_bytes) AS peak_bytes
    FROM {below}
    GROUP BY port_id, date_trunc('minute', polled_at)
),

ports AS (
    SELECT port_id, count(*) AS polls
    FROM {beside}
    GROUP BY port_id
)

SELECT
    minutes.port_id,
    minutes.minute,
    CAST(minutes.moved_bytes * {leaf} AS BIGINT) AS moved_bytes,
    minutes.peak_bytes,
    ports.polls
FROM minutes
INNER JOIN ports ON minutes.port_id = ports.port_id
"""
_CONTRACTS = {
    "staging": ("[poll_id]", "poll_id port_id polled_at in_bytes out_bytes"),
    "topology": ("[poll_id]", "poll_id port_id polled_at moved_bytes peak_bytes"),
    "metrics": ("[port_id, minute]", "port_id minute moved_bytes peak_bytes polls"),
}
_TIMES = ("polled_at", "minute")


def chain(*, leaf: int = 1) -> Models:
    """Return the models; `leaf` is a factor in the last model, which no other model reads."""
    width = MODELS // len(LAYERS)
    staging, topology, metrics = {}, {}, {}
    for number in range(width):
        staging[f"staging.polls_{number:02}"] = _STAGING.format(factor=7919 + 2 * number, number=number, rows=ROWS)
        topology[f"topology.moved_{number:02}"] = _TOPOLOGY.format(
            below=f"staging.polls_{number:02}", beside=f"staging.polls_{(number + 1) % width:02}"
        )
        metrics[f"metrics.minutes_{number:02}"] = _METRICS.format(
            below=f"topology.moved_{number:02}",
            beside=f"topology.moved_{(number + 3) % width:02}",
            leaf=leaf if number == width - 1 else 1,
        )
    return staging | topology | metrics


def bare(models: Models) -> Mapping[str, str]:
    """Return one script that creates the tables in order: the minimum cost of any runner."""
    schemas = "".join(f"CREATE SCHEMA IF NOT EXISTS {layer};\n" for layer in LAYERS)
    return {
        "chain.sql": schemas + "\n".join(f"CREATE OR REPLACE TABLE {name} AS\n{models[name]};\n" for name in models)
    }


def warehouse(models: Models) -> Mapping[str, str]:
    """Return our project: every model with its contract and a check of its grain."""
    files = {"warehouse.toml": "shipped = false\n"}
    for name, sql in models.items():
        grain, columns = _CONTRACTS[name.partition(".")[0]]
        types = (f"  {one}: {'TIMESTAMP' if one in _TIMES else 'BIGINT'}" for one in columns.split())
        head = ["/* ---", "about: A model of the chain.", f"grain: {grain}", "columns:", *types, "--- */"]
        files[f"models/{name.replace('.', '/')}.sql"] = "\n".join([*head, sql])
    return files


def lea(models: Models) -> Mapping[str, str]:
    """Return a folder of lea scripts."""
    files = {".env": "LEA_WAREHOUSE=duckdb\nLEA_DUCKDB_PATH=chain.duckdb\n"}
    return files | {f"scripts/{name.replace('.', '/')}.sql": sql for name, sql in models.items()}


def yato(models: Models) -> Mapping[str, str]:
    """Return a flat folder for yato, which names tables without a schema."""
    layer = re.compile(rf"\b(?:{'|'.join(LAYERS)})\.")
    return {f"sql/{layer.sub('', name)}.sql": layer.sub("", sql) for name, sql in models.items()}


LAYOUTS: Mapping[str, Callable[[Models], Mapping[str, str]]] = {
    "bare": bare,
    "warehouse": warehouse,
    "lea": lea,
    "yato": yato,
}


def write(layout: str, folder: Path, models: Models) -> None:
    """Write the chain in one layout; unchanged files keep their modification time."""
    for name, text in LAYOUTS[layout](models).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
