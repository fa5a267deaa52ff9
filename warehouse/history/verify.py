"""Whether a published warehouse is whole, and whether its raw files still give the same.

First every part and the catalog are compared with what the manifest says of them. Then all is built again aside,
from the same data folders, and compared digest by digest: equal digests are equal bytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import SettingsError, WarehouseError
from warehouse.base.settings import Settings
from warehouse.base.sql_text import literal, qualified
from warehouse.engine.duckdb_errors import sentence
from warehouse.history.builds import catalog_of, try_catalog
from warehouse.history.diff.compare import Comparison, diff
from warehouse.history.diff.sides import PartFile, part_files, side_of
from warehouse.reader.connection import connect
from warehouse.runner.build import build
from warehouse.runner.options import BuildOptions
from warehouse.runner.publish import FILE
from warehouse.runner.reporter import Silent
from warehouse.store.atomic import remove, temporary_path
from warehouse.store.lock import hold
from warehouse.store.manifest import Manifest, last_manifest
from warehouse.store.signatures import read_text

AGAIN = "warehouse build --paranoid makes it anew from the raw files; warehouse rollback goes back to an earlier build"


@dataclass(frozen=True)
class Damage:
    """Something of the published build that is not as it was written."""

    path: str
    """Below the target."""
    problem: str
    advice: str = AGAIN


@dataclass(frozen=True, order=True)
class Other:
    """A part that came out otherwise."""

    model: str
    partition: str
    how: str
    """`other bytes`, `not made again`, or `new`."""


@dataclass(frozen=True)
class Verdict:
    """What a verification found."""

    manifest: Manifest
    bytes: int
    damages: tuple[Damage, ...] = ()
    rebuilt: str | None = None
    """The id of the build that was made aside; None where none was."""
    seconds: float = 0.0
    others: tuple[Other, ...] = ()
    comparison: Comparison | None = None
    """Rows and origins, where anything differs."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is damaged and, if it was built again, nothing came out otherwise."""
        same_build = self.rebuilt in (None, self.manifest.build) or bool(self.manifest.stale)
        return not self.damages and not self.others and same_build


def verify(
    settings: Settings,
    *,
    data: Sequence[Path] = (),
    quick: bool = False,
    kernels: bool = True,
    wait: bool = False,
    say: Callable[[str], None] = lambda _: None,
    reporter: Silent = Silent(),  # noqa: B008 - it keeps nothing
) -> Verdict:
    """Check the published build, and make it again aside.

    The target is held meanwhile: readers go on, builds wait.

    Parameters
    ----------
    settings
        Target, project, cluster, and limits of the engine.
    data
        Where the raw files are now; where the build read them, if left out.
    quick
        Whether to be content with what is there, and build nothing.
    kernels
        As for the build: whether models may be made by their kernels.
    wait
        Whether to wait for a build of this target to end.
    say
        Told where the raw files are read from.
    reporter
        Told what is being done.

    Raises
    ------
    WarehouseError
        When nothing is published, or the raw files are gone or cannot be built.
    """
    target = settings.target.absolute()
    manifest = last_manifest(target) if target.is_dir() else None
    if manifest is None:
        raise WarehouseError(f"no warehouse in {settings.target}", hint=f"warehouse build -d DIR -t {settings.target}")
    with hold(target, wait=wait, reads=quick):
        manifest = last_manifest(target) or manifest
        size = sum(int(str(part["bytes"])) for part in manifest.parts)
        reporter.doing("the parts that are there")
        damages = tuple(_damages(target, manifest))
        if damages or quick:
            return Verdict(manifest, size, damages)
        folders = tuple(data) or tuple(map(Path, manifest.data))
        gone = [folder for folder in folders if not folder.exists()]
        if gone:
            raise SettingsError(f"the data folder {gone[0]} is not there", hint="say with --data where it is now")
        say(f"from {', '.join(map(str, folders))}")
        again = temporary_path(target / "cache" / "verify")
        try:
            remove(again)
            started = time.perf_counter()
            follow = settings.follow_links or bool(manifest.linked)
            asked = settings._replace(data=folders, target=again, follow_links=follow)
            build(asked, reporter, BuildOptions(kernels=kernels))
            verdict = Verdict(manifest, size, seconds=time.perf_counter() - started)
            return _compare(target, manifest, again, verdict)
        finally:
            remove(again)


def _compare(target: Path, manifest: Manifest, made: Path, verdict: Verdict) -> Verdict:
    again = last_manifest(made)
    assert again is not None
    before, after = part_files(target, manifest), part_files(made, again)
    others = sorted(_others(before, after, set(manifest.stale)))
    verdict = replace(verdict, rebuilt=again.build, others=tuple(others))
    if verdict.is_good:
        return verdict
    new = replace(side_of(made, again), label=f"built again: {again.build[:8]}")
    return replace(verdict, comparison=diff(side_of(target, manifest), new, where_from=True))


_Parts = dict[str, dict[str, PartFile]]


def _others(before: _Parts, after: _Parts, stale: set[str]) -> Iterator[Other]:
    """Parts that differ; those of models that the build left as they were, unselected, prove nothing."""
    for model in {*before, *after} - stale:
        old, new = before.get(model, {}), after.get(model, {})
        for partition in {*old, *new}:
            if partition not in new:
                yield Other(model, partition, "not made again")
            elif partition not in old:
                yield Other(model, partition, "new")
            elif old[partition].digest != new[partition].digest:
                yield Other(model, partition, "other bytes")


def _damages(target: Path, manifest: Manifest) -> Iterator[Damage]:
    whole = True
    for said in manifest.parts:
        path = str(said["path"])
        problem = _problem(target / path, int(str(said["bytes"])), str(said["digest"]))
        if problem:
            whole = False
            yield Damage(path, problem)
    yield from _catalog_damages(target, manifest, whole=whole)


def _problem(path: Path, size: int, digest: str) -> str | None:
    """What is wrong with a part, if anything is."""
    try:
        found = path.stat().st_size
        if found != size:
            return f"{found:,} bytes, not {size:,}"
        if hashing.of_file(path) != digest:
            return "its content is not what was written"
        if json.loads(read_text(path.with_suffix(".json")))["digest"] != digest:
            return "its notes tell of another content"
    except FileNotFoundError as error:
        return "it is gone" if error.filename == str(path) else "its notes are gone"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError):
        return "its notes are damaged"
    return None


def _catalog_damages(target: Path, manifest: Manifest, *, whole: bool) -> Iterator[Damage]:
    """What is wrong with the file that readers open."""
    kept = catalog_of(target, manifest.build)
    advice = f"warehouse rollback {manifest.build[:8]} publishes it again, or warehouse build"
    if not (target / FILE).is_file():
        yield Damage(FILE, "it is gone", advice)
        return
    try:
        if whole:
            try_catalog(target, None)
            yield from _copies(target, manifest)
    except WarehouseError as error:
        yield Damage(FILE, " ".join([error.message, *error.details]), "warehouse build writes a new one")
        return
    if not kept.is_file():
        yield Damage(kept.relative_to(target).as_posix(), "it is gone", "warehouse build writes a new one")
    elif not kept.samefile(target / FILE) and hashing.of_file(kept) != hashing.of_file(target / FILE):
        yield Damage(FILE, f"it is not the catalog of build {manifest.build[:8]}", advice)


def _copies(target: Path, manifest: Manifest) -> Iterator[Damage]:
    """Tables whose rows in the catalog are not those of their parts: reading all of them proves every block."""
    from warehouse.base.startup import duckdb

    parts = part_files(target, manifest)
    with connect(target) as connection:
        for (name,) in connection.execute("SELECT model FROM meta.models WHERE kind = 'table'").fetchall():
            paths = [str(part.path) for part in parts.get(name, {}).values()]
            if not paths:
                continue  # of the runner's own listings, or without a part
            one = f"SELECT * FROM {qualified(name)}"
            other = f"SELECT * FROM read_parquet({literal(paths)}, hive_partitioning=false)"
            both = f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})"
            try:
                differs = bool(connection.execute(f"SELECT 1 FROM ({both}) LIMIT 1").fetchall())
            except duckdb.Error as error:
                yield Damage(FILE, f"{name} cannot be read: {sentence(error)}", "warehouse build writes a new one")
                return
            if differs:
                yield Damage(FILE, f"{name} has other rows than its parts", "warehouse build writes a new one")
