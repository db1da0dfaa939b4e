"""Finds the file that Helm means by the name of a template."""

from __future__ import annotations

import os
from pathlib import Path


def template_file(chart: str, source: str) -> str | None:
    """Return the path of a template that Helm calls `CHART/templates/x.yaml`, `chart` being the directory of CHART.

    None where there is no such file: an archive, or a subchart whose name is not that of its directory.
    """
    parts = source.split("/")[1:]
    if not parts or os.pardir in parts:
        return None
    path = os.path.join(chart, *parts)  # noqa: PTH118 -- the user's `./` stays as it is
    return path if Path(path).is_file() else None
