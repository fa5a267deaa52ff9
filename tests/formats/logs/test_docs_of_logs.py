"""The example trainer of docs/formats/logs.md works as described there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.formats.logs.conftest import Read, Rejects
from warehouse.formats.logs.dialects import Dialects

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "logs.md"


def test_a_new_trainer_is_one_module(
    read: Read, rejects: Rejects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) <= 21
    (tmp_path / "nanotrain.py").write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("nanotrain", tmp_path / "nanotrain.py")
    assert spec
    assert spec.loader
    nanotrain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(nanotrain)
    make = Dialects.__init__

    def make_with_nanotrain(self: Dialects) -> None:
        make(self)
        self._trainers = (*self._trainers, nanotrain.read)

    monkeypatch.setattr(Dialects, "__init__", make_with_nanotrain)
    line = "step {} of 90: loss 2.5 in 1.25 s"

    events = read(line.format(7), f"3: {line.format(8)}", f"[rank0]:{line.format(9)}", "step 10 of 90: lo")

    iterations = [(event["step"], event["seconds"]) for event in events if event["kind"] == "iteration"]
    assert iterations == [(7, 1.25), (8, 1.25), (9, 1.25)]
    assert [(line, reason) for line, reason, _ in rejects] == [(4, "damaged: an iteration does not parse to its end")]
