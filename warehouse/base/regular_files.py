"""Open regular files only: a pipe without a writer would block forever, a device may never end."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader

NOT_REGULAR = "not a regular file"


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file to read its bytes. Raises OSError for a pipe, socket or device."""
    return open(path, "rb", opener=opener)


def opener(path: str, flags: int) -> int:
    """Open a regular file for `open`, without waiting for a writer. Raises OSError for anything else."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    # The open file is examined, not the path, which can lead elsewhere between two calls.
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a file", str(path))
    return handle
