"""What is not read but rendered: Helm charts and kustomizations, and which files they are made of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHART_FILE: Final = "Chart.yaml"
# The names that kustomize looks for, in this order (sigs.k8s.io/kustomize/api v0.20 konfig.RecognizedKustomizationFileNames).
KUSTOMIZATION_FILES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHART_DIRECTORIES: Final = ("templates", "charts")


@dataclass(frozen=True, slots=True)
class Chart:
    """The directory of a Helm chart."""

    name: str


@dataclass(frozen=True, slots=True)
class Kustomization:
    """A directory with a kustomization, and the name of the file in it."""

    name: str
    file: str


def source_of(path: str) -> Chart | Kustomization | None:
    """Return the chart or the kustomization that a file belongs to, when the file alone says nothing."""
    parent, name = os.path.split(path)
    if name in KUSTOMIZATION_FILES:
        return Kustomization(parent or os.curdir, name)
    parts = Path(path).parts
    # From the top on, because a subchart is rendered with the chart that it is part of.
    for depth in range(len(parts)):
        above = str(Path(*parts[:depth])) if depth else os.curdir
        inside = parts[depth] in _CHART_DIRECTORIES and depth < len(parts) - 1
        of_chart = depth == len(parts) - 1 and is_of_chart(name)
        if (inside or of_chart) and Path(above, CHART_FILE).is_file():
            return Chart(above)
    return None


def is_of_chart(name: str) -> bool:
    """Tell what a chart is made of from files that are beside it."""
    values = name.startswith("values") and name.endswith((".yaml", ".yml", ".json"))
    return values or name in {CHART_FILE, "Chart.lock", *_CHART_DIRECTORIES}
