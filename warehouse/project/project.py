"""Project folders with models, SQL and reference tables: the shipped project and the user's extensions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import ModelError, Place, SettingsError
from warehouse.base.settings import is_standalone, shipped_root
from warehouse.base.startup import regex
from warehouse.base.yaml_text import NAME, TEXT, checked, one_line
from warehouse.project.contract import Column
from warehouse.project.model import COLUMNS, Model, column_list, read_header, read_model, read_source
from warehouse.store.signatures import look, read_bytes
from warehouse.store.state import ParseCache, cache_of_models

if TYPE_CHECKING:
    from warehouse.formats.base import Format
    from warehouse.formats.traces import Trace

MODEL_FILES = ("*.sql", "*.py")
_MACRO_USE = regex(r"\{[{%]")
_TABLES = {NAME: {"about!": TEXT, "columns!": COLUMNS}}
"""Form of `data/tables.yaml`."""


class Reference(NamedTuple):
    """Reference table of `data/`, such as `reference.clusters`."""

    name: str
    path: Path
    about: str
    columns: tuple[Column, ...]
    seen: Sequence[int]
    """Signature of the file before it was read."""


@dataclass(frozen=True)
class Project:
    """Project folders, the user's last: its models replace shipped models of the same name."""

    folders: tuple[Path, ...]
    paranoid: bool = False
    """True to parse and bind all models again."""

    @staticmethod
    def open(extra: Path | None = None) -> Project:
        """Return the shipped project extended by the folder `extra`; `extra` alone if its warehouse.toml says so."""
        shipped = shipped_root()
        if extra is None or extra.resolve() == shipped:  # in a checkout, the project can be the shipped one
            return Project((shipped,))
        if not extra.is_dir():
            raise SettingsError(f"no such project folder: {extra}", hint="warehouse init DIR starts one")
        return Project((extra.resolve(),) if is_standalone(extra) else (shipped, extra.resolve()))

    @cached_property
    def parse_cache(self) -> ParseCache:
        """Cache of parse and bind results, in the user's cache folder."""
        return cache_of_models(self.folders, paranoid=self.paranoid)

    @cached_property
    def models(self) -> dict[str, Model]:
        """All models by name, sorted."""
        found: dict[str, Model] = {}
        for folder in self.folders:
            own: dict[str, Model] = {}
            for path in sorted(path for kind in MODEL_FILES for path in (folder / "models").rglob(kind)):
                model = read_model(path, folder)
                if model.name in own:
                    raise ModelError(f"{own[model.name].shown_path} is {model.name}, too", place=model.place())
                own[model.name] = model
            found |= own
        return dict(sorted(found.items()))

    @cached_property
    def references(self) -> dict[str, Reference]:
        """Reference tables of `data/` by name (`reference.clusters`)."""
        return {one.name: one for folder in self.folders for one in _references_of(folder)}

    @property
    def log_lines(self) -> list[Path]:
        """Files of kinds of log lines of the user's folder; the shipped file is always read."""
        return self._own("log_lines.yaml")

    @cached_property
    def formats(self) -> tuple[Format, ...]:
        """Raw formats, with the project's own log lines, headers of hour tables and mappings of traces."""
        from warehouse.formats import known_formats

        return known_formats(self.log_lines, self._own("hour_columns.csv"), self.traces)

    def _own(self, name: str) -> list[Path]:
        files = [folder / "data" / name for folder in self.folders if folder != shipped_root()]
        return [path for path in files if path.is_file()]

    @property
    def query_folders(self) -> list[Path]:
        """Folders of named queries."""
        return [folder / "sql" / "queries" for folder in self.folders]

    @property
    def with_shipped(self) -> list[Path]:
        """All folders and always the shipped one, for what the package needs: report, site, mappings of traces."""
        return list(dict.fromkeys((shipped_root(), *self.folders)))

    @property
    def report_folders(self) -> list[Path]:
        """Folders of the report's queries."""
        return [folder / "sql" / "report" for folder in self.with_shipped]

    def render(self, model: Model) -> str:
        """Return a model's SELECT with rendered macros, or take it from the cache. A Python model has no macros.

        Raises
        ------
        ModelError
            When a macro is unknown, fails, or would change the number of lines.
        """
        if model.is_python or not _MACRO_USE.search(model.sql):
            return model.sql

        def write_out() -> str:
            from warehouse.project.macros import render

            return render(model, self._macros, self.traces)

        files = (*self._macros.values(), *self._mappings.values())
        hashes = [hashing.of_bytes(content) for content in files]
        return str(self.parse_cache.get(["render", model.sql, hashes], write_out))

    @cached_property
    def _macros(self) -> Mapping[Path, bytes]:
        """Contents of all macro files: what is hashed is what is rendered."""
        files = (path for folder in self.folders for path in sorted((folder / "sql" / "macros").glob("*.sql")))
        return {path: read_bytes(path) for path in files}

    @cached_property
    def traces(self) -> tuple[Trace, ...]:
        """Traces of the mappings of `data/traces`; one of the user's folder replaces a shipped one of its name."""
        from warehouse.formats.traces import traces_in

        return traces_in(list(self._mappings))

    @cached_property
    def _mappings(self) -> Mapping[Path, bytes]:
        """Contents of the files of `data/traces` by path, in the order of their names: always with the shipped ones."""
        found = {
            path.name: path for folder in self.with_shipped for path in (folder / "data" / "traces").glob("*.yaml")
        }
        return {path: read_bytes(path) for _, path in sorted(found.items())}

    @cached_property
    def reads_raw(self) -> bool:
        """True if a model or a check may read raw files, by its text or by what its macros write."""
        models = self.models.values()
        return any(
            "raw." in text
            for model in models
            for text in (model.sql, *model.reads, *(check.text for check in model.checks))
        ) or any("raw." in self.render(model) for model in models)


def _references_of(folder: Path) -> Iterator[Reference]:
    """Yield the tables of a folder's `data/tables.yaml`."""
    listing = folder / "data" / "tables.yaml"
    if not os.path.lexists(listing):  # a broken link is an error, not a project without tables
        return
    shown = listing.relative_to(folder).as_posix()
    tables = checked(read_header(read_source(listing, shown), shown), _TABLES, "the list of tables", shown)
    for name, keys in tables.items():
        path = listing.parent / f"{name}.csv"
        reference = Reference(
            f"reference.{name}", path, one_line(keys["about"]), column_list(keys["columns"]), look(path)
        )
        place = Place(path.relative_to(folder).as_posix(), 1)
        header = read_source(path, str(place.path)).partition("\n")[0]
        # The engine takes the columns by position.
        if header != (names := ",".join(column.name for column in reference.columns)):
            raise ModelError(f"the header is {header}, data/tables.yaml says {names}", place=place)
        yield reference
