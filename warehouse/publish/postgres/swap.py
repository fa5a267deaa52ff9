"""The swap: attach the new rows, then publish all new versions in one transaction.

A reader's statement locks the partitioned tables behind its views. New partitions are attached when no reader holds
that lock, while the view still shows the version named in `published`. Then one transaction updates all versions in
`published`. It locks no table whose columns are unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.publish.postgres.grants import granted, let_read
from warehouse.publish.postgres.plan import CREATE, KEEP, REBUILD
from warehouse.publish.postgres.registry import DEFINITION, marked
from warehouse.publish.postgres.server import Lock, Patience, ident, patiently, text
from warehouse.publish.postgres.views import comments, view_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.publish.postgres.plan import Change, Plan


def attach(server: Any, plan: Plan, patience: Patience) -> None:
    """Attach the new partitions; readers see the old rows until the swap."""
    own = plan.names.own
    for change in plan.changes:
        known = plan.state.versions.get(change.version)
        if change.table.rows_of or (known and known.attached):
            continue
        parent, stored = ident(own, change.layout.parent), ident(own, change.stored)

        def work(parent: str = parent, stored: str = stored, version: int = change.version) -> None:
            server.execute(f"ALTER TABLE {parent} ATTACH PARTITION {stored} FOR VALUES IN ({version})")

        lock = Lock(f"ONLY {parent}", "ACCESS EXCLUSIVE", plan.names.shown(change.table.full_name))
        patiently(server, work, [lock], patience)


def swap(
    server: Any,
    plan: Plan,
    build: str,
    readers: Sequence[str],
    missing: list[str],
    schemas: Sequence[str],
    patience: Patience,
) -> None:
    """Publish the new versions in one transaction."""
    names = plan.names
    exclusive = [change.table.full_name for change in plan.changes if change.view not in (CREATE, KEEP)]
    exclusive += plan.gone
    shared = [change.table.full_name for change in plan.changes if change.view == KEEP]
    locks = [Lock(ident(*names.view(name)), "ACCESS EXCLUSIVE", names.shown(name)) for name in exclusive]
    locks += [Lock(ident(*names.view(name)), "SHARE UPDATE EXCLUSIVE", names.shown(name)) for name in shared]

    def work() -> None:
        for schema in schemas:
            if schema not in plan.state.schemas:
                about = marked("Tables of a warehouse; more may stand beside them.", build)
                server.execute(f"CREATE SCHEMA {ident(schema)}; COMMENT ON SCHEMA {ident(schema)} IS {text(about)}")
        for change in plan.changes:
            _view(server, plan, change)
            server.execute(comments(names, change.table, build))
        for name in plan.gone:
            server.execute(f"DROP VIEW {ident(*names.view(name))}")
        if plan.changes or plan.gone or plan.forgotten:
            _note(server, plan, build)
        let_read(server, names, readers, plan.current(), missing)

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
        kept = granted(server, schema, name, name)
        server.execute(f"DROP VIEW {ident(schema, name)}")
        server.execute(f"CREATE VIEW {ident(schema, name)} AS {body}")
        for grant in kept:
            server.execute(grant)
    else:
        how = "CREATE" if change.view == CREATE else "CREATE OR REPLACE"
        server.execute(f"{how} VIEW {ident(schema, name)} AS {body}")


def _note(server: Any, plan: Plan, build: str) -> None:
    """Record the published versions; mark the replaced ones with the publish that retired them."""
    own, current = ident(plan.names.own), plan.current()
    number = plan.state.number + 1
    server.execute(f"INSERT INTO {own}.publishes (number, build_id) VALUES (%s, %s)", [number, build])
    replaced = [one.version for name, one in plan.state.current.items() if current.get(name) != one.version]
    server.execute(
        f"UPDATE {own}.versions SET retired = %s, readers = NULL WHERE version = ANY(%s) AND retired IS NULL",
        [number, replaced],
    )
    server.execute(
        f"UPDATE {own}.versions SET retired = NULL, readers = NULL WHERE version = ANY(%s)", [list(current.values())]
    )
    left = [*plan.gone, *plan.forgotten]
    server.execute(f"DELETE FROM {own}.published WHERE relation = ANY(%s)", [left])
    for change in plan.changes:
        relation = change.table.full_name
        view = text(ident(*plan.names.view(relation)))
        server.execute(
            f"INSERT INTO {own}.published (relation, version, layout, definition, build_id) "
            f"SELECT %s, %s, %s, {DEFINITION.format(f'{view}::regclass')}, %s "
            "ON CONFLICT (relation) DO UPDATE SET version = excluded.version, layout = excluded.layout, "
            "definition = excluded.definition, build_id = excluded.build_id, published_at = excluded.published_at",
            [relation, change.version, change.layout.layout, build],
        )
