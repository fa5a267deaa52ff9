"""Plan of a sample: every decision before the first byte is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.sample.fabric import Fabric, build_fabric
from warehouse.sample.flows import (
    Burst,
    Faults,
    Traffic,
    access_traffic,
    add_chatter,
    add_steady,
    full_nics,
    plan_bursts,
    plan_faults,
    spread,
    steady_servers,
)
from warehouse.sample.jobs import Job, Task, plan_jobs, plan_tasks
from warehouse.sample.names import RAILS

if TYPE_CHECKING:
    from warehouse.sample.options import SampleOptions


@dataclass(frozen=True)
class Plan:
    """Wiring, jobs, tasks, faults, and the resulting bytes of every second."""

    options: SampleOptions
    fabric: Fabric
    jobs: list[Job]
    tasks: list[Task]
    bursts: list[Burst]
    faults: Faults
    traffic: Traffic

    @cached_property
    def busy(self) -> set[tuple[int, int]]:
        """Server and rail of the NICs with traffic of a job, or of a server that sends or receives all the time."""
        steady = {(server, rail) for server in steady_servers(self.fabric.places).values() for rail in range(RAILS)}
        return steady | {
            (server, job.rail(server, rail)) for job in self.jobs for server in job.servers for rail in range(job.rails)
        }


def make_plan(options: SampleOptions) -> Plan:
    """Return the plan for resolved options."""
    fabric = build_fabric(options)
    jobs = plan_jobs(fabric.places, options)
    bursts = plan_bursts(jobs[0], options)
    bursts += [burst for job in jobs if job.pauses for burst in full_nics(job, options)]
    faults = plan_faults(options)
    traffic = access_traffic(fabric, jobs, bursts)
    add_steady(fabric, traffic)
    # After all traffic between access ports, as uplinks carry what goes from leaf to leaf.
    spread(fabric, traffic, faults)
    # Last, as the management port carries what is left to balance.
    add_chatter(fabric, traffic, faults.silent_in)
    return Plan(options, fabric, jobs, plan_tasks(jobs, options), bursts, faults, traffic)
