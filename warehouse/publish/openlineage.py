"""OpenLineage run events of a build, for data catalogs: https://openlineage.io/docs/spec.

A build is one run with a child run per model, each with START and COMPLETE. Events carry inputs, outputs, schema, row
count and column lineage. They are derived from the published warehouse and the models, so an up-to-date build emits
the same events.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.errors import WarehouseError
from warehouse.base.settings import Settings
from warehouse.base.version import __version__
from warehouse.lineage.column_lineage import Columns, Node, load
from warehouse.lineage.steps import AGGREGATED, COPIED, ROWS
from warehouse.project.project import Project
from warehouse.reader.connection import connect
from warehouse.store.atomic import replacing
from warehouse.store.layout import PUBLISHED

SPEC = "https://openlineage.io/spec"
SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
PRODUCER = f"urn:gpu-warehouse:{__version__}"
JOBS = "warehouse"
FACETS = {
    "schema": f"{SPEC}/facets/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
    "columnLineage": f"{SPEC}/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet",
    "outputStatistics": (
        f"{SPEC}/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet"
    ),
    "parent": f"{SPEC}/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet",
}
KINDS = {COPIED: "IDENTITY", AGGREGATED: "AGGREGATION"}
"""Subtypes of direct transformations, by kind of step. The default is TRANSFORMATION."""
CLAUSES = {"filter": "FILTER", "join": "JOIN", "group": "GROUP_BY", "limit": "SORT"}
"""Subtypes of indirect transformations, by clause. The default is CONDITIONAL."""
TIMEOUT_SECONDS = 10
Event = dict[str, Any]


class _Table(NamedTuple):
    name: str
    kind: str
    rows: int | None
    bytes: int | None
    reads: tuple[str, ...]
    fields: list[dict[str, str]]


def emit(settings: Settings, destination: str) -> None:
    """Write the events of the published build to a file, a line each, or post them to a URL.

    Raises
    ------
    WarehouseError
        When the file cannot be written or the URL rejects the events. The build stays published.
    """
    found = list(events(settings))
    try:
        if destination.startswith(("http://", "https://")):
            for event in found:
                _post(destination, event)
        else:
            lines = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in found)
            with replacing(Path(destination)) as temporary:
                temporary.write_text(lines, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise WarehouseError(
            f"the build is published, but its lineage events cannot be given to {destination}: {error}",
            hint="--openlineage FILE, or the URL of a catalog: http://HOST:5000/api/v1/lineage",
        ) from error


def _post(url: str, event: Event) -> None:
    from urllib.request import Request, urlopen

    body = json.dumps(event).encode()
    request = Request(url, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310 - http(s), see emit
    with urlopen(request, timeout=TIMEOUT_SECONDS):  # noqa: S310
        pass


def events(settings: Settings) -> Iterator[Event]:
    """Yield the events of the published build in order of time."""
    with closing(connect(settings.target)) as connection:
        row = connection.execute("SELECT build_id, published_utc FROM meta.build").fetchone()
        tables = _tables(connection)
    assert row is not None
    build, published = str(row[0]), row[1].replace(tzinfo=UTC)
    columns = load(Project.open(settings.project), settings.target)
    now = datetime.now(UTC)
    namespace = f"file://{settings.target.absolute() / PUBLISHED}"
    run = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{namespace}#{build}#{now.isoformat()}"))
    yield _event("START", min(published, now), run, "build")
    for table in tables.values():
        if table.name in columns.blocks:
            own = str(uuid.uuid5(uuid.UUID(run), table.name))
            inputs = [_dataset(namespace, tables[read]) for read in table.reads if read in tables]
            parent = {"parent": _facet("parent", run={"runId": run}, job={"namespace": JOBS, "name": "build"})}
            yield _event("START", now, own, table.name, parent)
            yield _event("COMPLETE", now, own, table.name, parent, inputs, [_output(namespace, table, columns)])
    yield _event("COMPLETE", now, run, "build")


def _tables(connection: Any) -> dict[str, _Table]:
    fields: dict[str, list[dict[str, str]]] = {}
    for model, name, kind, about in connection.execute(
        "SELECT model, column_name, type, about FROM meta.columns ORDER BY model, position"
    ).fetchall():
        description = {"description": about} if about else {}
        fields.setdefault(model, []).append({"name": name, "type": kind, **description})
    rows = connection.execute("SELECT model, kind, rows, bytes, reads FROM meta.models ORDER BY rowid").fetchall()
    return {
        name: _Table(name, kind, count, size, tuple(reads or ()), fields.get(name, []))
        for name, kind, count, size, reads in rows
    }


def _event(
    kind: str, at: datetime, run: str, job: str, facets: Event | None = None, inputs: object = (), outputs: object = ()
) -> Event:
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "run": {"runId": run, "facets": facets or {}},
        "job": {"namespace": JOBS, "name": job},
        "inputs": inputs or [],
        "outputs": outputs or [],
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
    }


def _facet(name: str, **content: object) -> Event:
    return {"_producer": PRODUCER, "_schemaURL": FACETS[name], **content}


def _dataset(namespace: str, table: _Table) -> Event:
    facets = {"schema": _facet("schema", fields=table.fields)}
    return {"namespace": namespace, "name": table.name, "facets": facets}


def _output(namespace: str, table: _Table, columns: Columns) -> Event:
    """Return the output dataset of a model with its column lineage, row count and size."""
    output = _dataset(namespace, table)
    fields = {
        one["name"]: {"inputFields": _inputs(namespace, table.name, one["name"], columns)} for one in table.fields
    }
    deciding = [
        _input(namespace, node, "INDIRECT", CLAUSES.get(one.kind, "CONDITIONAL"))
        for one in columns.clauses(table.name)
        for node in one.inputs
        if node.column != ROWS
    ]
    unique = list({json.dumps(one, sort_keys=True): one for one in deciding}.values())
    output["facets"]["columnLineage"] = _facet("columnLineage", fields=fields, dataset=unique)
    statistics = {name: value for name, value in (("rowCount", table.rows), ("size", table.bytes)) if value is not None}
    if statistics:
        output["outputFacets"] = {"outputStatistics": _facet("outputStatistics", **statistics)}
    return output


def _inputs(namespace: str, model: str, column: str, columns: Columns) -> list[Event]:
    """Return the columns of other relations that a column derives from, resolved through the model's CTEs."""
    kind = columns.blocks[model][""].kind_of(column)
    return [
        _input(namespace, node, "DIRECT", KINDS.get(kind, "TRANSFORMATION"))
        for node in columns.made_of(model, column)
        if node.column != ROWS
    ]


def _input(namespace: str, node: Node, kind: str, subtype: str) -> Event:
    transformation: Mapping[str, object] = {"type": kind, "subtype": subtype}
    return {"namespace": namespace, "name": node.relation, "field": node.column, "transformations": [transformation]}
