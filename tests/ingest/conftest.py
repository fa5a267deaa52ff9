"""Project for releases of five ports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warehouse.project.project import Project


@pytest.fixture(scope="module")
def small_project(fabric_project: Project) -> Iterator[None]:
    """Build the module's releases with the models of ports and NICs alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: fabric_project)
        yield
