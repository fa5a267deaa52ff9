"""Raw formats: tables, loaded files, rejected lines, and traps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.formats import known_formats

if TYPE_CHECKING:
    from warehouse.project.project import Project
    from warehouse.site.column_origins import Origins
    from warehouse.site.people_rows import Rows, TextRow
    from warehouse.site.prose import Page

_TRAPS = ("trap", "bad case")


@dataclass(frozen=True)
class FormatView:
    """All facts on the page of a format."""

    name: str
    tables: Sequence[tuple[str, str]]
    """Relations of `raw` that the format fills, each with its description."""
    models: Sequence[str]
    """Models that read these relations."""
    loaded: Sequence[TextRow]
    """Loaded files by cluster and status."""
    files: int
    rejected: Sequence[TextRow]
    """Rejected files and lines, by reason."""
    pages: Sequence[Page]
    """Pages of docs/ on the format."""
    traps: Sequence[tuple[str, str]]
    """Title and place of each section of these pages on traps and bad cases."""

    @property
    def path(self) -> str:
        """Path in the site."""
        return f"formats/{self.name}.html"


def format_views(
    project: Project, origins: Origins, pages: Sequence[Page], loaded: Rows, rejected: Rows
) -> dict[str, FormatView]:
    """Collect the facts on each format, in the order of the formats' list."""
    by_source = {page.source: page for page in pages}
    files, lines = loaded.by("format"), rejected.by("format")
    found = {}
    for one in known_formats(traces=project.traces):
        tables = [(relation.full_name, relation.about) for relation in one.relations]
        models = sorted(
            {model for name, _ in tables for model in origins.read_by.get(name, ()) if model in project.models}
        )
        named = [project.models[model].sources for model in models]
        mine = [page for source, page in by_source.items() if page.group == "formats" and source in named]
        mine = mine or [page for page in pages if page.group == "formats" and one.name in page.html]
        rows = files.get((one.name,), [])
        found[one.name] = FormatView(
            one.name, tables, models, loaded.text_rows(rows), sum(int(loaded.of(row, "files")) for row in rows),
            rejected.text_rows(lines.get((one.name,), [])), mine,
            [(section.title, f"{page.path}#{section.place}") for page in mine for section in page.sections
             if any(word in section.title.lower() for word in _TRAPS)],
        )  # fmt: skip
    return found


def unclaimed(loaded: Rows) -> list[TextRow]:
    """Return the files without a known format."""
    return loaded.text_rows(loaded.by("format").get(("",), []))
