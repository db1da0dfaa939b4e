"""Numbers as PromQL, and the metadata of KEDA's triggers, write them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

# JSON's numbers, which is how KEDA reads them (v2.20.2 `pkg/scalers/scalersconfig/typed_config.go`), of a sane length.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?")


def number(text: str) -> Fraction | None:
    """Read `70`, `0.5`, `1e3`; None for anything else, such as `70%`, `.5` or `5m`."""
    text = text.strip()
    return Fraction(text) if _NUMBER.fullmatch(text) else None
