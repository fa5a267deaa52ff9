"""The server's side: what stands there, new tables beside the old, and the one transaction that swaps them."""

from __future__ import annotations

import os
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warehouse.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warehouse.serve.postgres.tables import Sent

NEXT = "warehouse_next"
"""The schema in which new tables are made; nobody reads it, and what a killed publish left is dropped."""
REGISTRY = "meta.published"
_LOCK = 0x77617265686F7573
"""The advisory lock that a publish holds."""
_CHUNK = 1 << 20
_LOCK_SECONDS, _SWAP_TRIES = 2, 30


def connect(url: str) -> Any:
    """A connection; the password comes from PGPASSWORD or ~/.pgpass.

    Raises
    ------
    QueryError
        When psycopg is not installed, the URL holds a password, or the server refuses.
    """
    try:
        import psycopg
    except ImportError as error:
        raise QueryError("publishing needs psycopg", hint="pip install 'gpu-warehouse[postgres]'") from error
    try:
        said = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise QueryError(
            f"not a PostgreSQL URL: {_first_line(error)}", hint="postgresql://USER@HOST:PORT/NAME"
        ) from error
    if "password" in said:
        raise QueryError(
            "the URL holds a password, which would show in lists of processes",
            hint="put it into PGPASSWORD or ~/.pgpass, and leave it out of the URL",
        )
    try:
        return psycopg.connect(url, application_name="warehouse publish", connect_timeout=10)
    except psycopg.OperationalError as error:
        raise QueryError(f"the server does not let us in: {_first_line(error)}") from error


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """What the server refuses, as one sentence."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        details = (error.diag.message_detail or "").splitlines()  # what depends on a table, which key is there twice
        hint = "the old tables are as they were"
        raise QueryError(f"{what}: {_first_line(error)}", details=details, hint=hint) from error


def hold(server: Any) -> None:
    """Be the only publish into this database.

    Raises
    ------
    QueryError
        When another one holds it, named.
    """
    if server.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone()[0]:
        server.commit()
        return
    row = server.execute(
        "SELECT a.pid, a.usename, a.client_addr, a.backend_start::timestamp(0)::text FROM pg_locks l "
        "JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted "
        "AND (l.classid::bigint << 32) + l.objid::bigint = %s",
        [_LOCK],
    ).fetchone()
    server.rollback()
    who = f": {row[1]} from {row[2] or 'this machine'} since {row[3]} (server process {row[0]})" if row else ""
    raise QueryError(f"another publish into this database is under way{who}", hint="try again when it has ended")


def published(server: Any) -> dict[str, str]:
    """Fingerprints of the tables that an earlier publish put here and that still stand."""
    if server.execute("SELECT to_regclass(%s)", [REGISTRY]).fetchone()[0] is None:
        return {}
    rows = server.execute(
        f"SELECT schema_name || '.' || table_name, fingerprint FROM {REGISTRY} "
        "WHERE to_regclass(quote_ident(schema_name) || '.' || quote_ident(table_name)) IS NOT NULL"
    ).fetchall()
    server.commit()
    return {str(name): str(fingerprint) for name, fingerprint in rows}


def refuse_to_break_views(server: Any, names: Sequence[str]) -> None:
    """Name the views of users that stand on tables that are about to be replaced or dropped.

    Raises
    ------
    QueryError
        When there are any; nothing is dropped.
    """
    rows = server.execute(
        """
        SELECT DISTINCT view_space.nspname || '.' || viewed.relname, space.nspname || '.' || tabled.relname
        FROM pg_depend d
        JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
        JOIN pg_class viewed ON viewed.oid = r.ev_class
        JOIN pg_namespace view_space ON view_space.oid = viewed.relnamespace
        JOIN pg_class tabled ON tabled.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass
        JOIN pg_namespace space ON space.oid = tabled.relnamespace
        WHERE viewed.oid <> tabled.oid AND space.nspname || '.' || tabled.relname = ANY(%s)
        ORDER BY 1, 2
        """,
        [list(names)],
    ).fetchall()
    server.commit()
    if rows:
        raise QueryError(
            f"{len(rows)} view{'s' if len(rows) > 1 else ''} of yours would break: "
            + ", ".join(f"{view} stands on {table}" for view, table in rows),
            hint="drop them, publish, and create them again; nothing was changed",
        )


def make_tables(server: Any) -> None:
    """An empty schema for new tables; what a killed publish left there goes."""
    server.execute(f"DROP SCHEMA IF EXISTS {NEXT} CASCADE")
    server.execute(f"CREATE SCHEMA {NEXT}")
    server.execute(
        f"COMMENT ON SCHEMA {NEXT} IS {_text(server, f'publish by {socket.gethostname()}, process {os.getpid()}')}"
    )
    server.commit()


def send(server: Any, table: Sent, csv: Path) -> None:
    """Create one table beside the old one and fill it: rows, primary key, indexes, comments."""
    name = _stored(table)
    declared = ", ".join(f"{_name(column.name)} {column.kind}" for column in table.columns)
    server.execute(f"CREATE TABLE {name} ({declared})")
    with csv.open("rb") as stream, server.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
        while chunk := stream.read(_CHUNK):
            copy.write(chunk)
    if table.grain:
        server.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({', '.join(map(_name, table.grain))})")
    for key in _indexed(table):
        server.execute(f"CREATE INDEX ON {name} ({_name(key)})")
    server.execute(f"COMMENT ON TABLE {name} IS {_text(server, table.about)}")
    for column in table.columns:
        if column.comment:
            server.execute(f"COMMENT ON COLUMN {name}.{_name(column.name)} IS {_text(server, column.comment)}")
    server.execute(f"ANALYZE {name}")
    server.commit()


def swap(
    server: Any,
    changed: Sequence[Sent],
    gone: Sequence[str],
    all_tables: Sequence[Sent],
    build: str,
    readers: Sequence[str],
) -> None:
    """Put the new tables in the place of the old, in one transaction; readers see all of it or nothing.

    It needs each old table for itself for a moment: a query that is still running is waited for, two seconds at
    a time, so that nobody who comes later waits longer.
    """
    import psycopg

    for attempt in range(_SWAP_TRIES):
        try:
            with server.transaction():
                server.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
                _swap(server, changed, gone, all_tables, build, readers)
        except psycopg.errors.LockNotAvailable:
            if attempt == _SWAP_TRIES - 1:
                raise
            time.sleep(0.5)
        else:
            return


def _swap(
    server: Any,
    changed: Sequence[Sent],
    gone: Sequence[str],
    all_tables: Sequence[Sent],
    build: str,
    readers: Sequence[str],
) -> None:
    for schema in sorted({table.schema for table in all_tables}):
        server.execute(f"CREATE SCHEMA IF NOT EXISTS {_name(schema)}")
    granted = _granted(server, [table.full_name for table in changed])
    for name in gone:
        server.execute(f"DROP TABLE IF EXISTS {_dotted(name)}")
    for table in changed:
        server.execute(f"DROP TABLE IF EXISTS {_dotted(table.full_name)}")
        server.execute(f"ALTER TABLE {_stored(table)} RENAME TO {_name(table.name)}")
        server.execute(f"ALTER TABLE {NEXT}.{_name(table.name)} SET SCHEMA {_name(table.schema)}")
    server.execute(
        f"CREATE TABLE IF NOT EXISTS {REGISTRY} (schema_name text, table_name text, fingerprint text NOT NULL, "
        "build_id text NOT NULL, rows bigint NOT NULL, published_at timestamptz NOT NULL, "
        "PRIMARY KEY (schema_name, table_name))"
    )
    for name in gone:
        server.execute(f"DELETE FROM {REGISTRY} WHERE schema_name || '.' || table_name = %s", [name])
    for table in changed:
        server.execute(
            f"INSERT INTO {REGISTRY} VALUES (%s, %s, %s, %s, %s, now()) ON CONFLICT (schema_name, table_name) "
            "DO UPDATE SET fingerprint = excluded.fingerprint, build_id = excluded.build_id, rows = excluded.rows, "
            "published_at = excluded.published_at",
            [table.schema, table.name, table.fingerprint, build, table.rows],
        )
    for name, role in granted:
        server.execute(f"GRANT SELECT ON {_dotted(name)} TO {role}")
    for reader in readers:
        _grant(server, reader, sorted({table.schema for table in all_tables}))
    server.execute(f"DROP SCHEMA {NEXT}")


def _granted(server: Any, names: Sequence[str]) -> list[tuple[str, str]]:
    """(table, role in SQL) of who may read the tables that are about to be replaced."""
    rows = server.execute(
        """
        SELECT space.nspname || '.' || held.relname, coalesce(quote_ident(role.rolname), 'PUBLIC')
        FROM pg_class held
        JOIN pg_namespace space ON space.oid = held.relnamespace
        CROSS JOIN aclexplode(held.relacl) given
        LEFT JOIN pg_roles role ON role.oid = given.grantee
        WHERE given.privilege_type = 'SELECT' AND given.grantee <> held.relowner
            AND (role.rolname IS NOT NULL OR given.grantee = 0)
            AND space.nspname || '.' || held.relname = ANY(%s)
        """,
        [list(names)],
    ).fetchall()
    return [(str(name), str(role)) for name, role in rows]


def _grant(server: Any, reader: str, schemas: Sequence[str]) -> None:
    """Let a role read, and nothing else; a role that is not there is made, without login."""
    role = _name(reader)
    if server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [reader]).fetchone() is None:
        server.execute(f"CREATE ROLE {role} NOLOGIN")
        server.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    for schema in schemas:
        server.execute(f"GRANT USAGE ON SCHEMA {_name(schema)} TO {role}")
        server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {_name(schema)} TO {role}")


def _indexed(table: Sent) -> list[str]:
    """Columns of the key besides its first, which the key itself serves: time and names that people filter by."""
    kinds = {column.name: column.kind for column in table.columns}
    return [name for name in table.grain[1:] if table.rows >= 1000 and kinds[name] in ("text", "timestamp", "date")]


def _stored(table: Sent) -> str:
    """Where a new table stands until the swap: of two schemas, two tables may have one name."""
    return f"{NEXT}.{_name(f'{table.schema}.{table.name}')}"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _dotted(name: str) -> str:
    schema, _, table = name.partition(".")
    return f"{_name(schema)}.{_name(table)}"


def _text(server: Any, text: str) -> str:
    from psycopg import sql

    return sql.Literal(text).as_string(server)


def _first_line(error: Exception) -> str:
    return " ".join((str(error).strip().splitlines() or [type(error).__name__])[0].split())
