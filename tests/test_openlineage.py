"""OpenLineage events: as the specification wants them, complete, and true of the models."""

from __future__ import annotations

import json
import re
import threading
import uuid
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.tiny import Tiny

Event = dict[str, Any]
URI = re.compile(r"^(https?://|urn:)\S+$")
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


def is_facet(one: Event) -> None:
    assert URI.match(one["_producer"])
    assert re.match(r"^https://openlineage\.io/spec/facets/\d-\d-\d/(\w+)\.json#/\$defs/\1$", one["_schemaURL"])


def is_dataset(one: Event) -> None:
    assert all(isinstance(one[key], str) and one[key] for key in ("namespace", "name"))
    for facet in (*one.get("facets", {}).values(), *one.get("outputFacets", {}).values()):
        is_facet(facet)
    for column in one["facets"]["schema"]["fields"]:
        assert isinstance(column["name"], str)
        assert {type(value) for value in column.values()} == {str}
    statistics = one.get("outputFacets", {}).get("outputStatistics", {})
    assert all(isinstance(statistics[key], int) for key in ("rowCount", "size") if key in statistics)
    lineage = one["facets"].get("columnLineage", {"fields": {}, "dataset": []})
    for given in (
        *lineage["dataset"],
        *(one for column in lineage["fields"].values() for one in column["inputFields"]),
    ):
        assert all(isinstance(given[key], str) for key in ("namespace", "name", "field"))
        for transformation in given["transformations"]:
            assert transformation["subtype"] in TRANSFORMATIONS[transformation["type"]]


def is_event(one: Event) -> None:
    """What the specification asks of a RunEvent, version 2-0-2, and of the facets that are used."""
    assert one["eventType"] in ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
    assert datetime.fromisoformat(one["eventTime"]).tzinfo
    assert URI.match(one["producer"])
    assert one["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert str(uuid.UUID(one["run"]["runId"])) == one["run"]["runId"]
    assert all(isinstance(one["job"][key], str) for key in ("namespace", "name"))
    for facet in one["run"]["facets"].values():
        is_facet(facet)
        assert facet["run"]["runId"]
        assert facet["job"]["name"]
    for dataset in (*one["inputs"], *one["outputs"]):
        is_dataset(dataset)


def test_every_event_is_as_the_specification_wants_it(fleet: Tiny) -> None:
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


def test_an_event_says_schema_rows_and_where_each_column_is_from(fleet: Tiny) -> None:
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


def test_a_build_with_nothing_to_do_tells_the_same(fleet: Tiny) -> None:
    def plain(events: list[Event]) -> list[object]:
        return [(one["eventType"], one["job"], one["inputs"], one["outputs"]) for one in events]

    first = told(fleet)
    assert plain(told(fleet)) == plain(first)


def test_events_are_posted_to_a_url(fleet: Tiny) -> None:
    got: list[Event] = []

    class Catalogue(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Catalogue)
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
def test_a_destination_that_takes_nothing_is_a_sentence_and_the_build_is_there(fleet: Tiny, destination: str) -> None:
    said = fleet.build("--openlineage", destination)
    assert said.status == 2
    assert f"error: the build is published, but its lineage events cannot be given to {destination}: " in said.err
    assert fleet.ask("SELECT count(*) FROM metrics.total") == [(2,)]
