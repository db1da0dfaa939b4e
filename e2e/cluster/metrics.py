"""Reads numbers from Prometheus' text format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def total(text: str, name: str, labels: Mapping[str, str]) -> float:
    """Return the sum of a metric over what these labels leave open; 0 when there is none."""
    values = 0.0
    for line in _LINE.finditer(text):
        if line["name"] == name and labels.items() <= dict(_LABEL.findall(line["labels"] or "")).items():
            values += float(line["value"])
    return values
