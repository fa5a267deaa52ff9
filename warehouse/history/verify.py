"""Verification that a published warehouse is intact and that a rebuild is byte-identical.

First, every part and the catalog are compared with the manifest. Then everything is rebuilt in a temporary target from
the same data folders, and the content hashes of all parts are compared. Of one hour, only its own parts are compared.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import DataError, SettingsError, WarehouseError
from warehouse.base.settings import Settings
from warehouse.base.sql_text import literal, qualified
from warehouse.base.startup import regex
from warehouse.engine.duckdb_errors import sentence
from warehouse.history.builds import try_catalog
from warehouse.history.diff.compare import Comparison, diff
from warehouse.history.diff.sides import PartFile, part_files, side_of
from warehouse.ingest.shares import Deal
from warehouse.reader.connection import connect
from warehouse.runner.build import build
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.runner.share import make_share
from warehouse.store.atomic import remove, temporary_path
from warehouse.store.layout import PUBLISHED, catalog_of
from warehouse.store.lock import hold
from warehouse.store.manifest import Manifest, last_manifest
from warehouse.store.part_damage import problem_of
from warehouse.store.signatures import read_text

_HOUR = regex(r"^\d{4}-\d\d-\d\dT\d\d$")
AGAIN = "warehouse build --paranoid makes it anew from the raw files; warehouse rollback goes back to an earlier build"


@dataclass(frozen=True)
class Damage:
    """Damaged file of the published build."""

    path: str
    """Path relative to the target."""
    problem: str
    advice: str = AGAIN


@dataclass(frozen=True, order=True)
class Other:
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
        same_build = self.rebuilt in (None, self.manifest.build) or bool(self.manifest.stale)
        return not self.damages and not self.others and same_build


def verify(
    settings: Settings,
    *,
    data: Sequence[Path] = (),
    quick: bool = False,
    hour: str | None = None,
    kernels: bool = True,
    wait: bool = False,
    say: Callable[[str], None] = lambda _: None,
    reporter: Reporter = Reporter(),  # noqa: B008 - it keeps nothing
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
    kernels
        True to compute models by their kernels in the rebuild.
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
        manifest = last_manifest(target) or manifest
        chosen = _parts_of(manifest, hour) if hour else manifest.parts
        size = sum(int(str(part["bytes"])) for part in chosen)
        reporter.stage_started("the parts that are there")
        damages = tuple(_damages(target, chosen))
        if hour is None:
            damages += tuple(_catalog_damages(target, manifest, whole=not damages))
        found = Verdict(manifest, size, damages, hour=hour, parts=len(chosen))
        if damages or quick:
            return found
        folders = tuple(data) or tuple(map(Path, manifest.data))
        gone = [folder for folder in folders if not folder.exists()]
        if gone:
            raise SettingsError(f"the data folder {gone[0]} is not there", hint="say with --data where it is now")
        say(f"from {', '.join(map(str, folders))}")
        temporary = temporary_path(target / "cache" / "verify")
        try:
            remove(temporary)
            started = time.perf_counter()
            follow = settings.follow_links or bool(manifest.linked)
            asked = settings._replace(
                data=folders, target=temporary, follow_links=follow, keep_hours=manifest.keep_hours
            )
            if hour:
                others = tuple(_others_of_hour(asked, manifest, hour, reporter, BuildOptions(kernels=kernels)))
                return replace(found, others=others, seconds=time.perf_counter() - started)
            build(asked, reporter, BuildOptions(kernels=kernels))
            return _compare(target, manifest, temporary, replace(found, seconds=time.perf_counter() - started))
        finally:
            remove(temporary)


def _compare(target: Path, manifest: Manifest, temporary: Path, verdict: Verdict) -> Verdict:
    rebuilt = last_manifest(temporary)
    assert rebuilt is not None
    before, after = part_files(target, manifest), part_files(temporary, rebuilt)
    others = sorted(_others(before, after, set(manifest.stale)))
    verdict = replace(verdict, rebuilt=rebuilt.build, others=tuple(others))
    if verdict.is_good:
        return verdict
    new = replace(side_of(temporary, rebuilt), label=f"rebuilt: {rebuilt.build[:8]}")
    return replace(verdict, comparison=diff(side_of(target, manifest), new, where_from=True))


_Parts = dict[str, dict[str, PartFile]]


def _others(before: _Parts, after: _Parts, stale: set[str]) -> Iterator[Other]:
    """Yield the parts that differ, except those of models that the build left stale."""
    for model in {*before, *after} - stale:
        old, new = before.get(model, {}), after.get(model, {})
        for partition in {*old, *new}:
            if partition not in new:
                yield Other(model, partition, "not made again")
            elif partition not in old:
                yield Other(model, partition, "new")
            elif old[partition].digest != new[partition].digest:
                yield Other(model, partition, "other bytes")


def _parts_of(manifest: Manifest, hour: str) -> tuple[Mapping[str, object], ...]:
    """Return the entries of the parts of an hour. Raises SettingsError if there is none."""
    found = tuple(part for part in manifest.parts if part["partition"] == hour)
    if not found:
        names = {str(part["partition"]) for part in manifest.parts}
        hours = sorted(name for name in names if _HOUR.match(name))
        known = f"it has {hours[0]} to {hours[-1]}, in UTC" if hours else "it has no hours"
        raise SettingsError(f"build {manifest.build[:8]} has no hour {hour}", hint=known)
    return found


def _others_of_hour(
    settings: Settings, manifest: Manifest, hour: str, reporter: Reporter, options: BuildOptions
) -> list[Other]:
    """Make the parts of one hour in the target of these settings; return those that differ from the manifest's."""
    made = make_share(settings, reporter, options, Deal.of_hour(hour)).outcome.parts
    after = {key.model: part.digest for key, part in made.items() if key.partition == hour}
    before = {str(part["model"]): str(part["digest"]) for part in _parts_of(manifest, hour)}
    if not after:
        folders = ", ".join(map(str, settings.data))
        raise DataError(f"no readable file of {hour} in {folders}", hint="say with --data where they are now")
    dropped = {key.model for key in made} - before.keys() if manifest.keep_hours else set()
    names = {*before, *after} - set(manifest.stale) - dropped
    return [
        Other(name, hour, "not made again" if name not in after else "other bytes" if name in before else "new")
        for name in sorted(names)
        if before.get(name) != after.get(name)
    ]


def _damages(target: Path, parts: Sequence[Mapping[str, object]]) -> Iterator[Damage]:
    for part in parts:
        path = str(part["path"])
        problem = _problem(target / path, int(str(part["bytes"])), str(part["digest"]))
        if problem:
            yield Damage(path, problem)


def _problem(path: Path, size: int, digest: str) -> str | None:
    """Return the problem of a part or of its notes, or None."""
    try:
        if not path.exists():
            return "it is gone"
        if problem := problem_of(path, size, digest):
            return problem
        if json.loads(read_text(path.with_suffix(".json")))["digest"] != digest:
            return "its notes tell of another content"
    except FileNotFoundError:
        return "its notes are gone"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError):
        return "its notes are damaged"
    return None


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
    elif not kept.samefile(target / PUBLISHED) and hashing.of_file(kept) != hashing.of_file(target / PUBLISHED):
        yield Damage(PUBLISHED, f"it is not the catalog of build {manifest.build[:8]}", advice)


def _copies(target: Path, manifest: Manifest) -> Iterator[Damage]:
    """Yield the copied tables whose rows differ from their parts. This reads every block of the catalog."""
    from warehouse.base.startup import duckdb

    parts = part_files(target, manifest)
    with connect(target) as connection:
        for (name,) in connection.execute("SELECT model FROM meta.models WHERE kind = 'table'").fetchall():
            paths = [str(part.path) for part in parts.get(name, {}).values()]
            if not paths:
                continue  # a list of the runner, or a table without parts
            one = f"SELECT * FROM {qualified(name)}"
            other = f"SELECT * FROM read_parquet({literal(paths)}, hive_partitioning=false)"
            both = f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})"
            try:
                differs = bool(connection.execute(f"SELECT 1 FROM ({both}) LIMIT 1").fetchall())
            except duckdb.Error as error:
                yield Damage(PUBLISHED, f"{name} cannot be read: {sentence(error)}", "warehouse build writes a new one")
                return
            if differs:
                yield Damage(PUBLISHED, f"{name} has other rows than its parts", "warehouse build writes a new one")
