"""Slurm of one node on loopback, for tests: a controller and a node that run in the foreground."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import SETTINGS
from tests.environments import missing
from tests.publish.postgres_server import free_port

LIMIT = 300
"""Seconds to wait for servers and jobs: a busy machine is no failure."""
ENDED = {"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost({address})
SlurmctldPort={control_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/pgid
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
BatchStartTimeout=300
MessageTimeout=60
UnkillableStepTimeout=300
KillWait=5
NodeName=node NodeAddr={address} CPUs=16 RealMemory=32768
PartitionName=all Nodes=node Default=YES
"""
"""What is not the default of Slurm.

Servers trust all who can connect (`auth/none`), and listen only where the machine's name leads (`NoInAddrAny`). The
node claims more than this machine has. A busy machine is no dead one.
"""


class Slurm:
    """Slurm of one node: its files are in a folder, where jobs are also queued."""

    def __init__(self, folder: Path, programs: str, address: str) -> None:
        self.folder, self.programs = folder, programs
        for name in ("state", "spool"):
            (folder / name).mkdir()
        ports = {"control_port": free_port(), "node_port": free_port()}
        text = CONFIGURATION.format(address=address, user=os.geteuid(), folder=folder, **ports)
        (folder / "slurm.conf").write_text(text, encoding="utf-8")
        others = ("SLURM", "SBATCH", "SQUEUE", "SINFO", *SETTINGS)  # the tests may themselves be a job
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        path = f"{Path(sys.executable).parent}:{programs}"  # `warehouse` is beside Python
        self.environment = {**kept, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}

    @contextmanager
    def server(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a server in the foreground; stop it after the block."""
        with (self.folder / f"{words[0]}.log").open("w") as log:
            program = shutil.which(words[0], path=self.programs)
            process = subprocess.Popen([str(program), *words[1:]], env=self.environment, stdout=log, stderr=log)
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def call(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder."""
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )

    def run(self, *words: str | Path) -> str:
        """Run a command that must succeed; return its output."""
        done = self.call(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}{self.told()}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """Return the states of all jobs by name and number: `hours 2`, `publish N/A`."""
        lines = self.run("squeue", "--states=all", "--array", "--noheader", "--format=%j %K=%T").splitlines()
        return dict(line.split("=") for line in lines)

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until this is so; else fail with all that servers and jobs said."""
        until = time.monotonic() + LIMIT
        while not is_so():
            assert time.monotonic() < until, f"{what} after {LIMIT} s{self.told()}"
            time.sleep(0.2)

    def wait_for_jobs(self) -> dict[str, str]:
        """Wait until all jobs have ended; return their states."""
        self.wait("jobs did not end", lambda: ENDED.issuperset(self.states().values()))
        return self.states()

    def told(self) -> str:
        """Return what servers and jobs wrote."""
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        written = "".join(f"\n--- {file.name}\n{file.read_text(errors='replace')}" for file in files)
        return f"\n{self.call('squeue', '--states=all').stdout}{written}"


@contextmanager
def started(folder: Path) -> Iterator[Slurm]:
    """Start a controller and a node, or skip the test; in the end cancel jobs that are left, and stop both."""
    programs = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
    if not all(shutil.which(one, path=programs) for one in ("slurmctld", "slurmd", "sbatch")):
        missing("no Slurm: apt-get install --no-install-recommends slurm-wlm")
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = "unknown"
    if not address.startswith("127."):
        missing("Slurm would listen on a network: give this machine's name a loopback address in /etc/hosts")
    found = Slurm(folder, programs, address)
    with found.server("slurmctld", "-D") as controller, found.server("slurmd", "-D", "-N", "node") as node:

        def is_ready() -> bool:
            assert (controller.poll(), node.poll()) == (None, None), found.told()
            return "idle" in found.call("sinfo", "--noheader", "--format=%T").stdout

        found.wait("no node", is_ready)
        try:
            yield found
        finally:
            found.run("scancel", "--partition=all")
            found.wait_for_jobs()
