"""Share of a build: the parts of some hours, made on any machine and published later by a whole build."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from warehouse.base.errors import DataError
from warehouse.base.settings import Settings
from warehouse.graph.dag import Graph
from warehouse.graph.partial import PartialGraph
from warehouse.ingest.shares import Deal, Share, hour_named, hour_of, sizes_of_hours
from warehouse.project.project import Project
from warehouse.runner.build import open_store
from warehouse.runner.change_guard import ChangeGuard
from warehouse.runner.disk_full import explaining_full_disk
from warehouse.runner.options import BuildOptions
from warehouse.runner.preparation import check_folders, prepared
from warehouse.runner.reporter import Reporter
from warehouse.runner.result import Outcome
from warehouse.runner.run import make_parts
from warehouse.store.atomic import sync
from warehouse.store.lock import hold


class ShareResult(NamedTuple):
    """Result of a share."""

    share: Share
    partitions: tuple[str, ...]
    """Hours, and partitions of other models."""
    bytes: int
    """Bytes of the raw files in the folders of these hours."""
    outcome: Outcome

    def summary(self) -> dict[str, object]:
        """Return the result as JSON-able values."""
        return {
            "share": str(self.share),
            "partitions": list(self.partitions),
            "bytes": self.bytes,
            "parts": len(self.outcome.parts),
            "made": [{"model": key.model, "partition": key.partition} for key in sorted(self.outcome.made)],
        }


def make_share(settings: Settings, reporter: Reporter, options: BuildOptions, deal: Deal | None = None) -> ShareResult:
    """Make the parts of a share, and what they read. Publish nothing.

    Shares of one target may run at once, on several machines. A whole build, which publishes, waits for them. With a
    `deal` of another machine, files of other hours are not even listed.

    Raises
    ------
    OtherFilesError
        When the hours of the deal have other files here.
    WarehouseError
        When the share fails. The parts that it made stay.
    """
    check_folders(settings)
    with hold(settings.target, wait=options.wait, shared=True), explaining_full_disk(settings):
        return _make_share(settings, reporter, options._replace(share=options.share or Share(1, 1)), deal)


def _make_share(settings: Settings, reporter: Reporter, options: BuildOptions, dealt: Deal | None) -> ShareResult:
    project = Project.open(settings.project)
    guard = ChangeGuard(settings, project, dealt and (lambda name: dealt.is_of_others(hour_named(name))))
    store = open_store(settings, reporter, options)
    share = options.share or Share(1, 1)
    sizes = sizes_of_hours(guard.data)
    deal = dealt or Deal.of(share, sizes, settings.keep_hours)
    deal.check(sizes)
    if settings.data and not any(folder.count for folder in guard.data.folders().values()):
        raise DataError(
            f"no files in {', '.join(map(str, settings.data))}", hint="see what was found: warehouse doctor -d DIR"
        )

    def narrow(graph: Graph) -> Graph:
        partial = PartialGraph(graph)
        if not partial.is_possible:
            guard.data.look_everywhere()
            return graph
        guard.data.leave_out_folders(lambda folder: deal.is_of_others(hour_of(folder)))
        return partial.graph()

    with ExitStack() as opened:
        with guard.explaining():
            ready = opened.enter_context(prepared(settings, options, project, store, reporter, guard.data, narrow))
        with guard.watching(ready.raw_files) as refuse_changes:
            outcome = make_parts(ready, reporter, lambda planned: deal.partitions(planned, ready.raw_files))
            refuse_changes()
    for folder in {path for key in outcome.made for path in outcome.parts[key].path.parents[:3]}:
        sync(folder)
    partitions = {key.partition for key in outcome.parts} & deal.partitions(
        {key.partition for key in outcome.parts}, ready.raw_files
    )
    return ShareResult(share, tuple(sorted(partitions)), deal.bytes, outcome)
