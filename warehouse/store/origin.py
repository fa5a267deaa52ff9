"""Where a file was written: host, boot and process, as temporary names and locks hold them."""

from __future__ import annotations

import os
import re
import socket
import zlib
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def machine() -> str:
    """Return host name and a hash of boot id and process namespace, `node-1~3f9c01aa`.

    A process id means a process only within one boot and one namespace: containers may share a host name.
    """
    try:
        boot = _BOOT_ID.read_text(encoding="ascii") + str(Path("/proc/self/ns/pid").readlink())
    except (OSError, ValueError):  # not Linux
        boot = ""
    return f"{re.sub('[^A-Za-z0-9-]', '-', socket.gethostname())[:40]}~{zlib.crc32(boot.encode()):08x}"


def is_running(process: int) -> bool:
    """Return True if a process of this machine runs."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def has_ended(origin: str, process: int) -> bool | None:
    """Return True if a process has ended, by the machine and id that it noted; None if that cannot be known here."""
    return not is_running(process) if origin == machine() else None
