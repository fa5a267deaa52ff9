"""Names of partitions: an hour, or one value of another column of `raw.files`."""

from __future__ import annotations

from functools import cache
from urllib.parse import quote

from warehouse.formats.base import RawFile

HOUR = "hour_utc"


def partition_of(file: RawFile, column: str | None = None) -> str | None:
    """The name of the partition that a file belongs to among those by a column of `raw.files`.

    Hours are named as they are, `2024-05-23T16`, all others with their column, `file_group=seren.GPU_UTIL`.
    Without a column it is the file's hour, or the group that it is read with.
    """
    if column is None:
        return partition_of(file, HOUR) or partition_of(file, "file_group")
    value = getattr(file, column)
    return None if value is None else _named(column, value)


@cache
def _named(column: str, value: object) -> str:
    """The name of a partition: the many files have few values."""
    return f"{value:%Y-%m-%dT%H}" if column == HOUR else f"{column}={quote(str(value), safe=' ')}"


def column_of(partition: str) -> str:
    """The column of `raw.files` that a partition is one value of."""
    column, equals, _ = partition.partition("=")
    return column if equals else HOUR
