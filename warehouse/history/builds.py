"""Kept builds of a target: list, find by id, roll back, relocate.

A build is a folder of `builds/` with a manifest and a catalog. Builds share parts. A rollback checks that all parts
of the build exist, then publishes it with one atomic rename.

The catalog of each kept build contains the target's path: in views over parts, in views over repaired and unpacked
files, in `raw.files` and in `meta.build`. In a moved or copied target it is replaced by a copy with the new path, which
needs no raw data.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.sql_text import literal, qualified
from warehouse.base.startup import duckdb
from warehouse.base.text import few, plural
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.sources import escape_glob
from warehouse.formats.base import is_raw
from warehouse.reader.connection import connect
from warehouse.runner.catalog import STORAGE_VERSION, comments
from warehouse.runner.publish import make_current
from warehouse.store.atomic import hold, sync, temporary_path
from warehouse.store.manifest import (
    MANIFEST,
    Manifest,
    build_folder,
    catalog_of,
    kept_manifests,
    last_manifest,
    problem_of,
)
from warehouse.store.signatures import stamp


@dataclass(frozen=True)
class Kept:
    """Kept build of a target."""

    build: str
    """Build id."""
    published_utc: str
    """Time of its first publication, UTC."""
    current: bool
    """True for the published build."""
    parts: int
    """Number of its parts."""
    bytes: int
    """Size of its parts and catalog in bytes; other builds may share the parts."""


def is_target(folder: Path) -> bool:
    """Return True if a folder contains builds."""
    return (folder / "builds").is_dir()


def builds(target: Path) -> list[Kept]:
    """Return the kept builds of a target, the newest first.

    Raises
    ------
    WarehouseError
        When there is no target.
    """
    last = last_manifest(target)
    return [
        Kept(
            manifest.build,
            manifest.published_utc,
            manifest == last,
            len(manifest.parts),
            sum(part_sizes(manifest).values()) + _size(catalog_of(target, manifest.build)),
        )
        for manifest in kept_builds(target)
    ]


def kept_builds(target: Path) -> list[Manifest]:
    """Return the manifests of the kept builds, the newest first. Raises WarehouseError if there is no target."""
    if not is_target(target):
        raise WarehouseError(f"{target} holds no builds", hint="warehouse build -d DIR")
    return kept_manifests(target)


def part_sizes(manifest: Manifest) -> dict[str, int]:
    """Return the size of each part by its path relative to the target."""
    return {str(part["path"]): int(str(part["bytes"])) for part in manifest.parts}


def find_build(target: Path, name: str | None = None) -> Manifest:
    """Return the kept build whose id is or begins with `name`; default: the newest one older than the published one.

    Raises
    ------
    WarehouseError
        When no build or several builds match.
    """
    kept, last = kept_builds(target), last_manifest(target)
    ids = [manifest.build for manifest in kept]
    if name is None:
        found = kept[ids.index(last.build) + 1 :][:1] if last and last.build in ids else kept[:1]
    else:
        found = [manifest for manifest in kept if name and manifest.build.startswith(name)]
    if len(found) != 1:
        wanted = f"single build that begins with {name}" if name else "build before the published one"
        raise WarehouseError(
            f"{target} keeps no {wanted}",
            hint=f"kept, the newest first: {', '.join(ids) or 'none'}; warehouse build --keep N keeps more",
        )
    return found[0]


def rollback(target: Path, build: str | None = None, *, wait: bool = False) -> tuple[str | None, Manifest]:
    """Publish a kept build again, atomically.

    The next `warehouse build` publishes a build of the current data and models, as usual.

    Parameters
    ----------
    target
        The folder of the warehouse.
    build
        The id of the build or its beginning; default: the build before the published one.
    wait
        True to wait while a build of this target runs.

    Returns
    -------
    The id of the build published before, and the manifest of the build published now.

    Raises
    ------
    WarehouseError
        When there is no such build, or its catalog or parts are damaged or missing. Nothing has changed then.
    """
    kept_builds(target)
    with hold(target, wait=wait):
        last = last_manifest(target)
        chosen = find_build(target, build)
        refuse_missing_parts(target, chosen)
        try_catalog(target, chosen.build)
        make_current(target, chosen.build)
    return last.build if last else None, chosen


def refuse_missing_parts(target: Path, manifest: Manifest) -> None:
    """Check that all parts of a build exist and have their size.

    Raises
    ------
    WarehouseError
        With the first missing or truncated parts.
    """
    missing = [path for path, size in part_sizes(manifest).items() if _size(target / path) != size]
    if missing:
        raise WarehouseError(
            f"{plural(len(missing), 'part')} of build {manifest.build[:8]} {'is' if len(missing) == 1 else 'are'}"
            " gone or cut short",
            details=[f"  {few(missing)}"],
            hint="Nothing was changed. warehouse build rebuilds missing parts from the raw files.",
        )


def try_catalog(target: Path, build: str | None) -> None:
    """Check that all tables of a build's catalog can be bound; None means the published catalog.

    Raises
    ------
    QueryError
        When the catalog is damaged, or parts are not at their paths, for example after the target was moved.
    """
    with connect(target, build=build) as connection:
        try:
            rows = connection.execute("SELECT model FROM meta.models WHERE kind IN ('table', 'partitioned')")
            for (name,) in rows.fetchall():
                connection.execute(f"FROM {qualified(name)} LIMIT 0")
        except duckdb.Error as error:
            name = f"the catalog of build {build[:8]}" if build else "the published catalog"
            raise QueryError(
                f"{name} is damaged: {sentence(error)}", hint="warehouse build writes a new one"
            ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def relocate(target: Path, *, wait: bool = False) -> tuple[str, dict[str, str], dict[str, str]]:
    """Replace the old path of the target in the catalogs of its kept builds; publish the current build again.

    Copied parts are hashed once.

    Parameters
    ----------
    target
        The moved or copied folder of the warehouse.
    wait
        True to wait for a build of this target to end.

    Returns
    -------
    The id of the published build; the relocated builds, each with its old folder; and the unchanged builds and views,
    each with the reason.

    Raises
    ------
    WarehouseError
        When there is no build, a part is missing, or the target cannot be written. Nothing has changed then.
    """
    target = target.absolute()
    kept = kept_builds(target)
    with hold(target, wait=wait):
        current = last_manifest(target)
        if current is None:
            raise WarehouseError(f"no warehouse in {target}", hint="warehouse build -d DIR")
        moved: dict[str, str] = {}
        left: dict[str, str] = {}
        # The published build first: if it fails, nothing has changed.
        for manifest in [current, *(one for one in kept if one.build != current.build)]:
            try:
                refuse_missing_parts(target, manifest)
                place = _rewrite(target, manifest, left)
                _sign(target, manifest)
            except WarehouseError as error:
                if manifest.build == current.build:
                    raise
                left[f"build {manifest.build[:8]}"] = error.message
                continue
            if place:
                moved[manifest.build] = place
        make_current(target, current.build)
    return current.build, moved, left


def _sign(target: Path, manifest: Manifest) -> None:
    """Note the signatures of copied parts that are whole. Without this, every query of a table would hash its parts."""
    parts = []
    for part in manifest.parts:
        path = target / part["path"]
        seen = stamp(path.stat())
        is_copy = seen != part["stamp"] and problem_of(path, part["bytes"], part["digest"]) is None
        parts.append({**part, "stamp": seen} if is_copy else part)
    if parts != list(manifest.parts):
        file = build_folder(target, manifest.build) / MANIFEST
        written = temporary_path(file)
        manifest._replace(parts=parts).write(written)
        sync(written)
        written.replace(file)


def _rewrite(target: Path, manifest: Manifest, left: dict[str, str]) -> str | None:
    """Write the catalog of a build for this folder; return the old folder, or None if the folder is unchanged."""
    path = catalog_of(target, manifest.build)
    written = temporary_path(path)
    try:
        shutil.copyfile(path, written)
        with closing(duckdb.connect(":memory:")) as connection:
            connection.execute(f"ATTACH {literal(str(written))} AS moved (STORAGE_VERSION {literal(STORAGE_VERSION)})")
            connection.execute("USE moved")
            place = str(connection.execute("SELECT target FROM meta.build").fetchall()[0][0])
            if place == str(target):
                return None
            _replace(connection, place, str(target), left)
            connection.execute("CHECKPOINT moved; USE memory; DETACH moved")
        # A client that opens the file to write would change a build that others read.
        written.chmod(0o444)
        # Before the rename, which may otherwise reach the disk before the bytes.
        sync(written)
        written.replace(path)
        sync(path.parent)
        return place
    except duckdb.Error as error:
        raise WarehouseError(
            f"the catalog of build {manifest.build[:8]} cannot be written for {target}: {sentence(error)}",
            hint="warehouse build writes a new one from the raw files",
        ) from error
    finally:
        written.unlink(missing_ok=True)


def _replace(connection: duckdb.DuckDBPyConnection, old: str, new: str, left: dict[str, str]) -> None:
    """Replace a folder by another one in all that the catalog says of it."""
    forms = {_inside(form(old)): _inside(form(new)) for form in (str, escape_glob)}
    views = connection.execute(
        "SELECT schema_name || '.' || view_name, sql, comment FROM duckdb_views() "
        "WHERE database_name = 'moved' AND NOT internal ORDER BY ALL"
    ).fetchall()
    for name, sql, about in views:
        if not any(form in sql for form in forms):
            continue
        # DuckDB would take that folder for one of a partition.
        if "=" in new and "hive_types" in sql:
            raise WarehouseError(
                f"{name} finds its rows by names of folders, and {new} has `=` in its path",
                hint="move the target to a folder without `=`, or build it anew",
            )
        for form, instead in forms.items():
            sql = sql.replace(form, instead)
        columns = connection.execute(
            "SELECT column_name, comment FROM duckdb_columns() "
            "WHERE database_name = 'moved' AND schema_name || '.' || table_name = ?",
            [name],
        ).fetchall()
        try:
            # Replacing a view drops its comments, so they are written again below.
            connection.execute(sql.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
            connection.execute(comments("VIEW", qualified(name), about or "", dict(columns)))
        except duckdb.IOException as error:  # a file of a raw view is missing
            if not is_raw(name):
                raise
            left[name] = sentence(error)
    connection.execute("UPDATE meta.build SET target = ?", [new])
    # A project without raw files has no such table.
    listed = connection.execute("SELECT 1 FROM duckdb_tables() WHERE schema_name = 'raw' AND table_name = 'files'")
    for column in ("path", "read_path") if listed.fetchall() else ():
        connection.execute(
            f"UPDATE raw.files SET {column} = $new || substr({column}, length($old) + 1) "
            # With the slash, as `/data/a` is not above `/data/ab`.
            f"WHERE starts_with({column}, $old || '/')",
            {"old": old, "new": new},
        )


def _inside(folder: str) -> str:
    """Return the first part of a SQL literal for a path in a folder."""
    # Without the closing quote, as a path goes on.
    return literal(f"{folder}/")[:-1]
