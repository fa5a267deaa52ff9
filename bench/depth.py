"""Size of the machine that runs: own modules and functions that a first build of `bench.chain`'s 30 models enters.

    python -m bench.depth

The build runs in this process with two threads and one raw file; functions of all threads count. `depth` is the largest
number of own functions on one stack.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType

from bench.chain import MODELS, OURS, chain

OWN = str(Path(__file__).parents[1] / "warehouse") + "/"

RAW = (
    "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio\n"
    "2024/05/24 星期五 00:00:00.939,1716480000939,R-Leaf-1.GPU.S9825,TwoHundredGigE1/0/1:2,0,0,0,0,0,0\n"
)


class Watch:
    """Counter of the own functions that are entered, by `sys.setprofile` in each thread."""

    def __init__(self) -> None:
        self.entered: set[CodeType] = set()
        self.deepest = 0
        self._local = threading.local()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call or a return."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(OWN) or code.co_name == "<module>":
            return
        if event == "call":
            self.entered.add(code)
        depth = getattr(self._local, "depth", 0) + (1 if event == "call" else -1)
        self._local.depth = max(0, depth)
        self.deepest = max(self.deepest, depth)


def main() -> int:
    """Print the counts."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-depth-") as scratch:
        folder = Path(scratch)
        OURS.write(folder / "chain", chain())
        raw = folder / "data" / "trafficinfo" / "2024052400" / "R-Leaf-1_GPU_S9825" / "Leaf-1_1_2.csv"
        raw.parent.mkdir(parents=True)
        raw.write_text(RAW, encoding="utf-8")
        watch = Watch()
        threading.setprofile(watch)  # only threads that start after this are counted
        sys.setprofile(watch)
        try:
            import warehouse

            warehouse.build(folder / "data", folder / "target", project=folder / "chain", threads=2)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    modules = {code.co_filename for code in watch.entered}
    print(f"first build of {MODELS} models, two threads: {len(modules)} own modules, ", end="")
    print(f"{len(watch.entered):,} own functions, {watch.deepest} deep")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
