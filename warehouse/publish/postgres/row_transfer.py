"""Transfer of one table's rows into a new partition, in one transaction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError
from warehouse.publish.postgres.grants import granted
from warehouse.publish.postgres.plan import DIGEST
from warehouse.publish.postgres.registry import marked
from warehouse.publish.postgres.server import ident, text

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.publish.postgres.plan import Change, Plan

_CHUNK = 1 << 20
_INDEXED_ROWS = 1000
_BTREE_KINDS = ("text", "timestamp", "date")


def send(server: Any, plan: Plan, change: Change, csv: Path, build: str) -> list[str]:
    """Create a table, fill it, index it and record it in the registry, in one transaction.

    Returns
    -------
    A sentence for each user index that the new rows or columns do not allow.
    """
    table, own = change.table, plan.names.own
    stored = ident(own, change.stored)
    with server.transaction():
        if change.is_new_layout:
            _create_parent(server, plan, change, build)
        _create(server, plan, change)
        names = ", ".join(ident(column.name) for column in table.columns)
        copy = f"COPY {stored} ({names}) FROM STDIN (FORMAT csv, FREEZE true)"
        with csv.open("rb") as stream, server.cursor().copy(copy) as rows:
            while chunk := stream.read(_CHUNK):
                rows.write(chunk)
        _index(server, own, change, build)
        lost = _index_as_user(server, plan, change)
        counted, digest = server.execute(f"SELECT count(*), {DIGEST} FROM {stored} AS sent").fetchone()
        if counted != table.rows:
            raise QueryError(f"the server has {counted:,} rows of {table.full_name}, the warehouse {table.rows:,}")
        server.execute(f"ANALYZE {stored}")
        server.execute(
            f"INSERT INTO {ident(own)}.versions (version, layout, stored, fingerprint, rows, digest, build_id) "
            "VALUES (%s, %s, %s, %s, %s, %s::numeric, %s)",
            [change.version, change.layout.layout, change.stored, table.fingerprint, table.rows, digest, build],
        )
    return lost


def _create_parent(server: Any, plan: Plan, change: Change, build: str) -> None:
    """Create the partitioned table of a new layout, which no view reads yet."""
    own, layout = plan.names.own, change.layout
    parent = ident(own, layout.parent)
    declared = ", ".join(f"{ident(name)} {kind}" for name, kind in layout.columns)
    server.execute(
        f"CREATE TABLE {parent} ({declared}, {ident(layout.key)} integer NOT NULL) "
        f"PARTITION BY LIST ({ident(layout.key)})"
    )
    server.execute(f"COMMENT ON TABLE {parent} IS {text(marked(f'Rows of {layout.relation}, all versions.', build))}")
    server.execute(
        f"INSERT INTO {ident(own)}.layouts VALUES (%s, %s, %s::jsonb, %s, %s)",
        [layout.layout, layout.relation, json.dumps(layout.columns), layout.parent, layout.key],
    )
    old = plan.state.layouts.get(change.previous.layout) if change.previous else None
    if old:
        for grant in granted(server, own, old.parent, layout.parent):
            server.execute(grant)


def _create(server: Any, plan: Plan, change: Change) -> None:
    """Create the table of a version; its CHECK constraint makes attaching it skip a scan."""
    key, stored = ident(change.layout.key), ident(plan.names.own, change.stored)
    declared = ", ".join(f"{ident(name)} {kind}" for name, kind in change.layout.columns)
    server.execute(
        f"CREATE TABLE {stored} ({declared}, {key} integer NOT NULL DEFAULT {change.version} "
        f"CHECK ({key} = {change.version})) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)"
    )
    if change.previous and change.previous.stored:
        for grant in granted(server, plan.names.own, change.previous.stored, change.stored):
            server.execute(grant)


def _index(server: Any, own: str, change: Change, build: str) -> None:
    """Create indexes after the rows: unique by grain, and on each further text or time column of it."""
    table, stored = change.table, ident(own, change.stored)
    statements = [f"COMMENT ON TABLE {stored} IS {text(marked(f'Rows of {table.full_name}.', build))}"]
    if table.grain:
        name = f"{change.stored}_key"
        statements.append(
            f"ALTER TABLE {stored} ADD CONSTRAINT {ident(name)} PRIMARY KEY ({', '.join(map(ident, table.grain))})"
        )
        statements.append(f"COMMENT ON INDEX {ident(own, name)} IS {text(marked('Unique by grain.', build))}")
    kinds = {column.name: column.kind for column in table.columns}
    further = [name for name in table.grain[1:] if kinds[name] in _BTREE_KINDS and table.rows >= _INDEXED_ROWS]
    for number, column in enumerate(further, start=1):
        name = f"{change.stored}_i{number}"
        statements.append(f"CREATE INDEX {ident(name)} ON {stored} ({ident(column)})")
        statements.append(f"COMMENT ON INDEX {ident(own, name)} IS {text(marked(f'By {column}.', build))}")
    server.execute("; ".join(statements))


def _index_as_user(server: Any, plan: Plan, change: Change) -> list[str]:
    """Recreate user indexes of the previous version or its partitioned table; return the failures."""
    import psycopg

    sources = [change.previous.stored] if change.previous and change.previous.stored else []
    old = plan.state.layouts.get(change.previous.layout) if change.previous else None
    sources += [old.parent] if old else []
    lost = []
    for name, indexed_table, create, rest in server.execute(_USERS_INDEXES, [plan.names.own, sources]).fetchall():
        is_general = change.is_new_layout and old is not None and indexed_table == old.parent
        target = change.layout.parent if is_general else change.stored
        try:
            with server.transaction():
                server.execute(f"{create} ON {ident(plan.names.own, target)} {rest}")
        except psycopg.Error as error:
            why = (str(error).strip().splitlines() or [""])[0]
            lost.append(f"index {name} on {plan.names.shown(change.table.full_name)}: {why}")
    return lost


_USERS_INDEXES = r"""
    SELECT i.relname, t.relname, CASE WHEN x.indisunique THEN 'CREATE UNIQUE INDEX' ELSE 'CREATE INDEX' END,
        substr(pg_get_indexdef(i.oid), 2 + length(format('CREATE %%sINDEX %%I ON %%s%%I.%%I',
            CASE WHEN x.indisunique THEN 'UNIQUE ' END, i.relname, CASE t.relkind WHEN 'p' THEN 'ONLY ' END,
            n.nspname, t.relname)))
    FROM pg_index x
    JOIN pg_class i ON i.oid = x.indexrelid
    JOIN pg_class t ON t.oid = x.indrelid
    JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE n.nspname = %s AND t.relname = ANY(%s) AND NOT i.relispartition
        AND coalesce(obj_description(i.oid, 'pg_class'), '') !~ '\[warehouse build \S*\]$'
    ORDER BY i.relname
"""
