"""The site: static HTML pages on tables, columns, lineage, queries and formats; needs no server.

`table_facts` reads a published warehouse and `column_origins` the models. `prose` renders docs/, `query_answers` runs
the named queries, and `search_index` lists what can be found. `pages` fills the templates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from warehouse.publish.output_folder import replaced, sha256, write_json
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.runner.reporter import Bar, with_progress
from warehouse.site.pages import Site
from warehouse.store.manifest import MANIFEST, PUBLISHED, SITE

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.project.project import Project


class Made(NamedTuple):
    """Result of writing the site."""

    pages: int
    bytes: int
    build: str | None
    unknown: tuple[str, ...]
    """Tables of the build without a model in the project, which get no page."""


def write_docs(
    directory: Path,
    project: Project,
    target: Path,
    *,
    memory: str | None = None,
    threads: int | None = None,
    bar: Bar | None = None,
) -> Made:
    """Write the site of a project.

    Parameters
    ----------
    directory
        A new or empty folder, or an earlier site, which is replaced completely.
    project
        The project with the models, queries and pages.
    target
        The folder of the warehouse that says rows, values, results of checks and answers; the site goes without
        them where nothing is published in it.
    memory, threads
        Limits of the engine.
    bar
        The progress bar, if any.

    Raises
    ------
    QueryError
        When the directory holds other files, or the warehouse cannot be read.
    ModelError
        When a model or a named query is wrong.
    """
    with replaced(directory, target, SITE) as temporary_path:
        # Not only if it can be opened: a damaged warehouse is an error, a missing one is none.
        if (target / PUBLISHED).exists():
            with connect(target, memory=memory, threads=threads) as connection:
                refuse_damage(target)
                site = interruptible(connection, lambda: Site.of(project, connection, bar))
        else:
            site = Site.of(project, None)
        files = dict(site.files())
        for path in with_progress(list(files), bar):
            place = temporary_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(files[path](), encoding="utf-8", newline="\n")
        paths = sorted(path for path in temporary_path.rglob("*") if path.is_file())
        build = site.build.id if site.build else None
        written = [{"path": path.relative_to(temporary_path).as_posix(), "sha256": sha256(path)} for path in paths]
        write_json(temporary_path / MANIFEST, {"kind": SITE, "build": build, "files": written})
        pages = sum(path.suffix == ".html" for path in paths)
        size = sum(path.stat().st_size for path in paths)
    return Made(pages, size, build, site.unknown)


__all__ = ["SITE", "Made", "write_docs"]
