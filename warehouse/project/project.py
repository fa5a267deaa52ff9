"""The folders that hold models, SQL and reference tables: the shipped ones and, on top, a user's own."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import ModelError, Place, SettingsError
from warehouse.base.settings import stands_alone
from warehouse.base.startup import regex
from warehouse.project.contract import TYPES, Column
from warehouse.project.front_matter import read_header
from warehouse.project.model import Model, read_model
from warehouse.store.parse_cache import ParseCache
from warehouse.store.signatures import read_text

if TYPE_CHECKING:
    from warehouse.project.yaml_text import Value

MODEL_FILES = ("*.sql", "*.py")
_MACRO_USE = regex(r"\{[{%]")


def shipped_root() -> Path:
    """The folder with the shipped models/, sql/ and data/: inside the package, or the checkout around it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "shipped"
    return inside if inside.is_dir() else package.parent


class Reference(NamedTuple):
    """A reviewed table of `data/`: `reference.clusters`."""

    name: str
    path: Path
    about: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Project:
    """All folders that make the warehouse, the user's last: a model there replaces a shipped one of its name."""

    folders: tuple[Path, ...]
    parse_cache: ParseCache | None = None
    """What is known of it already."""

    @staticmethod
    def open(extra: Path | None = None) -> Project:
        """The shipped project, extended by the folder `extra`, or `extra` alone where its warehouse.toml says so."""
        shipped = shipped_root()
        if extra is None or extra.resolve() == shipped:
            return Project((shipped,))
        if not extra.is_dir():
            raise SettingsError(f"no such project folder: {extra}", hint="warehouse init DIR starts one")
        return Project((extra.resolve(),) if stands_alone(extra) else (shipped, extra.resolve()))

    def remembering(self, parse_cache: ParseCache) -> Project:
        """The same project, of which the memo may know something."""
        return replace(self, parse_cache=parse_cache)

    @cached_property
    def models(self) -> dict[str, Model]:
        """All models by name, in order of name."""
        found: dict[str, Model] = {}
        for folder in self.folders:
            mine: dict[str, Model] = {}
            for path in sorted(path for kind in MODEL_FILES for path in (folder / "models").rglob(kind)):
                model = read_model(path, folder, self.parse_cache)
                if model.name in mine:
                    raise ModelError(f"{mine[model.name].shown_path} is {model.name}, too", place=model.place())
                mine[model.name] = model
            found |= mine
        return dict(sorted(found.items()))

    @cached_property
    def references(self) -> dict[str, Reference]:
        """The reviewed tables of data/ by name (`reference.clusters`)."""
        found: dict[str, Reference] = {}
        for folder in self.folders:
            listing = folder / "data" / "tables.yaml"
            if os.path.lexists(listing):
                for reference in _read_references(listing, folder, self.parse_cache or ParseCache(None)):
                    found[reference.name] = reference
        return found

    def tables(self) -> list[Path]:
        """The files in which the reviewed tables are, and those beside them that are none."""
        return [path for folder in self.folders for path in sorted((folder / "data").glob("*.csv"))]

    @property
    def query_folders(self) -> list[Path]:
        """The folders of named queries."""
        return [folder / "sql" / "queries" for folder in self.folders]

    @property
    def report_folders(self) -> list[Path]:
        """The folders of the report's queries: the shipped ones always, as the sections name them."""
        return [folder / "sql" / "report" for folder in dict.fromkeys((shipped_root(), *self.folders))]

    @property
    def site_folders(self) -> list[Path]:
        """The folders of the site's queries: the shipped ones always, as its pages name them."""
        return [folder / "sql" / "site" for folder in dict.fromkeys((shipped_root(), *self.folders))]

    @property
    def doc_folders(self) -> list[Path]:
        """The folders of pages."""
        return [folder / "docs" for folder in self.folders]

    def source_files(self) -> list[Path]:
        """Every file that decides what a build does, the package's own modules apart."""
        files: list[Path] = []
        for folder in self.folders:
            for below, pattern in (
                *(("models", kind) for kind in MODEL_FILES),
                ("sql/macros", "*.sql"),
                ("data", "*.csv"),
                ("data", "*.yaml"),
            ):
                globbed = (folder / below).rglob(pattern) if below == "models" else (folder / below).glob(pattern)
                files += sorted(globbed)
        return files

    def render(self, model: Model, parse_cache: ParseCache | None = None) -> str:
        """The model's SELECT with its macros written out, line for line; a Python model has none.

        What the memo knows is not written out again.

        Raises
        ------
        ModelError
            When a macro fails, is unknown, or would change the number of lines.
        """
        if model.is_python or not _MACRO_USE.search(model.sql):
            return model.sql

        def write_out() -> str:
            from warehouse.project.macros import render

            return render(model, [folder / "sql" / "macros" for folder in self.folders])

        return str(parse_cache.ask(["render", model.sql, self._macros], write_out)) if parse_cache else write_out()

    @cached_property
    def _macros(self) -> list[str]:
        """The content of all macro files."""
        files = (path for folder in self.folders for path in sorted((folder / "sql" / "macros").glob("*.sql")))
        return [hashing.of_file(path) for path in files]

    @cached_property
    def reads_raw(self) -> bool:
        """Whether a model or a check may read raw files: its text names the schema."""
        return any(
            "raw." in text
            for model in self.models.values()
            for text in (model.sql, *model.reads, *(check.text for check in model.checks))
        )


def _read_references(listing: Path, folder: Path, parse_cache: ParseCache) -> list[Reference]:
    shown = listing.relative_to(folder).as_posix()
    text = _read_text(listing, shown)
    references = []
    for name, about, said in parse_cache.ask(["references", shown, text], lambda: _listed(text, shown)):
        path = listing.parent / f"{name}.csv"
        columns = tuple(Column(*column) for column in said)
        _same_header(path, [column.name for column in columns], folder)
        references.append(Reference(f"reference.{name}", path, about, columns))
    return references


def _listed(text: str, shown: str) -> list[tuple[str, str, tuple[Column, ...]]]:
    """Name, meaning and columns of each table that a listing has."""
    names = re.findall(r"^([a-z][a-z0-9_]*):", text, re.MULTILINE)
    listed = []
    for name, value in read_header(text, shown, names).items():
        below = value.content
        if not isinstance(below, dict) or set(below) != {"about", "columns"}:
            raise ModelError(f"`{name}` needs `about` and `columns`", place=value.place(shown))
        listed.append((name, str(below["about"].content), _reference_columns(below["columns"], shown)))
    return listed


def _reference_columns(value: Value, shown: str) -> tuple[Column, ...]:
    if not isinstance(value.content, dict):
        raise ModelError("`columns` lists each column as `name: TYPE meaning`", place=value.place(shown))
    columns = []
    for name, item in value.content.items():
        kind, _, about = str(item.content).partition(" ")
        if kind not in TYPES:
            raise ModelError(f"column `{name}` has the unknown type {kind}", place=item.place(shown))
        columns.append(Column(name, kind, None, about))
    return tuple(columns)


def _same_header(path: Path, names: list[str], folder: Path) -> None:
    shown = path.relative_to(folder).as_posix()
    if not path.is_file():
        raise ModelError("the reference table is listed in data/tables.yaml but not there", place=Place(shown))
    header = _read_text(path, shown).partition("\n")[0].split(",")
    if header != names:
        raise ModelError(
            f"the header is {','.join(header)}, data/tables.yaml says {','.join(names)}",
            place=Place(shown, 1),
        )


def _read_text(path: Path, shown: str) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"the file cannot be read as UTF-8 text: {error}", place=Place(shown)) from error
