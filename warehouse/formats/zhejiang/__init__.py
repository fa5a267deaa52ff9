"""Raw formats of the Zhejiang Lab release: its local time, and the forms of names that several of them have."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

UTC_OFFSET = timedelta(hours=8)
"""China Standard Time, the zone of the release's clocks and names, is this much ahead of UTC, all year."""

PORT_NAME = r"(?:TwoHundredGigE|FourHundredGigE|M-GigabitEthernet)\d{1,3}/\d{1,3}/\d{1,3}(?::\d{1,3})?"
"""Full names of the ports whose class and line rate the models know."""

OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS = rf"(?:{OCTET}[.]){{3}}{OCTET}"
"""IPv4 address."""


def parse_hour(name: str) -> datetime:
    """Parse a local hour, `YYYYMMDDHH`, such as a folder's name, as UTC.

    Raises
    ------
    ValueError
        If there is no such hour.

    Examples
    --------
    >>> parse_hour("2024052400")
    datetime.datetime(2024, 5, 23, 16, 0)
    """
    with suppress(ValueError, OverflowError):
        if len(name) == 10 and name.isascii():  # strptime takes other digits, and fewer of them
            return datetime.strptime(name, "%Y%m%d%H") - UTC_OFFSET  # noqa: DTZ007
    raise ValueError(f"{name[:60]!r} is not a time that exists")
