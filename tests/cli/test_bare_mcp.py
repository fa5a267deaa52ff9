"""`warehouse mcp`, asked by a client without the SDK: 20 answers equal SQL by hand, and each citation recomputes.

The SQL by hand runs in plain DuckDB on the published file, over other tables where there are some.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import duckdb
import pytest

from warehouse.project.project import Project
from warehouse.reader import citations
from warehouse.reader.named_queries import load_queries


class Bare:
    """Client of a server over stdio: JSON-RPC, one message a line."""

    def __init__(self, *words: str, cwd: Path) -> None:
        command = [sys.executable, "-m", "warehouse", "mcp", *words]
        self._server = subprocess.Popen(
            command, cwd=cwd, env=dict(os.environ), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._asked = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
        self.about = self.ask("initialize", about)
        self._send({"method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._server as server:
            assert server.stdin
            server.stdin.close()
        assert server.returncode == 0

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._server.stdin.flush()

    def ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        assert self._server.stdout
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": parameters})
        answer: dict[str, Any] = {}
        while answer.get("id") != self._asked:  # others are notifications
            answer = json.loads(self._server.stdout.readline())
        assert "error" not in answer, answer
        return dict(answer["result"])

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Return the text of a tool."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return "".join(block["text"] for block in result["content"])


LATEST = "hour_utc = (SELECT max(hour_utc) FROM metrics.port_hour)"
UPLINKS = f"(FROM metrics.port_hour WHERE port_class IN ('uplink', 'storage_uplink') AND {LATEST})"
QUESTIONS: dict[str, tuple[str | dict[str, Any], str]] = {
    "bytes of uplinks, from minutes": (
        f"SELECT switch, uplink_in_bytes AS bytes FROM metrics.leaf_hour WHERE {LATEST} ORDER BY switch",
        f"""SELECT switch, sum(m.in_bytes) AS bytes FROM metrics.port_minute AS m
            SEMI JOIN {UPLINKS} USING (cluster, switch, port, hour_utc) GROUP BY ALL ORDER BY switch""",
    ),
    "bytes of servers, from minutes": (
        "SELECT server, sum(rx_bytes) AS bytes FROM metrics.server_hour GROUP BY ALL ORDER BY ALL LIMIT 9",
        "SELECT server, sum(rx_bytes) AS bytes FROM metrics.server_minute GROUP BY server ORDER BY server LIMIT 9",
    ),
    "bytes of seconds": (
        "SELECT switch, sum(in_bytes) AS bytes FROM metrics.port_second GROUP BY ALL HAVING bytes > 0 ORDER BY ALL",
        "SELECT switch, sum(in_bytes) AS bytes FROM metrics.port_hour GROUP BY ALL HAVING bytes > 0 ORDER BY switch",
    ),
    "nic": (
        {"name": "nic", "parameters": {"server": "{server}"}},
        f"""SELECT hca, nic, switch, port, out_bytes AS rx_bytes FROM topology.nic_ports
            LEFT JOIN (FROM metrics.port_hour WHERE {LATEST}) USING (cluster, switch, port)
            WHERE server = '{{server}}' ORDER BY hca, switch, port""",
    ),
    "busiest servers, from ports": (
        {"name": "busiest-servers", "parameters": {"limit": 5}},
        f"""SELECT server, sum(out_bytes) AS rx_bytes, sum(in_bytes) AS tx_bytes FROM topology.hour_owners
            JOIN metrics.port_hour USING (cluster, switch, port, hour_utc) WHERE {LATEST}
            GROUP BY server ORDER BY rx_bytes + tx_bytes DESC LIMIT 5""",
    ),
    "fullest seconds": (
        {"name": "fullest-seconds", "parameters": {"limit": 3, "by": "bytes", "way": "in"}},
        f"""SELECT strftime(second_utc, '%H:%M:%S') AS time, switch, port, in_bytes AS bytes FROM metrics.port_second
            WHERE quality <> 'gap' AND port NOT LIKE 'M-%' AND {LATEST}
            ORDER BY bytes DESC, switch, port, second_utc LIMIT 3""",
    ),
    "lost polls": (
        {"name": "lost-polls", "parameters": {"limit": 5}},
        f"""SELECT switch, port, missing_polls FROM metrics.port_hour WHERE {LATEST} AND missing_polls > 0
            ORDER BY missing_polls DESC, switch, port LIMIT 5""",
    ),
    "uplinks of a leaf": (
        {"name": "leaf-uplinks", "parameters": {"leaf": "{leaf}"}},
        f"""SELECT port AS leaf_port, out_bytes AS bytes FROM {UPLINKS} WHERE switch = '{{leaf}}'
            ORDER BY abs(out_bytes - avg(out_bytes) OVER ()) DESC, length(port), port""",
    ),
    "minutes of uplinks, from seconds": (
        {"name": "uplink-minutes", "parameters": {"leaf": "{leaf}", "limit": 5}},
        f"""SELECT strftime(s.second_utc, '%H:%M') AS minute, sum(s.out_bytes) AS total_bytes
            FROM metrics.port_second AS s SEMI JOIN {UPLINKS} USING (cluster, switch, port, hour_utc)
            WHERE s.switch = '{{leaf}}' GROUP BY ALL ORDER BY minute LIMIT 5""",
    ),
    "spines, from ports": (
        {"name": "spine-balance"},
        f"""SELECT u.spine, sum(h.in_bytes) AS to_leaf_bytes, sum(h.out_bytes) AS from_leaf_bytes
            FROM topology.hour_uplinks AS u JOIN {UPLINKS} AS h ON h.cluster = u.cluster AND h.switch = u.leaf
                AND h.port = u.leaf_port AND h.hour_utc = u.hour_utc
            GROUP BY u.spine ORDER BY length(u.spine), u.spine""",
    ),
    "who trains together": (
        {"name": "traffic-jobs"},
        f"""SELECT group_id, count(DISTINCT server) AS servers, sum(in_bytes + out_bytes) AS bytes
            FROM metrics.traffic_groups JOIN topology.hour_owners USING (cluster, server, hour_utc)
            JOIN metrics.port_hour USING (cluster, switch, port, hour_utc) WHERE {LATEST}
            GROUP BY group_id ORDER BY bytes DESC""",
    ),
    "hours in one line": (
        {"name": "hour-summary"},
        """SELECT hour_utc, count(DISTINCT switch) AS switches, sum(in_bytes) AS in_bytes
            FROM metrics.port_second GROUP BY ALL ORDER BY ALL""",
    ),
    "suspect links": (
        {"name": "suspect-links"},
        """SELECT switch, port, kind, server FROM metrics.suspect_links
            ORDER BY kind, length(switch), switch, port""",
    ),
}
"""Questions, each as SQL or a named query, and the SQL by hand; an answer may have more columns than that."""


OTHERS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "tables with a word": (
        "tables",
        {"word": "uplink_balance"},
        r"^([\w.]+  [\d]+) rows",
        """SELECT 'metrics.uplink_balance  ' || count(*) FROM metrics.uplink_balance
            UNION ALL SELECT 'metrics.uplink_balance_minute  ' || count(*) FROM metrics.uplink_balance_minute""",
    ),
    "tables of a schema": (
        "tables",
        {"word": "topology.*"},
        r"^topology\.(\w+)  ",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'topology'",
    ),
    "columns": (
        "describe",
        {"table": "leaf_hour"},
        r"^(\w+) +[A-Z]+ ",
        "SELECT column_name FROM (DESCRIBE metrics.leaf_hour)",
    ),
    "columns in bytes": (
        "describe",
        {"table": "metrics.server_hour"},
        r"^(\w+) +BIGINT +B ",
        "SELECT column_name FROM (DESCRIBE metrics.server_hour) WHERE column_name LIKE '%_bytes'",
    ),
    "raw files of a table": (
        "lineage",
        {"name": "metrics.leaf_hour"},
        r"\b(raw\.\w+)",
        "SELECT upstream FROM meta.upstream WHERE model = 'metrics.leaf_hour' AND upstream LIKE 'raw.%'",
    ),
    "kinds of findings": (
        "findings",
        {},
        r"^(?!and )(?:  consequence · )?(\w[^:\n]+): ",
        "SELECT DISTINCT what FROM (FROM metrics.findings ORDER BY rank LIMIT 12)",
    ),
    "named queries": (
        "named_query",
        {},
        r"^([\w-]+)\(",
        "SELECT parse_filename(file, true) FROM glob('{queries}/*.sql')",
    ),
}
"""Other questions: tool, arguments, a pattern of the names in the answer, and SQL by hand for the same names."""


class Answers(NamedTuple):
    """What a session said, each with what plain DuckDB says, and the ids of citations."""

    rows: dict[str, tuple[list[dict[str, str]], list[dict[str, str]]]]
    names: dict[str, tuple[set[str], set[str]]]
    citations: dict[str, str]


def ask(target: Path, folder: Path) -> Answers:
    """Ask all questions in one session, and plain DuckDB, too."""
    with (
        Bare("-t", str(target), cwd=folder) as client,
        duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as plain,
    ):
        assert client.about["serverInfo"]["name"] == "warehouse"
        names = {
            "server": """SELECT server FROM metrics.server_hour SEMI JOIN topology.nic_ports USING (cluster, server)
                ANTI JOIN (FROM topology.hour_owners ANTI JOIN topology.nic_ports USING (cluster, switch, port))
                    USING (cluster, server)
                ORDER BY rx_bytes DESC, server LIMIT 1""",  # whose ports are all in the sheet of NICs
            "leaf": "SELECT switch FROM metrics.leaf_hour ORDER BY uplink_out_bytes DESC, switch LIMIT 1",
        }
        at_hand = {name: str(plain.execute(sql).fetchall()[0][0]) for name, sql in names.items()}
        at_hand["queries"] = str(Project.open().query_folders[0])
        rows, cited = {}, {}
        for name, (asked, by_hand) in QUESTIONS.items():
            tool, given = ("query", {"sql": asked}) if isinstance(asked, str) else ("named_query", asked)
            text = client.call(tool, json.loads(_filled(json.dumps(given), at_hand)))
            wanted = plain.execute(_filled(by_hand, at_hand))
            columns = [column for column, *_ in wanted.description]
            rows[name] = (
                [{column: row[column] for column in columns} for row in _rows(text)],
                [dict(zip(columns, map(_cell, row), strict=True)) for row in wanted.fetchall()],
            )
            [cited[name]] = re.findall(r"; citation ([0-9a-f]{12})$", text, re.MULTILINE)
        said = {}
        for name, (tool, given, pattern, by_hand) in OTHERS.items():
            found = set(re.findall(pattern, client.call(tool, given), re.MULTILINE))
            said[name] = found, {one for (one,) in plain.execute(_filled(by_hand, at_hand)).fetchall()}
        return Answers(rows, said, cited)


def _filled(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], text)


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def _rows(text: str) -> list[dict[str, str]]:
    """Return the rows of an answer: cells by column."""
    lines = [line.replace("\\", "")[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")]
    names = [cell.partition(":")[0] for cell in lines[0]]
    return [dict(zip(names, line, strict=True)) for line in lines[1:]]


@pytest.fixture(scope="module")
def answers(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Return the answers to all questions of one session."""
    return ask(built, tmp_path_factory.mktemp("agent"))


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_equals_sql_by_hand(answers: Answers, name: str) -> None:
    rows, by_hand = answers.rows[name]
    assert rows == by_hand
    assert rows


@pytest.mark.parametrize("name", OTHERS)
def test_names_in_an_answer_equal_sql_by_hand(answers: Answers, name: str) -> None:
    said, by_hand = answers.names[name]
    assert said == by_hand
    assert said


def test_each_citation_recomputes(answers: Answers, built: Path) -> None:
    assert len(answers.citations) + len(answers.names) == 20
    queries = load_queries(Project.open().query_folders)
    for name, cited in answers.citations.items():
        assert citations.again(built, citations.load(built, cited), queries) == [], name
