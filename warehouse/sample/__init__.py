"""Synthetic releases with planted truth, for learning and for tests.

`write_sample` writes a small release in the published form, with the traps of the real one, and a `truth.json` that
lists what was planted.
"""

from warehouse.sample.basics import SampleOptions
from warehouse.sample.release import write_sample

__all__ = ["SampleOptions", "write_sample"]
