"""Grants: those of users, copied to replaced objects, and those of `--reader`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError
from warehouse.publish.postgres.server import ident

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.publish.postgres.registry import Names


def granted(server: Any, schema: str, relation: str, heir: str) -> list[str]:
    """Return the statements that copy the grants of `relation` and its columns to `heir`."""
    rows = server.execute(
        """
        WITH held AS (
            SELECT c.oid, c.relowner, c.relacl FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %s AND c.relname = %s
        ), given AS (
            SELECT NULL AS attname, relowner, g.* FROM held CROSS JOIN aclexplode(relacl) g
            UNION ALL
            SELECT a.attname, relowner, g.* FROM held JOIN pg_attribute a ON a.attrelid = held.oid
            CROSS JOIN aclexplode(a.attacl) g WHERE a.attnum > 0 AND NOT a.attisdropped
        )
        SELECT attname, privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(rolname) END, is_grantable
        FROM given LEFT JOIN pg_roles ON pg_roles.oid = grantee
        WHERE grantee <> relowner AND (grantee = 0 OR rolname IS NOT NULL)
        ORDER BY 1, 2, 3
        """,
        [schema, relation],
    ).fetchall()
    return [
        f"GRANT {what}{f' ({ident(column)})' if column else ''} ON {ident(schema, heir)} TO {role}"
        + (" WITH GRANT OPTION" if more else "")
        for column, what, role, more in rows
    ]


def refuse_missing_roles(server: Any, readers: Sequence[str]) -> list[str]:
    """Return the readers that have to be created.

    Raises
    ------
    QueryError
        When a role is missing and the publishing role may not create roles.
    """
    there = {row[0] for row in server.execute("SELECT rolname FROM pg_roles").fetchall()}
    missing = [reader for reader in dict.fromkeys(readers) if reader not in there]
    may = server.execute("SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user").fetchone()[0]
    if missing and not may:
        raise QueryError(
            f"there is no role {missing[0]}, and the publishing role may not create it",
            hint=f"CREATE ROLE {ident(missing[0])} NOLOGIN, as an administrator; nothing was changed",
        )
    return missing


def let_read(server: Any, names: Names, readers: Sequence[str], relations: Iterable[str], missing: list[str]) -> None:
    """Grant the roles read access to the published views only.

    Raises
    ------
    QueryError
        When another role owns a schema and has not granted USAGE on it.
    """
    views = [names.view(relation) for relation in sorted(relations)]
    schemas = sorted({schema for schema, _ in views})
    for reader in readers:
        role = ident(reader)
        if reader in missing:
            server.execute(f"CREATE ROLE {role} NOLOGIN; ALTER ROLE {role} SET default_transaction_read_only = on")
        statements = [f"GRANT USAGE ON SCHEMA {ident(schema)} TO {role}" for schema in schemas]
        statements += [f"GRANT SELECT ON {ident(*view)} TO {role}" for view in views]
        if statements:
            server.execute("; ".join(statements))
        for schema in schemas:
            row = server.execute("SELECT has_schema_privilege(%s, %s, 'USAGE')", [reader, schema]).fetchone()
            if not row[0]:
                raise QueryError(
                    f"the schema {schema} belongs to another role, so that publish cannot let {reader} use it",
                    hint=f"GRANT USAGE ON SCHEMA {schema} TO {reader}, as its owner; nothing that readers see changed",
                )
