"""Options of one build, beside its settings."""

from __future__ import annotations

from typing import NamedTuple

from warehouse.ingest.shares import Share
from warehouse.store.layout import KEPT_BUILDS


class BuildOptions(NamedTuple):
    """Options of one build."""

    select: tuple[str, ...] = ()
    """Selectors: these models and all upstream of them are built; the others keep their published parts."""
    keep: int = KEPT_BUILDS
    """Number of builds to keep."""
    wait: bool = False
    """True to wait while another build of this target runs."""
    kernels: bool = True
    """True to compute models by their NumPy kernels where possible."""
    paranoid: bool = False
    """True to hash every raw file and every part again, even if its signature is unchanged."""
    share: Share | None = None
    """Share of the hours to make parts of, without publishing; None for a whole build."""
