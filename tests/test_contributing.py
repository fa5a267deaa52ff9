"""Walk-throughs of docs/models.md and docs/own-format.md work as written: a test of a model, a format for CSV files."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.examples import ROOT, Example, examples, same, section

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PAGE = ROOT / "docs" / "models.md"
FORMATS = ROOT / "docs" / "own-format.md"


def shown(words: str) -> Example:
    """Return the command of the page that begins with these words."""
    return next(one for one in examples(PAGE) if one.command.startswith(words))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_test_of_a_model(command: Command, tmp_path: Path) -> None:
    [test] = section(PAGE, "Test a model", "yaml")
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


MODEL = """/* ---
about: Power of each rack, one row per minute.
grain: [cluster, rack, time_utc]
columns:
  cluster: VARCHAR the cluster's folder
  rack: VARCHAR name of the rack
  time_utc: TIMESTAMP when it was measured
  watts: BIGINT [W] power of the rack
--- */
SELECT f.cluster, r.rack, r.time_utc, r.watts
FROM raw.rack_power AS r
JOIN raw.files AS f ON f.read_path = r.filename
"""


def test_one_more_raw_format(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [module] = section(FORMATS, "Files that DuckDB reads", "python")
    study = tmp_path / "study"
    _write(study / "warehouse.toml", "shipped = false\n")
    _write(study / "models" / "staging" / "rack_power.sql", MODEL)
    shutil.copy(ROOT / "models" / "staging" / "rejected_rows.sql", study / "models" / "staging")
    shutil.copytree(ROOT / "sql" / "macros", study / "sql" / "macros")
    _know(module, tmp_path / "rack_power.py", monkeypatch)
    good, bad, torn = "2024-05-23 16:00:00,A01,8100", "2024-05-23 16:01:00,A01,n/a", "2024-0"
    _write(tmp_path / "room" / "rack_power.csv", "\n".join(["time_utc,rack,watts", good, bad, torn]))

    said = command("build", "-d", "room/", "--cluster", "room", "--project", "study")

    assert said.status == 0, said.err
    assert "1 rack power" in said.err
    assert command("sql", "SELECT cluster, rack, watts FROM staging.rack_power").out.split() == [
        "cluster,rack,watts",
        "room,A01,8100",
    ]
    rejected = command("sql", "SELECT line, reason FROM staging.rejected_rows ORDER BY line").out
    assert rejected.splitlines()[1:] == [
        '3,"not a time, a rack and whole watts"',
        "4,torn: the file ends without a final newline",
    ]


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
