"""Builds of logs with known truth: no event is wrong, and none is missing if the log is undamaged."""

from __future__ import annotations

from collections import defaultdict

import pytest

import warehouse
from bench.log_truth import DAMAGES, LAUNCHERS, TRAINERS, VERSIONS, Sample, make_sample, write_sample
from bench.logs import KINDS, Score, scores
from warehouse.project.project import Project

MODELS = ("metrics.task_iterations", "topology.rank_paths", "topology.task_communicators")
SEEDS = range(70)
Found = tuple[list[Sample], dict[str, list[Score]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Found:
    """Return the samples of all seeds and their scores; all are one release, built once."""
    folder = tmp_path_factory.mktemp("truth")
    samples = [make_sample(seed) for seed in SEEDS]
    for sample in samples:
        write_sample(folder / "data" / "logs" / "taskinfo", sample)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        warehouse.build(folder / "data", folder / "target")
    return samples, scores(folder / "target", samples)


def test_the_seeds_have_every_launcher_version_trainer_and_damage(found: Found) -> None:
    samples, _ = found
    parts = [{part.strip().removeprefix("NCCL ") for part in sample.about.split(",")} for sample in samples]
    for one in (*LAUNCHERS, *VERSIONS, *TRAINERS, *DAMAGES):
        assert any(one in part for part in parts), one


def test_no_event_is_wrong(found: Found) -> None:
    samples, scored = found
    wrong = {s.name: (s.about, one.kind, one.wrong) for s in samples for one in scored[s.name] if one.wrong}

    assert wrong == {}


def test_undamaged_logs_lose_no_event(found: Found) -> None:
    samples, scored = found
    whole = [sample for sample in samples if sample.damage == "none"]
    missing = {s.name: (s.about, one.kind, one.missing) for s in whole for one in scored[s.name] if one.missing}

    assert len(whole) > 5
    assert missing == {}


def test_damaged_logs_keep_nine_of_ten_events(found: Found) -> None:
    samples, scored = found
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for sample in samples:
        for one in scored[sample.name]:
            totals[one.kind][0] += one.right
            totals[one.kind][1] += one.true

    assert all(right > 0.9 * true > 0 for right, true in (totals[kind] for kind in KINDS))
