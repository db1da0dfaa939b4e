"""Reads how long something takes, as people write it."""

from __future__ import annotations

import argparse
import datetime as dt
import re
from typing import Final

_WRITTEN: Final = re.compile(r"([0-9]{1,7})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str) -> dt.timedelta:
    """Read `90s`, `10m`, `24h` or `30d`.

    Raises:
        ValueError: it is none of these.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration")
    return dt.timedelta(**{_UNITS[found[2]]: int(found[1])})


def seconds(text: str) -> float:
    """Read a duration, or a number of seconds without a unit, into seconds, for argparse.

    Raises:
        ArgumentTypeError: it is neither.
    """
    try:
        return duration(f"{text}s" if text.isdecimal() else text).total_seconds()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90s, 5m or 1h") from None
