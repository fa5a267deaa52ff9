"""Picture for docs/metrics/periods.md: autocorrelations of the sums of a job with a period and of one without.

python -m bench.jobs_figure DIR docs/images/aperiodic-job.svg     DIR is a built warehouse
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import warehouse
from warehouse.signals.rails import clusters
from warehouse.signals.together import window

LAGS = 60
"""Longest lag in seconds."""
WIDTH, HEIGHT = 720, 180
SERIES = """
SELECT r.* FROM metrics.rail_seconds AS r JOIN metrics.traffic_groups AS g USING (cluster, hour_utc, server)
WHERE (g.cluster, g.hour_utc, g.group_id) IN (
    SELECT (cluster, hour_utc, group_id) FROM metrics.traffic_jobs WHERE {which} ORDER BY bytes DESC LIMIT 1)
ORDER BY r.cluster, r.server, r.rail
"""


def main() -> None:
    """Write the picture."""
    folder, path = sys.argv[1:]
    panels = []
    with warehouse.open(folder) as connection:
        for place, (which, words) in enumerate(
            (
                ("period_seconds BETWEEN 8 AND 15", "the largest job with a period of 8 to 15 s"),
                ("period_seconds IS NULL", "the largest job without a period"),
            )
        ):
            (rails,) = clusters(connection.sql(SERIES.format(which=which)).to_arrow_table())
            low, high = window(rails.observed)
            panels.append(
                _panel(rails.moved.sum(axis=(0, 1))[low:high], f"{words}, {len(rails.servers)} servers", place)
            )
    body = "".join(panels)
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {2 * HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{2 * HEIGHT}" fill="white"/>{body}</svg>\n',
        encoding="utf-8",
    )


def _panel(moved: np.typing.NDArray[np.int64], words: str, place: int) -> str:
    """Return the curve of the autocorrelation at lags of whole seconds."""
    wave = moved - moved.mean()
    rho = np.correlate(wave, wave, "full")[len(wave) - 1 :][: LAGS + 1]
    rho = rho / rho[0]
    top = place * HEIGHT + 30
    height = HEIGHT - 60
    x = 50 + np.arange(LAGS + 1) * (WIDTH - 80) / LAGS
    y = top + height * (1 - rho) / 1.6
    zero = top + height / 1.6
    points = " ".join(f"{one:.1f},{other:.1f}" for one, other in zip(x, y, strict=True))
    ticks = "".join(
        f'<text x="{x[lag]:.1f}" y="{top + height + 16:.1f}" text-anchor="middle">{lag} s</text>'
        for lag in range(0, LAGS + 1, 10)
    )
    return (
        f'<text x="50" y="{top - 10}">Autocorrelation of the sum over {words}</text>'
        f'<path d="M50 {zero:.1f}H{WIDTH - 30}" stroke="#999"/>'
        f'<text x="44" y="{zero + 4:.1f}" text-anchor="end">0</text>'
        f'<text x="44" y="{top + 4}" text-anchor="end">1</text>'
        f'<polyline points="{points}" fill="none" stroke="#0b62a4" stroke-width="1.5"/>{ticks}'
    )


if __name__ == "__main__":
    main()
