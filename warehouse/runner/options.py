"""Options of one build, beside its settings."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

from warehouse.store.layout import KEPT_BUILDS


class BuildOptions(NamedTuple):
    """Options of one build."""

    select: tuple[str, ...] = ()
    """Selectors: these models and all upstream of them are built; the others keep their published parts."""
    keep: int = KEPT_BUILDS
    """Number of builds to keep."""
    wait: bool = False
    """True to wait while another build of this target runs."""
    paranoid: bool = False
    """True to hash every raw file and every part again, even if its signature is unchanged."""
    executor: Executor | None = None
    """Executor of the tasks; None for the threads of this machine."""
    hour: str | None = None
    """The only hour to make parts of, with what they read, without publishing; None for a whole build."""
