"""Citations: an answer with its query, its build and a digest of its rows, so that anybody can verify it.

A citation is a small JSON file in `citations/` of the target. If the target is not writable, it is in the user's state
folder (`$XDG_STATE_HOME/warehouse/citations`). Its id is the hash of its content, so the id alone identifies the query
and the rows. Below its text are the traces that the answer is from, with license and address.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.sql_text import qualified
from warehouse.base.startup import duckdb
from warehouse.base.text import grouped, plural
from warehouse.formats.traces import Trace, stated
from warehouse.reader.connection import connect, refuse_damage
from warehouse.reader.guard import Statement, check_read_only
from warehouse.reader.named_queries import Query, bind
from warehouse.reader.result import Column, Row, open_result
from warehouse.store.atomic import replacing
from warehouse.store.manifest import last_manifest

FOLDER = "citations"
MOST_ROWS = 100_000
KEPT_ROWS = 50
"""Number of rows stored in the citation, to show later which one changed."""


@dataclass(frozen=True)
class Citation:
    """Query, parameters, build and digest of an answer."""

    build: str
    sql: str
    parameters: dict[str, str]
    """Values as text; for a named query all of them, including defaults."""
    columns: list[str]
    rows: int
    digest: str
    """sha256 of columns and rows. Row order does not matter if the query has no ORDER BY."""
    head: list[list[str | None]]
    query: str | None = None
    """Name of the named query."""
    tables: dict[str, str] = field(default_factory=dict)
    """Tables that the query reads, each with the digest of its parts; raw files are not included."""

    @property
    def id(self) -> str:
        """Return the id: 12 hexadecimal digits."""
        # Sorted, so that the order of the fields in the code is no part of the id.
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def text(self) -> str:
        """Return the citation as text to paste."""
        source = f"named query {self.query}" if self.query else " ".join(self.sql.split())
        given = (
            f" with {', '.join(f'{name} = {value}' for name, value in self.parameters.items())}"
            if self.parameters
            else ""
        )
        rows, digest = plural(self.rows, "row"), self.digest[:16]
        return f"warehouse build {self.build}: {source}{given}; {rows}, sha256 {digest}; citation {self.id}"


def cite(
    connection: duckdb.DuckDBPyConnection,
    target: Path,
    statement: Statement,
    parameters: Mapping[str, object],
    *,
    query: str | None = None,
) -> Citation:
    """Run a checked statement and store its citation in the target.

    Raises
    ------
    QueryError
        If the answer has more than 100,000 rows.
    """
    refuse_damage(target, statement.tables)
    citation, _, _ = cited_answer(connection, target, statement, parameters, query=query)
    keep(target, citation)
    return citation


def keep(target: Path, citation: Citation) -> Path:
    """Store a citation where `warehouse cite ID` finds it: in the target, else in the user's state folder."""
    text = json.dumps(asdict(citation), indent=1) + "\n"
    for folder in (target / FOLDER, _state_folder(target)):
        path = folder / f"{citation.id}.json"
        try:
            # A mistyped target must not come into being by a citation.
            folder.mkdir(parents=folder.parent != target, exist_ok=True)
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except OSError as error:
            failed = error
        else:
            return path
    raise QueryError(
        f"the citation cannot be kept: neither {target / FOLDER} nor {_state_folder(target)} can be written",
        details=[str(failed)],
        hint="set XDG_STATE_HOME to a folder of yours",
    )


def kept(target: Path) -> list[Path]:
    """Return the paths of the target's citations, in the target and in the user's state folder."""
    found = {path.name: path for folder in (_state_folder(target), target / FOLDER) for path in folder.glob("*.json")}
    return [found[name] for name in sorted(found)]


def _state_folder(target: Path) -> Path:
    """Return the folder of the target's citations in the user's state folder."""
    home = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification has relative paths ignored.
    base = Path(home) if home.startswith("/") else Path("~/.local/state").expanduser()
    # Two targets may have one name, and a path need not be UTF-8.
    return base / "warehouse" / FOLDER / hashlib.sha256(os.fsencode(target.resolve())).hexdigest()[:16]


def load(target: Path, name: str) -> Citation:
    """Read a citation by its id, a prefix of the id, or the path of its file.

    Raises
    ------
    QueryError
        If no citation or several citations match, or the file was changed.
    """
    known = {path.stem: path for path in kept(target)}
    if name.endswith(".json"):
        path = Path(name)
    else:
        found = [one for one in known if one.startswith(name)]
        if len(found) != 1:
            what = f"{len(found)} citations begin with {name}" if found else f"no citation {name} in {target}"
            raise QueryError(what, hint=nearest_hint(name, known) or "`warehouse sql ... --cite` makes one")
        path = known[found[0]]
    try:
        citation = Citation(**json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise QueryError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise QueryError(f"{path} is not a citation: {error}") from error
    # The id is the hash of the content, so a changed file betrays itself.
    if path.stem != citation.id:
        raise QueryError(f"{path} was changed after it was made: it is citation {citation.id} by what it says")
    return citation


def again(target: Path, citation: Citation, queries: Mapping[str, Query]) -> tuple[list[str], list[str]]:
    """Recompute a cited answer from the published build; return the lines of the citation, and the differences."""
    with connect(target, json_errors=True) as connection:
        [statement] = check_read_only(connection, citation.sql)
        values: Mapping[str, object] = citation.parameters
        if citation.query and citation.query in queries:
            values = bind(queries[citation.query], citation.parameters)
        refuse_damage(target, statement.tables)
        now, _, _ = cited_answer(connection, target, statement, values, query=citation.query)
        lines = [citation.text(), *source_lines(connection, statement.tables)]
    return lines, [] if now.digest == citation.digest else _differences(citation, now)


def _differences(then: Citation, now: Citation) -> list[str]:
    differences = []
    if then.build != now.build:
        differences.append(f"the build is {now.build}, it was {then.build}")
    differences += [f"{name} holds other rows" for name in then.tables if now.tables.get(name) != then.tables[name]]
    if then.columns != now.columns:
        differences.append(f"the columns are {', '.join(now.columns)}, they were {', '.join(then.columns)}")
    if then.rows != now.rows:
        differences.append(f"{now.rows:,} rows, it were {then.rows:,}")
    for before, after in zip(then.head, now.head, strict=False):
        if before != after:
            differences.append(f"first other row: {_shown(after)}, it was {_shown(before)}")
            break
    return differences


def cited_answer(
    connection: duckdb.DuckDBPyConnection,
    target: Path,
    statement: Statement,
    parameters: Mapping[str, object],
    *,
    query: str | None = None,
) -> tuple[Citation, tuple[Column, ...], list[Row]]:
    """Run a checked statement; return its citation, which is not stored, and its columns and rows.

    Raises
    ------
    QueryError
        If there are more than 100,000 rows.
    """
    result = open_result(connection, statement, parameters)
    rows = list(islice(result.rows, MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        raise QueryError(f"the answer has more than {MOST_ROWS:,} rows", hint="cite a sum, a count, or a part of it")
    names = [column.name for column in result.columns]
    # By `str`, as None cannot be compared with a text.
    in_order = rows if re.search(r"\border\s+by\b", statement.text, re.IGNORECASE) else sorted(rows, key=str)
    citation = Citation(
        build=connection.execute("SELECT build_id FROM meta.build").fetchall()[0][0],
        sql=statement.text,
        parameters={
            name: str(value) for name, value in parameters.items() if name in statement.parameters and value is not None
        },
        columns=names,
        rows=len(rows),
        digest=hashlib.sha256(json.dumps([names, in_order]).encode()).hexdigest(),
        head=[list(one) for one in in_order[:KEPT_ROWS]],
        query=query,
        tables=_tables(target, statement),
    )
    return citation, result.columns, rows


def _tables(target: Path, statement: Statement) -> dict[str, str]:
    """Return the models that a statement reads, each with a digest of its parts in the published build."""
    if statement.kind != "SELECT":
        return {}
    manifest = last_manifest(target)
    parts = grouped(
        (part["model"], f"{part['partition']} {part['digest']}") for part in (manifest.parts if manifest else ())
    )
    return {
        name: hashlib.sha256("\n".join(sorted(parts[name])).encode()).hexdigest()[:16]
        for name in sorted(statement.tables)
        if name in parts
    }


def _shown(row: Sequence[str | None]) -> str:
    text = "  ".join("NULL" if value is None else value for value in row)
    return text if len(text) <= 120 else f"{text[:119]}…"


JOBS = "staging.trace_jobs"
"""Table that the mappings of all traces fill."""
_SOURCES = """
SELECT DISTINCT sources FROM meta.models
WHERE kind = 'raw' AND sources <> '' AND (list_contains($1, model)
    OR model IN (SELECT upstream FROM meta.upstream WHERE list_contains($1, meta.upstream.model)))
ORDER BY ALL
"""


def source_lines(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> list[str]:
    """Return a line for each trace that these tables are from: title, license, DOI and address."""
    return [f"data: {one.source.partition(': ')[2]}" for one in traces_of(connection, tables)]


def traces_of(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> list[Trace]:
    """Return the traces with loaded files that these tables read, directly or indirectly: raw relations state them."""
    asked = [*tables]
    rows = connection.execute(_SOURCES, [asked]).fetchall()
    # All jobs go through one table, so lineage alone would cite every trace that is loaded.
    others = _other_traces(connection, asked) if rows and JOBS not in asked else set()
    return [trace for trace in (stated(source) for (source,) in rows) if trace.name not in others]


def _other_traces(connection: duckdb.DuckDBPyConnection, tables: list[str]) -> set[str]:
    """Return the traces with jobs of which these tables have no cluster."""
    having = dict(
        connection.execute(
            "SELECT model, bool_or(column_name = 'cluster') FROM meta.columns SEMI JOIN meta.upstream AS u "
            "ON u.model = columns.model AND u.upstream = $2 WHERE list_contains($1, model) GROUP BY model",
            [tables, JOBS],
        ).fetchall()
    )
    if not having or not all(having.values()):
        return set()
    clusters = " UNION ".join(f"SELECT cluster FROM {qualified(name)}" for name in sorted(having))
    rows = connection.execute(
        f"SELECT trace FROM {JOBS} EXCEPT SELECT trace FROM {JOBS} SEMI JOIN ({clusters}) USING (cluster)"
    )
    return {trace for (trace,) in rows.fetchall()}
