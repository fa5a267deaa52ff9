"""Two commands at most answer each of the ten questions of docs/questions.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import call

PAGE = Path(__file__).parents[1] / "docs" / "questions.md"
ANSWERS = {
    "Which uplink is the fullest?": r"Leaf-2 +FourHundredGigE1/0/34 +spine-1 .* out",
    "Are the spines used evenly?": r"spine-1 .*\nspine-2 .*\nspine-3 .*",
    "Where are the NICs of a server, and what do they do?": r"mlx5_2 +ens10np0 +Leaf-2 +TwoHundredGigE1/0/1:1",
    "Which links are mis-cabled or carry no data?": r"carries no data outward[^~]* server_in_other_group +GPU-69",
    "How much does an iteration of a task send, or why does nobody know?": r"mlx5_2 +(ok|shared) +[\d.]+ [GM]B",
    "Where is uplink_balance.cov from?": r"deviation over mean[^~]*comes from\n[^~]*  raw.port_counters: .*InOctets",
    "How is a table exported and cited?": r"Wrote  2 files of data[^~]*no DOI known[^~]*_balance; .*citation [0-9a-f]+",
    "Who trains together?": r"\bGPU-\d+ GPU-\d+",
    "How long did ITP's jobs wait in the median, or why does nobody know?": r"neither\s+queueing\s+nor\s+start\s+times",
    "Which tables are about jobs?": r"^How long do jobs run and wait\?\n(  metrics\..*\n(    .*\n)+)+",
}
"""Text in the answer on the sample."""


def _asked() -> dict[str, list[str]]:
    block = re.findall(r"^```\n(# Which uplink.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    said = [part.splitlines() for part in block.strip().split("\n\n")]
    return {lines[0].removeprefix("# "): lines[1:] for lines in said}


def test_there_are_ten_questions() -> None:
    assert list(_asked()) == list(ANSWERS)
    assert len(ANSWERS) == 10


@pytest.mark.parametrize("question", ANSWERS)
def test_two_commands_answer_a_question(question: str, built: Path, tmp_path: Path) -> None:
    (tmp_path / "warehouse.toml").write_text(f"target = {json.dumps(str(built))}\n", encoding="utf-8")
    commands = _asked()[question]
    assert 1 <= len(commands) <= 2
    answer = ""
    for command in commands:
        name, *words = shlex.split(command)
        assert name == "warehouse"
        shown = ["--format", "table"] if words[0] == "sql" else []
        said = call(*words, *shown, cwd=tmp_path)
        assert said.status == 0, said
        answer += said.out + said.err
    assert re.search(ANSWERS[question], answer, re.MULTILINE), answer
