"""Repair of the paths in a moved or copied target (`warehouse relocate`), without the raw data.

The catalog of each kept build contains the target's path: in views over parts, in views over repaired and unpacked
files, in `raw.files` and in `meta.build`. It is replaced by a copy with the new path.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import WarehouseError
from warehouse.base.sql_text import literal, qualified
from warehouse.base.startup import duckdb
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.sources import escape_glob
from warehouse.formats.base import is_raw
from warehouse.history.builds import kept_builds, refuse_missing_parts
from warehouse.runner.catalog import STORAGE_VERSION, comments
from warehouse.runner.publish import make_current
from warehouse.store.atomic import hold, sync, temporary_path
from warehouse.store.manifest import MANIFEST, Manifest, build_folder, catalog_of, last_manifest, problem_of
from warehouse.store.signatures import stamp
from warehouse.store.up_to_date import forget


@dataclass(frozen=True)
class Relocated:
    """Result of a relocation."""

    build: str
    """Id of the published build."""
    moved: dict[str, str]
    """Relocated builds, each with its old folder."""
    left: dict[str, str]
    """Unchanged builds and views, each with the reason."""


def relocate(target: Path, *, wait: bool = False) -> Relocated:
    """Replace the old path of the target in the catalogs of its kept builds; publish the current build again.

    Copied parts are hashed once.

    Parameters
    ----------
    target
        The moved or copied folder of the warehouse.
    wait
        True to wait for a build of this target to end.

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
        forget(target)
        make_current(target, current.build)
    return Relocated(current.build, moved, left)


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
