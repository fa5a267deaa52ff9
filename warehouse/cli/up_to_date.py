"""`warehouse build` in the words of the last one: with nothing to do, it ends before the command line is parsed.

The same words in the same folder, with the same variables and the same warehouse.toml, mean the same build. So
what they came to the last time is remembered in the target, and only whether anything has changed is left to ask.
"""

from __future__ import annotations

import json
import os
import sys
import time

from warehouse.store import signatures, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NAME = "words.json"
TARGET = "build/warehouse"
"""Where a target is that nobody names."""


def repeated(arguments: Sequence[str]) -> bool | None:
    """Whether nothing has changed since a build in these words; then that has been said. None of other words."""
    started = time.perf_counter()
    try:
        last = json.loads(signatures.read_text(f"{_target(arguments)}/cache/{NAME}"))
        if last["words"] != words(arguments):
            return None
        said, _ = snapshot.unchanged(last["asked"])
        if said is None:
            return False
        tell(said, started, **last["manner"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return True


def remember(asked: Mapping[str, Any], arguments: Sequence[str], **manner: bool) -> None:
    """Keep what words came to: what was asked for, and in which manner it is answered."""
    snapshot.write(asked["target"], NAME, {"words": words(arguments), "asked": asked, "manner": manner})


def words(arguments: Sequence[str]) -> dict[str, object]:
    """All that settings follow from."""
    try:
        config = signatures.read_text("warehouse.toml")
    except FileNotFoundError:
        config = ""
    return {
        "arguments": list(arguments),
        "folder": os.getcwd(),
        "models": os.path.isdir("models"),
        "config": config,
        "variables": {name: value for name, value in os.environ.items() if name.startswith("WAREHOUSE_")},
    }


def tell(said: Mapping[str, Any], started: float, *, as_json: bool, quiet: bool) -> None:
    """Say that the last build stands."""
    summary = said["summary"]
    if as_json:
        print(json.dumps(summary, indent=1), flush=True)
    elif not quiet:
        warnings = len(summary["checks"]["warned"])
        shown = [summary["build"][:8], f"{summary['parts']:,} parts", f"{said['files']:,} files"]
        shown += [f"{warnings:,} warning{'s' * (warnings > 1)}"] * bool(warnings)
        sys.stderr.write(f"Up to date  {', '.join(shown)}, checked in {time.perf_counter() - started:.2f} s\n")


def _target(arguments: Sequence[str]) -> str:
    """The target that the words name, as far as that shows; a wrong guess costs what parsing them costs."""
    for word, following in zip(arguments, (*arguments[1:], ""), strict=True):
        if word in ("-t", "--target"):
            return following
        if word.startswith("--target="):
            return word.removeprefix("--target=")
    return os.environ.get("WAREHOUSE_TARGET") or TARGET
