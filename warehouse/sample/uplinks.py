"""Distribution of traffic between leaves over spines and links, and the faulty links.

Each leaf has three links to each spine (storage leaves one). The share of a spine is drawn per pair of leaves. So the
bytes that all leaves send to a spine equal those that it sends to them. Within a bundle, the two neighbors of a link
without data carry its share; of what it would carry to one leaf, a part takes other spines.
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

FAVORED, FAVORED_PERCENT = 3, 119
"""Number of the spine that gets more bytes, and its weight in percent of the others'. Of three spines it carries 12 %
above their mean, which leaves the uplinks of a leaf just within the bound of an uneven leaf."""
HOT_FACTOR = 2
"""Weight of the hot uplink in its bundle; its neighbors have weight 1."""
LESS_LEAF, LESS_PERCENT = "Leaf-3", 11
"""Leaf that gets less from the first spine, since an uplink of another leaf sends nothing to it, and by how much."""
UNEVEN_LEAF, UNEVEN_SECOND, MINUTE = "ST-leaf-1", 600, 60
"""Leaf, and second of the last hour, of the uneven minute: all that the leaf sends goes to the first spine."""


@dataclass(frozen=True)
class Faults:
    """Faulty uplinks as (switch, port); None in a sample without faults."""

    no_data_out: tuple[str, str] | None
    no_data_in: tuple[str, str] | None
    silent_in: tuple[str, str] | None
    """No packet comes in, while control traffic passes the links of `no_data_out` and `no_data_in`."""
    hot_out: tuple[str, str] | None
    """Hot from the second hour on."""
    uneven_out: tuple[str, int] | None
    """Leaf, and first second of the minute in which it sends to the first spine alone."""
    favored_spine: int | None
    """Number of the spine that the hash of all leaves favors."""


def plan_faults(options: SampleOptions) -> Faults:
    """Return the faults of a sample: on three different leaves, or none."""
    if not options.planted:
        return Faults(None, None, None, None, None, None)
    uneven = None
    if options.seconds >= UNEVEN_SECOND + MINUTE and options.spines > 1 and not options.full:
        uneven = UNEVEN_LEAF, (options.hours - 1) * HOUR + UNEVEN_SECOND
    second = 33 + 3 * min(1, options.spines - 1)
    if options.full:
        return Faults(_port("Leaf-10", 35), _port("Leaf-18", 47), None, _port("Leaf-4", 40), uneven, FAVORED)
    favored = FAVORED if options.spines >= FAVORED else None
    return Faults(_port("Leaf-2", 35), None, _port("Leaf-7", second + 1), _port("Leaf-4", 34), uneven, favored)


def _port(leaf: str, number: int) -> tuple[str, str]:
    return leaf, f"FourHundredGigE1/0/{number}"


def formula_spine_port(switch: Switch, port: Port) -> str | None:
    """Return the spine port of a GPU leaf's uplink by its number; None for a storage leaf, which has no formula."""
    if port.kind != "uplink":
        return None
    return f"FourHundredGigE1/0/{3 * (switch.number - 1) + (port.number - 33) % 3 + 1}"


def spine_port(switch: Switch, port: Port, options: SampleOptions) -> str:
    """Return the spine port where an uplink's cable really ends."""
    if (switch.name, port.name) == other_cable(options):
        return f"FourHundredGigE1/0/{3 * options.leaves + options.storage_leaves + 1}"
    return formula_spine_port(switch, port) or f"FourHundredGigE1/0/{3 * options.leaves + switch.number}"


def other_cable(options: SampleOptions) -> tuple[str, str]:
    """Return the one uplink whose spine port does not follow the formula."""
    return "Leaf-3", f"FourHundredGigE1/0/{33 + 3 * min(1, options.spines - 1)}"


def spread(fabric: Fabric, traffic: Traffic, faults: Faults) -> None:
    """Add the traffic between leaves to their uplinks, exact to the byte."""
    options = fabric.options
    shape = (options.spines, options.hours * HOUR)
    sent = {switch.name: np.zeros(shape, np.int64) for switch in fabric.switches}
    received = {switch.name: np.zeros(shape, np.int64) for switch in fabric.switches}
    around = (faults.no_data_out[0], LESS_LEAF) if faults.no_data_out and options.spines > 1 else None
    to_move: Ints | None = None
    for (source, target), series in sorted(traffic.between.items()):
        parts = _by_spine(options, f"{source}/{target}", series, faults.favored_spine)
        if faults.uneven_out and faults.uneven_out[0] == source:
            minute = slice(faults.uneven_out[1], faults.uneven_out[1] + MINUTE)
            parts[:, minute] = 0
            parts[0, minute] = series[minute]
        sent[source] += parts
        received[target] += parts
        if (source, target) == around:
            to_move = parts
    if around and to_move is not None and not options.full:
        _avoid_spine(to_move[0], sent[around[0]], received[LESS_LEAF])
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


def _by_spine(options: SampleOptions, label: str, series: Ints, favored: int | None) -> Ints:
    """Return one pair's bytes by spine: nearly equal shares, less equal for storage; one spine takes the remainder."""
    uneven = 150 if "ST-" in label else 15
    weights = 1000 + draw(options.seed, f"spines/{label}", options.spines, -uneven, uneven)
    if favored:
        weights[favored - 1] = weights[favored - 1] * FAVORED_PERCENT // 100
    parts = series[np.newaxis, :] * weights[:, np.newaxis] // int(weights.sum())
    parts[draw_one(options.seed, f"rest/{label}", 0, options.spines - 1)] += series - parts.sum(axis=0)
    return parts


def _avoid_spine(series: Ints, sent: Ints, received: Ints) -> None:
    """Lead a part of a series, which one leaf sends to another, past the first spine.

    The other leaf then gets `LESS_PERCENT` less from that spine than from the others, in the mean.
    """
    first, *others = (int(one.sum()) for one in received)
    want, whole = 100 - LESS_PERCENT, int(series.sum())
    moved = (first * 100 * len(others) - want * sum(others)) // (100 * len(others) + want)
    if 0 < moved < whole:
        part = series * (moved * 1_000_000 // whole) // 1_000_000
        for of in (sent, received):
            of[0] -= part
            of[1] += part


def _bundle(
    switch: Switch,
    spine: int,
    direction: str,
    series: Ints,
    ports: Ints,
    options: SampleOptions,
    faults: Faults,
) -> None:
    """Distribute the bytes between one leaf and one spine over their links, in one direction."""
    lost = (faults.no_data_out,) if direction == "out" else (faults.no_data_in, faults.silent_in)
    links = [
        position
        for position, port in enumerate(switch.ports)
        if port.spine == spine and (switch.name, port.name) not in lost
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
    """Return the weight of a link in each second: near 1000, slightly uneven between links and between seconds."""
    label = f"link/{switch.name}/{position}/{direction}"
    steady = 1000 + draw_one(options.seed, label, -25, 25)
    weights = steady + draw(options.seed, f"{label}/seconds", options.hours * HOUR, -80, 80)
    if direction == "out" and (switch.name, switch.ports[position].name) == faults.hot_out:
        weights[HOUR:] *= HOT_FACTOR
    return weights
