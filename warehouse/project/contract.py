"""The contract of a model: its columns and checks, and the comparison with what the model gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warehouse.base.errors import ModelError, Place, nearest_hint

TYPES = frozenset(
    {
        "BIGINT",
        "INTEGER",
        "SMALLINT",
        "DOUBLE",
        "VARCHAR",
        "BOOLEAN",
        "TIMESTAMP",
        "DATE",
        "VARCHAR[]",
        "INTEGER[]",
    }
)
_INTEGERS = frozenset({"BIGINT", "INTEGER", "SMALLINT"})
_FRACTIONS = ("DOUBLE", "FLOAT", "DECIMAL")


class Column(NamedTuple):
    """A column of the contract: what it holds, in which unit."""

    name: str
    type: str
    unit: str | None = None
    about: str = ""

    @property
    def comment(self) -> str:
        """The column's comment in the catalog: `[B] bytes that entered ...`."""
        return f"[{self.unit}] {self.about}" if self.unit else self.about


class Check(NamedTuple):
    """A line of `checks`, as written, and where it stands."""

    text: str
    place: Place
    warn: bool = False
    says: str = ""
    """The sentence for people where a row fails, with `{column}` for its values; see `warehouse.base.sentences`."""


def same_columns(
    columns: Sequence[Column], given: Sequence[tuple[str, str]], place: Place, *, is_python: bool = False
) -> None:
    """Compare (name, type) of each column that a model gives with its contract.

    Parameters
    ----------
    columns
        The contract.
    given
        Name and type of each column that the SELECT or the function gives.
    place
        Where an error points.
    is_python
        Whether a function gives them.

    Raises
    ------
    ModelError
        When a column is missing, not promised, out of order, or would lose its fraction.
    """
    says = f"the {'function' if is_python else 'SELECT'}"
    promised = [column.name for column in columns]
    names = [name for name, _ in given]
    if names != promised:
        missing = [name for name in promised if name not in names]
        extra = [name for name in names if name not in promised]
        said = [f"{says} does not give {', '.join(missing)}"] if missing else []
        said += [f"{', '.join(extra)} is not in the contract"] if extra else []
        if not said:
            said = [f"{says} gives its columns in another order than the contract: {', '.join(names)}"]
        hint = nearest_hint(extra[0], missing) if extra and missing else None
        raise ModelError("; ".join(said), place=place, hint=hint)
    for column, (name, kind) in zip(columns, given, strict=True):
        if column.type in _INTEGERS and kind.startswith(_FRACTIONS):
            raise ModelError(
                f"the contract has {name} as {column.type}, {says} gives {kind}, whose fraction would be lost",
                place=place,
                hint="round it, and cast it to int64"
                if is_python
                else f"write CAST(round({name}) AS {column.type}), or // for division",
            )
