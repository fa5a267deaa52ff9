"""Detection of the synthetic sample, whose traces are named like the real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

CLUSTER = "cluster_sample"
"""Start of the name of each cluster that `warehouse sample` writes."""
NOT_JUDGED = ("claims_differ",)
"""Kinds of findings that mean nothing for synthetic data: those about published figures."""


def is_synthetic(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return True if a file of the build is of a cluster of `warehouse sample`."""
    from warehouse.base.startup import duckdb

    try:
        found = connection.execute("SELECT 1 FROM raw.files WHERE starts_with(cluster, $1) LIMIT 1", [CLUSTER])
    except duckdb.CatalogException:  # a project without raw files
        return False
    return found.fetchone() is not None
