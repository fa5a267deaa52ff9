"""Build output: plain lines on a stream, a bar on a terminal, nothing if quiet."""

from __future__ import annotations

import io
import re

import pytest

from tests.tiny import Tiny
from warehouse.base.errors import ModelError
from warehouse.base.settings import settle
from warehouse.runner.build import build
from warehouse.runner.reporter import Bar, Reporter, with_progress


class Screen(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def built_with_progress(tiny: Tiny, stream: io.StringIO) -> str:
    reporter = Reporter(stream)
    settings = settle({"data": [str(tiny.data)], "target": str(tiny.target)})
    with reporter.reporting_failure(tiny.target):
        reporter.ended(build(settings, reporter))
    return stream.getvalue()


def test_a_stream_gets_plain_lines(tiny: Tiny) -> None:
    tiny.target = tiny.base / ("a-long-name-" * 10)
    said = built_with_progress(tiny, io.StringIO())
    lines = said.splitlines()
    assert str(tiny.target) in said, "a path is never broken"
    assert [line[:6] for line in lines if line[0] != " "] == ["Found ", "Build ", "Check ", "Built "]


def test_a_terminal_gets_a_bar_that_is_removed_at_the_end_and_after_an_error(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    said = built_with_progress(tiny, Screen())
    assert re.search(r"Build +\S+ 0/2 +0% 0:00:0\d", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said))
    assert "\nBuilt  " in said
    assert said.count("\x1b[?25h") == said.count("\x1b[?25l") == 1  # the cursor was hidden and restored
    tiny.model("metrics.total", "SELECT CAST(port AS BIGINT) AS speed FROM staging.ports", {"speed": "BIGINT"})
    screen = Screen()
    with pytest.raises(ModelError):
        built_with_progress(tiny, screen)
    said = screen.getvalue()
    assert said.count("\x1b[?25h") == said.count("\x1b[?25l") == 1
    assert "Nothing was published; " in said


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_bar_is_one_line_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", columns)
    screen = Screen()
    with Bar(screen, "Verify", "the parts that are there") as bar:
        names = ["metrics.b", f"metrics.a_long_name_{'x' * 60}"]
        assert list(with_progress(names, bar)) == names
    drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "2/2 100%" in drawn or columns == "40"
    assert max(len(line.rstrip()) for line in re.split(r"[\r\n]", drawn)) <= int(columns)
    assert drawn.count("\n") <= 1  # the end of the line itself
    assert ("metrics.a_long_name" in drawn) == (columns in ("80", "200"))
