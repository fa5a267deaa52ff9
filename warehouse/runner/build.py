"""A build: from settings to a published warehouse, in eight steps.

`compare` is done by the command line (`store/state.py`): if nothing has changed, no build begins. Then a build
locks the target, looks at the raw files, plans the parts, makes them and takes them in, finishes the catalog, and
publishes it by one rename.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from warehouse.base.errors import WarehouseError
from warehouse.base.settings import Settings
from warehouse.engine.tree import files_named
from warehouse.formats.base import is_raw
from warehouse.graph.dag import load_graph, select_models
from warehouse.graph.plan import Key
from warehouse.ingest.look import refuse_nothing_to_read
from warehouse.ingest.raw_files import RawFiles
from warehouse.runner.publish import finish, publish
from warehouse.runner.reporter import Reporter, Result
from warehouse.runner.session import BuildOptions, Session, check_folders, explaining_full_disk, no_data, opened
from warehouse.runner.work import Work, make_parts
from warehouse.store import signatures
from warehouse.store.atomic import hold, leftovers, quarantine_misplaced, remove
from warehouse.store.manifest import Part
from warehouse.store.parts import Store
from warehouse.store.state import environment_hash


def build(settings: Settings, reporter: Reporter, options: BuildOptions = BuildOptions()) -> Result:  # noqa: B008 - frozen
    """Build the warehouse and publish it.

    Parameters
    ----------
    settings
        Paths of the raw files, the target and the project; limits of the engine.
    reporter
        Receiver of progress and notes.
    options
        Selected models and other options.

    Raises
    ------
    WarehouseError
        When the build fails, as a subclass from `warehouse.base.errors`. The published warehouse is unchanged.
    """
    with locked(settings, reporter, options) as session:
        work = plan(look(session))
        with refusing_changes(work):
            finished = finish(make_parts(work))
        return publish(finished)


def parts_of_hour(settings: Settings, reporter: Reporter, options: BuildOptions, hour: str) -> Mapping[Key, Part]:
    """Make and return the parts of one hour, and what they read; publish nothing. Raises as `build` does."""
    with locked(settings, reporter, options) as session:
        work = plan(look(session))
        work.hour = hour
        with refusing_changes(work):
            return make_parts(work).plan.parts


@contextmanager
def locked(settings: Settings, reporter: Reporter, options: BuildOptions) -> Iterator[Session]:
    """Lock the target and open what a build needs."""
    check_folders(settings)
    target = settings.target.absolute()
    with hold(target, wait=options.wait), explaining_full_disk(settings):
        for path in leftovers(target):
            remove(path)
        for name in quarantine_misplaced(target):
            reporter.note(f"{name} is damaged (no file or folder of the target): moved to damaged/, rebuilt")
        reporter.stage_started("models")
        store = Store(target, paranoid=options.paranoid, on_damage=reporter.note)
        try:
            with opened(settings, options, reporter, store) as session:
                yield session
        finally:
            store.close()
            for path in leftovers(target):
                remove(path)


def look(session: Session) -> Work:
    """Load the models and look at the raw files.

    Raises
    ------
    WarehouseError
        When a model is invalid, a selector matches no model, or no raw file is readable.
    """
    settings, reporter = session.settings, session.reporter
    graph = load_graph(session.project, session.engine)
    select_models(graph, session.options.select)  # fail on a wrong selector before reading any file
    reporter.stage_started("raw files")
    formats = session.project.formats if settings.data else ()
    environment = environment_hash(session.engine_label)
    raw_files = RawFiles(settings, formats, session.store, environment, paranoid=session.options.paranoid)
    if settings.data:
        refuse_nothing_to_read(raw_files.inventory)
        reporter.found(raw_files.inventory)
    elif any(is_raw(read) for node in graph.nodes.values() for read in node.reads):
        raise no_data()
    return Work(session, graph, raw_files)


def plan(work: Work) -> Work:
    """Find out which parts a build has. Files that need Python are read: their rejected lines are inputs."""
    read = {name for node in work.graph.nodes.values() for name in node.reads}
    work.raw_files.read_tables((name for name in read if is_raw(name)), work.session.engine)
    return work


@contextmanager
def refusing_changes(work: Work) -> Iterator[None]:
    """Raise DataError if a file that may have been read in the block has another signature at its end.

    It stands for the error of the block, which it may explain.
    """
    session = work.session
    # Only a volatile SELECT names files: the functions that read them count as volatile.
    trees = (json.loads(node.canonical) for node in work.graph.nodes.values() if node.volatile)
    named = {path: signatures.look(path) for tree in trees for path in map(Path, files_named(tree))}
    signatures.settle(named.values())
    seen = session.tables | named

    def refuse(error: WarehouseError | None = None) -> None:
        if paths := [*signatures.changed(seen), *work.raw_files.changed()]:
            raise signatures.changed_meanwhile(paths) from error

    try:
        yield
    except WarehouseError as error:  # not an interrupt, whose status must stay
        refuse(error)
        raise
    refuse()
