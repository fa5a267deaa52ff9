"""Writer of the CSV file of each switch port, in the published form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.clock import epoch_ms, save_time

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.sample.counters import Rows
    from warehouse.sample.draws import Ints
    from warehouse.sample.fabric import Port, Switch
    from warehouse.sample.options import SampleOptions

HEADER = "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio\n"

_ZERO = ",0,0,0,0,0,0\n"


def ratio_text(hundredths: int) -> str:
    """Return a ratio as text with at most two decimals.

    >>> [ratio_text(value) for value in (0, 154, 290, 10000, -868)]
    ['0', '1.54', '2.9', '100', '-8.68']
    """
    return f"{hundredths / 100:g}"


_RATIOS = [ratio_text(value) for value in range(10_001)]


def row_starts(switch: Switch, polls: Ints, options: SampleOptions) -> list[str]:
    """Return the common start of all rows of each poll."""
    start = epoch_ms(options)
    return [f"{save_time(poll, options)},{start + poll},{switch.device}," for poll in polls.tolist()]


def write_port_file(path: Path, port: Port, rows: Rows, part: slice, starts: list[str]) -> None:
    """Write the rows of one port in one hour."""
    text = [HEADER]
    busy = (rows.in_bytes[part] | rows.out_bytes[part] | rows.in_packets[part] | rows.out_packets[part]) != 0
    columns = (
        rows.poll[part], busy, rows.in_packets[part], rows.in_bytes[part], rows.out_packets[part],
        rows.out_bytes[part], rows.in_ratio[part], rows.out_ratio[part],
    )  # fmt: skip
    name = port.name
    zero = name + _ZERO
    for poll, moved, in_p, in_b, out_p, out_b, in_r, out_r in zip(*map(np.ndarray.tolist, columns), strict=True):
        if moved:
            in_text = _RATIOS[in_r] if in_r >= 0 else ratio_text(in_r)
            out_text = _RATIOS[out_r] if out_r >= 0 else ratio_text(out_r)
            text.append(f"{starts[poll]}{name},{in_p},{in_b},{out_p},{out_b},{in_text},{out_text}\n")
        else:
            text.append(starts[poll] + zero)
    path.write_bytes("".join(text).encode())
