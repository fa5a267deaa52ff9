"""Registry of published objects in a database, in a schema of its own; the public views and their grants.

The schema `warehouse_data` holds the rows. Each set of columns of a table (a layout) is a partitioned table. Each
time that rows were sent (a version) is a partition. The table `published` names the current version of each table.
The public views look up their version there, so a transaction sees the versions of its own snapshot, all of one
publish. The comment of every object ends in `[warehouse build ID]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from warehouse.base.errors import QueryError
from warehouse.base.startup import regex
from warehouse.publish.postgres.server import ident, text
from warehouse.publish.postgres.tables import Sent

OWN = "warehouse_data"
TABLES = {
    "publishes": "A row for each publish.",
    "layouts": "A row for each set of columns that a table has or had.",
    "versions": "A row for each time that rows of a table were sent.",
    "published": "The version of each table that readers see.",
}
FUNCTION = "version_of"
KEY = "warehouse_version"
"""Column of the tables of rows that has the version; no column of a table may have this name."""
_MARK = regex(r"\[warehouse build \S*\]$")


@dataclass(frozen=True)
class Names:
    """Schema names of a publication."""

    prefix: str = ""

    @property
    def own(self) -> str:
        """Schema of rows and registry."""
        return self.prefix + OWN

    def view(self, relation: str) -> tuple[str, str]:
        """Return (schema, name) of a table's view."""
        schema, _, name = relation.partition(".")
        return self.prefix + schema, name

    def shown(self, relation: str) -> str:
        """Return the view's full name, such as `metrics.port_hour`, with the prefix."""
        return ".".join(self.view(relation))


@dataclass(frozen=True)
class Layout:
    """A set of columns of a table, stored as one partitioned table."""

    layout: int
    relation: str
    columns: tuple[tuple[str, str], ...]
    """Pairs of name and PostgreSQL type."""
    parent: str


@dataclass(frozen=True)
class Version:
    """Rows of a table from one publish."""

    version: int
    layout: int
    stored: str
    fingerprint: str
    rows: int
    digest: str
    retired: int | None
    """Number of the publish that replaced it; None if current or not yet published."""
    attached: bool = False


@dataclass(frozen=True)
class Current:
    """The published version of a table."""

    version: int
    layout: int
    definition: str
    """The server's text of the view, with the server's major version."""


@dataclass(frozen=True)
class Found:
    """A schema, relation or type in the database."""

    kind: str
    comment: str
    definition: str | None
    owned: bool
    """True if the publishing role may change the object, or create objects in the schema."""


@dataclass(frozen=True)
class State:
    """State of the database before a publish."""

    number: int
    """Number of the last publish."""
    layouts: dict[int, Layout]
    versions: dict[int, Version]
    current: dict[str, Current]
    objects: dict[str, Found]
    """All schemas that a publish touches, and their objects by `schema.name`."""
    has_registry: bool = True


def marked(about: str, build: str) -> str:
    """Return the comment of an object of this program."""
    return f"{about} [warehouse build {build}]"


def look(server: Any, names: Names, schemas: Iterable[str]) -> State:
    """Read the registry and the system catalog."""
    objects = _objects(server, [names.own, *schemas])
    own = ident(names.own)
    registry = [objects.get(f"{names.own}.{name}") for name in TABLES]
    # Tables of these names may be somebody else's.
    if not all(one and _MARK.search(one.comment) for one in registry):
        return State(0, {}, {}, {}, objects, has_registry=False)
    number = server.execute(f"SELECT coalesce(max(number), 0) FROM {own}.publishes").fetchone()[0]
    layouts = {
        row[0]: Layout(row[0], row[1], tuple((str(name), str(kind)) for name, kind in row[2]), row[3])
        for row in server.execute(f"SELECT layout, relation, columns, parent FROM {own}.layouts").fetchall()
        if f"{names.own}.{row[3]}" in objects
    }
    rows = server.execute(
        f"""
        SELECT v.version, v.layout, v.stored, v.fingerprint, v.rows, v.digest::text, v.retired, c.relispartition
        FROM {own}.versions v
        JOIN pg_class c ON c.relname = v.stored AND c.relkind = 'r'
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = %s
        """,
        [names.own],
    ).fetchall()
    versions = {row[0]: Version(*row) for row in rows if row[1] in layouts}
    current = {
        row[0]: Current(*row[1:])
        for row in server.execute(f"SELECT relation, version, layout, definition FROM {own}.published").fetchall()
    }
    return State(number, layouts, versions, current, objects)


def _objects(server: Any, schemas: Sequence[str]) -> dict[str, Found]:
    """Return schemas, relations of any kind, and types without a relation: these share one namespace with views."""
    rows = server.execute(
        f"""
        SELECT n.nspname || '.' || c.relname,
            CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence'
                WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'c' THEN 'type' WHEN 'f' THEN 'foreign table'
                ELSE 'table' END,
            coalesce(obj_description(c.oid, 'pg_class'), ''),
            CASE WHEN c.relkind = 'v' THEN {DEFINITION.format("c.oid")} END,
            pg_has_role(c.relowner, 'USAGE')
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY(%(schemas)s)
        UNION ALL
        SELECT n.nspname || '.' || t.typname, 'type', '', NULL, false
        FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
        WHERE n.nspname = ANY(%(schemas)s) AND t.typrelid = 0 AND t.typcategory <> 'A'
        UNION ALL
        SELECT nspname, 'schema', '', NULL, has_schema_privilege(oid, 'CREATE')
        FROM pg_namespace WHERE nspname = ANY(%(schemas)s)
        """,
        {"schemas": list(schemas)},
    ).fetchall()
    return {name: Found(*rest) for name, *rest in rows}


DEFINITION = "md5(current_setting('server_version_num')::integer / 10000 || pg_get_viewdef({}))"
"""Fingerprint of a view's text and of the server's major version, which affects the text; in SQL."""


def create(server: Any, names: Names, build: str) -> None:
    """Create schema, registry and the lookup function of the views, in the caller's transaction."""
    own = ident(names.own)
    # The function runs with the rights of its owner, since readers have none here; only PL/pgSQL can raise its error.
    about = marked("Rows and registry of `warehouse publish`; read the views in the other schemas.", build)
    server.execute(
        f"""
        CREATE SCHEMA {own};
        COMMENT ON SCHEMA {own} IS {text(about)};
        CREATE TABLE {own}.publishes (
            number bigint PRIMARY KEY, build_id text NOT NULL, published_at timestamptz NOT NULL DEFAULT now());
        CREATE TABLE {own}.layouts (
            layout integer PRIMARY KEY, relation text NOT NULL, columns jsonb NOT NULL, parent text NOT NULL,
            key text NOT NULL);
        CREATE TABLE {own}.versions (
            version integer PRIMARY KEY, layout integer NOT NULL REFERENCES {own}.layouts, stored text NOT NULL,
            fingerprint text NOT NULL, rows bigint NOT NULL, digest numeric NOT NULL, build_id text NOT NULL,
            sent_at timestamptz NOT NULL DEFAULT now(), retired bigint, readers text[]);
        CREATE TABLE {own}.published (
            relation text PRIMARY KEY, version integer NOT NULL, layout integer NOT NULL, definition text NOT NULL,
            build_id text NOT NULL, published_at timestamptz NOT NULL DEFAULT now());
        CREATE FUNCTION {own}.{FUNCTION}(asked text, of_layout integer) RETURNS integer
            LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
        DECLARE
            seen record;
        BEGIN
            SELECT p.version, p.layout INTO seen FROM {own}.published p WHERE p.relation = asked;
            IF NOT FOUND THEN
                RAISE EXCEPTION '% was published after this transaction began', asked
                    USING ERRCODE = 'serialization_failure', HINT = 'Begin the transaction again.';
            END IF;
            RETURN CASE WHEN seen.layout = of_layout THEN seen.version END;
        END
        $body$;
        GRANT EXECUTE ON FUNCTION {own}.{FUNCTION}(text, integer) TO PUBLIC;
        COMMENT ON FUNCTION {own}.{FUNCTION}(text, integer) IS
            {text(marked("The version of a table that this snapshot sees; NULL if it has other columns.", build))}
        """
    )
    server.execute(
        "; ".join(f"COMMENT ON TABLE {own}.{name} IS {text(marked(said, build))}" for name, said in TABLES.items())
    )


_LONGEST_STEM = 44
"""Longest prefix in bytes that object names take from a table's name; PostgreSQL names have 63."""


def view_body(names: Names, relation: str, layouts: Sequence[Layout]) -> str:
    """Return the SELECT of a relation's view: columns of the first layout, rows of the snapshot's version.

    Older layouts with rows are cast to the columns of the first, so that a transaction begun before the columns
    changed finds its rows.
    """
    branches = []
    for layout in layouts:
        kinds = dict(layout.columns)
        columns = [_cast(name, kind, kinds.get(name)) for name, kind in layouts[0].columns]
        version = f"{ident(names.own, FUNCTION)}({text(relation)}, {layout.layout})"
        branches.append(
            f"SELECT {', '.join(columns)} FROM {ident(names.own, layout.parent)} "
            # In a subquery, so that the function is called once a statement and not once a row.
            f"WHERE {KEY} = (SELECT {version})"
        )
    return " UNION ALL ".join(branches)


def _cast(name: str, kind: str, was: str | None) -> str:
    if was == kind:
        return ident(name)
    # By way of text, as PostgreSQL lacks a direct cast between many pairs of types.
    value = "NULL" if was is None else ident(name) if kind == "text" else f"{ident(name)}::text"
    return f"{value}::{kind} AS {ident(name)}"


def comments(names: Names, table: Sent, build: str) -> str:
    """Return the statements that comment a view and its columns."""
    view = ident(*names.view(table.full_name))
    statements = [f"COMMENT ON VIEW {view} IS {text(marked(table.about, build))}"]
    statements += [
        f"COMMENT ON COLUMN {view}.{ident(column.name)} IS {text(column.comment) if column.comment else 'NULL'}"
        for column in table.columns
    ]
    return "; ".join(statements)


def name_of_rows(relation: str, suffix: str) -> str:
    """Return the name of a table of rows of a relation: `c3` is a layout, `r17` the partition of a version.

    >>> name_of_rows("metrics.port_hour", "r17")
    'port_hour_r17'
    """
    # The cut may fall inside a letter of several bytes.
    stem = relation.partition(".")[2].encode()[:_LONGEST_STEM].decode(errors="ignore")
    return f"{stem}_{suffix}"


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


def let_read(
    server: Any, names: Names, readers: Sequence[str], relations: Iterable[str], missing: Sequence[str]
) -> None:
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
        # In the transaction of the swap, so that a failed publish leaves no role behind.
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
