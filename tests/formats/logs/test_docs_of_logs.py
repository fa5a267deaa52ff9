"""The example trainer of docs/formats/logs.md works as described there, from a project's own file."""

from __future__ import annotations

from pathlib import Path

import pytest

import warehouse
from tests.conftest import Command
from tests.release import lay_out_project
from warehouse.base.errors import ModelError
from warehouse.quality.model_tests import failed_examples

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "logs.md"
LINE = "2031-07-01 10:00:{:02d}.000 finished update {} of 90, objective 2.5, took 1250 ms"


def _example() -> str:
    return PAGE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project that reads logs and nothing else."""
    own = tmp_path / "own"
    own.mkdir()
    lay_out_project(own, ["staging.log_events"])
    (own / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    return own


def test_a_new_trainer_is_six_lines_of_a_project(project: Path, command: Command, tmp_path: Path) -> None:
    log = tmp_path / "d" / "c" / "taskinfo" / "t" / "worker-0.log"
    log.parent.mkdir(parents=True)
    labels = ("", "[rank0]:", "node-7 pytorch ")
    log.write_text("".join(f"{label}{LINE.format(at, at)}\n" for at, label in enumerate(labels, 1)))
    log.with_name("worker-1.txt").write_text(LINE.format(4, 4) + "\n")  # a log by its lines alone
    asked = "SELECT step, steps, loss, seconds, family FROM staging.log_events WHERE kind = 'iteration' ORDER BY step"

    def build() -> list[tuple[object, ...]]:
        warehouse.build(tmp_path / "d", tmp_path / "t", project=project)
        with warehouse.open(tmp_path / "t") as reader:
            return reader.sql(asked).fetchall()

    assert build() == []
    text = _example()
    assert len(text.splitlines()) == 6
    (project / "data" / "log_lines.yaml").write_text(text)
    assert build() == [(step, 90, 2.5, 1.25, "nanotrain") for step in (1, 2, 3, 4)]
    tested = command("test", "--project", project)
    assert (tested.status, tested.err) == (0, "")
    (project / "data" / "log_lines.yaml").write_text(text.replace("1.25}", "9}"))
    tested = command("test", "--project", project)
    assert tested.status == 1
    assert f"{project / 'data' / 'log_lines.yaml'}:" in tested.err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seconds: 1.25", "seconds: 9", "seconds 1.25, and it says"),
        ("{ms}", "{mz}", "no placeholder {mz}"),
        ("objective {loss}", "objective (?P<los>x)", "a group names no column: los"),
        ("objective {loss}", "objective ((a+)+)", "a repeat in a repeat, which can run very long"),
        ("objective {loss}", "objective .*{loss}", "the pattern has .* or"),
        ("  event: it", "  fields: {loss: x}\n  event: it", "the pattern is not a text"),
        ("{ms} ms'", "{ms} (ms'", "the pattern is not valid"),
        ("  event: iteration\n", "", "nanotrain iteration has no `event`"),
        ("event:", "evnt:", "unknown key `evnt` in nanotrain iteration"),
        ("loss: 2.5", "lost: 2.5", "unknown key `lost` in `gives`"),
        ("finished update 7", "concluded update 7", "the example is read as plain text"),
    ],
)
def test_a_wrong_kind_is_one_sentence_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "log_lines.yaml"
    path.write_text(_example().replace(old, new))
    try:
        _, found = failed_examples([path])
    except ModelError as error:
        found = [str(error)]
    assert [said in one and one.startswith(f"{path}:") for one in found] == [True], found
