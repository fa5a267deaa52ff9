"""Examples in documents: blocks that begin with `$ `, each command with its output below."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_NOT_COMPARED = (
    (r"(?<=Built  )[0-9a-f]{8}|(?<=build )[0-9a-f]{16}", "ID"),
    (r"\d+ (models|parts|passed|there already)\b", r"N \1"),  # counts that change with the project
    (r"\d+(\.\d+)? (B|kB|MB|GB)\b", "SIZE"),
    (r"\d+\.\d s\b", "TIME"),
    (r"→ \S+", "→ PLACE"),
    (r"sha256 [0-9a-f]+; citation [0-9a-f]+", "sha256 SUM; citation ID"),
    (r"\s+", " "),
)
"""Output that depends on the machine, or changes with every model."""
_SLOWEST = re.compile(r"(raw|reference|staging|topology|metrics)\.\w+ .*\brows?( TIME SIZE)?|TIME SIZE")


class Example(NamedTuple):
    """Command and its documented output."""

    page: str
    command: str
    output: str


def examples(page: Path) -> list[Example]:
    """Return the commands of a page that have output below them, with continuation lines joined."""
    found = []
    for block in re.findall(r"^```\n(\$ .*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, output = re.fullmatch(r'((?:[^"\n]|"[^"]*")*)\n(.*)', part, re.DOTALL).groups()  # type: ignore[union-attr]
            if output.strip():
                found.append(Example(page.relative_to(ROOT).as_posix(), " ".join(command.split()), output))
    return found


def section(page: Path, title: str, language: str) -> list[str]:
    """Return the blocks of a language below a heading of a page."""
    text = page.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def changed(text: str, diff: str) -> str:
    """Return a file with the hunks of a diff of a page, which `...` separates; each must fit at one place."""
    for hunk in diff.split("...\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        assert text.count(before) == 1, f"not in the file: {before}"
        text = text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))
    return text


def citation_in(text: str) -> str:
    """Return the id of a citation that `--cite` prints."""
    [found] = re.findall(r"citation ([0-9a-f]+)", text)
    return str(found)


def same(documented: str, said: str) -> bool:
    """Return True if the output equals the documented one; `...` matches any lines, empty lines are ignored."""
    wanted = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in _lines(documented))
    heard = "".join(f"{line}\n" for line in _lines(said))
    return re.fullmatch(wanted, heard) is not None


def _lines(text: str) -> list[str]:
    """Return the lines without empty lines and without the slowest parts."""
    return [line for line in map(_plain, text.split("\n")) if line and not _SLOWEST.fullmatch(line)]


def _plain(line: str) -> str:
    for pattern, instead in _NOT_COMPARED:
        line = re.sub(pattern, instead, line)
    return line.strip()
