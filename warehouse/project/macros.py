"""Macros: sandboxed Jinja templates of `sql/macros/` for repeated SQL, without access to data or the system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from warehouse.base.errors import ModelError, Place
from warehouse.base.sql_text import identifier, literal
from warehouse.base.yaml_text import Value
from warehouse.formats.traces import FROM_ORIGIN, TARGETS, Trace
from warehouse.project.model import Model

Mappings = list[dict[str, object]]
"""Mappings to a table, as the macro `mapped` reads them."""


def render(model: Model, files: Mapping[Path, bytes], traces: Sequence[Trace]) -> str:
    """Render the macros of a model's SELECT.

    Every macro of every file can be called by its name; `files` has their contents. Macros named `mapped...` read
    `traces`, and `mapped_totals` reads their published totals. A call must render to one line, so that line numbers
    stay. Raises ModelError.
    """
    environment, known, mappings = _macros(tuple(files.items()))
    if "mapped" in model.sql:
        for table in TARGETS:
            mappings[table] = [_mapping(one, table, environment, known) for one in traces if table in one.tables]
        mappings["totals"] = [
            {
                "trace": literal(trace.name),
                "source": literal(trace.title),
                **{key: literal(one) for key, one in total.items()},
            }
            for trace in traces
            for total in trace.totals
        ]
    try:
        rendered = environment.from_string(model.sql).render(dict(known))
    except Exception as error:  # such as a TypeError for an extra argument
        place = model.place(getattr(error, "lineno", None) or _first_call(model.sql))
        hint = f"known macros: {', '.join(sorted(known)) or 'none'}"
        raise ModelError(f"a macro fails: {error}", place=place, hint=hint) from error
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
def _macros(
    files: tuple[tuple[Path, bytes], ...],
) -> tuple[ImmutableSandboxedEnvironment, Mapping[str, object], dict[str, Mappings]]:
    """Return the macros of these files by name, and the mappings that they read, to be filled; cached by content."""
    # Jinja drops the last line end unless told, and the lines of a model are counted.
    environment = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals.clear()
    mappings: dict[str, Mappings] = {}
    environment.globals["traces"] = mappings
    known: dict[str, object] = {}
    for path, content in files:
        shown = f"sql/macros/{path.name}"
        try:
            module = environment.from_string(content.decode()).module
        except Exception as error:  # a template can raise any exception of its expressions
            place = Place(shown, getattr(error, "lineno", None))
            raise ModelError(f"the macro file fails: {error}", place=place) from error
        known |= {name: one for name, one in vars(module).items() if not name.startswith("_")}
    return environment, known, mappings


def _mapping(
    trace: Trace, table: str, environment: ImmutableSandboxedEnvironment, known: Mapping[str, object]
) -> dict[str, object]:
    """Return the mapping to a table as the macro `mapped` reads it: expressions with their macros rendered.

    A comment in front of an expression names its place, for errors of the engine.
    """
    mapped = trace.tables[table]

    def rendered(column: str, given: Mapping[str, Value], default: str = "NULL") -> str:
        if column not in given:
            return default
        place = given[column].place(trace.shown)
        try:
            # One line, so that the lines of the model keep their numbers.
            sql = " ".join(environment.from_string(str(given[column].content)).render(dict(known)).split())
        except Exception as error:  # a template can raise any exception of its expressions
            raise ModelError(f"`{table}`, {column}: the macro call fails: {error}", place=place) from error
        unit = f" // {trace.unit}" if trace.unit > 1 and column in FROM_ORIGIN else ""
        return f"/* {Place(place.path, place.line)} */ ({sql}){unit}"

    defaults = {"cluster": "file_cluster", "variant": "'default'"}
    columns = [
        (name, rendered(name, mapped.columns, defaults.get(name, "NULL")), kind)
        for name, kind in TARGETS[table].items()
    ]
    if table == "jobs":
        columns.append(("origin_utc", literal(trace.origin) if trace.origin else "NULL", "TIMESTAMP"))
        written = rendered("state_raw", mapped.columns)
        for at, name in enumerate(("state", "outcome")):
            cases = "".join(
                f" WHEN {literal(raw)} THEN {literal(one[at])}" for raw, one in trace.states.items() if one[at]
            )
            columns.append((name, f"CASE upper({written}){cases} END" if cases else "NULL", "VARCHAR"))
    return {
        "trace": literal(trace.name),
        "columns": columns,
        "extra": [(name, rendered(name, mapped.extra)) for name in mapped.extra],
        "relation": mapped.relation,
        "reads": [identifier(name) for one in trace.formats if one.relation == mapped.relation for name in one.cells],
    }


def _first_call(sql: str) -> int:
    return sql[: max(0, sql.find("{{"))].count("\n") + 1
