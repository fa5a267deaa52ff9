"""Commands in printed text, such as the next step after a build: for the target at hand, and whole on a line."""

from __future__ import annotations

from pathlib import Path

from warehouse.base.settings import usual_target
from warehouse.base.startup import regex

WITH_TARGET = (
    "build", "plan", "sql", "findings", "cite", "ls", "show", "lineage", "doctor", "diff", "verify", "builds",
    "rollback", "relocate", "clean", "export", "publish", "report", "docs", "demo", "mcp",
)  # fmt: skip
"""Commands that have `--target`."""
# `?+` gives nothing back: else a command with -d and -t would match without its -d, and get a second -t.
_NAMED = regex(rf"\bwarehouse (?:{'|'.join(WITH_TARGET)})\b(?: -d DIR)?+(?! -t )")
_WHOLE = regex(
    r"""\bwarehouse [a-z]+(?: -{1,2}[a-z][a-z-]*(?: (?:"[^"]*"|'[^']*'|[^\s"'(-]\S*))?| "[^"]*"| '[^']*')*"""
)
JOINED = "\xa0"
"""Space that no line breaks at."""


def for_target(text: str, target: Path) -> str:
    """Return a text whose commands name the target, unless they would use it anyway.

    >>> for_target("Next:  warehouse findings  (1 note)", Path("my builds"))
    "Next:  warehouse findings -t 'my builds'  (1 note)"
    >>> for_target("Next:  warehouse findings", Path("build/warehouse"))
    'Next:  warehouse findings'
    """
    if target.absolute() == usual_target().absolute():
        return text
    import shlex

    option = f" -t {shlex.quote(str(target))}"
    return _NAMED.sub(lambda found: found[0] + option, text)


def joined(text: str) -> str:
    r"""Return a text whose commands have `JOINED` for spaces, so that no line breaks within a command.

    >>> joined("4 TB: warehouse sql -q nic --server GPU-1 (all)").split(" ")
    ['4', 'TB:', 'warehouse\xa0sql\xa0-q\xa0nic\xa0--server\xa0GPU-1', '(all)']
    """
    return _WHOLE.sub(lambda found: found[0].replace(" ", JOINED), text)
