"""Spark: the same models beyond one machine.

A model's SELECT runs on the executors, translated by `warehouse.spark_dialect`. Raw files are read and parts are
written there too, by DuckDB inside of Spark's tasks, so that a part has the bytes that one machine gives it. The
driver keeps what is small: it parses, runs checks over the parts and Python models, and writes the catalogue, all
with a DuckDB of its own.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import duckdb

from warehouse import fingerprint
from warehouse.engines import spark_session
from warehouse.engines.base import CsvFiles, Empty, EngineError, Parsed, Parts, Select, Source
from warehouse.engines.duckdb import DuckDBEngine
from warehouse.engines.duckdb_scratch import DuckDBScratch
from warehouse.engines.duckdb_sql import casts
from warehouse.engines.spark_tasks import CLOSE, OPEN, Writing, read_csv
from warehouse.errors import ModelError, WarehouseError
from warehouse.regex import regex
from warehouse.spark_dialect import spark_type, to_spark

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.kernels import Arrays
    from warehouse.model import Column

_TASK_BYTES = 64 * 2**20
"""Raw files are read in tasks of about this size, a file never in two."""
_SIDE_BY_SIDE = 16
_KEPT = Path()
"""Stands for what is never let go: raw files, and the parts of several hours together."""
_VIEW = regex(r"\bv_[0-9a-f]{32}\b")


class SparkEngine:
    """A Spark session, which starts with the first part that has to be made, and a DuckDB on the driver.

    Parameters
    ----------
    master
        The cluster's master; None for this machine's cores.
    threads, memory_bytes, spill
        Of the driver; where there is no cluster, of Spark too.
    """

    name = "spark"
    keeps_order = False
    runs_kernels = False

    def __init__(self, master: str | None, *, threads: int, memory_bytes: int, spill: Path) -> None:
        self.version = f"{spark_session.pyspark_version()} with DuckDB {duckdb.__version__}"
        self._master = master
        self._threads = threads
        self._memory = memory_bytes
        self._log = spill.with_name("spark.log")
        self._driver = DuckDBEngine(threads=threads, memory_bytes=memory_bytes // 2, spill=spill)
        self._starting = threading.Lock()
        self._cluster: Cluster | None = None

    @property
    def side_by_side(self) -> int:
        """Parts to make at a time: most are small, and wait for Spark's scheduling more than for a core."""
        return max(2, min(_SIDE_BY_SIDE, self._threads if self._master is None else _SIDE_BY_SIDE))

    @property
    def held(self) -> Mapping[Path, str]:
        """Nothing: rows are in files."""
        return {}

    def parse(self, sql: str) -> Parsed:
        """Read a SELECT with DuckDB's parser: models are written for it."""
        return self._driver.parse(sql)

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Read SELECTs with DuckDB's parser."""
        return self._driver.parse_all(selects)

    def cluster(self) -> Cluster:
        """The session, which is started for the first part that is made. Raises WarehouseError."""
        with self._starting:
            if self._cluster is None:
                session = spark_session.start(
                    self._master, threads=self._threads, memory_bytes=self._memory, log=self._log
                )
                cores = session.sparkContext.defaultParallelism
                self._cluster = Cluster(session, self._master, self._memory // 2 // max(cores, 1), self._log)
            return self._cluster

    @contextmanager
    def scratch(
        self, sources: Mapping[str, Source], *, one_thread: bool = False, few: bool = False
    ) -> Iterator[SparkScratch]:
        """The relations, for Spark and for the driver's DuckDB."""
        with self._driver.scratch(sources, one_thread=one_thread) as on_driver:
            yield SparkScratch(self, on_driver, sources, few=few)
        gc.collect()  # what Python has of Java refers to itself: Java keeps its plans until that is gone

    def write_rows(self, columns: Mapping[str, str], json_lines: Path, path: Path) -> int:
        """What Python read of raw files becomes a part on the driver."""
        return self._driver.write_rows(columns, json_lines, path)

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection to the driver's DuckDB."""
        return self._driver.connection()

    def let_go(self, path: Path) -> None:
        """Drop the views of a part that nobody reads any more."""
        if self._cluster is not None:
            self._cluster.forget(path)

    def interrupt(self) -> None:
        """End Spark's jobs and the driver's statements."""
        if self._cluster is not None:
            self._cluster.cancel()
        self._driver.interrupt()

    def close(self) -> None:
        """Leave the cluster."""
        if self._cluster is not None:
            self._cluster.close()
        self._driver.close()


class Cluster:
    """Two sessions of one context: one for large SELECTs, one whose SELECTs read few rows and take one task.

    Parameters
    ----------
    session
        As it was started.
    master
        Whose executors are watched; None where the driver is its own.
    memory_bytes
        What DuckDB may use in a task.
    log
        Where Java says what became of it.
    """

    def __init__(self, session: SparkSession, master: str | None, memory_bytes: int, log: Path) -> None:
        self.memory_bytes = max(256 * 2**20, memory_bytes)
        self._log = log
        self._master = master
        self._many = session
        cores = session.sparkContext.defaultParallelism
        session.conf.set("spark.sql.shuffle.partitions", str(max(2, 2 * cores)))
        self._few = session.newSession()
        for key, value in spark_session.FEW.items():
            self._few.conf.set(key, value)
        self._cores = cores
        self._views: dict[tuple[bool, str], set[Path]] = {}
        """Of each view the parts that it waits for, to be dropped."""
        self._lost = ""
        self._ended = threading.Event()
        if master is not None and not master.startswith("local"):
            threading.Thread(target=self._watch, daemon=True).start()

    def select(self, sql: str, *, few: bool) -> DataFrame:
        """A SELECT in Spark's dialect, not run yet."""
        return (self._few if few else self._many).sql(sql)

    def view(self, source: Source, view_of: Callable[[str], str], *, few: bool) -> str:
        """The name of a temporary view with a source's rows; `view_of` names what a Select reads."""
        text = _view_sql(source, view_of)
        name = f"v_{fingerprint.of(text or repr(source))}"
        if (few, name) not in self._views:
            self._frame(source, text, few=few).createOrReplaceTempView(name)
            self._views[few, name] = self._stands_on(source, text, few=few)
        return name

    def _stands_on(self, source: Source, text: str | None, *, few: bool) -> set[Path]:
        """The parts that a view shows, its own or by way of other views."""
        if isinstance(source, Parts) and len(source.paths) == 1:
            return set(source.paths)
        read = _VIEW.findall(text or "")
        return set().union(*(self._views[few, name] for name in read)) if read else {_KEPT}

    def forget(self, path: Path) -> None:
        """Drop the views that show nothing but parts that are let go: Java holds a plan for each of them."""
        for (few, name), wanted in list(self._views.items()):
            wanted.discard(path)
            if not wanted:
                (self._few if few else self._many).catalog.dropTempView(name)
                del self._views[few, name]

    def _frame(self, source: Source, text: str | None, *, few: bool) -> DataFrame:
        session = self._few if few else self._many
        if text is not None:
            return session.sql(text)
        if isinstance(source, Parts):
            reader = session.read.schema(_schema(source.columns)).option("__globPaths__", "false")
            frame = reader.parquet(*map(str, source.paths))
        else:
            assert isinstance(source, CsvFiles)
            groups, memory_bytes = _groups(source, self._cores), self.memory_bytes
            types = {**source.columns, **({"filename": "VARCHAR"} if source.filename else {})}
            schema = ", ".join(f"`{name}` {spark_type(kind)}" for name, kind in types.items())
            numbers = session.range(0, len(groups), 1, len(groups))
            frame = numbers.mapInArrow(lambda batches: read_csv(batches, groups, memory_bytes), schema)
        return frame.coalesce(1) if few else frame

    def write(self, frame: DataFrame, writing: Writing) -> int | None:
        """Have a task write the rows of a SELECT; their number, or None where no row came to it."""
        one = frame.coalesce(1) if writing.few else frame.repartition(1)
        found = one.mapInArrow(lambda batches: writing.write(batches), "rows BIGINT").collect()
        return sum(int(row[0]) for row in found) if found else None

    def refuse(self, error: Exception) -> NoReturn:
        """Raise what became of a job: the SELECT's fault as EngineError, the cluster's as WarehouseError."""
        text = str(error)
        start, end = text.find(OPEN), text.find(CLOSE)
        if start >= 0 and end > start:
            raise EngineError(text[start + len(OPEN) : end]) from error
        if self._lost or self._many.sparkContext._jsc.sc().isStopped():  # noqa: SLF001
            raise WarehouseError(
                self._lost or f"{self._master or 'Spark on this machine'} ended the build's application",
                details=[f"  what Java said: {self._log}"],
                hint="Nothing of this build is published; its parts so far are kept. Build again: it goes on there."
                + (" --memory gives Java more, if that is what it lacked." if self._master is None else ""),
            ) from error
        raise EngineError(spark_session.first_line(error)) from error

    def cancel(self) -> None:
        """End all jobs."""
        self._many.sparkContext.cancelAllJobs()

    def close(self) -> None:
        """Give the executors back."""
        self._ended.set()
        self._many.stop()

    def _watch(self) -> None:
        """End the jobs when no executor has been there for a while: Spark would wait for one for ever."""
        last, wait = time.monotonic(), spark_session.patience(self._many)
        while not self._ended.wait(1):
            try:
                if spark_session.executors(self._many) > 0:
                    last = time.monotonic()
                elif time.monotonic() - last > wait:
                    self._lost = f"{self._master} has had no executor for {wait} s: its workers are gone"
                    self.cancel()
                    return
            except Exception:  # Java is gone, which the jobs tell
                return


class SparkScratch:
    """One scratch of the driver's DuckDB, and the same relations as views of Spark, made when they are read."""

    def __init__(
        self, engine: SparkEngine, on_driver: DuckDBScratch, sources: Mapping[str, Source], *, few: bool
    ) -> None:
        self._engine = engine
        self._on_driver = on_driver
        self._sources = dict(sources)
        self._is_few = few

    def add(self, relation: str, source: Source) -> None:
        """Bind one more relation."""
        self._sources[relation] = source
        self._on_driver.add(relation, source)

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Bind the SELECT with DuckDB."""
        return self._on_driver.describe(sql)

    def write(self, select: Select, path: Path, order: Sequence[str]) -> int:
        """Run the SELECT on Spark; a task writes the one file."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        cluster = self._engine.cluster()
        writing = Writing(select.columns, tuple(order), path, self._is_few, cluster.memory_bytes)
        try:
            frame = cluster.select(_cast(select, self._view), few=self._is_few)
            rows = cluster.write(frame, writing)
        except (PySparkException, Py4JError) as error:
            cluster.refuse(error)
        if rows is None:
            return self._on_driver.write_nothing(select.columns, path)
        return rows

    def _view(self, relation: str) -> str:
        """The view that a relation is; made now, where it is not there."""
        return self._engine.cluster().view(self._sources[relation], self._view, few=self._is_few)

    def hold(self, path: Path) -> None:
        """Nothing is held."""

    def arrays(self, sql: str) -> Arrays:
        """For kernels, which do not run here; on the driver."""
        return self._on_driver.arrays(sql)

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """For kernels, which do not run here; on the driver."""
        return self._on_driver.batches(sql, rows)

    def write_arrays(self, chunks: Iterable[Arrays], columns: Sequence[Column], path: Path) -> int:
        """For kernels, which do not run here; on the driver."""
        return self._on_driver.write_arrays(chunks, columns, path)

    def table(self, relation: str, order: Sequence[str]) -> pyarrow.Table:
        """A relation for a Python model, which runs on the driver."""
        return self._on_driver.table(relation, order)

    def write_arrow(self, rows: pyarrow.Table, columns: Sequence[Column], path: Path, order: Sequence[str]) -> int:
        """The rows of a Python model, written on the driver."""
        return self._on_driver.write_arrow(rows, columns, path, order)

    def rows(self, sql: str, limit: int | None = None) -> list[tuple[object, ...]]:
        """A check, which the driver's DuckDB runs over the parts."""
        return self._on_driver.rows(sql, limit)


def _cast(select: Select, view_of: Callable[[str], str]) -> str:
    try:
        return to_spark(f"SELECT {casts(select.columns)} FROM (\n{select.sql}\n)", view_of)
    except ModelError as error:
        raise EngineError(error.message) from error


def _view_sql(source: Source, view_of: Callable[[str], str]) -> str | None:
    """The SELECT of a view; None where it is files."""
    if isinstance(source, Select):
        return _cast(source, view_of)
    if not isinstance(source, Empty) and source.paths:
        return None
    types = (
        {**source.columns, **({"filename": "VARCHAR"} if source.filename else {})}
        if isinstance(source, CsvFiles)
        else {column.name: column.type for column in source.columns}
    )
    nulls = (f"CAST(NULL AS {spark_type(kind)}) AS `{name}`" for name, kind in types.items())
    return f"SELECT {', '.join(nulls)} WHERE false"


def _schema(columns: Iterable[Column]) -> str:
    return ", ".join(f"`{column.name}` {spark_type(column.type)}" for column in columns)


def _groups(source: CsvFiles, cores: int) -> list[CsvFiles]:
    """The files in groups of neighbours, about as large as each other: a task each."""
    sizes = [path.stat().st_size for path in source.paths]
    wanted = max(min(sum(sizes) // max(cores, 1), _TASK_BYTES), 1)
    groups: list[list[Path]] = []
    gathered = wanted
    for path, size in zip(source.paths, sizes, strict=True):
        if gathered >= wanted:
            groups.append([])
            gathered = 0
        groups[-1].append(path)
        gathered += size
    return [
        source._replace(
            columns=dict(source.columns),
            paths=tuple(paths),
            headers={path: source.headers[path] for path in paths if path in source.headers},
        )
        for paths in groups
    ]
