"""Releases of five ports: the project to build them with, and their rows if nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.release import Rows, lay_out
from warehouse.project.project import Project


@pytest.fixture(scope="module")
def small_project(fabric_project: Project) -> Iterator[None]:
    """Build the module's releases with the models of ports and NICs alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: fabric_project)
        yield


@pytest.fixture(scope="session")
def expected(sample: Path, tmp_path_factory: pytest.TempPathFactory, fabric_project: Project) -> Rows:
    """Return the rows of the release if nothing is wrong with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: fabric_project)
        whole = lay_out(sample, tmp_path_factory.mktemp("whole"))
        assert whole.build().status == 0
        return whole.rows()
