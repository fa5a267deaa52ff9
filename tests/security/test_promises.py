"""Every guarantee of SECURITY.md has tests, with a hundred hostile inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.security import test_hostile_archives, test_hostile_files, test_hostile_projects, test_hostile_queries

MODULES = (test_hostile_archives, test_hostile_files, test_hostile_projects, test_hostile_queries)


def test_the_number_of_hostile_inputs() -> None:
    inputs = (
        *test_hostile_queries.SQL,
        *test_hostile_queries.NAMES,
        *test_hostile_projects.MODELS,
        *test_hostile_files.FILES,
        *test_hostile_archives.ARCHIVES,
    )
    assert len(inputs) >= 100


def _pages() -> Iterator[str]:
    yield from (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8").split("\n## ")


def test_every_guarantee_has_tests() -> None:
    """Check PROMISES: a guarantee of SECURITY.md is a paragraph that begins in bold, with tests named there."""
    promised = next(page for page in _pages() if page.startswith("What is promised"))
    assert {line.split("**")[1] for line in promised.splitlines() if line.startswith("**")} == set(PROMISES)
    for names in PROMISES.values():
        assert all(any(hasattr(module, name) for module in MODULES) for name in names)


PROMISES = {
    "Queries only read.": [
        "test_a_query_only_reads_inside_the_warehouse",
        "test_a_name_is_not_parsed_as_sql_or_a_path",
    ],
    "Queries see few folders.": [
        "test_a_query_only_reads_inside_the_warehouse",
        "test_a_value_of_a_named_query_is_not_parsed_as_sql",
    ],
    "Queries can be bounded.": ["test_a_query_has_a_time_and_memory_limit"],
    "Damage is not served.": ["test_a_damaged_part_is_rebuilt"],
    "Links stay inside.": ["test_a_hostile_data_file_has_no_effect"],
    "Builds run no code but the project's.": [
        "test_a_project_file_runs_only_its_select",
        "test_a_hostile_data_file_has_no_effect",
    ],
    "Downloads are not trusted.": ["test_a_hostile_data_file_has_no_effect", "test_an_archive_writes_nothing_outside"],
    "A terminal gets no control characters.": [
        "test_a_cell_cannot_move_the_cursor",
        "test_a_hostile_data_file_has_no_effect",
    ],
    "Publishing is atomic.": ["test_the_last_build_survives_a_failed_build"],
}
