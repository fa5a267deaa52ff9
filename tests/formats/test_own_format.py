"""The example of docs/own-format.md, as an installed package: it is read, and a wrong one is named."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import warehouse
from tests.conftest import call
from tests.release import lay_out_project
from warehouse.base.errors import SettingsError
from warehouse.cli.doctor_commands import plug_ins
from warehouse.formats import GROUP, known_formats
from warehouse.project.project import Project

ROOT = Path(warehouse.__file__).parents[1]
SHIPPED = [one.name for one in known_formats()]


@pytest.fixture
def blocks() -> dict[str, str]:
    """Code of the page by language."""
    page = (ROOT / "docs" / "own-format.md").read_text(encoding="utf-8")
    return dict(re.findall(r"```(python|toml|sql)\n(.*?)```", page.split("\n## ")[0], re.DOTALL))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of installed packages."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("rack_temperature", None)


def install(site: Path, code: str, points: dict[str, str]) -> None:
    """Write what `pip install` leaves."""
    (site / "rack_temperature.py").write_text(code, encoding="utf-8")
    info = site / "rack_temperature-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rack-temperature\nVersion: 1.0\n")
    listed = (f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{''.join(listed)}")


def test_the_example_is_read_from_an_installed_package(blocks: dict[str, str], site: Path, tmp_path: Path) -> None:
    points = tomllib.loads(blocks["toml"])["project"]["entry-points"][GROUP]
    assert len(blocks["python"].strip().splitlines()) <= 45
    install(site, blocks["python"], points)
    lay_out_project(tmp_path / "study", ["staging.rejected_rows"])
    (tmp_path / "study" / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    (tmp_path / "study" / "models" / "staging" / "rack_temperature.sql").write_text(blocks["sql"], encoding="utf-8")
    data = tmp_path / "room" / "rack_temperature.csv"
    data.parent.mkdir()
    data.write_text("time_utc,rack,celsius\n2024-05-23 16:00:00,A01,31.5\nyesterday,A01,31\n")

    warehouse.build(data.parent, tmp_path / "target", cluster="room", project=tmp_path / "study")

    said = call("doctor", "-d", data.parent, "--project", "study", "-t", "target", cwd=tmp_path).out
    assert f"format rack_temperature of rack-temperature 1.0: {site / 'rack_temperature.py'}\n" in said
    with warehouse.open(tmp_path / "target") as asked:
        assert asked.sql("SELECT cluster, rack, celsius FROM staging.rack_temperature").fetchall() == [
            ("room", "A01", 31.5)
        ]
        [(line, reason)] = asked.sql("SELECT line, reason FROM staging.rejected_rows").fetchall()
    assert line == 3
    assert "yesterday" in reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module", "the format rack_temperature:FORMAT of rack-temperature cannot be loaded: No module"),
        ("FORMAT = 1", "rack_temperature:FORMAT of rack-temperature is no format"),
        (
            "from warehouse.formats.zhejiang.workbook import WORKBOOK as FORMAT",
            "there is a raw.cluster_topology already",
        ),
    ],
)
def test_a_wrong_package_is_named(site: Path, code: str, reason: str) -> None:
    install(site, code, {"x": "rack_temperature:FORMAT"})
    with pytest.raises(SettingsError, match=re.escape(reason)):
        known_formats()


def test_doctor_names_a_package_that_cannot_be_loaded(site: Path, tmp_path: Path) -> None:
    install(site, "FORMAT = 1", {"x": "rack_temperature:FORMAT"})
    said = call("doctor", "-d", tmp_path, cwd=tmp_path)
    assert (said.status, said.out) == (2, "")
    assert said.err_text.startswith(
        "error: rack_temperature:FORMAT of rack-temperature is no format repair or uninstall"
    )


FILES = {
    "models/metrics/b.sql": "2 models of {}: models/metrics/b.sql, models/staging/a.py",
    "models/staging/a.py": "",
    "sql/queries/one.sql": "1 query file of {}: sql/queries/one.sql",
    "sql/macros/rates.sql": "1 macro file of {}: sql/macros/rates.sql",
    "sql/report/racks.sql": "1 figure of {}: sql/report/racks.sql",
    "data/racks.csv": "1 table of {}: data/racks.csv",
    "data/hour_columns.csv": "1 hour header file of {}: data/hour_columns.csv",
    "data/log_lines.yaml": "1 log pattern file of {}: data/log_lines.yaml",
    "data/traces/mine.yaml": "1 trace mapping of {}: data/traces/mine.yaml",
    **dict.fromkeys(("models/metrics/a.test.yaml", "data/tables.yaml", "sql/queries/README.md"), ""),
}
"""File of a project -> its line, which is that of the first file of its kind."""


@pytest.mark.parametrize("is_alone", [False, True], ids=["on top", "alone"])
def test_doctor_lists_the_files_of_a_project(tmp_path: Path, is_alone: bool) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    if is_alone:
        (tmp_path / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    lines = [line.format(tmp_path) for line in FILES.values() if line]
    assert sorted(plug_ins(Project.open(tmp_path))) == sorted(lines)
    assert list(plug_ins(Project.open())) == list(plug_ins(Project.open(ROOT))) == []
