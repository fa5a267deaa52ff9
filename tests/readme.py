"""Update the output of commands in the README: `make readme`.

A block of the README that begins with one of `BLOCKS` is that command and its output, shortened by `shorten`. Blocks of
the real files are updated only if these are available.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from tests.conftest import call

README = Path(__file__).parents[1] / "README.md"
BLOCKS = DEMO, REAL, FINDINGS = "make demo", "warehouse build -d data/real/zhejiang", "warehouse findings"

_LEFT_OUT = re.compile(r" +(?:looking for bad lines .*|(?:raw|reference|staging|topology|metrics)\.\S+ .*|[kMG]?B)")
"""Slowest parts and files that are read twice: they differ between machines."""
_SHOWN_QUERY = "$ warehouse sql -q nic "
_MAY_DIFFER = (
    (r"(?<=^Built  )[0-9a-f]{8}", "ID"),
    (r"→ \S+", "→ PLACE"),
    (r"\b\d+(\.\d+)? (B|kB|MB|GB)\b", "SIZE"),
    (r",? \d+ there already\b", ""),
    (r" +\d+\.\d s$", " TIME"),
)
"""Output that depends on the machine, its load or the version of the engine."""


def block(text: str, command: str) -> str:
    """Return the block of the README for a command, without the command itself."""
    [found] = re.findall(rf"^```\n\$ {re.escape(command)}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def shorten(said: str) -> str:
    """Replace lines that differ between runs, and all but one query answer, by `...`."""
    paragraphs = said.strip("\n").split("\n\n")
    hidden = [one.startswith("$ ") and not one.startswith(_SHOWN_QUERY) for one in paragraphs]
    lines = "\n\n".join("..." if hide else one for hide, one in zip(hidden, paragraphs, strict=True)).split("\n")
    marked = "\n".join("..." if _LEFT_OUT.fullmatch(line) else line for line in lines)
    return re.sub(r"\.\.\.(\n+\.\.\.)+", "...", marked) + "\n"


def run(command: str, folder: Path) -> str:
    """Run a command in an empty folder and return its shortened output."""
    words = ["demo"] if command == DEMO else command.split()[1:]
    if command == FINDINGS:
        built = call(*REAL.split()[1:], cwd=folder)
        assert built.status == 0, built
        said = call(*words, cwd=folder)
        assert said.status == 0, said
        return said.out
    said = call(*words, cwd=folder)
    assert said.status == 0, said
    return shorten(f"{said.err.rstrip()}\n\n{said.out.lstrip()}")


def compared(text: str) -> list[str]:
    """Return the lines of a block without parts that may differ; drop lines of slow parts."""
    lines = [line for line in text.splitlines() if line != "..."]
    for pattern, instead in _MAY_DIFFER:
        lines = [re.sub(pattern, instead, line) for line in lines]
    return lines


def main() -> None:
    """Update every block whose files are available, one after the other."""
    text = README.read_text(encoding="utf-8")
    real = Path(os.environ.get("WAREHOUSE_REAL", README.parent / "data" / "real"))
    for command in BLOCKS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if command in (REAL, FINDINGS):
                if not (real / "zhejiang").is_dir():
                    print(f"stays: {command} (no real files at hand)", file=sys.stderr)
                    continue
                link_real(folder, real)
            head = f"```\n$ {command}\n"
            text = text.replace(head + block(text, command), head + run(command, folder))
            README.write_text(text, encoding="utf-8")
            print(f"written: {command}", file=sys.stderr)


def link_real(folder: Path, real: Path) -> None:
    """Link the real files to the path in the README's command."""
    (folder / "data").mkdir()
    (folder / "data" / "real").symlink_to(real.resolve())


if __name__ == "__main__":
    main()
