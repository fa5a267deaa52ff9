"""Shares of a build: the hours of a release dealt to several machines, about even by bytes.

All machines deal the same way, from names and sizes of files alone. A machine does not open the files of hours that
others make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from warehouse.base.errors import DataError, SettingsError
from warehouse.base.startup import regex
from warehouse.formats.zhejiang.values import parse_hour
from warehouse.ingest.inventory import RawFiles
from warehouse.ingest.partitions import HOUR, column_of, named, partition_of
from warehouse.store.folders import Folder, Walk
from warehouse.store.layout import ALL

SHARE_BYTES = 100_000_000
"""Bytes of raw files that are worth the start of one more share, which costs a quarter of a second of CPU."""
_SHARES_A_THREAD = 4
"""Most shares for each thread that makes them: more even out the work."""
_SHARE = regex(r"^([1-9]\d{0,5})/([1-9]\d{0,5})$")


class Share(NamedTuple):
    """Share of a build: the `number`-th of `shares`, from 1."""

    number: int
    shares: int

    @staticmethod
    def parse(text: str) -> Share:
        """Parse `2/3`. Raises SettingsError.

        >>> Share.parse("2/3")
        Share(number=2, shares=3)
        """
        found = _SHARE.match(text)
        share = Share(int(found[1]), int(found[2])) if found else Share(0, 0)
        if not 1 <= share.number <= share.shares:
            raise SettingsError(f"--share is {text!r}, not a share I/N", hint="I is 1 to N: 1/3, 2/3 and 3/3")
        return share

    def __str__(self) -> str:
        return f"{self.number}/{self.shares}"


class OtherFilesError(DataError):
    """Data folders that differ from those of the machine that dealt the hours."""


class Deal(NamedTuple):
    """Hours that are dealt to one share. Another machine that gets it looks at the files of these hours alone."""

    share: Share
    hours: frozenset[str]
    """Hours of this share."""
    all_hours: frozenset[str]
    first: str
    """First hour whose detail is kept; older ones are in no share."""
    bytes: int
    """Bytes of the raw files in the folders of these hours."""
    is_alone: bool = False
    """True for one hour, of which nothing but its name is known: all other hours are left out."""

    @staticmethod
    def of(share: Share, sizes: Mapping[str, int], keep_hours: str | None = None) -> Deal:
        """Deal hours of these sizes; `keep_hours` is the number of newest hours, or the first day or hour, to keep."""
        first = _first_kept(sizes, keep_hours)
        hours = frozenset(_dealt(share, {hour: size for hour, size in sizes.items() if hour >= first}))
        return Deal(share, hours, frozenset(sizes), first, sum(sizes[hour] for hour in hours))

    @staticmethod
    def of_hour(hour: str) -> Deal:
        """Return a deal of one hour alone."""
        return Deal(Share(1, 1), frozenset([hour]), frozenset([hour]), "", 0, is_alone=True)

    @staticmethod
    def all_of(sizes: Mapping[str, int], threads: int, keep_hours: str | None = None) -> list[Deal]:
        """Deal the hours to so many threads: up to four shares for each, if that is worth their start."""
        worth = max(threads, sum(sizes.values()) // SHARE_BYTES)
        count = max(1, min(len(sizes), _SHARES_A_THREAD * threads, worth))
        return [Deal.of(Share(number, count), sizes, keep_hours) for number in range(1, count + 1)]

    def is_of_others(self, hour: str | None) -> bool:
        """Return True for an hour that is not in this share."""
        return hour is not None and hour not in self.hours and (self.is_alone or hour in self.all_hours)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise OtherFilesError if the hours of this share have other bytes than where they were dealt."""
        if not self.is_alone and sum(sizes.get(hour, 0) for hour in self.hours) != self.bytes:
            raise OtherFilesError("the data folders have other files here")

    def partitions(self, planned: Iterable[str], raw_files: RawFiles) -> set[str]:
        """Return the partitions of this share: its hours, and its part of those that no folder is named after."""
        if self.is_alone:
            return set(self.hours)
        others = {one for one in planned if one != ALL and one not in self.all_hours and not self._is_old(one)}
        sizes = dict.fromkeys(others, 0)
        columns = {column_of(one) for one in others}
        for file in raw_files.inventory.files if others else ():
            for column in columns:
                partition = partition_of(file, column)
                if partition in sizes:
                    sizes[partition] += file.bytes
        return {*self.hours, *_dealt(self.share, sizes)}

    def _is_old(self, partition: str) -> bool:
        return column_of(partition) == HOUR and partition < self.first


def _dealt(share: Share, sizes: Mapping[str, int]) -> set[str]:
    """Return the partitions of a share: the largest first, each to the share with the fewest bytes."""
    dealt = [0] * share.shares
    mine = set()
    for partition in sorted(sizes, key=lambda one: (-sizes[one], one)):
        to = dealt.index(min(dealt))
        dealt[to] += max(1, sizes[partition])
        if to == share.number - 1:
            mine.add(partition)
    return mine


def sizes_of_hours(walk: Walk) -> dict[str, int]:
    """Return the bytes of the raw files of each hour. Hours are known by the names of folders, `2024052400`."""
    sizes: dict[str, int] = defaultdict(int)
    for folder in walk.folders().values():
        hour = hour_of(folder)
        if hour is not None:
            sizes[hour] += sum(seen[0] for seen in folder.stamps().values())
    return dict(sizes)


def hour_of(folder: Folder) -> str | None:
    """Return the partition of the hour that a folder, or one above it in the data folder, is named after; else None."""
    names = folder.path.removeprefix(folder.root.rpartition("/")[0]).split("/")
    return next((hour for hour in map(hour_named, reversed(names)) if hour), None)


def hour_named(name: str) -> str | None:
    """Return the partition of the hour that is the name of a folder; None for any other name."""
    try:
        return named(HOUR, parse_hour(name))
    except (ValueError, OverflowError):
        return None


def _first_kept(hours: Iterable[str], keep_hours: str | None) -> str:
    """Return the first hour whose detail is kept; empty to keep all."""
    if keep_hours is None or not keep_hours.isdigit():
        return keep_hours or ""
    return min(sorted(hours)[-int(keep_hours) :], default="")
