"""Points in time as the API reads them: RFC 3339, in the words of Go's ``time.Parse``."""

import re
from calendar import monthrange
from typing import Final

__all__ = ["is_time", "read_time"]

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|[+-](\d\d):(\d\d))",
    re.ASCII,
)
_LEAP_YEAR: Final = 2000
"""Go knows a year 0, which is one, too."""


def is_time(text: str) -> bool:
    """Whether a text is a point in time."""
    found = _TIME.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second, zone_hour, zone_minute = (
        int(part or 0) for part in found.groups()
    )
    # Offsets of 24 hours and of 60 minutes are in use, and Go lets them through.
    return (
        1 <= month <= 12
        and 1 <= day <= monthrange(year or _LEAP_YEAR, month)[1]
        and hour < 24
        and minute < 60
        and second < 60
        and zone_hour <= 24
        and zone_minute <= 60
    )


def read_time(text: str) -> str:
    """The text of a point in time.

    Raises
    ------
    ValueError
        It is none.
    """
    if is_time(text):
        return text
    raise ValueError(
        f'"{text}" is not a point in time as RFC 3339 has it, e.g. 2026-01-31T12:00:00Z'
    )
