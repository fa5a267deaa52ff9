"""Data folder of wide utilization files."""

from __future__ import annotations

from pathlib import Path

import warehouse
from warehouse.base.settings import settle
from warehouse.formats.acme.utilization import WIDE
from warehouse.formats.base import RawFile
from warehouse.runner.build import build
from warehouse.runner.reporter import Reporter

HEADER = "Time,10.140.1.10-0,10.140.1.10-1,10.140.1.9-0"
ROWS = (
    "2023-07-01 08:00:00+08:00,43.0,0.0,100.0",
    "2023-07-01 08:00:15+08:00,43.5,,99.0",
    "2023-07-01 08:01:30+08:00,1,2.125,-3.5",
)


class Wide:
    """Data folder of wide files, and the target of its build."""

    def __init__(self, base: Path) -> None:
        self.data, self.target = base / "data", base / "target"

    def write(self, content: str | bytes, name: str = "kalos/GPU_UTIL.csv") -> Path:
        path = self.data / "utilization" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def lines(self, *lines: str, name: str = "kalos/GPU_UTIL.csv") -> Path:
        return self.write("".join(f"{line}\n" for line in lines), name)

    def build(self) -> None:
        build(settle({"data": [str(self.data)], "target": str(self.target)}), Reporter())

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with warehouse.open(self.target) as reader:
            return reader.execute(sql).fetchall()

    def values(self) -> list[tuple[object, ...]]:
        return self.ask(
            "SELECT strftime(time_utc, '%H:%M:%S'), column_name, value FROM staging.utilization "
            "ORDER BY time_utc, position"
        )

    def rejected(self) -> list[tuple[object, ...]]:
        return self.ask("SELECT line, reason, text FROM staging.rejected_rows ORDER BY line")

    def file(self) -> tuple[object, ...]:
        return self.ask("SELECT status, reason FROM raw.files WHERE format = 'acme.utilization'")[0]


def seen(path: Path) -> RawFile:
    about = path.stat()
    return WIDE.inspect(RawFile(path, path.name, about.st_size, about.st_mtime_ns, format=WIDE.name, cluster="unknown"))
