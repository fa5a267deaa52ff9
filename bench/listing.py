"""Cost of many raw files: listing, plan, and a build with nothing to do, beside a bare walk.

    python -m bench.listing                          300,000 files beside 75,000; 1.5 GB of disk, removed afterwards
    python -m bench.listing --files 75000 9000

A file is a header and a line; 2,160 files are an hour, as in the published trace. The project has one model, so that
the costs are those of files, not of models. "Walk" is a program that lists the same folders and reads size and times
of each file. "Listing" lists the files for a build that knows them; "first listing" opens and hashes them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.growth import LIST, hour_name, move_on
from bench.measure import Cost, machine, medians, run
from warehouse.formats.zhejiang.port_counters import HEADER

MONTH = 1_500_000
SWITCHES, PORTS = 24, 90
FIRST = "2024052400"
LINE = (
    "2024/05/24 星期五 00:00:10.000,1716480010000,NH-DC-NM129-B03-ROCE-Leaf-{0}.GPU.S9825,"
    "TwoHundredGigE1/0/{1}:1,100,200,1,2,0,0.5\n"
)
RAW_FILES = """
import sys
from pathlib import Path
from warehouse.formats import known_formats
from warehouse.ingest.inventory import RawFiles
from warehouse.store.parts import Store
raw_files = RawFiles([Path(sys.argv[1])], known_formats(), Store(Path(sys.argv[2])))
print(raw_files.inventory.count, len(raw_files.listing().lines), raw_files.partition_digest("2024-05-23T16"))
"""
MODEL = """/* ---
about: Bytes of an hour.
partition: hour_utc
grain: [hour_utc]
columns:
  hour_utc: TIMESTAMP the hour
  bytes: BIGINT [B] bytes in
sources: none
--- */
SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets)::BIGINT AS bytes
FROM raw.port_counters
GROUP BY ALL
"""


def lay_out(place: Path, count: int) -> None:
    """Write a release of `count` files, and the project."""
    made = 0
    for hour in range(-(-count // (SWITCHES * PORTS))):
        for switch in range(1, SWITCHES + 1):
            folder = place / "release" / "cluster" / "trafficinfo" / hour_name(FIRST, hour) / f"Leaf-{switch}"
            folder.mkdir(parents=True)
            for port in range(1, min(PORTS, count - made) + 1):
                content = (HEADER + "\n" + LINE.format(switch, port)).encode()
                (folder / f"Leaf-{switch}_{port}.csv").write_bytes(move_on(content, hour))
            made += min(PORTS, count - made)
            if made == count:
                break
    models = place / "project" / "models" / "metrics"
    models.mkdir(parents=True)
    (models / "hour_bytes.sql").write_text(MODEL, encoding="utf-8")
    (place / "project" / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")


def measure(place: Path, rounds: int) -> dict[str, list[Cost]]:
    """Return the costs of all cases."""
    target, listed = place / "target", place / "listed"
    words = ["-d", str(place / "release"), "-t", str(target), "--project", str(place / "project"), "--threads", "1"]
    environment = {"XDG_CACHE_HOME": str(place / "cache")}
    build = [sys.executable, "-m", "warehouse", "build", *words, "--quiet"]
    plan = [sys.executable, "-m", "warehouse", "plan", *words]
    listing = [sys.executable, "-c", RAW_FILES, str(place / "release"), str(listed)]
    costs = {"first listing": [run(listing)], "first build": [run(build, env=environment)]}
    run(build, env=environment)  # caches the request of a repeated build
    folder = place / "release" / "cluster" / "trafficinfo" / FIRST / "Leaf-1"
    for number in range(rounds):
        cases = {
            "walk": [sys.executable, "-c", LIST, str(place / "release")],
            "listing": listing,
            "no-op": build,
            "no-op, trusted": [*build, "--trust-folders"],
        }
        for name, command in cases.items():
            costs.setdefault(name, []).append(run(command, env=environment))
        path = folder / f"Leaf-1_{PORTS - number}.csv"
        path.write_bytes(path.read_bytes().replace(b",100,", b",101,"))
        costs.setdefault("plan, 1 changed", []).append(run(plan, env=environment))
        costs.setdefault("build, 1 changed", []).append(run(build, env=environment))
    return costs


def main() -> int:
    """Print a table: the costs, their growth, and a month by extrapolation."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", type=int, nargs="+", default=[75_000, 300_000])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scratch", type=Path, help="where the files are made, and removed")
    given = options.parse_args()
    found: dict[int, dict[str, list[Cost]]] = {}
    for count in sorted(given.files):
        with tempfile.TemporaryDirectory(prefix="warehouse-bench-", dir=given.scratch) as folder:
            lay_out(Path(folder), count)
            found[count] = measure(Path(folder), given.rounds)
    few, many = min(found), max(found)
    print(f"{machine()}\nCPU s; growth by the factor of the files is {many / few:.2f}\n")
    heads = [f"{count:,}" for count in found]
    print(f"{'':<18}{''.join(f'{head:>10}' for head in heads)}{'growth':>8}{'peak MB':>9}{f'{MONTH:,}':>11}")
    for name in found[many]:
        costs = {count: medians(found[count][name]) for count in found}
        each = (costs[many].cpu - costs[few].cpu) / max(1, many - few)
        month = costs[many].cpu + each * (MONTH - many)
        growth = costs[many].cpu / costs[few].cpu
        shown = "".join(f"{cost.cpu:>10.2f}" for cost in costs.values())
        print(f"{name:<18}{shown}{growth:>8.2f}{costs[many].peak_mb:>9.0f}{month:>11.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
