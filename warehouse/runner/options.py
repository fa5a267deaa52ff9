"""What a build is asked for, beside its settings."""

from __future__ import annotations

from typing import NamedTuple


class BuildOptions(NamedTuple):
    """The options of one build."""

    select: tuple[str, ...] = ()
    """Selectors; models that they do not name keep their last parts."""
    keep: int = 3
    """How many builds stay."""
    wait: bool = False
    """Whether to wait for another build of this target."""
    kernels: bool = True
    """Whether models may be made by their kernels."""
    paranoid: bool = False
    """Whether every raw file and every part is hashed again, whatever its size and times say."""
