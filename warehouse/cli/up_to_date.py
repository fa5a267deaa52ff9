"""Fast path for a repeated `warehouse build`: with nothing to do, it ends before the command line is parsed.

The same arguments in the same folder, with the same environment variables and the same warehouse.toml, request the same
build. So the target caches the settings derived from them, and only input changes must be checked.
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
"""Default target folder."""


def repeated(arguments: Sequence[str]) -> bool | None:
    """Return True and print the summary if nothing changed since a build with these arguments.

    Return False if something changed, and None if the arguments are not cached.
    """
    started = time.perf_counter()
    try:
        last = json.loads(signatures.read_text(f"{_target(arguments)}/cache/{NAME}"))
        if last["words"] != words(arguments):
            return None
        unchanged, _ = snapshot.unchanged(last["request"])
        if unchanged is None:
            return False
        print_answer(unchanged, started, **last["manner"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return True


def remember(asked: Mapping[str, Any], arguments: Sequence[str], **manner: bool) -> None:
    """Cache the build request derived from the arguments, and its output options."""
    snapshot.write_cache_file(asked["target"], NAME, {"words": words(arguments), "request": asked, "manner": manner})


def words(arguments: Sequence[str]) -> dict[str, object]:
    """Return all inputs of the settings."""
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


def print_answer(answer: Mapping[str, Any], started: float, *, as_json: bool, quiet: bool) -> None:
    """Print that the last build is up to date."""
    summary = answer["summary"]
    if as_json:
        print(json.dumps(summary, indent=1), flush=True)
    elif not quiet:
        warnings = len(summary["checks"]["warned"])
        shown = [summary["build"][:8], f"{summary['parts']:,} parts", f"{answer['files']:,} files"]
        shown += [f"{warnings:,} warning{'s' * (warnings > 1)}"] * bool(warnings)
        sys.stderr.write(f"Up to date  {', '.join(shown)}, checked in {time.perf_counter() - started:.2f} s\n")


def _target(arguments: Sequence[str]) -> str:
    """Return the target named by the arguments, without a full parse; a wrong guess only costs the fast path."""
    for word, following in zip(arguments, (*arguments[1:], ""), strict=True):
        if word in ("-t", "--target"):
            return following
        if word.startswith("--target="):
            return word.removeprefix("--target=")
    return os.environ.get("WAREHOUSE_TARGET") or TARGET
