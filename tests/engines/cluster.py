"""A standalone Spark cluster on loopback, for the tests: a master and two workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""A small Java that compiles little: most of what it runs, it runs once."""
_PATIENCE = 60.0


def missing() -> str | None:
    """Why there can be no Spark here."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'gpu-warehouse[spark]'"
    return None if shutil.which("java") else "there is no `java` on the PATH: install Java 17"


class Cluster:
    """The processes of a cluster that runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._known: set[Path] = set()
        (folder / "conf").mkdir(parents=True)
        lines = [
            "spark.master.rest.enabled false",
            "spark.executor.memory 512m",
            "spark.executor.cores 1",
            "spark.scheduler.maxRegisteredResourcesWaitingTime 20s",
            f"spark.executor.extraJavaOptions {JAVA}",
            f"spark.driver.extraJavaOptions {JAVA}",
        ]
        (folder / "conf" / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        self.environment = inherited | {
            "SPARK_CONF_DIR": str(folder / "conf"),
            "SPARK_LOCAL_DIRS": str(folder / "scratch"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA,
            "PYSPARK_PYTHON": sys.executable,
            "TZ": "UTC",
        }
        self.master = self._start_master()
        self.workers = [self._start_worker(number) for number in (1, 2)]

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.submodule_search_locations
        home = Path(spec.submodule_search_locations[0])
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [home / "bin" / "spark-class", *arguments],
                env=self.environment | {"SPARK_HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _start_master(self) -> str:
        where = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self._start("master", "org.apache.spark.deploy.master.Master", *where)
        found = self._await("master", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        self._await("master", "I have been elected leader")
        return found

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        name = f"worker-{number}"
        size = ("--host", "127.0.0.1", "--cores", "1", "--memory", "600m", "--webui-port", "0")
        place = ("--work-dir", str(self._folder / "work"))
        worker = self._start(name, "org.apache.spark.deploy.worker.Worker", *size, *place, self.master)
        self._await(name, "Successfully registered with master")
        return worker

    def _await(self, name: str, pattern: str) -> str:
        """What a log says, when it says so."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            said = (self._folder / f"{name}.log").read_text(errors="replace")
            if found := re.search(pattern, said):
                return found[found.re.groups]
            time.sleep(0.1)
        raise TimeoutError(f"{name} did not say {pattern!r}: {said[-2000:]}")

    def note_applications(self) -> None:
        """Those that are there now are not waited for."""
        self._known = set((self._folder / "work").glob("app-*"))

    def await_tasks(self, executors: int, build: subprocess.Popen[str]) -> None:
        """Wait until so many executors of the newest application, since `note_applications`, have a task."""
        deadline = time.monotonic() + 2 * _PATIENCE
        while True:
            assert build.poll() is None, build.communicate()
            assert time.monotonic() < deadline
            last = max((self._folder / "work").glob("app-*"), default=self._folder)
            logs = [path.read_text(errors="replace") for path in last.glob("*/stderr")]
            if last not in self._known and sum("Running task" in log for log in logs) >= executors:
                return
            time.sleep(0.1)

    def kill_worker(self, number: int) -> None:
        """A machine is lost: a worker and all that it started, without a word."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)

    def stop(self) -> None:
        """End all processes, workers before their master."""
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster for a block."""
    one = Cluster.__new__(Cluster)
    try:
        one.__init__(folder)  # type: ignore[misc]
        yield one
    finally:
        one.stop()
