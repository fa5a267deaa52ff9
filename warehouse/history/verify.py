"""Verification: the published warehouse is intact, a rebuild is byte-identical, rows are those of the public hour.

First, every part and the catalog are compared with the manifest. Then everything is rebuilt in a temporary target from
the same data folders, and the content hashes of all parts are compared. Of one hour, only its own parts are compared.
`data/public_hour.json` has the reviewed rows of the public hour.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import DataError, SettingsError, WarehouseError
from warehouse.base.settings import Settings, shipped_root
from warehouse.base.sql_text import literal, qualified
from warehouse.base.startup import duckdb
from warehouse.base.text import plural
from warehouse.engine.duckdb_errors import sentence
from warehouse.formats.base import RawFile
from warehouse.graph.plan import Key
from warehouse.history.builds import try_catalog
from warehouse.history.diff import Comparison, diff
from warehouse.history.sides import differ, side_of
from warehouse.reader.connection import connect
from warehouse.runner.build import build, parts_of_hour
from warehouse.runner.reporter import Reporter
from warehouse.runner.session import BuildOptions
from warehouse.store.atomic import TEMPORARY, hold, remove
from warehouse.store.manifest import (
    PUBLISHED,
    Entry,
    Manifest,
    catalog_of,
    hour_of,
    last_manifest,
    partition_name,
    problem_of,
)
from warehouse.store.parts import Store
from warehouse.store.state import FOLDER


@dataclass(frozen=True)
class Damage:
    """Damaged file of the published build."""

    path: str
    """Path relative to the target."""
    problem: str
    advice: str = (
        "warehouse build --paranoid makes it anew from the raw files; warehouse rollback goes back to an earlier build"
    )


class Other(NamedTuple):
    """Part that differs in the rebuild."""

    model: str
    partition: str
    how: str
    """`other bytes`, `not made again`, or `new`."""


@dataclass(frozen=True)
class Verdict:
    """Result of a verification."""

    manifest: Manifest
    bytes: int
    damages: tuple[Damage, ...] = ()
    rebuilt: str | None = None
    """Id of the rebuild; None without one, or of one hour."""
    hour: str | None = None
    """The hour that was verified; None for all."""
    parts: int = 0
    """Number of parts that were verified."""
    seconds: float = 0.0
    others: tuple[Other, ...] = ()
    comparison: Comparison | None = None
    """Differences in rows, with origins, if anything differs."""

    @property
    def is_good(self) -> bool:
        """True if every part is intact and the rebuild, if any, is byte-identical."""
        # A build of selected models leaves others stale, so the id of a whole rebuild differs.
        same_build = self.rebuilt in (None, self.manifest.build) or bool(self.manifest.stale)
        return not self.damages and not self.others and same_build


def verify(
    settings: Settings,
    *,
    data: Sequence[Path] = (),
    quick: bool = False,
    hour: str | None = None,
    wait: bool = False,
    say: Callable[[str], None] = lambda _: None,
    reporter: Reporter = Reporter(),  # noqa: B008 - a silent one
) -> Verdict:
    """Check the published build, and rebuild it in a temporary target.

    The target is locked meanwhile: readers can go on, builds must wait.

    Parameters
    ----------
    settings
        Target, project, cluster, and limits of the engine.
    data
        The current folders of the raw files; default: those of the build.
    quick
        True to check only the files, without a rebuild.
    hour
        The only hour to verify, as `2024-05-23T16`; default: all parts, and the catalog.
    wait
        True to wait while a build of this target runs.
    say
        Receives a message with the folders of the raw files.
    reporter
        Receiver of the rebuild's progress.

    Raises
    ------
    WarehouseError
        When no build is published, the hour or its raw files are missing, or the rebuild fails.
    """
    target = settings.target.absolute()
    manifest = last_manifest(target) if target.is_dir() else None
    if manifest is None:
        raise WarehouseError(f"no warehouse in {settings.target}", hint="warehouse build -d DIR")
    with hold(target, wait=wait, reads=quick):
        # Again, under the lock: a build may have published while this process waited.
        manifest = last_manifest(target) or manifest
        chosen = _parts_of(manifest, hour) if hour else manifest.parts
        size = sum(int(str(part["bytes"])) for part in chosen)
        reporter.stage_started("the parts that are there")
        damages = tuple(
            Damage(part["path"], problem)
            for part in chosen
            if (problem := problem_of(target / part["path"], part["bytes"], part["digest"]))
        )
        if hour is None:
            # Reading the tables of damaged parts would only name the same damage again.
            damages += tuple(_catalog_damages(target, manifest, whole=not damages))
        found = Verdict(manifest, size, damages, hour=hour, parts=len(chosen))
        # A rebuild cannot explain a damaged file, and takes long.
        if damages or quick:
            return found
        folders = tuple(data) or tuple(map(Path, manifest.data))
        gone = [folder for folder in folders if not folder.exists()]
        if gone:
            raise SettingsError(f"the data folder {gone[0]} is not there", hint="say with --data where it is now")
        say(f"from {', '.join(map(str, folders))}")
        # In the target, which has room for a build; `clean` finds it after a crash.
        temporary = target / TEMPORARY / "verify"
        try:
            temporary.mkdir(parents=True)
            started = time.perf_counter()
            follow = settings.follow_links or bool(manifest.linked)
            asked = settings._replace(data=folders, target=temporary, follow_links=follow)
            rebuilt, after = _rebuild(asked, reporter, target, hour)
            before = _digests(chosen)
            others = tuple(
                Other(*key, "not made again" if key not in after else "other bytes" if key in before else "new")
                for key in sorted({*before, *after})
                # A build of selected models leaves the others stale.
                if before.get(key) != after.get(key) and key.model not in manifest.stale
            )
            found = replace(found, rebuilt=rebuilt and rebuilt.build, others=others)
            if rebuilt and not found.is_good:
                new = replace(side_of(temporary, rebuilt), label=f"rebuilt: {rebuilt.build[:8]}")
                found = replace(found, comparison=diff(side_of(target, manifest), new, where_from=True))
            return replace(found, seconds=time.perf_counter() - started)
        finally:
            remove(temporary)


def _rebuild(
    asked: Settings, reporter: Reporter, target: Path, hour: str | None
) -> tuple[Manifest | None, dict[Key, str]]:
    """Build all or one hour again; return the manifest, which one hour has none of, and the content hashes of parts."""
    if hour is None:
        build(asked, reporter, BuildOptions())
        rebuilt = last_manifest(asked.target)
        assert rebuilt is not None
        return rebuilt, _digests(rebuilt.parts)
    _know_other_hours(target, asked.target, hour)
    made = parts_of_hour(asked, reporter, BuildOptions(), hour)
    after = {key: part.digest for key, part in made.items() if hour_of(key.partition) == hour}
    if not after:
        where = ", ".join(map(str, asked.data))
        raise DataError(f"no readable file of {hour} in {where}", hint="say with --data where they are now")
    return None, after


def _digests(parts: Sequence[Entry]) -> dict[Key, str]:
    return {Key(part["model"], partition_name(part["partition"])): part["digest"] for part in parts}


def _parts_of(manifest: Manifest, hour: str) -> tuple[Entry, ...]:
    """Return the entries of the parts of an hour. Raises SettingsError if there is none."""
    hours = [hour_of(partition_name(part["partition"])) for part in manifest.parts]
    if hour not in hours:
        known = sorted(filter(None, hours))
        hint = f"it has {known[0]} to {known[-1]}, in UTC" if known else "it has no hours"
        raise SettingsError(f"build {manifest.build[:8]} has no hour {hour}", hint=hint)
    return tuple(part for part, of in zip(manifest.parts, hours, strict=True) if of == hour)


def _know_other_hours(target: Path, temporary: Path, hour: str) -> None:
    """Give a temporary target what is known of the raw files of other hours, which need not be hashed again."""
    with closing(Store(target)) as store, closing(Store(temporary, on_damage=lambda _: None)) as other:
        rows = store.state.texts(FOLDER) if store.state else {}
        read = {key: json.loads(row) for key, row in rows.items()}
        hours = {
            key: {str(RawFile(*file).hour_utc) for file in one["files"].values()} for key, one in read.items() if one
        }
        other.note(FOLDER, {key: read[key] for key, found in hours.items() if f"{hour}:00:00" not in found})


def _catalog_damages(target: Path, manifest: Manifest, *, whole: bool) -> Iterator[Damage]:
    """Yield the problems of the published catalog."""
    kept = catalog_of(target, manifest.build)
    advice = f"warehouse rollback {manifest.build[:8]} publishes it again, or warehouse build"
    if not (target / PUBLISHED).is_file():
        yield Damage(PUBLISHED, "it is gone", advice)
        return
    try:
        if whole:
            try_catalog(target, None)
            yield from _copies(target, manifest)
    except WarehouseError as error:
        yield Damage(PUBLISHED, " ".join([error.message, *error.details]), "warehouse build writes a new one")
        return
    if not kept.is_file():
        yield Damage(kept.relative_to(target).as_posix(), "it is gone", "warehouse build writes a new one")
    # A hard link of the build's catalog, or a copy of it in a target that was copied.
    elif not kept.samefile(target / PUBLISHED) and hashing.of_file(kept) != hashing.of_file(target / PUBLISHED):
        yield Damage(PUBLISHED, f"it is not the catalog of build {manifest.build[:8]}", advice)


def _copies(target: Path, manifest: Manifest) -> Iterator[Damage]:
    """Yield the copied tables whose rows differ from their parts. This reads every block of the catalog.

    Raises
    ------
    WarehouseError
        When a block cannot be read.
    """
    with connect(target) as connection:
        for (name,) in connection.execute("SELECT model FROM meta.models WHERE kind = 'table'").fetchall():
            paths = [str(target / part["path"]) for part in manifest.parts if part["model"] == name]
            if not paths:
                continue  # a list of the runner, or a table without parts
            other = f"SELECT * FROM read_parquet({literal(paths)}, hive_partitioning=false)"
            try:
                if differ(connection, f"FROM {qualified(name)}", other):
                    yield Damage(PUBLISHED, f"{name} has other rows than its parts", "warehouse build writes a new one")
            except duckdb.Error as error:
                raise WarehouseError(f"it is damaged: {name} cannot be read: {sentence(error)}") from error


SAME, DIFFERS, NOT_COMPARABLE = "same", "differs", "not comparable"


def compare_reference(target: Path) -> list[dict[str, Any]]:
    """Run each query of the reference on a published build, and compare every cell.

    A query is not comparable if the build has not all files of the public cluster and hour that it needs.

    Returns
    -------
    For each query its name, about, verdict (`same`, `differs` or `not comparable`), details (files that are missing, or
    the rows that differ) and sql.

    Raises
    ------
    QueryError
        If there is no warehouse.
    """
    reference = json.loads((shipped_root() / "data" / "public_hour.json").read_text("utf-8"))
    cluster = reference["cluster"]
    with connect(target) as connection:
        counted = connection.execute(
            "SELECT format, count(*) FROM raw.files WHERE status = 'read' AND cluster = $cluster "
            "AND (hour_utc = CAST($hour || ':00' AS TIMESTAMP) OR hour_utc IS NULL) GROUP BY ALL",
            {"cluster": cluster, "hour": reference["hour"]},
        )
        files = dict(counted.fetchall())
        found = []
        for query in reference["queries"]:
            verdict, details = _compare_query(connection, query, files, cluster)
            said = {"name": query["name"], "about": query["about"], "verdict": verdict, "details": details}
            found.append(said | {"sql": query["sql"]})
        return found


def _compare_query(
    connection: duckdb.DuckDBPyConnection, query: Mapping[str, Any], files: Mapping[str, int], cluster: str
) -> tuple[str, list[str]]:
    missing = [
        f"{plural(count, 'file')} {kind} of {cluster}, this build has {files.get(kind, 0):,}"
        for kind, count in query["needs"].items()
        if files.get(kind, 0) != count
    ]
    if missing:
        return NOT_COMPARABLE, [f"needs {' and '.join(missing)}"]
    cursor = connection.execute(query["sql"])
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, map(_plain, row), strict=True)) for row in cursor.fetchall()]
    return (SAME, []) if rows == query["rows"] else (DIFFERS, _differences(query["rows"], rows))


def _plain(value: object) -> object:
    """Return a value as JSON has it."""
    return int(value) if isinstance(value, Decimal) and value == int(value) else value


def _differences(expected: Sequence[Mapping[str, object]], rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the first rows that differ, as they are published and as they are here."""
    pairs = [pair for pair in zip_longest(expected, rows) if pair[0] != pair[1]]
    sides = ("published", "here     ")
    return [f"{side}  {row or 'no such row'}" for pair in pairs[:3] for side, row in zip(sides, pair, strict=True)] + [
        f"rows that differ: {len(pairs):,}"
    ]
