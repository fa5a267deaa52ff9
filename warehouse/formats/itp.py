"""Archives of the ElasticFlow repository: `raw-traces.tar.gz`, `elasticflow-traces.tar.gz`.

Docs: docs/formats/itp.md. Other archive names are accepted, too: the headers of the members decide what each member is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats.base import READ, RawFile, RawRelation

_FILE_NAME = regex(r"[^/]*trace[^/]*\.(tar(\.(gz|xz|bz2|zst))?|tgz)", re.IGNORECASE)


class ItpArchive:
    """Format `itp.archive`."""

    name = "itp.archive"
    version = 1
    relations: Sequence[RawRelation] = ()
    max_bytes = 2**30
    max_members = 1000

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like an archive of traces."""
        return _FILE_NAME.fullmatch(path.name) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Set cluster and release path. The archive is not opened here; a damaged one is found when it is read."""
        return file.but(status=READ, cluster="itp", release_path=f"itp/{file.path.name}")


ARCHIVE = ItpArchive()
