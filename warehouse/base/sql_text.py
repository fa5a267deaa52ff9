"""SQL text: quoted literals and identifiers, places in it."""

from __future__ import annotations


def literal(value: object) -> str:
    """Return a value as a SQL literal.

    >>> literal("it's"), literal([1, None])
    ("'it''s'", '[1, NULL]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):  # before int, which bool is, too
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(literal(item) for item in value)}]"
    return "'" + str(value).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name as a quoted SQL identifier.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def qualified(relation: str) -> str:
    """Return `schema.name` with both parts quoted."""
    schema, _, name = relation.partition(".")
    return f"{identifier(schema)}.{identifier(name)}"


def line_column(text: str, offset: int) -> tuple[int, int]:
    r"""Return line and column, both from 1, of a byte offset.

    >>> line_column("SELECT 'é',\n  x", 15)
    (2, 3)
    """
    before = text.encode()[:offset].decode(errors="ignore")
    return before.count("\n") + 1, len(before) - before.rfind("\n")
