"""Type mapping from DuckDB to PostgreSQL, and values as text for COPY.

The mapping is lossless. Types without a PostgreSQL equivalent become text or jsonb, never a double.
"""

from __future__ import annotations

from warehouse.base.sql_text import identifier
from warehouse.base.startup import regex

_SAME = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "SMALLINT": "smallint",
    "USMALLINT": "integer",
    "INTEGER": "integer",
    "UINTEGER": "bigint",
    "BIGINT": "bigint",
    "UBIGINT": "numeric(20,0)",
    "HUGEINT": "numeric(39,0)",
    "UHUGEINT": "numeric(39,0)",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP_NS": "text",  # PostgreSQL has microseconds
    "UUID": "uuid",
    "INTERVAL": "interval",
    "BLOB": "bytea",
    "JSON": "jsonb",
}
_DECIMAL = regex(r"DECIMAL\((\d+),\s*(\d+)\)")
_LIST = regex(r"(?P<of>.+?)(?P<lists>(\[\d*\])+)")
_QUOTED = """'"' || regexp_replace({}, '(["\\\\])', '\\\\\\1', 'g') || '"'"""
"""SQL of a quoted array item, with quotes and backslashes escaped."""
_NUMBERS = frozenset({"smallint", "integer", "bigint", "real", "double precision", "boolean"})


def server_type(declared: str) -> str:
    """Return the PostgreSQL type for a DuckDB type.

    >>> [server_type(name) for name in ("HUGEINT", "DECIMAL(10,2)", "VARCHAR[]", "BIGINT[][]", "STRUCT(a INTEGER)")]
    ['numeric(39,0)', 'numeric(10,2)', 'text[]', 'jsonb', 'jsonb']
    """
    if declared in _SAME:
        return _SAME[declared]
    if match := _DECIMAL.fullmatch(declared):
        return f"numeric({match[1]},{match[2]})"
    if declared.startswith(("STRUCT", "MAP", "UNION")) and not declared.endswith("]"):
        return "jsonb"
    if match := _LIST.fullmatch(declared):
        inner = server_type(match["of"])
        # a PostgreSQL array of arrays must be rectangular, a DuckDB list of lists need not be
        return f"{inner}[]" if match["lists"].count("[") == 1 and inner != "jsonb" else "jsonb"
    return "text"  # ENUM, BIT and future types


def copied(reference: str, declared: str) -> str:
    """Return a DuckDB expression that formats a value for COPY ... (FORMAT csv).

    Parameters
    ----------
    reference
        The column in SQL.
    declared
        Its DuckDB type.
    """
    kind = server_type(declared)
    if declared == "BLOB":
        return rf"'\x' || hex({reference})"
    if kind == "jsonb":
        nested = finite(reference, declared) if "DOUBLE" in declared or "FLOAT" in declared else reference
        return f"CAST(to_json({nested}) AS VARCHAR)"
    if kind.endswith("[]"):
        item = r"'\x' || hex(item)" if kind == "bytea[]" else "CAST(item AS VARCHAR)"
        if kind.removesuffix("[]") not in _NUMBERS:
            item = _QUOTED.format(item)
        items = f"list_transform({reference}, LAMBDA item: coalesce({item}, 'NULL'))"
        return f"'{{' || array_to_string({items}, ',') || '}}'"
    if kind == "text" and declared != "VARCHAR":
        return f"CAST({reference} AS VARCHAR)"
    return reference


def finite(reference: str, declared: str, depth: int = 0) -> str:
    """Return SQL that turns NaN and infinities of a nested value into text, since JSON lacks them.

    >>> finite("c", "DOUBLE[]")
    'list_transform(c, LAMBDA x0: if(isfinite(x0), to_json(x0), to_json(CAST(x0 AS VARCHAR))))'
    """
    from warehouse.base.startup import duckdb

    kind = duckdb.type(declared)
    if kind.id in ("double", "float"):
        return f"if(isfinite({reference}), to_json({reference}), to_json(CAST({reference} AS VARCHAR)))"
    if kind.id in ("list", "array"):
        of = str(dict(kind.children)["child"])
        return f"list_transform({reference}, LAMBDA x{depth}: {finite(f'x{depth}', of, depth + 1)})"
    if kind.id == "struct":
        fields = {identifier(name): str(of) for name, of in kind.children}
        parts = [f"{name} := {finite(f'{reference}.{name}', of, depth)}" for name, of in fields.items()]
        return f"if({reference} IS NULL, NULL, struct_pack({', '.join(parts)}))"
    if kind.id == "map":
        of = str(dict(kind.children)["value"])
        values = f"list_transform(map_values({reference}), LAMBDA x{depth}: {finite(f'x{depth}', of, depth + 1)})"
        return f"map(map_keys({reference}), {values})"
    return reference
