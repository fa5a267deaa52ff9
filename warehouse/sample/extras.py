"""Files beside the data: a readme, and stray files that a reader must ignore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.sample import clock

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.sample.options import SampleOptions

README = """\
# A synthetic release

Nothing here was measured. These files were generated in the form of a published trace of a GPU cluster: a
topology workbook, and one CSV an hour for each switch port. The machines, jobs and faults are made up.

What was planted is in `truth.json` and `truth/` of the folder above this one: read the files here as if you
did not have it, then compare.
"""

_DS_STORE = b"\x00\x00\x00\x01Bud1" + bytes(6140)
_THUMBS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
_NOTES = b"copied from the collector, see the other folder for the logs\n"


def write_extras(release: Path, cluster: str, options: SampleOptions) -> list[str]:
    """Write the readme and the stray files; return the release paths of the stray files."""
    (release / "README.md").write_bytes(README.encode())
    hour = f"{cluster}/trafficinfo/{clock.hour_folder(0, options)}"
    strays = {
        f"{cluster}/taskinfo/.DS_Store": _DS_STORE,
        f"{hour}/Thumbs.db": _THUMBS,
        f"{hour}/notes.txt": _NOTES,
    }
    for path, content in strays.items():
        (release / path).parent.mkdir(parents=True, exist_ok=True)
        (release / path).write_bytes(content)
    return sorted(strays)
