"""Names of partitions: values of columns of `raw.files`, such as an hour, or an hour and a switch.

A name has a piece for each column: `2024-05-23T16` for an hour, `2024-05-23T16/switch=Leaf-1` for a switch in it,
`file_group=seren.GPU_UTIL` for another column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from urllib.parse import quote, unquote

from warehouse.formats.base import RawFile

ALL = "all"
"""Partition of a relation that is not partitioned."""
HOUR = "hour_utc"


def partition_value(partition: str) -> str | None:
    """Return the value of the partition column of a part; None if its relation is not partitioned."""
    return None if partition == ALL else partition


def partition_name(value: object) -> str:
    """Return the name of a part's partition, from the value of the partition column; the inverse of partition_value."""
    return str(value or ALL)


def partition_of(file: RawFile, columns: Sequence[str] = ()) -> str | None:
    """Return the partition of a file by columns of `raw.files`; None if it has no value for one of them.

    Without columns, it is the file's hour or else its file group.
    """
    if not columns:
        return partition_of(file, (HOUR,)) or partition_of(file, ("file_group",))
    values = [getattr(file, column) for column in columns]
    return None if None in values else "/".join(map(_piece, columns, values))


@cache  # many files share few values
def _piece(column: str, value: object) -> str:
    # quote() leaves `/` as it is unless told: it would begin another piece.
    return f"{value:%Y-%m-%dT%H}" if column == HOUR else f"{column}={quote(str(value), safe=' ')}"


@cache
def pieces(partition: str) -> Mapping[str, str]:
    """Return the pieces of a partition's name by column; none of `all`.

    >>> dict(pieces("2024-05-23T16/switch=Leaf-1"))
    {'hour_utc': '2024-05-23T16', 'switch': 'switch=Leaf-1'}
    """
    names = [] if partition == ALL else partition.split("/")
    return {column if equals else HOUR: name for name in names for column, equals, _ in [name.partition("=")]}


def columns_of(partition: str) -> tuple[str, ...]:
    """Return the columns of a partition's name; none of `all`."""
    return tuple(pieces(partition))


def narrowed(partition: str, columns: Iterable[str]) -> str:
    """Return a partition's name with these columns alone.

    >>> narrowed("2024-05-23T16/switch=Leaf-1", ["hour_utc"])
    '2024-05-23T16'
    """
    named = pieces(partition)
    return "/".join(named[column] for column in columns)


def hour_of(partition: str) -> str:
    """Return the hour in a partition's name; empty if it has none."""
    return pieces(partition).get(HOUR, "")


@cache
def values_of(partition: str) -> Mapping[str, str]:
    """Return the values of a partition's columns, as DuckDB writes them.

    >>> dict(values_of("2024-05-23T16/switch=Leaf-1"))
    {'hour_utc': '2024-05-23 16:00:00', 'switch': 'Leaf-1'}
    """
    return {
        column: f"{datetime.fromisoformat(piece):%Y-%m-%d %H:%M:%S}"
        if column == HOUR
        else unquote(piece.partition("=")[2])
        for column, piece in pieces(partition).items()
    }


@cache
def folder_of(partition: str) -> str:
    """Return the folder of a partition's parts, in Hive's form: `hour_utc=2024-05-23%2016%3A00%3A00`.

    Source: https://duckdb.org/docs/stable/data/partitioning/hive_partitioning
    """
    return "/".join(f"{column}={quote(value, safe='')}" for column, value in values_of(partition).items()) or ALL
