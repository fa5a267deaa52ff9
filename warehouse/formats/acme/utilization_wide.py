"""Wide utilization files: `utilization/{seren,kalos}/<METRIC>.csv`, a row per time, a column per server or GPU.

Docs: docs/formats/utilization.md. A file has about 2,345 columns. Their set and order differ from file to file. A
metric is one file, or several: `<METRIC>-2023-07.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats.acme.lines import TIME, LineFiles
from warehouse.formats.base import RawFile

CLUSTERS = ("seren", "kalos")
_NAME = regex(r"(?P<metric>[A-Z][A-Z0-9_]{1,60})(-\d{4}[-\w.]*)?\.csv(\.gz|\.zst)?", re.ASCII)
_ADDRESS = regex(r"\d{1,3}(\.\d{1,3}){3}(\.\d{1,3})?(-[\w.]+)?", re.ASCII)
"""A server, `10.140.1.10`, or one of its devices, `10.140.1.10-0`.

A name of five parts matches, too: it is an odd column, which the models flag.
"""


class WideFiles(LineFiles):
    """Format `acme.utilization`."""

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like a metric."""
        return _NAME.fullmatch(path.name) is not None

    def placed(self, file: RawFile, names: Sequence[str]) -> RawFile:
        """Set the cluster from the folder; a file group is a cluster and a metric."""
        if names[0] != TIME:
            raise ValueError(f"the first column is {names[0][:60]!r}, not {TIME}")
        if len(names) == 1:
            raise ValueError(f"no column beside {TIME}")
        if not any(_ADDRESS.fullmatch(name) for name in names[1:]):
            raise ValueError(f"no column is named like a server or GPU: {','.join(names)[:100]}")
        found = _NAME.fullmatch(file.path.name)
        assert found is not None
        folders = (part.lower() for part in reversed(file.path.parts[:-1]))
        cluster = next((part for part in folders if part in CLUSTERS), file.cluster)
        return file.but(
            cluster=cluster,
            release_path=f"acme/utilization/{cluster}/{file.path.name}",
            file_group=f"{cluster}.{found['metric']}",
        )

    def texts(self, names: Sequence[str]) -> set[int]:
        """Return no positions: every column but the time holds numbers."""
        return set()


WIDE = WideFiles(
    "acme.utilization", "acme_utilization", "Lines of the wide utilization files as published, header lines included."
)
