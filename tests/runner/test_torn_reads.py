"""Promise: bytes that are read while their file changes are never published, and never taken by a later build.

A writer changes a file between two steps of a build. What is published equals a clean build of the files, or the build
is refused and names the file. The next build equals a clean build in any case, also after SIGKILL.
"""

from __future__ import annotations

import gzip
import inspect
import io
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

import warehouse
from tests.conftest import PATIENCE
from tests.tiny import Tiny
from warehouse.base.errors import WarehouseError
from warehouse.base.settings import settle, shipped_root
from warehouse.formats.zhejiang.port_counters import PortCounters
from warehouse.ingest import archive_reader, raw_files
from warehouse.runner import build, publish, session, task
from warehouse.runner.reporter import Reporter
from warehouse.store.parts import Store

TRIES = 36
OLD = 1_700_000_000
"""Time of the files, in seconds since 1970; a change that ends sets it again."""
ROWS, MORE = 40, 20
Tables = dict[str, list[tuple[object, ...]]]
MODELS: dict[str, tuple[str, dict[str, str], str]] = {
    "staging.events": (
        "SELECT filename AS file, line, step FROM raw.log_events WHERE step IS NOT NULL",
        {"file": "VARCHAR", "line": "INTEGER", "step": "BIGINT"},
        "grain: [file, line]",
    ),
    "staging.speeds": ("FROM reference.speeds", {"port": "VARCHAR", "speed": "BIGINT"}, ""),
    "staging.named": ("SELECT n, m FROM read_csv('{}/named/*.csv')", {"n": "BIGINT", "m": "BIGINT"}, ""),
    "staging.sizes": (
        "SELECT release_path, bytes FROM raw.files WHERE status IN ('read', 'partial')",
        {"release_path": "VARCHAR", "bytes": "BIGINT"},
        "",
    ),
    "metrics.total": (
        "SELECT hour_utc, sum(in_bytes_raw)::BIGINT AS bytes FROM staging.port_readings GROUP BY ALL",
        {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"},
        "checks: ['warn: total(bytes) = total(raw.port_counters.InOctets)']",
    ),
}


# files --------------------------------------------------------------------------------------------


def text_of(rows: int) -> bytes:
    return b"n,m\n" + b"".join(b"%d,%d\n" % (row, 7 * row) for row in range(rows))


def speeds_of(rows: int) -> bytes:
    return b"port,speed\n" + b"".join(b"eth%d,%d\n" % (row, 10 * row) for row in range(rows))


def log_of(rows: int) -> bytes:
    line = " iteration {:8}/    900 | elapsed time per iteration (ms): 250.0 | lm loss: 2.0E+00 |\n"
    return b"".join(line.format(row).encode() for row in range(1, rows + 1))


def port_of(tiny: Tiny, hour: int, rows: int) -> bytes:
    path = tiny.file(hour, *(f"1,{100 + row},2,{200 + row},0,0.5" for row in range(rows)))
    content = path.read_bytes()
    path.unlink()
    return content


def zipped(tiny: Tiny, rows: int) -> bytes:
    """Return a port's file, compressed in pieces, so that half of it is whole, too."""
    lines = port_of(tiny, 1, rows).splitlines(keepends=True)
    cuts = (0, ROWS // 2 + 1, ROWS + 1, len(lines))
    pieces = (b"".join(lines[first:last]) for first, last in itertools.pairwise(cuts))
    return b"".join(gzip.compress(piece, mtime=0) for piece in pieces if piece)


def damaged(tiny: Tiny, rows: int) -> bytes:
    """Return a port's file with a bad line near the end of the whole file."""
    lines = port_of(tiny, 5, rows).splitlines(keepends=True)
    return b"".join([*lines[: ROWS - 1], *([b"no row\n"] if rows >= ROWS else []), *lines[ROWS - 1 :]])


def packed(tiny: Tiny, hour: int, rows: int) -> bytes:
    """Return a tar of two files; in half of it zeros stand for the second, a longer one has more zeros at its end."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for other in (hour, hour + 10):
            second = stream.tell()
            content = port_of(tiny, other, ROWS)
            about = tarfile.TarInfo(f"c/trafficinfo/20240524{other:02}/x/Leaf-1_1_1.csv")
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    whole = stream.getvalue()
    return whole[:second].ljust(len(whole), b"\0") if rows < ROWS else whole + bytes(1024 * (rows - ROWS))


class File(NamedTuple):
    """File that a writer changes."""

    path: Path
    """The file, or the link to it."""
    part: tuple[str, str]
    """Relation and partition of the part that reads it; empty for an archive, which is unpacked."""
    half: bytes
    """What a reader takes for a whole file."""
    whole: bytes
    longer: bytes


def files_of(tiny: Tiny) -> dict[str, File]:
    """Return the files that are changed, by name."""

    def port(hour: int, content: Callable[[int], bytes] | None = None, suffix: str = "") -> File:
        path = tiny.data / f"c/trafficinfo/20240524{hour:02}/x/Leaf-1_1_1.csv{suffix}"
        return file(
            path,
            "staging.port_readings",
            content or partial(port_of, tiny, hour),
            f"2024-05-23T{hour + 16}/switch=Leaf-1",
        )

    def file(path: Path, reader: str, content: Callable[[int], bytes], partition: str = "all") -> File:
        return File(path, (reader, partition), content(ROWS // 2), content(ROWS), content(ROWS + MORE))

    return {
        "port": port(0),
        "compressed": port(1, partial(zipped, tiny), ".gz"),
        "link": port(2),
        "damaged": port(5, partial(damaged, tiny)),
        "archive": file(tiny.base / "release.tar", "", partial(packed, tiny, 3)),
        "archive inside": file(tiny.data / "trace.tar", "", partial(packed, tiny, 4)),
        "log": file(tiny.data / "c/taskinfo/task/pod.log", "raw.log_events", log_of),
        "reference": file(tiny.folder / "data/speeds.csv", "staging.speeds", speeds_of),
        "named": file(tiny.base / "named/a.csv", "staging.named", text_of),
    }


# the writer ---------------------------------------------------------------------------------------


def begin(file: File, how: str) -> None:
    """Begin a change: until its end, half of the file is there, or nothing."""
    path, half = file.path, file.half
    if how in ("rewrite", "empty"):
        path.write_bytes(half if how == "rewrite" else b"")
    elif how == "truncate":
        os.truncate(path, len(file.whole) // 3)
    elif how == "append":
        with path.open("ab") as stream:
            stream.write(file.longer[len(file.whole) : (len(file.whole) + len(file.longer)) // 2])
    elif how == "link":
        link(path, half)
    else:
        if how == "swap":
            path.replace(path.with_name("kept"))
        replace(path, half)


def end(file: File, how: str) -> None:
    """End a change, which may have ended before; a file that is whole again has its old time."""
    path = file.path
    if how in ("rewrite", "empty"):
        with path.open("r+b") as stream:
            stream.write(file.whole)
        os.utime(path, (OLD, OLD))
    elif how == "append":
        path.write_bytes(file.longer)
    elif how == "link":
        link(path, file.whole)
    elif how == "replace":
        replace(path, file.whole)
    elif how == "swap" and path.with_name("kept").exists():
        path.with_name("kept").replace(path)


def replace(path: Path, content: bytes) -> None:
    new = path.with_name("new")
    new.write_bytes(content)
    os.utime(new, (OLD, OLD))
    new.replace(path)


def link(path: Path, content: bytes) -> None:
    """Let a path be a link to a file with this content, which is written only once."""
    to, new = path.parents[5] / "linked" / str(len(content)), path.with_name("new")
    if not to.exists():
        to.parent.mkdir(exist_ok=True)
        replace(to, content)
    new.symlink_to(to)
    new.replace(path)


HOWS = ("rewrite", "replace", "swap", "truncate", "append")
START, WALKED, LISTED, READING, READ, MADE = "start", "walked", "listed", "reading", "read", "made"
CHECKING, CHECKED, CATALOG, WRITTEN = "checking", "checked", "catalog", "written"
SPANS = (
    (READING, READ),  # what is hashed is whole, what is read is not
    (WALKED, LISTED),  # what is hashed is half
    (WALKED, READ),
    (LISTED, READ),
    (LISTED, WRITTEN),
    (READING, WRITTEN),
    (READ, MADE),
    (MADE, WRITTEN),
    (CATALOG, WRITTEN),  # a reference table is copied to the catalog
)
"""Steps of a build at which a change begins and ends."""
KILLED = (None, MADE, WRITTEN)
"""Steps after which the build is killed; it fails before the last one, if it has seen the change."""


class Try(NamedTuple):
    """Change of a file while a build runs."""

    name: str
    how: str
    span: tuple[str, str]
    killed: str | None = None

    @property
    def id(self) -> str:
        """Name of the test."""
        return " ".join([self.name, self.how, *self.span, *(["killed", self.killed] if self.killed else [])])


ALWAYS = ("port", "reference", "named")
NAMES = (
    *("port", "compressed", "link", "damaged"),
    *("archive", "archive inside", "log", "reference", "named"),
)


def tries() -> list[Try]:
    """Return the tries: a rewrite while each file is read, a link that is led elsewhere, and others at random."""
    first = [Try(name, "rewrite", SPANS[0], killed) for name in NAMES for killed in (None, MADE)]
    first += [Try("link", "link", span, killed) for span in SPANS[:3] for killed in (None, MADE)]
    first += [Try("archive", "append", (MADE, WRITTEN)), Try("link", "empty", (START, WRITTEN))]
    first += [Try("port", "rewrite", span, WRITTEN) for span in ((START, WALKED), (CHECKING, CHECKED))]
    others = [Try(*one) for one in itertools.product(NAMES, HOWS, SPANS, KILLED)]
    random.Random(54).shuffle(others)
    return list(dict.fromkeys([*first, *others]))[:TRIES]


# builds with a writer -----------------------------------------------------------------------------


class Outcome(NamedTuple):
    """End of a build."""

    error: str | None
    """None if the build has published."""
    left: int
    """Steps at which the writer had still to begin or end."""


def attempt(tiny: Tiny, file: File, one: Try, said: Connection) -> None:
    """Build in this process while the file changes."""
    left = list(one.span)
    lock = threading.Lock()

    def step(name: str) -> None:
        with lock:
            while left and left[0] == name:
                (begin if len(left) == 2 else end)(file, one.how)
                left.pop(0)
            if name == one.killed and len(left) < 2:
                os.kill(os.getpid(), signal.SIGKILL)

    hook(step, file)
    error = None
    try:
        run(tiny, threads=2)
    except WarehouseError as failed:
        error = str(failed)
    said.send(Outcome(error, len(left)))


def hook(step: Callable[[str], None], file: File) -> None:
    """Call `step` at the steps of a build of this process."""

    def around(place: Any, name: str, before: str, after: str, is_it: Callable[..., bool] = lambda *_: True) -> None:
        usual = getattr(place, name)

        @contextmanager
        def stepping(given: tuple[Any, ...]) -> Iterator[None]:
            is_step = is_it(*given)
            step(before if is_step else "")
            try:
                yield
            finally:
                step(after if is_step else "")

        def function(*given: Any, **named: Any) -> Any:
            with stepping(given):
                return usual(*given, **named)

        def generator(*given: Any, **named: Any) -> Iterator[Any]:
            with stepping(given):
                yield from usual(*given, **named)

        setattr(place, name, generator if inspect.isgeneratorfunction(usual) else function)

    def of_part(*given: Any) -> bool:
        """Return True for the task, relation or key of the file's part."""
        return file.part in [given[:2], given[1:3], *(getattr(one, "key", ()) for one in given)]

    def of_stream(stream: IO[bytes], *_: object) -> bool:
        return stream.name == str(file.path)

    around(session, "code_files", START, "")
    around(raw_files, "walk", "", WALKED)
    around(build, "make_parts", LISTED, "")
    around(task, "_write", READING, READ, of_part)
    around(raw_files, "rows_of", READING, READ, lambda relation, *more: bool(relation == file.part[0]))
    around(PortCounters, "repair", READING, READ, lambda _, raw, *more: bool(raw.path == file.path))
    around(archive_reader, "_tar_members", READING, READ, of_stream)
    around(archive_reader, "_unpack", "", MADE, of_stream)
    around(raw_files.RawFiles, "_write_table", "", MADE, of_part)
    around(Store, "take_in", "", MADE, of_part)
    around(task, "run_checks", CHECKING, CHECKED, lambda _, model, *more: bool(model.name == "metrics.total"))
    around(publish, "write_catalog", CATALOG, "")
    around(publish, "write_listing", "", WRITTEN)


def run(tiny: Tiny, target: Path | None = None, threads: int = 1) -> None:
    data = [str(path) for path in (tiny.data, tiny.base / "release.tar") if path.exists()]
    to = {"target": str(target or tiny.target), "project": str(tiny.folder)}
    build.build(settle({"data": data, **to, "follow_links": True, "threads": threads}), Reporter())


def tables(tiny: Tiny, target: Path) -> Tables | None:
    """Return all rows; None without a published build."""
    if not (target / "warehouse.duckdb").exists():
        return None
    names = (*MODELS, "staging.port_readings", "reference.speeds")
    with warehouse.open(target) as connection:
        found = {name: connection.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in names}
        checks = connection.execute("SELECT model, check_text, status FROM meta.checks ORDER BY ALL").fetchall()
        return found | {"meta.checks": checks}


class Rig:
    """Project and files of all tries."""

    def __init__(self, base: Path) -> None:
        self.tiny = Tiny(base)
        shutil.rmtree(self.tiny.data)
        shutil.rmtree(self.tiny.folder / "models")
        self.tiny.write("warehouse.toml", "shipped = false\n")
        for name, (select, columns, more) in MODELS.items():
            self.tiny.model(name, select.format(base), columns, *filter(None, [more]))
        for shipped in ("models/staging/port_files.sql", "models/staging/port_readings.sql"):
            self.tiny.write(shipped, (shipped_root() / shipped).read_text(encoding="utf-8"))
        shutil.copytree(shipped_root() / "sql" / "macros", self.tiny.folder / "sql" / "macros")
        self.files = files_of(self.tiny)
        self._clean: dict[tuple[str, bytes], Tables | None] = {}

    def restore(self, name: str) -> None:
        """Write a file, and those that each build reads, as they were at first; remove all others, and the target."""
        tiny = self.tiny
        for folder in (tiny.target, tiny.data, tiny.base / "linked"):
            shutil.rmtree(folder, ignore_errors=True)
        (tiny.base / "release.tar").unlink(missing_ok=True)
        for each in {name, *ALWAYS}:
            file = self.files[each]
            file.path.parent.mkdir(parents=True, exist_ok=True)
            (link if each == "link" else replace)(file.path, file.whole)

    def clean(self, name: str) -> Tables | None:
        """Return the tables of a build of the files as they are, which no writer changes; None if it fails."""
        state = name, self.files[name].path.read_bytes()
        if state not in self._clean:
            target = self.tiny.base / "clean"
            shutil.rmtree(target, ignore_errors=True)
            with suppress(WarehouseError):
                run(self.tiny, target)
            self._clean[state] = tables(self.tiny, target)
        return self._clean[state]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return Rig(tmp_path_factory.mktemp("torn"))


@pytest.fixture(scope="module")
def processes() -> Any:
    """Start processes from one that has all modules, and nothing else."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([__name__])
    return found


@pytest.mark.parametrize("one", tries(), ids=lambda one: one.id)
def test_torn_bytes_are_never_published(rig: Rig, processes: Any, one: Try) -> None:
    rig.restore(one.name)
    file, target = rig.files[one.name], rig.tiny.target
    receiving, sending = processes.Pipe(duplex=False)
    process = processes.Process(target=attempt, args=(rig.tiny, file, one, sending))
    process.start()
    sending.close()
    process.join(PATIENCE)
    said = None
    with suppress(EOFError):
        said = receiving.recv()
    if said is None:
        assert (process.exitcode, bool(one.killed)) == (-signal.SIGKILL, True)
    else:
        assert said.left < 2
        assert said.error is not None
        if one.span[0] != START or not said.left:  # else the file was broken all the time
            assert "changed while the build ran" in said.error
            assert str(file.path) in said.error
    published = tables(rig.tiny, target)
    end(file, one.how)
    clean = rig.clean(one.name)
    assert (clean is None) == (one.name == "archive" and one.how == "truncate")
    assert published in (None, clean)
    with suppress(WarehouseError):
        run(rig.tiny)
    assert tables(rig.tiny, target) == clean
