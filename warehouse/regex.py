"""Regular expressions that are compiled when they are first asked: of those here, a command needs few."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import compile as regex
else:

    class regex:  # noqa: N801
        """Stands for what `re.compile` would give.

        >>> regex("b+").sub("c", "abba")
        'aca'
        """

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> object:
            found = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, found)  # from now on it is asked at once
            return found


__all__ = ["regex"]
