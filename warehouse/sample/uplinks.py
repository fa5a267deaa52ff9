"""How traffic between leaves spreads over spines and links, and which links are faulty.

Each leaf has three links to each spine (storage leaves one). The share of a spine is drawn per pair of
leaves, so that what all leaves send to a spine is what it sends to them. Within a bundle a dead link's
share goes to its two neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.draws import Ints, draw, draw_one
from warehouse.sample.jobs import HOUR

if TYPE_CHECKING:
    from warehouse.sample.fabric import Fabric, Port, Switch
    from warehouse.sample.flows import Traffic
    from warehouse.sample.options import SampleOptions

HOT_FACTOR = 2
"""The hot uplink's weight in its bundle, against 1 of its neighbours."""


@dataclass(frozen=True)
class Faults:
    """Uplinks that do not carry their share: (switch, port); None in a clean sample."""

    dead_out: tuple[str, str] | None
    dead_in: tuple[str, str] | None
    hot_out: tuple[str, str] | None
    """From the second hour on."""


def plan_faults(options: SampleOptions) -> Faults:
    """Choose the faults of a sample: on three different leaves, or none."""
    if not options.planted:
        return Faults(None, None, None)
    second = 33 + 3 * min(1, options.spines - 1)
    if options.full:
        return Faults(_port("Leaf-10", 35), _port("Leaf-18", 47), _port("Leaf-4", 40))
    return Faults(_port("Leaf-2", 35), _port("Leaf-7", second + 1), _port("Leaf-4", 34))


def _port(leaf: str, number: int) -> tuple[str, str]:
    return leaf, f"FourHundredGigE1/0/{number}"


def formula_spine_port(switch: Switch, port: Port) -> str | None:
    """Spine port of a GPU leaf's uplink by its number; a storage leaf's does not follow from it."""
    if port.kind != "uplink":
        return None
    return f"FourHundredGigE1/0/{3 * (switch.number - 1) + (port.number - 33) % 3 + 1}"


def spine_port(switch: Switch, port: Port, options: SampleOptions) -> str:
    """Find the spine port that an uplink's cable is really in."""
    if (switch.name, port.name) == other_cable(options):
        return f"FourHundredGigE1/0/{3 * options.leaves + options.storage_leaves + 1}"
    return formula_spine_port(switch, port) or f"FourHundredGigE1/0/{3 * options.leaves + switch.number}"


def other_cable(options: SampleOptions) -> tuple[str, str]:
    """Name the one uplink whose spine port is not what the formula says."""
    return "Leaf-3", f"FourHundredGigE1/0/{33 + 3 * min(1, options.spines - 1)}"


def spread(fabric: Fabric, traffic: Traffic, faults: Faults) -> None:
    """Put what leaves send each other onto their uplinks, exactly."""
    options = fabric.options
    shape = (options.spines, options.hours * HOUR)
    sent = {switch.name: np.zeros(shape, np.int64) for switch in fabric.switches}
    received = {switch.name: np.zeros(shape, np.int64) for switch in fabric.switches}
    for (source, target), series in sorted(traffic.between.items()):
        parts = _by_spine(options, f"{source}/{target}", series)
        sent[source] += parts
        received[target] += parts
    for switch in fabric.switches:
        for spine in range(options.spines):
            _bundle(switch, spine + 1, "out", sent[switch.name][spine], traffic.out[switch.name], options, faults)
            _bundle(
                switch,
                spine + 1,
                "in",
                received[switch.name][spine],
                traffic.into[switch.name],
                options,
                faults,
            )


def _by_spine(options: SampleOptions, label: str, series: Ints) -> Ints:
    """One pair's bytes by spine: nearly equal shares, less so with storage; the rest goes to one of them."""
    uneven = 150 if "ST-" in label else 15
    weights = 1000 + draw(options.seed, f"spines/{label}", options.spines, -uneven, uneven)
    parts = series[np.newaxis, :] * weights[:, np.newaxis] // int(weights.sum())
    parts[draw_one(options.seed, f"rest/{label}", 0, options.spines - 1)] += series - parts.sum(axis=0)
    return parts


def _bundle(
    switch: Switch,
    spine: int,
    direction: str,
    series: Ints,
    ports: Ints,
    options: SampleOptions,
    faults: Faults,
) -> None:
    """Spread one leaf's bytes to or from one spine over the links between them."""
    dead = faults.dead_out if direction == "out" else faults.dead_in
    links = [
        position
        for position, port in enumerate(switch.ports)
        if port.spine == spine and (switch.name, port.name) != dead
    ]
    weights = [_weights(switch, position, direction, options, faults) for position in links]
    total = np.sum(weights, axis=0)
    left = series.copy()
    for position, weight in zip(links[1:], weights[1:], strict=True):
        part = series * weight // total
        ports[position] += part
        left -= part
    ports[links[0]] += left


def _weights(switch: Switch, position: int, direction: str, options: SampleOptions, faults: Faults) -> Ints:
    """Weight of a link in each second: near 1000, a little uneven for good and from second to second."""
    label = f"link/{switch.name}/{position}/{direction}"
    steady = 1000 + draw_one(options.seed, label, -25, 25)
    weights = steady + draw(options.seed, f"{label}/seconds", options.hours * HOUR, -80, 80)
    if direction == "out" and (switch.name, switch.ports[position].name) == faults.hot_out:
        weights[HOUR:] *= HOT_FACTOR
    return weights
