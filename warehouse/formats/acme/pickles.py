"""Published distributions: `util_pkl/*.pkl`, curves of the paper's figures, a list of arrays per file.

Docs: docs/formats/utilization.md. Arrays come in pairs: values in ascending order, and the percentage of samples up to
each value. No file says what a pair measures; `reference.published_series` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from warehouse.base.errors import DataError, Place
from warehouse.base.regular_files import open_regular
from warehouse.base.startup import regex
from warehouse.formats.acme.number_lists import MAX_BYTES, RefusedError, read_arrays
from warehouse.formats.base import READ, SKIPPED, RawFile, RawRelation, Rejected

Curve = tuple[tuple[float, ...], tuple[float, ...]]
_CLUSTER = regex(r"(?:^|_)(seren|kalos|philly|pai|helios)(?:_|\.|$)", re.IGNORECASE)


class PublishedCurves:
    """Format `acme.published`."""

    name = "acme.published"
    version = 1
    relations: Sequence[RawRelation] = (
        RawRelation(
            "acme_published",
            "Points of the published distributions, as stored in the pickles.",
            {"series": "BIGINT", "point": "BIGINT", "value": "DOUBLE", "percent": "DOUBLE"},
        ),
    )

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like a pickle."""
        return path.suffix.lower() == ".pkl"

    def inspect(self, file: RawFile) -> RawFile:
        """Read the whole file, which is small; no code of the pickle runs."""
        found = _CLUSTER.search(file.path.name)
        here = file.but(
            cluster=found[1].lower() if found else "acme",
            release_path=f"acme/utilization/util_pkl/{file.path.name}",
            file_group="util_pkl",
        )
        try:
            _curves(file.path)
        except RefusedError as error:
            return here.but(status=SKIPPED, reason=f"refused: {error}")
        return here.but(status=READ)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the points, pair by pair.

        Raises
        ------
        DataError
            If a file changed since it was inspected.
        """
        for file in files:
            try:
                curves = _curves(file.path)
            except (RefusedError, OSError) as error:
                raise DataError(f"changed while it was read: {error}", place=Place(file.path)) from error
            for series, curve in enumerate(curves, start=1):
                for point, (value, percent) in enumerate(zip(*curve, strict=True), start=1):
                    yield {
                        "series": series, "point": point, "value": value, "percent": percent,
                        "filename": str(file.read_path),
                    }  # fmt: skip


def _curves(path: Path) -> list[Curve]:
    """Return the pairs of arrays in a file. Raise RefusedError if they are not distributions."""
    with open_regular(path) as stream:
        arrays = read_arrays(stream.read(MAX_BYTES + 1))
    if not arrays or len(arrays) % 2:
        raise RefusedError(f"{len(arrays)} arrays, which are no pairs")
    curves = list(zip(arrays[::2], arrays[1::2], strict=True))
    for number, (values, percents) in enumerate(curves, start=1):
        if len(values) != len(percents) or not values:
            raise RefusedError(f"pair {number} has {len(values):,} values and {len(percents):,} percentages")
        if not all(math.isfinite(one) for one in (*values, *percents)):
            raise RefusedError(f"pair {number} holds numbers that are not finite")
        if any(later < earlier for side in (values, percents) for earlier, later in pairwise(side)):
            raise RefusedError(f"pair {number} does not ascend")
    return curves


PUBLISHED = PublishedCurves()
