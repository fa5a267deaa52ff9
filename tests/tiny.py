"""Project of two small models over a reference table, to test the runner alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import warehouse
from tests.conftest import Completed, Restored, call
from warehouse.project.project import Project

HEADER = "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
HOURS = ("2024-05-23T16", "2024-05-23T17")
"""Partitions of the data folder."""
HOUR_COLUMNS = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}


class Tiny:
    """Models `reference.speeds` -> `staging.ports` -> `metrics.total`, and a data folder with two hours."""

    def __init__(self, base: Path) -> None:
        self._move(base)
        if not self.folder.exists():
            self._write_first()

    def _move(self, base: Path) -> None:
        self.base = base
        self.folder, self.data, self.target = base / "project", base / "data", base / "target"

    def _write_first(self) -> None:
        self.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10", "eth1,40")
        self.model(
            "staging.ports",
            "SELECT port, speed FROM reference.speeds",
            {"port": "VARCHAR", "speed": "BIGINT"},
        )
        self.model(
            "metrics.total",
            "SELECT 'all' AS name, sum(speed) AS speed FROM staging.ports",
            {"name": "VARCHAR", "speed": "BIGINT"},
        )
        for hour in (0, 1):
            self.file(hour, "1,100,2,200,0,0.5")

    def restore(
        self, restored: Restored, name: str, make: Callable[[Tiny], object], *, is_up_to_date: bool = True
    ) -> Tiny:
        """Move to a folder that this function made of such a project, once for all tests, and built.

        The copies have other signatures, which another build records if the next one must find all up to date.
        """

        def made(base: Path) -> None:
            self._move(base)
            self._write_first()
            make(self)
            assert self.build().status == 0

        self._move(restored(name, made))
        assert not is_up_to_date or self.build().status == 0
        return self

    @property
    def project(self) -> Project:
        """Return the project, read again from disk."""
        return Project((self.folder,))

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def reference(self, name: str, columns: dict[str, str], *rows: str) -> None:
        """Write the project's reference table."""
        lines = [f"    {column}: {kind}" for column, kind in columns.items()]
        self.write("data/tables.yaml", "\n".join([f"{name}:", "  about: A table.", "  columns:", *lines, ""]))
        self.write(f"data/{name}.csv", "\n".join([",".join(columns), *rows, ""]))

    def model(self, name: str, select: str, columns: dict[str, str], *more: str) -> str:
        """Write a model; its grain is its first column, unless a line of `more` says otherwise.

        Return the path as messages show it.
        """
        shown = f"models/{name.replace('.', '/')}.sql"
        grain = [] if any(line.startswith("grain:") for line in more) else [f"grain: [{next(iter(columns))}]"]
        lines = [
            "about: A model.",
            *grain,
            *more,
            "columns:",
            *(f"  {column}: {kind}" for column, kind in columns.items()),
        ]
        self.write(shown, "\n".join(["/* ---", *lines, "--- */", select, ""]))
        return shown

    def by_hour(self, *more: str) -> None:
        """Write `staging.hour`, the bytes of each hour: a part per hour."""
        select = (
            "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
            "FROM raw.port_counters GROUP BY ALL"
        )
        self.model("staging.hour", select, HOUR_COLUMNS, "partition: hour_utc", *more)

    def file(self, hour: int, *tails: str) -> Path:
        """Write a port's file for this local hour, counted from the first one of a Friday; one row per tail."""
        begin = datetime(2024, 5, 24) + timedelta(hours=hour)  # noqa: DTZ001 - as the switches write it
        path = self.data / "c" / "trafficinfo" / f"{begin:%Y%m%d%H}" / "x" / "Leaf-1_1_1.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        day = f"{begin:%Y/%m/%d} 星期{'一二三四五六日'[begin.weekday()]}"
        rows = [
            f"{day} {begin.hour:02}:{second // 60:02}:{second % 60:02}.000,"
            f"{1716480000000 + hour * 3_600_000 + second * 1000},NH-Leaf-1.GPU,TwoHundredGigE1/0/1:1,{tail}"
            for second, tail in enumerate(tails, start=1)
        ]
        path.write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
        return path

    def build(self, *options: str | Path) -> Completed:
        """Run `warehouse build`, with one thread unless `options` say more: an engine less is started."""
        return call("build", "-d", self.data, "-t", self.target, "--threads", "1", *options, cwd=self.base)

    def made(self, *options: str | Path) -> set[str]:
        """Build and return the rebuilt parts: `model` or `model partition`."""
        said = self.build("--json", *options)
        assert said.status == 0, said
        return {f"{one['model']} {one['partition']}".removesuffix(" all") for one in json.loads(said.out)["made"]}

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """Return rows of the published warehouse."""
        with warehouse.open(self.target) as connection:
            return connection.execute(sql).fetchall()
