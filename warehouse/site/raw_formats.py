"""Raw formats: the tables that they fill, and the pages about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from warehouse.formats import known_formats

if TYPE_CHECKING:
    from warehouse.project.project import Project
    from warehouse.site.column_origins import Origins
    from warehouse.site.prose import Page


class FormatView(NamedTuple):
    """A format: its name, the relations of `raw` that it fills, each with its description, and the pages about it."""

    name: str
    tables: Sequence[tuple[str, str]]
    pages: Sequence[Page]

    @property
    def path(self) -> str:
        """Place in the site."""
        return f"formats.html#{self.name}"


def format_views(project: Project, origins: Origins, pages: Sequence[Page]) -> list[FormatView]:
    """Return the facts on each format, in the order of the formats' list."""
    of_formats = [page for page in pages if page.group == "formats"]
    found = []
    for one in known_formats(traces=project.traces):
        tables = [(relation.full_name, relation.about) for relation in one.relations]
        readers = {model for name, _ in tables for model in origins.read_by.get(name, ()) if model in project.models}
        sources = {project.models[model].sources for model in readers}
        mine = [page for page in of_formats if page.source in sources]
        found.append(FormatView(one.name, tables, mine or [page for page in of_formats if one.name in page.html]))
    return found
