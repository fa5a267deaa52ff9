"""Walk-throughs of CONTRIBUTING work as written: a test of a model, a format, its model and its test."""

from __future__ import annotations

import importlib.util
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.examples import ROOT, Example, examples, same, section

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PAGE = ROOT / "CONTRIBUTING.md"


def shown(words: str) -> Example:
    """Return the command of the page that begins with these words."""
    return next(one for one in examples(PAGE) if one.command.startswith(words))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_test_of_a_model(command: Command, tmp_path: Path) -> None:
    [test] = section("Test a model", "yaml")
    model = (ROOT / "models" / "metrics" / "leaf_hour.sql").read_text(encoding="utf-8")
    _write(tmp_path / "study" / "models" / "metrics" / "leaf_hour.sql", model)
    place = tmp_path / "study" / "models" / "metrics" / "leaf_hour.test.yaml"
    _write(place, test)
    said = command("test", "metrics.leaf_hour", "--project", "study")
    assert said.status == 0, said.out + said.err

    _write(place, re.sub(r"45, ( *)0\.5", r"46, \g<1>0.5", test))
    said = command("test", "metrics.leaf_hour", "--project", "study")
    assert said.status == 1
    assert same(shown("warehouse test").output, said.err + said.out), said.err + said.out


def test_one_more_raw_format(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, test = section("Read one more raw format", "python")
    [model] = section("Read one more raw format", "sql")
    _write(tmp_path / "study" / "models" / "staging" / "rack_power.sql", model)
    _know(module, tmp_path / "rack_power.py", monkeypatch)
    rows = ["time_utc,rack,watts", "2024-05-23 16:00:00,A01,8100", "2024-05-23 16:01:00,A01,8200", ""]
    _write(tmp_path / "room" / "rack_power.csv", "\n".join(rows))

    said = command("build", "-d", "room/", "--cluster", "room", "--project", "study")

    assert said.status == 0, said.err
    assert same(shown("warehouse build -d room/").output, said.err), said.err
    asked = command("sql", "FROM staging.rack_power", "--format", "table")
    assert same(shown('warehouse sql "FROM staging.rack_power"').output, asked.out), asked.out

    spoiled: dict[str, Any] = {}
    exec(compile(test, "test_rack_power.py", "exec"), spoiled)
    lines = ["time_utc,rack,watts", spoiled["GOOD"], spoiled["BAD"], spoiled["TORN"]]
    _write(tmp_path / "torn" / "rack_power.csv", "\n".join(lines))
    assert command("build", "-d", "torn", "--project", "study", "-t", "t").status == 0
    rejected = command("sql", "SELECT line, reason FROM staging.rejected_rows ORDER BY line", "-t", "t").out
    for line, reason in re.findall(r'\((\d), "(.*?)"\)', test):
        assert f'{line},"{reason}"' in rejected or f"{line},{reason}" in rejected


def _know(text: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the format of this module."""
    from warehouse import formats

    _write(path, text)
    spec = importlib.util.spec_from_file_location("rack_power", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    known = (*formats.known_formats(), module.RACK_POWER)
    for name, one in list(sys.modules.items()):
        if name.startswith("warehouse") and hasattr(one, "known_formats"):
            monkeypatch.setattr(one, "known_formats", lambda *_, **__: known)
