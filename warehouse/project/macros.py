"""Macros: sandboxed Jinja templates of `sql/macros/` for repeated SQL, without access to data or the system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from warehouse.base.errors import ModelError, Place
from warehouse.project.model import Model


def render(model: Model, files: Mapping[Path, bytes]) -> str:
    """Render the macros of a model's SELECT.

    Every macro of every file can be called by its name; `files` has their contents. A call must render to one line, so
    that line numbers do not change. Raises ModelError.
    """
    environment, known = _macros(tuple(files.items()))
    try:
        rendered = environment.from_string(model.sql).render(dict(known))
    except TemplateSyntaxError as error:
        raise ModelError(f"the macro call does not parse: {error.message}", place=model.place(error.lineno)) from error
    except Exception as error:  # such as a TypeError for an extra argument
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
"""Maximum length of a text repeated by a macro."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja sandbox with limits for large numbers and long texts."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Allow integers of up to 64 bits, exponents up to 64, and repeated texts up to `LONGEST_TEXT`."""
        most = 64 if operator == "**" else 2**63
        numbers = isinstance(left, int) and isinstance(right, int) and abs(left) <= 2**63 and abs(right) <= most
        repeated = operator == "*" and isinstance(left, str) and isinstance(right, int)
        if not numbers and not (repeated and len(left) * right <= LONGEST_TEXT):
            raise SecurityError(f"macros know {operator} of whole numbers of up to 64 bits alone")
        return super().call_binop(context, operator, left, right)


@cache
def _macros(files: tuple[tuple[Path, bytes], ...]) -> tuple[ImmutableSandboxedEnvironment, Mapping[str, object]]:
    """Return the macros of these files by name; cached by content."""
    environment = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals.clear()
    known: dict[str, object] = {}
    for path, content in files:
        shown = f"sql/macros/{path.name}"
        try:
            module = environment.from_string(content.decode()).module
        except TemplateSyntaxError as error:
            place = Place(shown, error.lineno)
            raise ModelError(f"the macro file does not parse: {error.message}", place=place) from error
        except Exception as error:  # a template can raise any exception of its expressions
            raise ModelError(f"the macro file fails: {error}", place=Place(shown)) from error
        known |= {name: one for name, one in vars(module).items() if not name.startswith("_")}
    return environment, known


def _first_call(sql: str) -> int:
    return sql[: max(0, sql.find("{{"))].count("\n") + 1
