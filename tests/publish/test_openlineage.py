"""OpenLineage events: valid, complete, and consistent with the models."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from enum import Enum
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import pytest
from openlineage.client import event_v2
from openlineage.client.generated import (
    base,
    column_lineage_dataset,
    output_statistics_output_dataset,
    parent_run,
    schema_dataset,
)
from openlineage.client.serde import Serde

from tests.tiny import Tiny

Event = dict[str, Any]
FACETS: dict[str, type] = {
    "schema": schema_dataset.SchemaDatasetFacet,
    "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet,
    "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
    "parent": parent_run.ParentRunFacet,
}
TRANSFORMATIONS = {
    "DIRECT": {"IDENTITY", "TRANSFORMATION", "AGGREGATION"},
    "INDIRECT": {"JOIN", "GROUP_BY", "FILTER", "SORT", "WINDOW", "CONDITIONAL"},
}


@pytest.fixture
def fleet(tiny: Tiny) -> Tiny:
    tiny.model(
        "metrics.total",
        "SELECT port, sum(speed) AS speed, count(*) AS n, 'x' AS x FROM staging.ports WHERE speed > 0 GROUP BY port",
        {"port": "VARCHAR", "speed": "BIGINT", "n": "BIGINT", "x": "VARCHAR"},
    )
    return tiny


def told(tiny: Tiny) -> list[Event]:
    file = tiny.base / "events.jsonl"
    assert tiny.build("--openlineage", file).status == 0
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def structured(said: Any, hint: Any) -> Any:
    """Return JSON parsed by a class of the published client, which is generated from the schema.

    Keys must exist in the schema, required keys must be present, and values must have the declared types.
    """
    if isinstance(hint, UnionType):
        hint = next(one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is list:
        assert isinstance(said, list)
        return [structured(one, get_args(hint)[0]) for one in said]
    if get_origin(hint) is dict:
        assert isinstance(said, dict)
        below = get_args(hint)[1]
        classes = FACETS if issubclass(below, base.BaseFacet) else dict.fromkeys(said, below)
        return {key: structured(one, classes[key]) for key, one in said.items()}
    if attrs.has(hint):
        hints = get_type_hints(hint)
        fields = {one.name: one for one in attrs.fields(hint)}
        assert set(said) <= set(fields)
        assert {name for name, one in fields.items() if one.default is attrs.NOTHING} <= set(said)
        given = {name: structured(one, hints[name]) for name, one in said.items()}
        made = hint(**{name.lstrip("_"): one for name, one in given.items() if fields[name].init})
        for name in ("schemaURL", "_schemaURL"):
            assert said.get(name) == getattr(made, name, None)
        return made
    if issubclass(hint, Enum):
        return hint(said)
    assert isinstance(said, hint)
    return said


def is_event(one: Event) -> None:
    """Assert that an event and its facets match the published schema."""
    made = structured(one, event_v2.RunEvent)
    assert structured(Serde.to_dict(made), event_v2.RunEvent) == made
    assert datetime.fromisoformat(one["eventTime"]).tzinfo
    for dataset in one["outputs"]:
        lineage = dataset["facets"]["columnLineage"]
        fields = (given for column in lineage["fields"].values() for given in column["inputFields"])
        for given in (*lineage["dataset"], *fields):
            for transformation in given["transformations"]:
                assert transformation["subtype"] in TRANSFORMATIONS[transformation["type"]]


def test_every_event_is_valid_by_the_specification(fleet: Tiny) -> None:
    found = told(fleet)
    for event in found:
        is_event(event)
    runs: dict[str, list[str]] = {}
    for event in found:
        runs.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert list(runs.values()) == [["START", "COMPLETE"]] * 3
    assert [event["job"]["name"] for event in found[1:-1:2]] == ["staging.ports", "metrics.total"]
    build = found[0]["run"]["runId"]
    assert {event["run"]["facets"]["parent"]["run"]["runId"] for event in found[1:-1]} == {build}


@pytest.mark.parametrize(
    "change",
    [{"job": None}, {"run": {"runId": "7"}}, {"eventType": "DONE"}, {"eventTime": "2024-05-23"}, {"more": 1},
     {"schemaURL": "https://openlineage.io/spec/1-0-0/OpenLineage.json#/$defs/RunEvent"},
     {"outputs": [{"name": "no namespace"}]}, {"inputs": [{"namespace": "n", "name": 7}]}],
)  # fmt: skip
def test_schema_violations_are_detected(change: Event) -> None:
    good: Event = {
        "eventType": "START",
        "eventTime": "2024-05-23T16:00:00+00:00",
        "run": {"runId": "79454a0c-dbde-5f26-af4b-3a013d37dedd"},
        "job": {"namespace": "n", "name": "x"},
        "inputs": [],
        "outputs": [],
        "producer": "urn:x",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    is_event(good)
    with pytest.raises((AssertionError, ValueError)):
        is_event({key: value for key, value in (good | change).items() if value is not None})


def test_events_have_schema_row_count_and_column_lineage(fleet: Tiny) -> None:
    event = next(one for one in told(fleet) if one["job"]["name"] == "metrics.total" and one["outputs"])
    assert [one["name"] for one in event["inputs"]] == ["staging.ports"]
    [output] = event["outputs"]
    assert output["name"] == "metrics.total"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert [one["name"] for one in output["facets"]["schema"]["fields"]] == ["port", "speed", "n", "x"]
    lineage = output["facets"]["columnLineage"]

    def short(given: list[Event]) -> list[tuple[str, ...]]:
        return [(one["name"], one["field"], one["transformations"][0]["subtype"]) for one in given]

    fields = {name: short(said["inputFields"]) for name, said in lineage["fields"].items()}
    assert fields == {
        "port": [("staging.ports", "port", "IDENTITY")],
        "speed": [("staging.ports", "speed", "AGGREGATION")],
        "n": [],
        "x": [],
    }
    assert short(lineage["dataset"]) == [
        ("staging.ports", "speed", "FILTER"),
        ("staging.ports", "port", "GROUP_BY"),
    ]


def test_an_up_to_date_build_emits_the_same_events(fleet: Tiny) -> None:
    def plain(events: list[Event]) -> list[object]:
        return [(one["eventType"], one["job"], one["inputs"], one["outputs"]) for one in events]

    first = told(fleet)
    assert plain(told(fleet)) == plain(first)


def test_events_are_posted_to_a_url(fleet: Tiny) -> None:
    got: list[Event] = []

    class Catalog(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Catalog)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert fleet.build("--openlineage", f"http://127.0.0.1:{server.server_port}/api/v1/lineage").status == 0
    finally:
        server.shutdown()
        server.server_close()
    assert len(got) == 6
    for event in got:
        is_event(event)


@pytest.mark.parametrize("destination", ["http://127.0.0.1:9/api", "no/such/folder/events.jsonl"])
def test_a_failed_destination_is_one_sentence_and_the_build_is_published(fleet: Tiny, destination: str) -> None:
    said = fleet.build("--openlineage", destination)
    assert said.status == 2
    assert f"error: the build is published, but its lineage events cannot be given to {destination}: " in said.err
    assert fleet.ask("SELECT count(*) FROM metrics.total") == [(2,)]
