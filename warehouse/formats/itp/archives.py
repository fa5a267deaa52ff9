"""The two archives that the ElasticFlow repository has its traces in: `raw-traces.tar.gz`, `elasticflow-traces.tar.gz`.

Docs: docs/formats/itp.md. They are read as they come, whatever they are called: what their members are is for the
members' headers to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats.base import READ, RawFile, RawRelation

_FILE_NAME = regex(r"[^/]*trace[^/]*\.(tar(\.(gz|xz|bz2|zst))?|tgz)", re.IGNORECASE)


class ItpArchive:
    """The format `itp.archive`."""

    name = "itp.archive"
    version = 1
    relations: Sequence[RawRelation] = ()
    max_bytes = 2**30
    max_members = 1000

    def claims(self, path: Path) -> bool:
        """Tell whether a file is named like an archive of traces."""
        return _FILE_NAME.fullmatch(path.name) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Give it its place; whether it can be opened shows when it is."""
        return file.but(status=READ, cluster="itp", release_path=f"itp/{file.path.name}")


ARCHIVE = ItpArchive()
