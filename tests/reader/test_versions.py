"""Published file in other versions of DuckDB, each in an environment of its own; `make compat`."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

from tests.conftest import Command
from tests.environments import environment

VERSIONS = ("1.4.5", "1.5.6")
"""Last release of each other series that reads the file."""

SUMMARY = """
import json, sys, duckdb
opened = duckdb.connect(sys.argv[1], read_only=True)
opened.execute("SET enable_progress_bar = false")  # which is drawn on stdout after two seconds
opened.execute("SET TimeZone = 'UTC'")
columns = opened.execute('''
    SELECT schema_name || '."' || table_name || '"', list('"' || column_name || '"' ORDER BY column_index),
        list(data_type ORDER BY column_index)
    FROM duckdb_columns() WHERE NOT internal GROUP BY ALL ORDER BY ALL
''').fetchall()
found = {}
for relation, names, types in columns:
    asked = ['count(*)']
    for name, kind in zip(names, types):
        asked += [f'count({name})', f'min({name})::VARCHAR', f'max({name})::VARCHAR']
        if kind.endswith('INT') or kind.endswith('INTEGER'):
            asked.append(f'sum({name})::VARCHAR')
        elif kind == 'DOUBLE' or kind.startswith('DECIMAL'):
            asked.append(f'avg({name})')
    # The first rows of a view over raw files, which is parsed anew for each query.
    rows = f'(FROM {relation} LIMIT 1000)' if relation.startswith('raw.') else relation
    found[relation] = [types, *opened.execute(f'SELECT {", ".join(asked)} FROM {rows}').fetchone()]
print(json.dumps([duckdb.__version__, found]))
"""
"""Row counts of every table and view; values, minimum, maximum and sum or mean of each column."""


def engine(version: str) -> Path:
    """Return the Python of an environment with this version and nothing else."""
    return environment(f"duckdb-{version}", f"duckdb=={version}\n")


def summary(python: Path | str, file: Path) -> tuple[str, dict[str, list[object]]]:
    said = subprocess.run([str(python), "-I", "-c", SUMMARY, str(file)], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    version, found = json.loads(said.stdout)
    return str(version), dict(found)


def test_every_table_and_view_has_equal_rows_in_older_versions(built: Path) -> None:
    _, expected = summary(sys.executable, built / "warehouse.duckdb")
    for version in VERSIONS:
        ran, found = summary(engine(version), built / "warehouse.duckdb")
        assert (ran, found.keys()) == (version, expected.keys())
        for relation, values in found.items():
            for ours, theirs in zip(expected[relation], values, strict=True):
                if isinstance(ours, float) and isinstance(theirs, float):  # the mean of floats depends on their order
                    assert math.isclose(ours, theirs, rel_tol=1e-9), relation
                else:
                    assert ours == theirs, relation


def test_the_storage_version_is_readable_by_older_versions(built: Path, tmp_path: Path, command: Command) -> None:
    said = command("export", tmp_path / "one", "--format", "duckdb", "-s", "metrics.leaf_hour", "-t", built)
    assert said.status == 0, said.err
    for file in (built / "warehouse.duckdb", *(tmp_path / "one").glob("*.duckdb")):
        head = file.read_bytes()[8:20]
        assert (head[:4], int.from_bytes(head[4:12], "little")) == (b"DUCK", 67)  # storage version of v1.4.0
