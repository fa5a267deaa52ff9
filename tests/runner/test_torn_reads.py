"""Promise: bytes that are read while their file changes are never published, and never taken by a later build.

A writer changes a file between two steps of a build, or puts a pipe or a device in its place. The build is refused and
names the file, or it is killed. The next build equals a clean build of the files.
"""

from __future__ import annotations

import gzip
import inspect
import io
import itertools
import multiprocessing
import os
import shutil
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest
from openpyxl import Workbook

import warehouse
from tests.conftest import PATIENCE
from tests.tiny import Tiny
from warehouse.base.errors import WarehouseError
from warehouse.base.settings import settle
from warehouse.formats.zhejiang.port_counters import PortCounters
from warehouse.ingest import archive_reader, raw_files
from warehouse.runner import build, publish, session, task
from warehouse.runner.reporter import Reporter
from warehouse.store.parts import Store

OLD = 1_700_000_000
"""Time of the files, in seconds since 1970; a change that ends sets it again."""
ROWS, MORE = 40, 20
STARTS_LINE = "pod-{} 10.1.1.1 node-1 2024-05-23T16:00:00.000Z\n"
LOG_LINE = " iteration {:8}/    900 | elapsed time per iteration (ms): 250.0 | lm loss: 2.0E+00 |\n"
MODELS: dict[str, tuple[str, dict[str, str], str]] = {
    "staging.events": (
        "SELECT filename AS file, line, step FROM raw.log_events WHERE step IS NOT NULL",
        {"file": "VARCHAR", "line": "INTEGER", "step": "BIGINT"},
        "grain: [file, line]",
    ),
    "staging.ports": ("FROM reference.speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "presorted: true"),
    "staging.named": ("SELECT n, m FROM read_csv('{}/named/*.csv')", {"n": "BIGINT", "m": "BIGINT"}, "grain: [n]"),
    "staging.sizes": (
        "SELECT release_path, bytes FROM raw.files WHERE status IN ('read', 'partial')",
        {"release_path": "VARCHAR", "bytes": "BIGINT"},
        "grain: [release_path]",
    ),
    "staging.counted": (
        "SELECT (SELECT count(*) FROM raw.gpu_nics) AS nics, (SELECT count(*) FROM raw.pod_starts) AS starts",
        {"nics": "BIGINT", "starts": "BIGINT"},
        "grain: [nics]",
    ),
    "metrics.total": (
        "SELECT sum(bytes)::BIGINT AS bytes FROM staging.hour",
        {"bytes": "BIGINT"},
        "checks: ['warn: total(bytes) = total(raw.port_counters.InOctets)']",
    ),
}


# files --------------------------------------------------------------------------------------------


def numbered(header: str, line: str, rows: int) -> bytes:
    return (header + "".join(line.format(row) for row in range(1, rows + 1))).encode()


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
    if rows >= ROWS:
        lines.insert(ROWS - 1, b"no row\n")
    return b"".join(lines)


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


def book_of(rows: int) -> bytes:
    stream, book = io.BytesIO(), Workbook()
    sheet = book.create_sheet("GPU NIC info")
    sheet.append(["GPU IP", "NIC name1", "NIC name 2"])
    for row in range(rows):
        sheet.append(["10.107.254.1", f"mlx5_{row}", f"ens{row}np0"])
    book.save(stream)
    return stream.getvalue()


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
        return file(path, "staging.hour", content or partial(port_of, tiny, hour), f"2024-05-23T{hour + 16}")

    def file(path: Path, reader: str, content: Callable[[int], bytes], partition: str = "all") -> File:
        return File(path, (reader, partition), content(ROWS // 2), content(ROWS), content(ROWS + MORE))

    speeds = partial(numbered, "port,speed\n", "eth{0},{0}0\n")
    return {
        "port": port(0),
        "compressed": port(1, partial(zipped, tiny), ".gz"),
        "link": port(2),
        "damaged": port(5, partial(damaged, tiny)),
        "archive": file(tiny.base / "release.tar", "", partial(packed, tiny, 3)),
        "archive inside": file(tiny.data / "trace.tar", "", partial(packed, tiny, 4)),
        "log": file(tiny.data / "c/taskinfo/task/pod.log", "raw.log_events", partial(numbered, "", LOG_LINE)),
        "pod starts": file(
            tiny.data / "c/taskinfo/task/pod-node-starttime.log", "raw.pod_starts", partial(numbered, "", STARTS_LINE)
        ),
        "workbook": file(tiny.data / "c/c.xlsx", "raw.gpu_nics", book_of),
        "reference": file(tiny.folder / "data/speeds.csv", "staging.ports", speeds),
        "named": file(tiny.base / "named/a.csv", "staging.named", partial(numbered, "n,m\n", "{0},{0}7\n")),
    }


# the writer ---------------------------------------------------------------------------------------


def put(file: File, name: str) -> None:
    """Write a whole file in the place of what is there."""
    file.path.parent.mkdir(parents=True, exist_ok=True)
    if name == "link":
        shutil.rmtree(file.path.parents[5] / "linked", ignore_errors=True)
        link(file.path, file.whole)
    else:
        replace(file.path, file.whole)


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
    elif how == "swap":
        path.replace(path.with_name("kept"))
        replace(path, half)
    elif how == "replace":
        replace(path, half)
    else:
        path.unlink()
        if how != "remove":
            os.mkfifo(path) if how == "pipe" else path.symlink_to("/dev/zero")


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


START, WALKED, LISTED, READING, READ, MADE = "start", "walked", "listed", "reading", "read", "made"
CHECKING, CHECKED, CATALOG, WRITTEN, NEVER = "checking", "checked", "catalog", "written", "never"
"""Steps of a build."""


class Try(NamedTuple):
    """Change of a file while a build runs, the steps at which it begins and ends, and that after which it is killed."""

    how: str
    begin: str
    end: str
    killed: str | None = None


READ_TORN = Try("rewrite", READING, READ)
"""What is hashed is whole, what is read is not."""
PIPE, DEVICE = (Try(how, LISTED, NEVER) for how in ("pipe", "device"))
KILLED = Try("rewrite", READING, READ, MADE)
TRIES: dict[str, list[Try]] = {
    "port": [
        READ_TORN,
        PIPE,
        Try("remove", WALKED, NEVER),
        Try("rewrite", START, WALKED),
        Try("swap", LISTED, WRITTEN),
        Try("rewrite", CHECKING, CHECKED),
        Try("remove", WRITTEN, NEVER),
    ],
    "compressed": [READ_TORN, Try("swap", READING, WRITTEN)],
    "link": [
        READ_TORN,
        Try("link", READING, READ),
        Try("link", WALKED, LISTED),  # what is hashed is half
        Try("link", WALKED, READ),
        Try("append", LISTED, READ),
        Try("empty", START, WRITTEN),
    ],
    "damaged": [READ_TORN, Try("replace", READ, MADE)],
    "archive": [READ_TORN, KILLED, Try("truncate", LISTED, WRITTEN), Try("append", LISTED, WRITTEN)],
    "archive inside": [READ_TORN, KILLED, Try("replace", MADE, WRITTEN)],
    "pod starts": [DEVICE, READ_TORN],
    "workbook": [PIPE, READ_TORN],
    "log": [PIPE, READ_TORN, KILLED, Try("replace", WALKED, LISTED), Try("replace", LISTED, READ)],
    "reference": [READ_TORN, Try("append", MADE, WRITTEN), Try("truncate", CATALOG, WRITTEN, WRITTEN)],
    "named": [READ_TORN, Try("empty", READING, READ), KILLED],
}
"""Changes of each file, one after another in one target; those by which a part is made come last."""
ALWAYS = ("port", "reference", "named")
"""Files that all builds read."""


# builds with a writer -----------------------------------------------------------------------------


def attempt(tiny: Tiny, file: File, one: Try) -> str:
    """Build while the file changes; return the error."""
    left = [one.begin, one.end]
    lock = threading.Lock()

    def step(name: str) -> None:
        with lock:
            while left and left[0] == name:
                (begin if len(left) == 2 else end)(file, one.how)
                left.pop(0)
            if name == one.killed and len(left) < 2:
                os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        hook(step, file, patch)
        try:
            run(tiny, tiny.target, threads=2)
        except (WarehouseError, OSError) as error:
            assert len(left) < 2, "the file has not changed"
            return str(error)
    return ""


def hook(step: Callable[[str], None], file: File, patch: pytest.MonkeyPatch) -> None:
    """Call `step` at the steps of a build."""

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

        patch.setattr(place, name, generator if inspect.isgeneratorfunction(usual) else function)

    def of_part(*given: Any) -> bool:
        """Return True for the task, relation or key of the file's part."""
        return file.part in [given[:2], given[1:3], *(getattr(one, "key", ()) for one in given)]

    def of_stream(stream: IO[bytes], *_: object) -> bool:
        return stream.name == str(file.path)

    around(session, "code_files", START, "")
    around(raw_files, "walk", "", WALKED)
    around(build, "plan", LISTED, "")
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


def run(tiny: Tiny, target: Path, threads: int = 1) -> None:
    data = [str(path) for path in (tiny.data, tiny.base / "release.tar") if path.exists()]
    to = {"target": str(target), "project": str(tiny.folder)}
    build.build(settle({"data": data, **to, "follow_links": True, "threads": threads}), Reporter())


def tables(target: Path) -> list[list[tuple[object, ...]]]:
    """Return all rows."""
    names = [f"{name} ORDER BY ALL" for name in (*MODELS, "staging.hour", "reference.speeds")]
    with warehouse.open(target) as connection:
        checks = "(SELECT model, check_text, status FROM meta.checks) ORDER BY ALL"
        return [connection.execute(f"FROM {name}").fetchall() for name in (*names, checks)]


@pytest.fixture
def project(tmp_path: Path) -> Tiny:
    tiny = Tiny(tmp_path)
    shutil.rmtree(tiny.data)
    tiny.write("warehouse.toml", "shipped = false\n")
    tiny.by_hour()
    for name, (select, columns, more) in MODELS.items():
        tiny.model(name, select.format(tmp_path), columns, more)
    return tiny


@pytest.fixture(scope="module")
def processes() -> Any:
    """Start processes from one that has all modules, and nothing else."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([__name__])
    return found


@pytest.mark.parametrize("name", TRIES)
def test_torn_bytes_are_never_published(project: Tiny, processes: Any, name: str) -> None:
    files = files_of(project)
    file = files[name]
    for each in (name, *ALWAYS):
        put(files[each], each)
    for change in TRIES[name]:
        if change.killed:
            process = processes.Process(target=attempt, args=(project, file, change))
            process.start()
            process.join(PATIENCE)
            assert process.exitcode == -signal.SIGKILL, change
        else:
            error = attempt(project, file, change)
            assert "changed while the build ran" in error or change in (PIPE, DEVICE), change
            assert str(file.path) in error, change
        assert not (project.target / "warehouse.duckdb").exists(), change
        end(file, change.how)
        if not file.path.is_file() or file.path.read_bytes() != file.whole:
            put(file, name)
    clean = project.base / "clean"
    for target in (project.target, clean):
        run(project, target)
    assert tables(project.target) == tables(clean)
