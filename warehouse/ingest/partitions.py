"""Names of partitions: an hour, or a value of another column of `raw.files`."""

from __future__ import annotations

from functools import cache
from urllib.parse import quote

from warehouse.formats.base import RawFile

HOUR = "hour_utc"


def partition_of(file: RawFile, column: str | None = None) -> str | None:
    """Return the partition of a file by a column of `raw.files`.

    An hour is named `2024-05-23T16`. A value of another column includes the column: `file_group=seren.GPU_UTIL`.
    Without a column, the partition is the file's hour or else its file group.
    """
    if column is None:
        return partition_of(file, HOUR) or partition_of(file, "file_group")
    value = getattr(file, column)
    return None if value is None else named(column, value)


@cache
def named(column: str, value: object) -> str:
    """Return the name of a partition; cached, since many files share few values."""
    return f"{value:%Y-%m-%dT%H}" if column == HOUR else f"{column}={quote(str(value), safe=' ')}"


def column_of(partition: str) -> str:
    """Return the column of `raw.files` of a partition's name."""
    column, equals, _ = partition.partition("=")
    return column if equals else HOUR
