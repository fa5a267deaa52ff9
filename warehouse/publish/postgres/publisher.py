"""`warehouse publish URL`: send the changed tables of a warehouse to a PostgreSQL server, and swap them all at once.

Rows of a table are sent into a new partition, in one transaction. A reader's statement locks the partitioned tables
behind its views. New partitions are attached when no reader holds that lock, while the view still shows the version
named in `published`. Then one transaction updates all versions in `published`. It locks no table whose columns are
unchanged. Retired versions are kept for two more publishes and until no older transaction runs, then dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from warehouse.base.errors import QueryError
from warehouse.publish.postgres.plan import (
    CREATE,
    DIGEST,
    KEEP,
    REBUILD,
    RUNNING,
    Change,
    Plan,
    make_plan,
    unread_versions,
)
from warehouse.publish.postgres.registry import (
    DEFINITION,
    KEY,
    OWN,
    Names,
    State,
    comments,
    create,
    granted,
    let_read,
    look,
    marked,
    view_body,
)
from warehouse.publish.postgres.server import (
    DependentsError,
    Lock,
    Patience,
    ServerError,
    hold,
    ident,
    open_server,
    patiently,
    refusals,
    text,
)
from warehouse.publish.postgres.tables import refuse_long, tables_to_send, write_csv
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import scratch_folder

_CHUNK = 1 << 20
_DROP_SECONDS = 5.0
"""Time limit for all drops together; tables in use stay until the next publish."""


def publish(
    target: Path,
    url: str,
    *,
    tables: Sequence[str] | None = None,
    readers: Sequence[str] = (),
    schema_prefix: str = "",
    dry_run: bool = False,
    verify: bool = False,
    lock_timeout: float = 60.0,
    memory: str | None = None,
    warn: Callable[[str], None] = lambda _: None,
    bar: Bar | None = None,
) -> Plan:
    """Send the tables that changed since the last publish, and publish them in one transaction.

    Parameters
    ----------
    target
        The folder of the warehouse.
    url
        `postgresql://USER@HOST:PORT/NAME`, without a password.
    tables
        Full names. Default: all tables of reference, topology and metrics. With names, other tables that were
        published earlier stay as they are.
    readers
        Roles that may read the published tables; created where they do not exist.
    schema_prefix
        Put before the name of each schema.
    dry_run
        Say what would be done, and change nothing.
    verify
        Compare a digest of the rows on the server, besides their count.
    lock_timeout
        Seconds to try, where readers are in the way.
    warn
        Called before the swap with each index of a user that would be lost.
    bar
        The progress bar, if any.

    Raises
    ------
    QueryError
        When the server refuses, objects of users are in the way, another publish is under way, a table cannot be
        stored there, a part is damaged, or readers do not make room. What readers see is then as it was.
    """
    refuse_long([schema_prefix + OWN], "the schema", "a shorter --schema-prefix")
    refuse_long(readers, "the role", "a shorter name for --reader")
    with scratch_folder("publish") as scratch, connect(target, outputs=[scratch], memory=memory) as connection:

        def work() -> Plan:
            [(build,)] = connection.execute("SELECT build_id FROM meta.build").fetchall()
            with closing(open_server(url)) as server:  # it may refuse; hashing the tables takes longer
                wanted = tables_to_send(connection, target, tables)
                with refusals("the server refuses"):
                    hold(server)
                    names, keep_others = Names(schema_prefix), tables is not None
                    plan = make_plan(server, names, build, wanted, readers, keep_others=keep_others, verify=verify)
                if dry_run:
                    return plan
                if plan.is_change or readers:
                    # By digest: rows that leave the target are no longer compared by anybody.
                    refuse_damage(target, [table.full_name for table in plan.sent], digests=True)
                    if not plan.state.has_registry:
                        with refusals("the server refuses"), server.transaction():
                            create(server, names, build)
                    lost = []
                    to_send = [change for change in plan.changes if not change.is_sent]
                    for change in with_progress(to_send, bar, lambda one: one.table.full_name):
                        # One file for all, so that the scratch folder never holds more than one table.
                        write_csv(connection, change.table, scratch / "rows.csv")
                        with refusals(f"the server does not take {change.table.full_name}"):
                            lost += _send(server, plan, change, scratch / "rows.csv")
                    for one in lost:
                        warn(one)
                    with refusals("the tables cannot be swapped"):
                        patience = Patience(lock_timeout)
                        _attach(server, plan, patience)
                        _swap(server, plan, patience)
                with refusals("published, but rows of earlier publishes cannot be dropped"):
                    _drop_unread(server, plan)
                return plan

        return interruptible(connection, work)


def _send(server: Any, plan: Plan, change: Change, csv: Path) -> list[str]:
    """Create a table, fill it, index it and record it in the registry, in one transaction.

    Returns
    -------
    A sentence for each user index that the new rows or columns do not allow.
    """
    table, own = change.table, plan.names.own
    stored = ident(own, change.stored)
    with server.transaction():
        if change.is_new_layout:
            _create_parent(server, plan, change)
        _create(server, plan, change)
        names = ", ".join(ident(column.name) for column in table.columns)
        # FREEZE spares readers and VACUUM the rewriting of rows; it needs a table of the same transaction.
        copy = f"COPY {stored} ({names}) FROM STDIN (FORMAT csv, FREEZE true)"
        with csv.open("rb") as stream, server.cursor().copy(copy) as rows:
            while chunk := stream.read(_CHUNK):
                rows.write(chunk)
        # After COPY: building an index over all rows at once is faster than keeping it up to date.
        _index(server, plan, change)
        lost = _index_as_user(server, plan, change)
        counted, digest = server.execute(f"SELECT count(*), {DIGEST} FROM {stored} AS sent").fetchone()
        if counted != table.rows:
            raise QueryError(f"the server has {counted:,} rows of {table.full_name}, the warehouse {table.rows:,}")
        # Since autovacuum is off, nobody else would ever count the rows for the planner.
        server.execute(f"ANALYZE {stored}")
        server.execute(
            f"INSERT INTO {ident(own)}.versions (version, layout, stored, fingerprint, rows, digest, build_id) "
            "VALUES (%s, %s, %s, %s, %s, %s::numeric, %s)",
            [change.version, change.layout.layout, change.stored, table.fingerprint, table.rows, digest, plan.build],
        )
    return lost


def _create_parent(server: Any, plan: Plan, change: Change) -> None:
    """Create the partitioned table of a new layout, which no view reads yet."""
    own, layout = plan.names.own, change.layout
    parent = ident(own, layout.parent)
    declared = ", ".join(f"{ident(name)} {kind}" for name, kind in layout.columns)
    server.execute(f"CREATE TABLE {parent} ({declared}, {KEY} integer NOT NULL) PARTITION BY LIST ({KEY})")
    server.execute(
        f"COMMENT ON TABLE {parent} IS {text(marked(f'Rows of {layout.relation}, all versions.', plan.build))}"
    )
    server.execute(
        f"INSERT INTO {ident(own)}.layouts VALUES (%s, %s, %s::jsonb, %s, %s)",
        [layout.layout, layout.relation, json.dumps(layout.columns), layout.parent, KEY],
    )
    old = plan.state.layouts.get(change.previous.layout) if change.previous else None
    if old:
        for grant in granted(server, own, old.parent, layout.parent):
            server.execute(grant)


def _create(server: Any, plan: Plan, change: Change) -> None:
    """Create the table of a version; its CHECK constraint makes attaching it skip a scan."""
    stored = ident(plan.names.own, change.stored)
    declared = ", ".join(f"{ident(name)} {kind}" for name, kind in change.layout.columns)
    server.execute(
        f"CREATE TABLE {stored} ({declared}, {KEY} integer NOT NULL DEFAULT {change.version} "
        # The rows never change, and a vacuum would hold a lock that attaching needs.
        f"CHECK ({KEY} = {change.version})) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)"
    )
    if change.previous and change.previous.stored:
        for grant in granted(server, plan.names.own, change.previous.stored, change.stored):
            server.execute(grant)


def _index(server: Any, plan: Plan, change: Change) -> None:
    """Create indexes after the rows: unique by grain, and on each further text or time column of it."""
    table, own, build = change.table, plan.names.own, plan.build
    stored = ident(own, change.stored)
    statements = [f"COMMENT ON TABLE {stored} IS {text(marked(f'Rows of {table.full_name}.', build))}"]
    if table.grain:
        name = f"{change.stored}_key"
        statements.append(
            f"ALTER TABLE {stored} ADD CONSTRAINT {ident(name)} PRIMARY KEY ({', '.join(map(ident, table.grain))})"
        )
        statements.append(f"COMMENT ON INDEX {ident(own, name)} IS {text(marked('Unique by grain.', build))}")
    kinds = {column.name: column.kind for column in table.columns}
    further = [name for name in table.grain[1:] if kinds[name] in ("text", "timestamp", "date") and table.rows >= 1000]
    for number, column in enumerate(further, start=1):
        name = f"{change.stored}_i{number}"
        statements.append(f"CREATE INDEX {ident(name)} ON {stored} ({ident(column)})")
        statements.append(f"COMMENT ON INDEX {ident(own, name)} IS {text(marked(f'By {column}.', build))}")
    server.execute("; ".join(statements))


def _index_as_user(server: Any, plan: Plan, change: Change) -> list[str]:
    """Recreate user indexes of the previous version or its partitioned table; return the failures."""
    sources = [change.previous.stored] if change.previous and change.previous.stored else []
    old = plan.state.layouts.get(change.previous.layout) if change.previous else None
    sources += [old.parent] if old else []
    lost = []
    for name, indexed_table, made, rest in server.execute(_USERS_INDEXES, [plan.names.own, sources]).fetchall():
        is_general = change.is_new_layout and old is not None and indexed_table == old.parent
        target = change.layout.parent if is_general else change.stored
        try:
            with server.transaction():
                # In a transaction of its own (a savepoint): a failure must not end that of the rows.
                server.execute(f"{made} ON {ident(plan.names.own, target)} {rest}")
        except ServerError as error:
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


def _attach(server: Any, plan: Plan, patience: Patience) -> None:
    """Attach the new partitions; readers see the old rows until the swap."""
    own = plan.names.own
    for change in plan.changes:
        known = plan.state.versions.get(change.version)
        if change.table.rows_of or (known and known.attached):
            continue
        parent, stored = ident(own, change.layout.parent), ident(own, change.stored)
        statement = f"ALTER TABLE {parent} ATTACH PARTITION {stored} FOR VALUES IN ({change.version})"
        # ONLY, as the partitions need no lock: readers of the other versions hold theirs.
        lock = Lock(f"ONLY {parent}", "ACCESS EXCLUSIVE", plan.names.shown(change.table.full_name))
        patiently(server, partial(server.execute, statement), [lock], patience)


def _swap(server: Any, plan: Plan, patience: Patience) -> None:
    """Publish the new versions in one transaction."""
    names = plan.names
    exclusive = [change.table.full_name for change in plan.changes if change.view not in (CREATE, KEEP)]
    exclusive += plan.gone
    shared = [change.table.full_name for change in plan.changes if change.view == KEEP]
    locks = [Lock(ident(*names.view(name)), "ACCESS EXCLUSIVE", names.shown(name)) for name in exclusive]
    # The lock of COMMENT, which readers do not notice.
    locks += [Lock(ident(*names.view(name)), "SHARE UPDATE EXCLUSIVE", names.shown(name)) for name in shared]

    def work() -> None:
        for schema in plan.schemas:
            if schema not in plan.state.objects:
                about = marked("Tables of a warehouse; more may stand beside them.", plan.build)
                server.execute(f"CREATE SCHEMA {ident(schema)}; COMMENT ON SCHEMA {ident(schema)} IS {text(about)}")
        for change in plan.changes:
            _view(server, plan, change)
            server.execute(comments(names, change.table, plan.build))
        for name in plan.gone:
            server.execute(f"DROP VIEW {ident(*names.view(name))}")
        if plan.is_change:
            _note(server, plan)
        let_read(server, names, plan.readers, plan.current(), plan.missing_roles)

    patiently(server, work, locks, patience)


def _view(server: Any, plan: Plan, change: Change) -> None:
    """Create or change a table's view; a change of rows alone keeps the view."""
    if change.view == KEEP:
        return
    names = plan.names
    schema, name = names.view(change.table.full_name)
    older = [
        one
        for one in plan.state.layouts.values()
        if one.relation == change.layout.relation and one.layout != change.layout.layout
    ]
    layouts = [change.layout, *sorted(older, key=lambda one: -one.layout)]
    body = view_body(names, change.table.full_name, layouts)
    if change.view == REBUILD:
        # A dropped view takes its grants along.
        kept = granted(server, schema, name, name)
        server.execute(f"DROP VIEW {ident(schema, name)}")
        server.execute(f"CREATE VIEW {ident(schema, name)} AS {body}")
        for grant in kept:
            server.execute(grant)
    else:
        how = "CREATE" if change.view == CREATE else "CREATE OR REPLACE"
        server.execute(f"{how} VIEW {ident(schema, name)} AS {body}")


def _note(server: Any, plan: Plan) -> None:
    """Record the published versions; mark the replaced ones with the publish that retired them."""
    own, current = ident(plan.names.own), plan.current()
    number = plan.state.number + 1
    server.execute(f"INSERT INTO {own}.publishes (number, build_id) VALUES (%s, %s)", [number, plan.build])
    replaced = [one.version for name, one in plan.state.current.items() if current.get(name) != one.version]
    server.execute(
        f"UPDATE {own}.versions SET retired = %s, readers = NULL WHERE version = ANY(%s) AND retired IS NULL",
        [number, replaced],
    )
    # A rollback publishes a version again that an earlier publish had retired.
    server.execute(
        f"UPDATE {own}.versions SET retired = NULL, readers = NULL WHERE version = ANY(%s)", [list(current.values())]
    )
    server.execute(f"DELETE FROM {own}.published WHERE relation = ANY(%s)", [[*plan.gone, *plan.forgotten]])
    for change in plan.changes:
        relation = change.table.full_name
        view = text(ident(*plan.names.view(relation)))
        server.execute(
            f"INSERT INTO {own}.published (relation, version, layout, definition, build_id) "
            f"SELECT %s, %s, %s, {DEFINITION.format(f'{view}::regclass')}, %s "
            "ON CONFLICT (relation) DO UPDATE SET version = excluded.version, layout = excluded.layout, "
            "definition = excluded.definition, build_id = excluded.build_id, published_at = excluded.published_at",
            [relation, change.version, change.layout.layout, plan.build],
        )


def _drop_unread(server: Any, plan: Plan) -> None:
    """Drop versions and layouts that nobody can read; tables in use wait for the next publish."""
    names, own, patience = plan.names, ident(plan.names.own), Patience(_DROP_SECONDS)
    if plan.is_change:
        # The running transactions may still read the versions just replaced.
        server.execute(f"UPDATE {own}.versions SET readers = ({RUNNING}) WHERE retired IS NOT NULL AND readers IS NULL")
    # Again: readers may have gone since the plan, and the swap has retired versions.
    state = look(server, names, plan.schemas)
    for one in unread_versions(server, plan, state):
        holder = state.layouts[one.layout].parent if one.attached else one.stored
        lock = Lock(f"ONLY {ident(names.own, holder)}", "ACCESS EXCLUSIVE", one.stored)
        forget = f"DELETE FROM {own}.versions WHERE version = {one.version}"
        statement = f"DROP TABLE {ident(names.own, one.stored)}; {forget}"
        _unless_in_use(server, partial(server.execute, statement), [lock], patience)
    if state.has_registry:
        empty = server.execute(
            f"SELECT layout FROM {own}.layouts l "
            f"WHERE NOT EXISTS (SELECT FROM {own}.versions v WHERE v.layout = l.layout) "
            f"AND NOT EXISTS (SELECT FROM {own}.published p WHERE p.layout = l.layout)"
        ).fetchall()
        for layout in (row[0] for row in empty if row[0] in state.layouts):
            _drop_layout(server, names, state, layout, patience)


def _unless_in_use(server: Any, work: Callable[[], None], locks: Sequence[Lock], patience: Patience) -> None:
    """Run `work` unless a lock stays busy or a user object depends on the table."""
    # The publish has already succeeded, and the next one tries again.
    with suppress(QueryError, DependentsError):
        patiently(server, work, locks, patience)


def _drop_layout(server: Any, names: Names, state: State, layout: int, patience: Patience) -> None:
    """Remove a layout from its views, then drop its table."""
    own, gone = ident(names.own), state.layouts[layout]
    same = {one.layout for one in state.layouts.values() if one.relation == gone.relation}
    views = {name: one for name, one in state.current.items() if one.layout in same}

    def work() -> None:
        for relation, current in views.items():
            left = [state.layouts[one] for one in same - {layout}]
            # The published layout first, since it gives the view its columns.
            left.sort(key=lambda one: (one.layout != current.layout, -one.layout))
            view = ident(*names.view(relation))
            server.execute(f"CREATE OR REPLACE VIEW {view} AS {view_body(names, relation, left)}")
            server.execute(
                f"UPDATE {own}.published SET definition = {DEFINITION.format(f'{text(view)}::regclass')} "
                "WHERE relation = %s",
                [relation],
            )
        server.execute(f"DROP TABLE {ident(names.own, gone.parent)}")
        server.execute(f"DELETE FROM {own}.layouts WHERE layout = %s", [layout])
        del state.layouts[layout]

    locks = [Lock(ident(*names.view(name)), "ACCESS EXCLUSIVE", name) for name in views]
    none = Lock(f"ONLY {ident(names.own, gone.parent)}", "ACCESS EXCLUSIVE", gone.relation)
    _unless_in_use(server, work, locks or [none], patience)
