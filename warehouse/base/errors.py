"""Error classes and their exit codes.

WarehouseError                  exit 2   usage, nothing readable, no target
├── SettingsError               exit 2   a flag, warehouse.toml or WAREHOUSE_* is wrong
├── DataError                   exit 2   the raw files cannot be used as they are
├── QueryError                  exit 2   ad-hoc SQL is refused or fails
├── ModelError                  exit 1   a model, macro or front matter is wrong
│   └── CheckError              exit 1   a check of a model failed
└── LockedError                 exit 3   another build holds the target

Each error has one sentence (what happened), an optional place (`file:line:col`) and a hint (what to do).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """Position in a file; line and column start at 1."""

    path: Path | str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(one) for one in self if one is not None)


class WarehouseError(Exception):
    """Base class of all errors that users see as a message, without a traceback."""

    exit_status = 2
    source: tuple[str, int, int] | None = None
    """Text with the error, and offset and length of the error in bytes."""

    def __init__(
        self,
        message: str,
        *,
        place: Place | None = None,
        hint: str | None = None,
        details: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint
        self.details = tuple(details)

    def __str__(self) -> str:
        """Return the full message: place and sentence, then details and hint on lines of their own."""
        head = f"{self.place}: {self.message}" if self.place else self.message
        return "\n".join([head, *self.details, *([self.hint] if self.hint else [])])


class SettingsError(WarehouseError):
    """Invalid option, key of warehouse.toml or environment variable."""


class DataError(WarehouseError):
    """Unusable raw files."""


class QueryError(WarehouseError):
    """Refused or failed ad-hoc SQL."""


class ModelError(WarehouseError):
    """Invalid model, macro or front matter."""

    exit_status = 1


class CheckError(ModelError):
    """Failed check of a model; `details` has the first failing rows."""


class LockedError(WarehouseError):
    """Target locked by another build."""

    exit_status = 3


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None.

    >>> nearest("swtch", ["switch", "port"])
    'switch'
    """
    import difflib

    by_folded = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def nearest_hint(name: str, known: Iterable[str]) -> str | None:
    """Return `nearest: NAME` for an error's hint, or None without a similar name."""
    found = nearest(name, known)
    return f"nearest: {found}" if found else None
