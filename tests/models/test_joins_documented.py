"""Every JOIN of the fabric and of tasks says beside it what guards its rows; docs/trust.md has the words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODELS = ("topology/*", "reference/*", "metrics/*")
OF_JOBS = re.compile(r"claim|elasticflow|allocation|idle_gpus|job|published|server_power|utilization")
"""Models of metrics that read job tables, utilization files or published figures, not the fabric or a task's log."""
_JOIN = re.compile(r"\bJOIN\b|\bEXISTS\s*\(")
_READS = re.compile(r"^reads: \[.*,.*$", re.MULTILINE)
_WORDS = "check|warning|grain|once|whole|filter|count"
_ONE = rf"(?:(?:check|warning) of \w+(?: and \w+)*|{_WORDS})"
_GUARD = re.compile(rf"(?:--|#) (?P<guard>{_ONE}(?:, {_ONE})*)(?:: .+)?$")


def models() -> dict[str, str]:
    """Return the SELECT of each model whose joins must say it, by name; of a Python model the line of its inputs."""
    found = {}
    for path in sorted(path for pattern in MODELS for path in (ROOT / "models").glob(f"{pattern}.*")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".sql" and not OF_JOBS.search(path.stem):
            found[path.stem] = text.split("--- */", 1)[1]
        elif path.suffix == ".py" and (reads := _READS.search(text)):
            found[path.stem] = reads[0]
    return found


def joins(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each line with a JOIN, an EXISTS or the inputs of a Python model, and its guard.

    The guard is the comment behind the line, or above one that would be too long.
    """
    above = ""
    for line in text.splitlines():
        if _JOIN.search(line.partition("--")[0]) or _READS.match(line):
            found = _GUARD.search(line) or _GUARD.match(above.strip())
            yield line, found["guard"] if found else None
        above = line


def test_every_join_says_what_guards_its_rows_and_names_models_that_have_checks() -> None:
    texts = {
        path.name.partition(".")[0]: path.read_text(encoding="utf-8") for path in (ROOT / "models").glob("*/*.[sp]*")
    }
    without, unchecked, guarded = [], [], 0
    for model, text in models().items():
        for line, guard in joins(text):
            if guard is None:
                without.append((model, line))
                continue
            guarded += 1
            named = re.findall(r"(?:check|warning) of (\w+(?: and \w+)*)", guard)
            own = [model] if re.search(r"\b(?:check|warning)\b(?! of)", guard) else []
            names = [*own, *(one for several in named for one in several.split(" and "))]
            unchecked += [(model, line, name) for name in names if "\nchecks:\n" not in texts[name]]
    assert without == []
    assert unchecked == []
    assert guarded > 100
