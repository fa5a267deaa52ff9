"""Start of the command and of `import warehouse`: nothing heavy is imported before it is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

import warehouse
from tests.cli.new_python import python
from tests.conftest import Command
from tests.tiny import Tiny

HEAVY = {"duckdb", "_duckdb", "sqlglot", "jinja2", "rich", "numpy", "openpyxl", "pyarrow", "scipy", "yaml", "zstandard"}


LOADED = "import sys\ntry:\n    {}\nexcept SystemExit:\n    pass\nprint('\\n', *sorted(sys.modules))"


@pytest.mark.parametrize(
    "code",
    [
        "from warehouse.cli import main; main(['--version'])",
        "from warehouse.cli import main; main(['sql', '--help'])",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = {name.partition(".")[0] for name in python(LOADED.format(code)).splitlines()[-1].split()}
    assert loaded & HEAVY == set()


def test_a_build_and_a_query_load_the_engine_without_its_python_layer(tiny: Tiny) -> None:
    tiny.write("warehouse.toml", "shipped = false\n")
    for words in ("build", "--project", str(tiny.folder)), ("sql", "SELECT 1"):
        code = f"from warehouse.cli import main; main({[*words, '-t', str(tiny.target)]})"
        loaded = set(python(LOADED.format(code)).splitlines()[-1].split())
        assert loaded & {"_duckdb", "duckdb", "importlib.metadata"} == {"_duckdb"}


def test_build_and_open_are_functions_even_after_modules_of_similar_names_were_imported() -> None:
    code = "import warehouse, warehouse.runner.build, warehouse.reader.connection, warehouse.cli.build_commands\n"
    assert python(code + "print(warehouse.build.__name__, warehouse.open.__name__)") == "build open\n"


def test_the_version_is_printed(run_cli: Command) -> None:
    assert run_cli("--version") == (0, f"warehouse {warehouse.__version__}\n", "")
