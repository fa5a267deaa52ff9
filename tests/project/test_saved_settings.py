"""`--save` keeps what was given, and leaves the rest of the file alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import Tiny
from warehouse.base.errors import SettingsError
from warehouse.base.settings import settle
from warehouse.project.scaffold import save


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# mine\nthreads = 2\n",
        'data = ["old"]\nthreads = 2 # two\n',
        'target = "old"\ndata = [\n  "one",  # the first\n  "two",\n]\n',
        "data = 'old'\n",
    ],
)
def test_what_is_saved_is_settled_the_next_time(tmp_path: Path, before: str) -> None:
    (tmp_path / "warehouse.toml").write_text(before, encoding="utf-8")
    path = save(['a "b"', "ü"], "out", tmp_path)
    settings = settle({}, folder=tmp_path)
    assert settings.data == (tmp_path / 'a "b"', tmp_path / "ü")
    assert settings.target == tmp_path / "out"
    kept = [line for line in before.splitlines() if line.startswith(("#", "threads"))]
    assert [line for line in path.read_text(encoding="utf-8").splitlines() if line in kept] == kept


def test_there_is_something_to_save(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="neither is given"):
        save([], None, tmp_path)
    (tmp_path / "warehouse.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot be written"):
        save(["data"], None, tmp_path)


def test_a_build_saves_and_the_next_one_needs_no_option(tiny: Tiny) -> None:
    said = tiny.build("--save")
    assert said.status == 0
    assert "warehouse.toml" in said.err
    assert f'data = ["{tiny.data}"]' in (tiny.base / "warehouse.toml").read_text(encoding="utf-8")


def test_a_build_that_fails_saves_nothing(tiny: Tiny) -> None:
    assert tiny.build("-d", tiny.base / "nowhere", "--save").status == 2
    assert not (tiny.base / "warehouse.toml").exists()
