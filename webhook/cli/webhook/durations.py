"""Reads how long something may take."""

from __future__ import annotations

import argparse
import re
from typing import Final

_WRITTEN: Final = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|)")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """Read `90`, `90s`, `5m` or `1h` into seconds, for argparse.

    Raises:
        ArgumentTypeError: it is none of these.
    """
    found = _WRITTEN.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90s, 5m or 1h")
    return float(found[1]) * _SECONDS[found[2]]
