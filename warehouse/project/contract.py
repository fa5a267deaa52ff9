"""Contract of a model: columns and checks, and the comparison with the columns of its SELECT or function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warehouse.base.errors import ModelError, Place, nearest_hint

TYPES = (
    *("BIGINT", "INTEGER", "SMALLINT", "DOUBLE", "VARCHAR", "BOOLEAN", "TIMESTAMP", "DATE"),
    *("VARCHAR[]", "INTEGER[]", "BIGINT[]"),
)
"""Types of columns, besides DECIMAL."""
_INTEGERS = frozenset({"BIGINT", "INTEGER", "SMALLINT"})
_FRACTIONS = ("DOUBLE", "FLOAT", "DECIMAL")


class Column(NamedTuple):
    """Column of the contract: name, type, unit, meaning."""

    name: str
    type: str
    unit: str | None = None
    about: str = ""

    @property
    def comment(self) -> str:
        """Comment of the column in the catalog, such as `[B] bytes that entered ...`."""
        return f"[{self.unit}] {self.about}" if self.unit else self.about


class Check(NamedTuple):
    """Line of `checks` as written, with its place."""

    text: str
    place: Place
    warn: bool = False
    says: str = ""
    """Sentence to print for a failing row, with `{column}` for values; see `warehouse.base.sentences`."""


def same_columns(
    columns: Sequence[Column], given: Sequence[tuple[str, str]], place: Place, *, is_python: bool = False
) -> None:
    """Compare the columns of a model's SELECT or function with its contract.

    Parameters
    ----------
    columns
        The contract.
    given
        Name and type of each column of the SELECT or function.
    place
        The place for an error.
    is_python
        True for a Python function.

    Raises
    ------
    ModelError
        When a column is missing, not in the contract or out of order, or when a cast to integer would lose a fraction.
    """
    subject = f"the {'function' if is_python else 'SELECT'}"
    declared = [column.name for column in columns]
    names = [name for name, _ in given]
    if names != declared:
        missing = [name for name in declared if name not in names]
        extra = [name for name in names if name not in declared]
        problems = [f"{subject} does not give {', '.join(missing)}"] if missing else []
        problems += [f"{', '.join(extra)} is not in the contract"] if extra else []
        if not problems:
            problems = [f"{subject} gives its columns in another order than the contract: {', '.join(names)}"]
        hint = nearest_hint(extra[0], missing) if extra and missing else None
        raise ModelError("; ".join(problems), place=place, hint=hint)
    for column, (name, kind) in zip(columns, given, strict=True):
        if column.type in _INTEGERS and kind.startswith(_FRACTIONS):
            raise ModelError(
                f"the contract has {name} as {column.type}, {subject} gives {kind}, whose fraction would be lost",
                place=place,
                hint="round it, and cast it to int64"
                if is_python
                else f"write CAST(round({name}) AS {column.type}), or // for division",
            )
