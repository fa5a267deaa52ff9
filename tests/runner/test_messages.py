"""External failures end a build with one sentence and a hint, without a traceback."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from functools import partial

import pytest

from tests.tiny import Tiny
from warehouse.runner import publish, task
from warehouse.store import state


def told(said: str) -> None:
    assert "Traceback" not in said
    assert "nanobind" not in said
    assert said.count("error: ") == 1


PHASES = {
    "state": (state.State, "put"),
    "a part": (task, "sync"),
    "publishing": (publish, "write_listing"),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_full_disk_is_one_sentence_and_the_next_build_succeeds(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        module, name = PHASES[phase]
        patch.setattr(module, name, full)
        said = tiny.build()
    assert said.status == 2
    told(said.err)
    assert f"the disk of {tiny.target} is full" in said.err
    assert not (tiny.target / "warehouse.duckdb").exists()
    assert tiny.build().status == 0


def test_a_limit_of_file_sizes_or_memory_is_one_sentence(tiny: Tiny) -> None:
    """Build in a process with a limit."""
    words = ("build", "-d", str(tiny.data), "-t", str(tiny.target), "--project", str(tiny.folder))
    short = "this process may take 150.0 MB of memory, and a build needs 1.0 GB at least"
    for limit, size, sentence in (
        (resource.RLIMIT_FSIZE, 100, "/state.sqlite: File too large"),
        (resource.RLIMIT_AS, 150_000_000, short),
    ):
        said = subprocess.run(
            [sys.executable, "-m", "warehouse", *words],
            capture_output=True,
            text=True,
            preexec_fn=partial(resource.setrlimit, limit, (size, size)),
            check=False,
        )
        assert said.returncode == 2
        told(said.stderr)
        assert sentence in said.stderr
