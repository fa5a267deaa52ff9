"""Balance of uplinks under a fair hash: writes `data/hash_null.csv`.

    python -m bench.hash_null > data/hash_null.csv

A fair hash puts each of n equal flows on one of k uplinks, with equal chances. The squared coefficient of variation of
the uplinks' loads is then X²/n, with X² of Pearson's test: the sum over uplinks of (flows - n/k)² / (n/k). The table
has the 99th percentile of X²: exact up to 128 flows, from the number of ways to spread n flows with a given sum of
squares, and simulated once with a fixed seed above. It changes little with n, so a row holds up to the next one.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_UPLINKS = 64
EXACT = (*range(1, 33), *range(40, 129, 8))
SIMULATED = (256, 1024)
DRAWS = 100_000
SHARE = 0.99


def main() -> int:
    """Write the table to standard output."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print("uplinks,flows,chi_square_p99,way")
    ways = np.zeros((EXACT[-1] + 1, EXACT[-1] ** 2 + 1))
    ways[0, 0] = 1
    random = np.random.default_rng(1)
    for uplinks in range(1, MOST_UPLINKS + 1):
        ways = _with_one_more(ways)
        for flows in EXACT:
            print(f"{uplinks},{flows},{rounded_up(_exact(ways[flows], uplinks, flows))},exact")
        for flows in SIMULATED:
            found = float(np.quantile(simulated(random, uplinks, flows, DRAWS), SHARE))
            print(f"{uplinks},{flows},{rounded_up(found)},simulated")
    return 0


def rounded_up(value: float) -> str:
    """Return six digits above the value: equal flows often hit the percentile, and are not beyond it."""
    return f"{value + 10.0 ** (math.floor(math.log10(value)) - 5):.6g}" if value > 0 else "0"


def simulated(random: np.random.Generator, uplinks: int, flows: int, draws: int) -> NDArray[np.float64]:
    """Return X² of so many draws of a fair hash."""
    loads = random.multinomial(flows, [1 / uplinks] * uplinks, size=draws)
    return np.asarray((loads.astype(np.float64) ** 2).sum(axis=1) * uplinks / flows - flows)


def _with_one_more(ways: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ways for one more uplink: `ways[n, s]` spread n flows with sum of squares s, over n factorial."""
    found = np.zeros_like(ways)
    for flows in range(len(ways)):
        for load in range(flows + 1):
            square = load * load
            found[flows, square:] += ways[flows - load, : ways.shape[1] - square] / math.factorial(load)
    return found


def _exact(ways: NDArray[np.float64], uplinks: int, flows: int) -> float:
    """Return the smallest X² with at least 99 % of the probability at or below it."""
    chances = ways * math.exp(math.lgamma(flows + 1) - flows * math.log(uplinks))
    squares = int(np.searchsorted(np.cumsum(chances), SHARE - 1e-12))
    return squares * uplinks / flows - flows


if __name__ == "__main__":
    sys.exit(main())
