"""Plan of a publish: objects to create, replace and drop, and conflicts. Planning writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warehouse.base.errors import QueryError
from warehouse.base.text import plural
from warehouse.publish.postgres.registry import (
    Layout,
    Names,
    State,
    Version,
    look,
    name_of_rows,
    refuse_missing_roles,
)
from warehouse.publish.postgres.server import ident
from warehouse.publish.postgres.tables import Sent

CREATE, KEEP, REPLACE, REBUILD = "create", "keep", "replace", "drop and create"


@dataclass(frozen=True)
class Change:
    """A table whose rows, columns or comments differ from the published ones."""

    table: Sent
    layout: Layout
    version: int
    stored: str
    view: str
    """Action on the view: create, keep, replace, or drop and create."""
    is_new_layout: bool
    is_sent: bool
    """True if the rows are on the server already, from an aborted publish or an earlier build."""
    previous: Version | None
    """The published version."""


@dataclass(frozen=True)
class Plan:
    """Plan of one publish."""

    names: Names
    build: str
    state: State
    schemas: tuple[str, ...]
    """Schemas of the tables."""
    readers: tuple[str, ...]
    missing_roles: tuple[str, ...]
    """Readers that have to be created."""
    changes: tuple[Change, ...]
    unchanged: tuple[Sent, ...]
    gone: tuple[str, ...]
    """Earlier published tables that this warehouse lacks; their views are dropped."""
    forgotten: tuple[str, ...]
    """Earlier published tables whose views the user dropped or replaced."""
    unread: tuple[Version, ...] = ()
    """Versions that nobody can read, which are dropped."""

    @property
    def changed(self) -> tuple[Sent, ...]:
        """Tables of the changes."""
        return tuple(change.table for change in self.changes)

    @property
    def sent(self) -> tuple[Sent, ...]:
        """Tables whose rows are not on the server yet."""
        return tuple(change.table for change in self.changes if not change.is_sent)

    @property
    def is_change(self) -> bool:
        """True if readers will see something new."""
        return bool(self.changes or self.gone or self.forgotten)

    def current(self) -> dict[str, int]:
        """Return the version of each table after the publish."""
        left = {*self.gone, *self.forgotten}
        kept = {name: one.version for name, one in self.state.current.items() if name not in left}
        return kept | {change.table.full_name: change.version for change in self.changes}

    def actions(self) -> Iterator[str]:
        """Yield the objects to create, replace and drop, one line each."""
        names, state = self.names, self.state
        if not state.has_registry:
            yield f"create   schema {names.own}, with its registry"
        yield from (f"create   schema {name}" for name in self.schemas if self.changes and name not in state.objects)
        for change in self.changes:
            shown, rows = names.shown(change.table.full_name), f"{change.table.rows:,} rows"
            if change.is_new_layout:
                yield f"create   table {names.own}.{change.layout.parent}"
            if not change.is_sent:
                yield f"create   table {names.own}.{change.stored}  {rows}"
            if change.view == KEEP:
                yield f"replace  rows of {shown}  {rows}"
            else:
                verb = "create " if change.view == CREATE else "replace"
                yield f"{verb}  view {shown}  {rows}" + ("" if change.view == CREATE else ", other columns")
        yield from (f"drop     view {names.shown(name)}" for name in self.gone)
        staying = {one.layout for one in state.versions.values() if one not in self.unread}
        staying |= {change.layout.layout for change in self.changes}
        dropped = [one.stored for one in self.unread]
        dropped += [one.parent for one in state.layouts.values() if one.layout not in staying]
        yield from (f"drop     table {names.own}.{name}  which nobody reads any more" for name in dropped)
        yield from (f"create   role {reader}" for reader in self.missing_roles)


def make_plan(
    server: Any,
    names: Names,
    build: str,
    wanted: Sequence[Sent],
    readers: Sequence[str],
    *,
    keep_others: bool,
    verify: bool,
) -> Plan:
    """Compare the tables with the state of the server.

    Raises
    ------
    QueryError
        When objects of others conflict, or the role lacks a privilege.
    """
    missing_roles = refuse_missing_roles(server, readers)
    schemas = sorted({names.view(table.full_name)[0] for table in wanted})
    state = look(server, names, schemas)
    # A schema of an earlier publish may hold none of today's tables, but views that must be dropped.
    earlier = sorted({names.view(name)[0] for name in state.current} - set(schemas))
    state = look(server, names, [*schemas, *earlier]) if earlier else state
    next_layout, next_version = _next_numbers(server, names, state)
    changes: list[Change] = []
    unchanged: list[Sent] = []
    rows_of: dict[str, tuple[Layout, int, str]] = {}
    for table in wanted:
        is_new_layout, is_sent = False, True
        if table.rows_of:
            # A view of the schema `start` has the columns and rows of a table before it.
            layout, version, stored = rows_of[table.rows_of]
        else:
            columns = tuple((column.name, column.kind) for column in table.columns)
            # Columns that come back, as after a rollback, find their old partitioned table.
            same = [one for one in state.layouts.values() if (one.relation, one.columns) == (table.full_name, columns)]
            is_new_layout = not same
            parent = name_of_rows(table.full_name, f"c{next_layout}")
            layout = same[0] if same else Layout(next_layout, table.full_name, columns, parent)
            next_layout += is_new_layout
            found = _whole(server, names, state, layout, table, verify=verify)
            is_sent = found is not None
            version, stored = (
                (found.version, found.stored)
                if found
                else (next_version, name_of_rows(table.full_name, f"r{next_version}"))
            )
            next_version += not is_sent
        rows_of[table.full_name] = layout, version, stored
        now = _seen(names, state, table.full_name)
        if is_sent and now and now.version == version:
            unchanged.append(table)
        else:
            view = _view(state, now, layout)
            changes.append(Change(table, layout, version, stored, view, is_new_layout, is_sent, now))
    left = [] if keep_others else sorted(state.current.keys() - {table.full_name for table in wanted})
    gone = tuple(name for name in left if _seen(names, state, name))
    plan = Plan(
        names, build, state, tuple(schemas), tuple(readers), tuple(missing_roles), tuple(changes), tuple(unchanged),
        gone, tuple(name for name in left if name not in gone),
    )  # fmt: skip
    # All refusals come before the first write: an error leaves nothing to clean up on the server.
    _refuse_foreign(plan)
    _refuse_dependents(server, plan)
    _refuse_missing_rights(server, plan)
    return replace(plan, unread=tuple(unread_versions(server, plan, state)))


def _next_numbers(server: Any, names: Names, state: State) -> tuple[int, int]:
    """Return unused numbers for a layout and a version, also skipping those whose table was dropped."""
    if not state.has_registry:
        return 1, 1
    own = ident(names.own)
    row = server.execute(
        f"SELECT (SELECT coalesce(max(layout), 0) + 1 FROM {own}.layouts), "
        f"(SELECT coalesce(max(version), 0) + 1 FROM {own}.versions)"
    ).fetchone()
    return int(row[0]), int(row[1])


def _seen(names: Names, state: State, relation: str) -> Version | None:
    """Return the published version if the view is unmodified."""
    current = state.current.get(relation)
    view = state.objects.get(names.shown(relation))
    # A view that a user has changed is theirs now, and is never replaced.
    if current is None or view is None or view.definition != current.definition:
        return None
    return state.versions.get(current.version) or Version(
        current.version, current.layout, "", "", 0, "", None
    )  # its rows were dropped by somebody


def _view(state: State, now: Version | None, layout: Layout) -> str:
    if now is None:
        return CREATE
    if now.layout == layout.layout:
        return KEEP
    old = state.layouts.get(now.layout)
    # PostgreSQL lets a view only gain columns at its end.
    return REPLACE if old and layout.columns[: len(old.columns)] == old.columns else REBUILD


def _whole(server: Any, names: Names, state: State, layout: Layout, table: Sent, *, verify: bool) -> Version | None:
    """Return an intact stored version with the table's rows: the published one, else the newest."""
    current = state.current.get(table.full_name)
    same = [
        one for one in state.versions.values() if (one.layout, one.fingerprint) == (layout.layout, table.fingerprint)
    ]
    # The published version first: if it is whole, nothing has to change.
    same.sort(key=lambda one: (current is not None and one.version == current.version, one.version), reverse=True)
    digest = DIGEST if verify else "NULL"
    for one in same:
        found = server.execute(f"SELECT count(*), {digest} FROM {ident(names.own, one.stored)} AS sent").fetchone()
        if found == (table.rows, one.digest if verify else None):
            return one
    return None


DIGEST = "coalesce(sum(hash_record_extended(sent, 0)), 0)::text"
"""Order-independent digest of the rows of `sent`, in SQL."""


def _refuse_foreign(plan: Plan) -> None:
    """Raise if objects of others have the names that the publish needs."""
    names, state = plan.names, plan.state
    foreign = []
    # The schema's name alone proves nothing: only the marked registry shows that it is ours.
    if names.own in state.objects and not state.has_registry:
        foreign.append(f"schema {names.own}")
    for change in plan.changes:
        wanted = [names.shown(change.table.full_name)] if change.view == CREATE else []
        wanted += [f"{names.own}.{change.layout.parent}"] if change.is_new_layout else []
        wanted += [] if change.is_sent else [f"{names.own}.{change.stored}"]
        foreign += [f"{state.objects[name].kind} {name}" for name in wanted if name in state.objects]
    if foreign:
        raise QueryError(
            f"{plural(len(foreign), 'object')} that this program did not make, or that somebody changed since, "
            f"{'has' if len(foreign) == 1 else 'have'} the names that it needs: {', '.join(foreign)}",
            hint=_WAY_OUT,
        )


def _refuse_dependents(server: Any, plan: Plan) -> None:
    """Raise if objects of others depend on a view that would be dropped."""
    dropped = {plan.names.shown(change.table.full_name): "other columns" for change in plan.changes
               if change.view == REBUILD}  # fmt: skip
    dropped |= {plan.names.shown(name): "it is dropped" for name in plan.gone}
    rows = server.execute(
        """
        SELECT DISTINCT n.nspname || '.' || c.relname, CASE
            WHEN r.oid IS NULL THEN pg_describe_object(d.classid, d.objid, d.objsubid)
            ELSE (SELECT k.nspname || '.' || v.relname FROM pg_class v JOIN pg_namespace k ON k.oid = v.relnamespace
                  WHERE v.oid = r.ev_class) || CASE WHEN r.ev_class = c.oid THEN ' (rule ' || r.rulename || ')' ELSE ''
                  END
            END
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_type t ON t.oid = c.reltype
        JOIN pg_depend d ON (d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid)
            OR (d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray))
        LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        WHERE c.relkind = 'v' AND n.nspname || '.' || c.relname = ANY(%s)
            AND d.classid <> 'pg_type'::regclass AND NOT (r.ev_class IS NOT DISTINCT FROM c.oid AND r.ev_type = '1')
        ORDER BY 1, 2
        """,
        [list(dropped)],
    ).fetchall()
    if rows:
        views = f"{len(rows)} object{' of yours depends' if len(rows) == 1 else 's of yours depend'}"
        dependents = ", ".join(f"{one} on {view} ({dropped[view]})" for view, one in rows)
        raise QueryError(
            f"{views} on what would change: {dependents}",
            hint=f"drop them, publish, and create them again, or {_WAY_OUT}",
        )


_WAY_OUT = "--schema-prefix NAME_ publishes beside it, into schemas NAME_metrics, ...; nothing was changed"


def _refuse_missing_rights(server: Any, plan: Plan) -> None:
    """Raise before sending if the role lacks a privilege that the publish needs."""
    names, state = plan.names, plan.state
    needed = {names.view(change.table.full_name)[0] for change in plan.changes} | {names.own}
    if plan.changes and not needed <= state.objects.keys():
        row = server.execute(
            "SELECT has_database_privilege(current_database(), 'CREATE'), current_database(), current_user"
        ).fetchone()
        if not row[0]:
            raise QueryError(
                f"the role {row[2]} may not create schemas in the database {row[1]}",
                hint=f"GRANT CREATE ON DATABASE {row[1]} TO {row[2]}; nothing was changed",
            )
    closed = sorted(name for name in needed if name in state.objects and not state.objects[name].owned)
    changed = [names.shown(change.table.full_name) for change in plan.changes if change.view != CREATE]
    changed += [names.shown(name) for name in plan.gone]
    others = [name for name in changed if not state.objects[name].owned]
    if plan.changes and (closed or others):
        what = [*(f"schema {name}" for name in closed), *(f"view {name}" for name in others)]
        raise QueryError(
            f"the publishing role may not change {', '.join(what)}",
            hint=f"publish as the role that did so first, or {_WAY_OUT}",
        )


RUNNING = """
    SELECT coalesce(array_agg(l.virtualtransaction), '{}') FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid()
        AND (a.datname IS NULL OR a.datname = current_database())
"""
"""Running transactions of this database, in SQL."""


def unread_versions(server: Any, plan: Plan, state: State) -> list[Version]:
    """Return the versions that no transaction can read, and those that were sent but never published."""
    if not state.has_registry:
        return []
    rows = server.execute(
        f"SELECT version FROM {ident(plan.names.own)}.versions v WHERE retired < %s AND readers IS NOT NULL "
        f"AND NOT readers && ({RUNNING})",
        [plan.state.number + plan.is_change],
    ).fetchall()
    unread = {row[0] for row in rows}
    seen = {one.version for one in state.current.values()}
    # Rows of other tables may have been sent for a publish that somebody tries again.
    tables = [*plan.unchanged, *(change.table for change in plan.changes)]
    relations = {table.full_name for table in tables} | {*plan.gone, *plan.forgotten}
    unread |= {
        one.version
        for one in state.versions.values()
        if one.retired is None and one.version not in seen and state.layouts[one.layout].relation in relations
    }
    kept = set(plan.current().values())
    return [one for one in state.versions.values() if one.version in unread - kept]
