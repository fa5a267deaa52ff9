"""What a build tells: plain lines on a stream, a bar on a terminal, nothing where nobody looks."""

from __future__ import annotations

import io

import pytest

from tests.tiny import Tiny
from warehouse.building import build
from warehouse.errors import ModelError
from warehouse.report import Silent, Terminal, on_one_line
from warehouse.settings import settle


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def told(tiny: Tiny, stream: io.StringIO) -> str:
    reporter = Terminal(stream)
    settings = settle({"data": [str(tiny.data)], "target": str(tiny.target)})
    with reporter.telling(tiny.target):
        reporter.ended(build(settings, reporter))
    return stream.getvalue()


def test_a_stream_gets_plain_lines(tiny: Tiny) -> None:
    lines = told(tiny, io.StringIO()).splitlines()
    assert [line[:6] for line in lines if line[0] != " "] == ["Found ", "Build ", "Check ", "Built "]


def test_a_path_is_never_broken(tiny: Tiny) -> None:
    tiny.target = tiny.base / ("a-long-name-" * 10)
    assert str(tiny.target) in told(tiny, io.StringIO())


def test_a_terminal_gets_a_bar_that_is_gone_in_the_end(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    said = told(tiny, Screen())
    assert "Build  0/2 parts" in said
    assert "\nBuilt  " in said
    assert said.count("\x1b[?25h") == said.count("\x1b[?25l") == 1  # the cursor was hidden, and shown again


def test_a_terminal_has_its_cursor_back_after_an_error(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    told(tiny, io.StringIO())
    tiny.model(
        "metrics.total",
        "SELECT port AS name, CAST(port AS BIGINT) AS speed FROM staging.ports",
        {"name": "VARCHAR", "speed": "BIGINT"},
    )
    screen = Screen()
    with pytest.raises(ModelError):
        told(tiny, screen)
    said = screen.getvalue()
    assert said.count("\x1b[?25h") == said.count("\x1b[?25l") == 1
    assert "Nothing was published; " in said


def test_silence_is_silence(tiny: Tiny, capfd: pytest.CaptureFixture[str]) -> None:
    build(settle({"data": [str(tiny.data)], "target": str(tiny.target)}), Silent())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain ü 中", "plain ü 中"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eabc", "\\u202eabc"),
        ("it's", "it's"),
    ],
)
def test_a_name_cannot_break_a_line_or_move_the_cursor(name: str, shown: str) -> None:
    assert on_one_line(name) == shown
