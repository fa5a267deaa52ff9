"""Plan of a sample: every decision before the first byte is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.sample.fabric import Fabric, build_fabric
from warehouse.sample.flows import Burst, Traffic, access_traffic, add_chatter, plan_bursts
from warehouse.sample.jobs import Job, plan_jobs
from warehouse.sample.tasks import Task, plan_tasks
from warehouse.sample.uplinks import Faults, plan_faults, spread

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


def make_plan(options: SampleOptions) -> Plan:
    """Return the plan for resolved options."""
    fabric = build_fabric(options)
    jobs = plan_jobs(fabric.places, options)
    bursts = plan_bursts(jobs[0], options)
    faults = plan_faults(options)
    traffic = access_traffic(fabric, jobs, bursts)
    spread(fabric, traffic, faults)
    add_chatter(fabric, traffic)
    plan = Plan(options, fabric, jobs, plan_tasks(jobs, options), bursts, faults, traffic)
    _check(plan)
    return plan


def _check(plan: Plan) -> None:
    """Raise AssertionError if a second exceeds a line rate, or if bytes in and out of a switch differ."""
    for switch in plan.fabric.switches:
        into, out = plan.traffic.into[switch.name], plan.traffic.out[switch.name]
        if (into.sum(axis=0) != out.sum(axis=0)).any():
            raise AssertionError(f"{switch.name}: bytes in differ from bytes out.")
        for position, port in enumerate(switch.ports):
            peak = max(int(into[position].max()), int(out[position].max()))
            if peak > port.line_rate:
                raise AssertionError(f"{switch.name} {port.name}: {peak} bytes in one second.")
