"""A session of Spark, with the settings that make its rows DuckDB's; one sentence where there is none to be had."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.errors import SettingsError, WarehouseError
from warehouse.regex import regex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRA = "pip install 'gpu-warehouse[spark]', and Java 17"
_EQUAL_ROWS = {
    "spark.sql.ansi.enabled": "true",  # an error where DuckDB has one, not a NULL
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",  # a TIMESTAMP has no zone
}
_QUIET = {
    "spark.app.name": "warehouse",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.maxPlanStringLength": "0",  # nobody reads the plans, which are long
    # nor what Spark keeps of jobs that ended, for pages that are not served
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "100",
}
_PARTS = {
    # parts are packed tightly: what is small as a file need not fit into each executor. Rows that were counted tell
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.optimizer.expressionProjectionCandidateLimit": "1",  # else a plan of many joins takes half a minute
    "spark.scheduler.mode": "FAIR",  # a small part does not wait for the tasks of a large one
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # parts are named: nothing is to be discovered
}
FEW = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""For SELECTs that read few rows: one task without a shuffle, and no code is compiled for them."""
_MASTER = regex(r"^spark://(?P<hosts>[^/\s]+:\d+(?:,[^/\s]+:\d+)*)$")
_LOOPBACK = ("127.0.0.1", "localhost")
_PATIENCE = "spark.scheduler.maxRegisteredResourcesWaitingTime", "60s"


def pyspark_version() -> str:
    """The version of PySpark. Raises SettingsError where it is not installed, without looking for Java."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise SettingsError("--engine spark needs PySpark, which is not installed", hint=EXTRA) from None


def start(master: str | None, *, threads: int, memory_bytes: int, log: Path) -> SparkSession:
    """A session on a cluster, or on this machine's cores where there is no master.

    Parameters
    ----------
    master
        `spark://host:port`, several of them as `spark://a:7077,b:7077`, or `local[N]`.
    threads, memory_bytes
        Of this machine, where there is no cluster.
    log
        Where what Spark and Java have to say goes.

    Raises
    ------
    SettingsError
        When PySpark or Java are missing, or no master answers.
    WarehouseError
        When Spark does not start, or no executor comes.
    """
    pyspark_version()
    master = master or f"local[{threads}]"
    is_cluster = not master.startswith("local")
    if is_cluster:
        _reach(master)
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise SettingsError("--engine spark needs Java, and there is no `java` on the PATH", hint="install Java 17")
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    said = _EQUAL_ROWS | _QUIET | _PARTS | {"spark.master": master}
    if not is_cluster or all(host.rpartition(":")[0] in _LOOPBACK for host in _hosts(master)):
        said |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    said["spark.driver.memory"] = "1g" if is_cluster else f"{max(512, memory_bytes // 2**21)}m"
    said["spark.executorEnv.PYTHONPATH"] = str(Path(__file__).parents[2])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("TZ", "UTC")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # prints the stack of every failure
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # which is not used
    conf = SparkConf(loadDefaults=False).setAll(list(said.items()))
    try:
        _launch_java(conf, log)
        session = SparkSession(SparkContext(conf=conf))
        if is_cluster:
            _await_executor(session, master)
    except (PySparkException, Py4JError, OSError) as error:
        raise WarehouseError(f"Spark did not start at {master}: {first_line(error)}", hint=f"its log: {log}") from error
    return session


def executors(session: SparkSession) -> int:
    """How many processes can take tasks; of a session without a cluster the driver itself does."""
    java: Any = session.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark has no other way
    return int(java.getExecutorMemoryStatus().size()) - 1


def patience(session: SparkSession) -> int:
    """Seconds to wait for the first executor, or for another one where the last is lost."""
    java: Any = session.sparkContext._jsc.sc().conf()  # noqa: SLF001
    return int(java.getTimeAsSeconds(*_PATIENCE))


def first_line(error: Exception) -> str:
    """What an error of Spark says, without its stack: the cause that is nearest to what people did."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java is not None else error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _hosts(master: str) -> list[str]:
    found = _MASTER.match(master)
    if found is None:
        raise SettingsError(
            f"--master is {master!r}, not spark://HOST:PORT", hint="or local[N] for N cores of this machine"
        )
    return found["hosts"].split(",")


def _reach(master: str) -> None:
    """Refuse a master that does not answer, before Java is started: Spark would try for a minute."""
    why = ""
    for host in _hosts(master):
        name, _, port = host.rpartition(":")
        try:
            socket.create_connection((name, int(port)), timeout=5).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise SettingsError(f"no Spark master answers at {master}: {why}", hint="see docs/spark.md on starting a cluster")


def _launch_java(conf: Any, log: Path) -> None:
    """Start the driver's Java, whose words go to a file; it ends with this process."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is None:  # noqa: SLF001 - one a process: a second build goes on with it
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as said:
            gateway = launch_gateway(conf, {"stdout": said, "stderr": said})
        SparkContext._gateway = gateway  # noqa: SLF001
        SparkContext._jvm = gateway.jvm  # noqa: SLF001


def _await_executor(session: SparkSession, master: str) -> None:
    wait = patience(session)
    deadline = time.monotonic() + wait
    while executors(session) == 0:
        if time.monotonic() > deadline:
            session.stop()
            raise WarehouseError(
                f"{master} gave no executor within {wait} s",
                hint="its workers are gone, busy, or have less memory than spark.executor.memory",
            )
        time.sleep(0.1)
