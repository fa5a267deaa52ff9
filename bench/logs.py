"""How fast logs are read: a synthetic task of 64 servers with 1 GB of logs, one core.

    python -m bench.logs                     1 GB
    python -m bench.logs --megabytes 200     less, for a look

Each log begins with what eight processes of NCCL print, and goes on with progress bars and iteration lines, in the
form of the published task: half the logs with bare carriage returns. The events are made and dropped: what a build
does with them, JSON lines and a part, is not in it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.measure import machine, medians, run

SERVERS = 64
READ = """
import sys
from pathlib import Path
from warehouse.formats.logs.reader import LogReader
count = 0
for path in sorted(Path(sys.argv[1]).glob("*.log")):
    for event in LogReader(path.name, print).read(path):
        count += 1
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        folder = Path(scratch)
        size = sum(_write(folder, server, given.megabytes * 10**6 // SERVERS) for server in range(SERVERS)) / 1e6
        print(machine())
        print(f"{SERVERS} logs, {size:,.0f} MB; {given.rounds} rounds, one core\n")
        print(f"{'':<20}{'CPU s':>8}{'MB/CPU s':>10}{'peak MB':>9}{'wall s':>8}")
        cost = medians([run([sys.executable, "-c", READ, scratch]) for _ in range(given.rounds)])
        print(f"{'read':<20}{cost.cpu:8.2f}{size / cost.cpu:10.1f}{cost.peak_mb:9.0f}{cost.wall:8.2f}")
    return 0


def _write(folder: Path, server: int, size: int) -> int:
    """Write one log of about this size; its size."""
    mark = "\r" if server % 2 else "\n"
    total = size // 330
    written = 0
    with (folder / f"bench-worker-{server:02d}.log").open("w", encoding="utf-8", newline="") as stream:
        for gpu in range(8):
            written += stream.write("".join(_connections(server, gpu)))
        for step in range(1, total + 1):
            elapsed, left = _clock(46 * step), _clock(46 * (total - step))
            said = f"loss: {2 - step / total:.4f}, learning_rate: {step * 1.7e-9!r}, epoch: 0.52"
            bar = f"{100 * step // total:3d}%|{'█' * (10 * step // total):<10}| {step}/{total} "
            bar += f"[{elapsed}<{left}, 45.79s/it]"
            quoted = ", ".join(f"'{pair.replace(': ', chr(39) + ': ')}" for pair in said.split(", "))
            written += stream.write(f"{mark}{bar}{{{quoted}}}\n")
            stamp = f"2024-05-{1 + step // 1800 % 28:02d} {step // 75 % 24:02d}:{step // 2 % 60:02d}:{step % 60:02d}"
            line = f"{said}, iter: {step}/{total},  {elapsed} < {left},  45.79s/it"
            written += stream.write(f"[{stamp},{step % 1000:03d}] [INFO] [hf_trainer.py:53:on_log] {line}\n")
    return (folder / f"bench-worker-{server:02d}.log").stat().st_size


def _connections(server: int, gpu: int) -> list[str]:
    prefix = f"node-{server}:{1000 + gpu}:{2000 + gpu} [{gpu}] NCCL INFO"
    rank = 8 * server + gpu
    lines = [f"{prefix} Bootstrap : Using bond0:10.0.0.{server}<0>\n"]
    for channel in range(16):
        after = (rank + 8) % (8 * SERVERS)
        lines.append(
            f"{prefix} Channel {channel:02d}/0 : {rank}[{gpu}] -> {after}[{gpu}] [send] via NET/IB/{gpu // 2}/GDRDMA\n"
        )
        lines.append(f"{prefix} Channel {channel:02d}/0 : {rank}[{gpu}] -> {rank ^ 1}[{gpu ^ 1}] via P2P/IPC/read\n")
    lines.append(
        f"{prefix} comm 0x5b{rank:06x} rank {rank} nranks {8 * SERVERS} cudaDev {gpu} busId {gpu}0000 - Init COMPLETE\n"
    )
    return lines


def _clock(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


if __name__ == "__main__":
    sys.exit(main())
