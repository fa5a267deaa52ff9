"""Macros: Jinja of `sql/macros/`, sandboxed, for what SQL repeats. They see no data and no system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from warehouse.base.errors import ModelError, Place
from warehouse.project.model import Model
from warehouse.store.signatures import read_text


def render(model: Model, folders: Sequence[Path]) -> str:
    """Write out the macros of a model's SELECT.

    Every macro of every file in `folders` can be called by its name. A call renders within its line, so
    that line numbers stay the author's.
    """
    files = [path for folder in folders for path in sorted(folder.glob("*.sql"))]
    environment, known = _macros(tuple((path, path.stat().st_mtime_ns) for path in files))
    try:
        rendered = environment.from_string(model.sql).render(dict(known))
    except TemplateSyntaxError as error:
        raise ModelError(f"the macro call does not parse: {error.message}", place=model.place(error.lineno)) from error
    except Exception as error:  # such as a TypeError, for an argument too many
        raise ModelError(
            f"a macro fails: {error}",
            place=model.place(_first_call(model.sql)),
            hint=f"known macros: {', '.join(sorted(known)) or 'none'}",
        ) from error
    if rendered.count("\n") != model.sql.count("\n"):
        raise ModelError(
            "a macro call renders to several lines; it must stay within its own",
            place=model.place(_first_call(model.sql)),
        )
    return rendered


LONGEST_TEXT = 100_000
"""A text that a macro repeats is no longer than this."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which nothing grows beyond what a line of SQL can be."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute with whole numbers of up to 64 bits, powers up to the 64th, and repeat a text a few times."""
        most = 64 if operator == "**" else 2**63
        numbers = isinstance(left, int) and isinstance(right, int) and abs(left) <= 2**63 and abs(right) <= most
        repeated = operator == "*" and isinstance(left, str) and isinstance(right, int)
        if not numbers and not (repeated and len(left) * right <= LONGEST_TEXT):
            raise SecurityError(f"macros know {operator} of whole numbers of up to 64 bits alone")
        return super().call_binop(context, operator, left, right)


@cache
def _macros(files: tuple[tuple[Path, int], ...]) -> tuple[ImmutableSandboxedEnvironment, Mapping[str, object]]:
    """The macros of these files by name, as they were at these times."""
    environment = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals.clear()
    known: dict[str, object] = {}
    for path, _ in files:
        shown = f"sql/macros/{path.name}"
        try:
            module = environment.from_string(read_text(path)).module
        except TemplateSyntaxError as error:
            place = Place(shown, error.lineno)
            raise ModelError(f"the macro file does not parse: {error.message}", place=place) from error
        except Exception as error:  # a template raises whatever its expressions raise
            raise ModelError(f"the macro file fails: {error}", place=Place(shown)) from error
        known |= {name: one for name, one in vars(module).items() if not name.startswith("_")}
    return environment, known


def _first_call(sql: str) -> int:
    return sql[: max(0, sql.find("{{"))].count("\n") + 1
