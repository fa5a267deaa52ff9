"""Lines that differ in their digits alone are parsed once: the events are those of lines parsed one by one."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.formats.logs.test_labels import LABELS, LINES
from warehouse.formats.logs.line_kinds import line_kinds, read_kinds
from warehouse.formats.logs.reader import LogReader

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
EXAMPLES = [kind.example for kind in line_kinds() if not kind.scope]
PUBLIC = [line for path in sorted(CASES.glob("*/in/**/*.log")) for line in path.read_text().splitlines() if line]


def _digits_changed(line: str, chance: Random) -> str:
    return re.sub(r"\d", lambda digit: str(chance.randrange(10)) if chance.random() < 0.4 else digit[0], line)


def _read(path: Path) -> tuple[list[dict[str, Any]], list[tuple[int, str, str]], str]:
    rejected: list[tuple[int, str, str]] = []
    reader = LogReader("x.log", lambda *said: rejected.append(said))
    events = [{name: repr(value) for name, value in event.items() if value is not None} for event in reader.read(path)]
    return events, rejected, repr(reader.summary())


@pytest.mark.parametrize("seed", range(12))
def test_lines_of_one_form_give_the_events_of_lines_parsed_one_by_one(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    lines = [chance.choice([*EXAMPLES, *LINES.values(), *PUBLIC]) for _ in range(8)]
    labels = ["", "", *(chance.choice(LABELS) for _ in range(3))]
    written = [_digits_changed(chance.choice(labels) + chance.choice(lines), chance) for _ in range(150)]
    path = tmp_path / "x.log"
    path.write_text("".join(f"{line}\n" for line in written))

    cached = _read(path)
    monkeypatch.setattr(LogReader, "_remember", lambda *_: None)

    assert cached == _read(path)


def test_a_pattern_that_tells_digits_apart_is_tried_on_each_line(tmp_path: Path) -> None:
    kinds = tmp_path / "log_lines.yaml"
    kinds.write_text(
        "own iteration:\n  literal: 'v1 '\n  pattern: 'v1 update {step} of {steps}'\n  event: iteration\n"
        "  example: 'v1 update 1 of 9'\n  gives: {step: 1, steps: 9}\n"
    )
    path = tmp_path / "x.log"
    path.write_text("v2 update 1 of 9\nv1 update 2 of 9\nv2 update 3 of 9\nv1 update 4 of 9\n")

    events = LogReader("x.log", lambda *_: None, [*read_kinds(kinds), *line_kinds()]).read(path)

    assert [event["step"] for event in events] == [2, 4]
