"""Power of servers: `utilization/ipmi/*_Power.csv`, a row per time and server.

Docs: docs/formats/utilization.md. These files are long, not wide: `Time`, some power columns, and `node`, the server.
Columns are found by name. Every column other than `Time` and `node` is a measurement, whatever its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats import csv_headers
from warehouse.formats.acme.lines import TIME, LineFiles
from warehouse.formats.base import RawFile
from warehouse.formats.csv_headers import is_unnamed

NODE = "node"
_NAME = regex(r"(?P<stem>[A-Za-z0-9_]{1,60}_Power)(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII | re.IGNORECASE)
CLUSTER = "seren"
"""Cluster of the servers: the release's figures label them Seren, and their addresses, 10.140.x.y, are Seren's."""


class PowerFiles(LineFiles):
    """Format `acme.ipmi`."""

    same = "time and server"

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like a power file."""
        return _NAME.fullmatch(path.name) is not None

    def placed(self, file: RawFile, names: Sequence[str]) -> RawFile:
        """Set cluster, release path and file group; a file group is a kind of server."""
        if NODE not in names:
            raise ValueError(f"no column {NODE!r}: {csv_headers.listed(names)}")
        repeated = sorted({name for name in names if not is_unnamed(name) and names.count(name) > 1})
        if repeated:
            raise ValueError(f"the header has {csv_headers.listed(repeated)} twice")
        if len(names) - len(self.unread(names)) < 3:
            raise ValueError(f"no column beside {TIME} and {NODE}")
        found = _NAME.fullmatch(file.path.name)
        assert found is not None
        return file.but(
            cluster=CLUSTER,
            release_path=f"acme/utilization/ipmi/{file.path.name}",
            file_group=f"ipmi.{found['stem']}",
        )

    def texts(self, names: Sequence[str]) -> set[int]:
        """Return the position of `node`, the only text column."""
        return {names.index(NODE)}

    def unread(self, names: Sequence[str]) -> set[int]:
        """Return the positions of columns without a name, which are no measurement."""
        return {place for place, name in enumerate(names) if is_unnamed(name)}

    def entity(self, cells: Sequence[bytes], names: Sequence[str]) -> bytes:
        """Return the server: each has one row per time."""
        return cells[names.index(NODE)]


POWER = PowerFiles(
    "acme.ipmi", "acme_ipmi", "Lines of the server power (IPMI) files as published, header lines included."
)
