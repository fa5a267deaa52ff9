"""Records of partitions: what the parts of an hour (or file group) were made from, and what their checks found.

A build that finds the inputs of a partition unchanged takes all its parts from one record, without opening the notes of
each part. The records of all partitions are one file of the cache; without it, a build looks up each part.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from warehouse.base import hashing
from warehouse.store.atomic import temporary_path

_FILE = "cache/partitions.msgpack"
_DIGEST_LENGTH = len(hashing.of(""))


Warned = tuple[int, list[str]]
"""Number of failing rows, or UNCHECKED; and the first of them as JSON objects."""
UNCHECKED = -1
"""In place of a number of failing rows: the check could not run."""


class PartRecord(msgspec.Struct, array_like=True, frozen=True):
    """Part of one model."""

    fingerprint: str
    digest: str
    rows: int
    bytes: int
    stamp: list[int]
    """Signature of the Parquet file."""
    is_own_hour: bool = False
    """True if the part is known to have rows of its own hour alone."""


class PartitionRecord(msgspec.Struct, array_like=True, frozen=True):
    """Parts of a group of models for one partition."""

    inputs: str
    """Hash of everything that the parts and check results depend on."""
    parts: dict[str, PartRecord]
    """Model -> its part."""
    warnings: dict[str, dict[int, Warned]]
    """Model, table or view -> position of a check that warned or could not run -> what it found. All others passed."""


Records = Mapping[str, Mapping[str, PartitionRecord]]
"""Group of models -> partition -> record."""


def read_records(target: Path) -> Records:
    """Return the records of a target; none if the file is missing or damaged."""
    try:
        content = (target / _FILE).read_bytes()
        digest, written = content[:_DIGEST_LENGTH], content[_DIGEST_LENGTH:]
        if digest.decode() == hashing.of_bytes(written):
            return msgspec.msgpack.decode(written, type=dict[str, dict[str, PartitionRecord]])
    except (OSError, ValueError, msgspec.MsgspecError):
        pass
    return {}


def write_records(target: Path, records: Records | None) -> None:
    """Write the records atomically; None leaves those that are there.

    Errors are ignored: without the file, the next build is only slower.
    """
    if records is None:
        return
    path, content = target / _FILE, msgspec.msgpack.encode(records)
    written = temporary_path(path)
    try:
        written.write_bytes(hashing.of_bytes(content).encode() + content)
        written.replace(path)
    except OSError:
        path.unlink(missing_ok=True)
    finally:
        written.unlink(missing_ok=True)
