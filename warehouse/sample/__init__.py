"""Synthetic releases with planted truth, to learn on and to test against.

`write_sample` lays out a small release in the published form, with the traps of the real one, and a
`truth.json` that says what was planted. Nothing heavy is imported until it runs.
"""

from __future__ import annotations

from pathlib import Path

from warehouse.sample.options import SampleOptions

__all__ = ["SampleOptions", "write_sample"]


def write_sample(directory: Path, options: SampleOptions = SampleOptions()) -> Path:  # noqa: B008 - frozen
    """Write a sample into `directory`, replacing an older sample there; returns the path of `truth.json`.

    Raises `FileExistsError` where the folder holds something that is not a sample.
    """
    from warehouse.sample.release import write_release

    return write_release(Path(directory), options)
