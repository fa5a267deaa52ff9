"""Synthetic releases with planted truth, for learning and for tests.

`write_sample` writes a small release in the published form, with the traps of the real one, and a `truth.json` that
lists what was planted. Heavy modules are imported on the first call.
"""

from __future__ import annotations

from pathlib import Path

from warehouse.sample.options import SampleOptions

__all__ = ["SampleOptions", "write_sample"]


def write_sample(directory: Path, options: SampleOptions = SampleOptions()) -> Path:  # noqa: B008 - frozen
    """Write a sample into `directory`, replacing an older sample there; return the path of `truth.json`.

    Raises `FileExistsError` if the folder holds anything other than a sample.
    """
    from warehouse.sample.release import write_release

    return write_release(Path(directory), options)
