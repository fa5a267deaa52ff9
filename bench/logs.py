"""Log reader: throughput, precision and recall on synthetic logs, one core.

    python -m bench.logs                       1 GB of each form: MB per CPU second and peak memory
    python -m bench.logs --megabytes 200       a quick run
    python -m bench.logs --seeds 2000          logs of 2,000 seeds, damaged and intact: precision and recall by kind
    python -m bench.logs --seeds 1 --first 291 one seed; every error is printed

Forms:

- `mixed`: 64 logs that begin with the NCCL lines of eight processes, followed by progress bars and iteration lines.
  Half of them have bare carriage returns.
- `training` (bars and iteration lines), `megatron` and `nccl` alone.

Events are created and dropped. The cost of storing them as JSON lines and a part is not included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from bench.log_check import KINDS, scores
from bench.log_truth import DAMAGES, make_sample, write_sample
from bench.measure import machine, medians, run

SERVERS = 64
BATCH = 250
"""Seeds per build."""
READ = """
import sys
from pathlib import Path
from warehouse.formats.logs.reader import LogReader
count = 0
rejected = []
for path in sorted(Path(sys.argv[1]).glob("*.log")):
    for event in LogReader(path.name, lambda *said: rejected.append(said)).read(path):
        count += 1
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--forms", nargs="+", choices=sorted(FORMS), default=list(FORMS))
    options.add_argument("--seeds", type=int)
    options.add_argument("--first", type=int, default=0)
    given = options.parse_args()
    print(machine())
    if given.seeds:
        return _truth(given.first, given.seeds)
    print(f"{given.rounds} rounds, one core\n")
    print(f"{'form':<10}{'MB':>8}{'CPU s':>9}{'MB/CPU s':>10}{'peak MB':>9}{'wall s':>9}")
    for form in given.forms:
        with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
            size = FORMS[form](Path(scratch), given.megabytes * 10**6) / 1e6
            cost = medians([run([sys.executable, "-c", READ, scratch]) for _ in range(given.rounds)])
        print(f"{form:<10}{size:8,.0f}{cost.cpu:9.2f}{size / cost.cpu:10.1f}{cost.peak_mb:9.0f}{cost.wall:9.2f}")
    return 0


def _truth(first: int, count: int) -> int:
    """Build the logs of the seeds and compare the tables with the truth."""
    totals: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    failed = 0
    for begin in range(first, first + count, BATCH):
        samples = [make_sample(seed) for seed in range(begin, min(begin + BATCH, first + count))]
        with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
            for sample in samples:
                write_sample(Path(scratch) / "data" / "logs" / "taskinfo", sample)
            target = Path(scratch) / "target"
            command = [sys.executable, "-m", "warehouse", "build", "-d", f"{scratch}/data", "--target", str(target)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            found = scores(target, samples)
        for sample in samples:
            for score in found[sample.name]:
                total = totals[score.kind, sample.damage]
                for place, number in enumerate((score.said, score.right, score.true)):
                    total[place] += number
                if score.wrong or (score.missing and sample.damage == "none"):
                    failed += 1
                    print(f"{sample.name} ({sample.about}): {score.kind}: wrong {score.wrong}, missing {score.missing}")
    print(f"{count:,} seeds, precision and recall by kind and damage; {failed} failures\n")
    print(f"{'':<12}" + "".join(f"{damage:>18}" for damage in DAMAGES))
    for kind in KINDS:
        cells = []
        for damage in DAMAGES:
            said, right, true = totals[kind, damage]
            cells.append(f"{right / said if said else 1:9.4f}{right / true if true else 1:9.4f}")
        print(f"{kind:<12}" + "".join(cells))
    return 1 if failed else 0


# forms of logs for throughput


def _write(path: Path, text: str, size: int) -> int:
    """Write a text repeatedly, up to this size; return the size."""
    whole = text.encode()
    with path.open("wb") as stream:
        written = 0
        while written < size:
            written += stream.write(whole)
    return written


def _mixed(folder: Path, size: int) -> int:
    return sum(_server(folder, server, size // SERVERS) for server in range(SERVERS))


def _server(folder: Path, server: int, size: int) -> int:
    """Write one log of about this size; return its size."""
    path = folder / f"bench-worker-{server:02d}.log"
    mark = "\r" if server % 2 else "\n"
    total = size // 330
    with path.open("w", encoding="utf-8", newline="") as stream:
        for gpu in range(8):
            stream.write("".join(_connections(server, gpu)))
        for step in range(1, total + 1):
            stream.write(_step(step, total, mark))
    return path.stat().st_size


def _step(step: int, total: int, mark: str) -> str:
    """Return a progress bar with its dictionary, and the iteration line of the same step."""
    elapsed, left = _clock(46 * step), _clock(46 * (total - step))
    text = f"loss: {2 - step / total:.4f}, learning_rate: {step * 1.7e-9!r}, epoch: 0.52"
    bar = f"{100 * step // total:3d}%|{'█' * (10 * step // total):<10}| {step}/{total} "
    bar += f"[{elapsed}<{left}, 45.79s/it]"
    quoted = ", ".join(f"'{pair.replace(': ', chr(39) + ': ')}" for pair in text.split(", "))
    stamp = f"2024-05-{1 + step // 1800 % 28:02d} {step // 75 % 24:02d}:{step // 2 % 60:02d}:{step % 60:02d}"
    line = f"{text}, iter: {step}/{total},  {elapsed} < {left},  45.79s/it"
    return f"{mark}{bar}{{{quoted}}}\n[{stamp},{step % 1000:03d}] [INFO] [hf_trainer.py:53:on_log] {line}\n"


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


def _nccl(folder: Path, size: int) -> int:
    lines = [line for server in range(16) for gpu in range(8) for line in _connections(server, gpu)]
    labeled = [f"[1,{number % 8}]<stdout>:{line}" for number, line in enumerate(lines)]
    return _write(folder / "nccl.log", "".join(lines + labeled), size)


def _training(folder: Path, size: int) -> int:
    return _write(folder / "training.log", "".join(_step(step, 3000, "\n") for step in range(1, 3001)), size)


def _megatron(folder: Path, size: int) -> int:
    lines = [
        f" [2024-08-12 10:{step // 60 % 60:02d}:{step % 60:02d}] iteration {step:8d}/  500000 | consumed samples: "
        f"{step * 512:12d} | elapsed time per iteration (ms): {26000 + step / 10:.1f} | learning rate: 5.800000E-05 | "
        f"global batch size:   512 | lm loss: {9 - step / 1e4:.6E} | loss scale: 1.0 | grad norm: 0.852 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for step in range(1, 3001)
    ]
    return _write(folder / "megatron.log", "".join(lines), size)


FORMS: dict[str, Callable[[Path, int], int]] = {
    "mixed": _mixed,
    "training": _training,
    "megatron": _megatron,
    "nccl": _nccl,
}


if __name__ == "__main__":
    sys.exit(main())
