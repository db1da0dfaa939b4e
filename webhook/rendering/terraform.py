"""What Terraform configurations read and install: templates and charts that are in the tree."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests import terraform
from gpugate.webhook.manifests.inputs import CHART_FILE, Chart, Found, Input, Kustomization, Language, Passed
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import Wanted, link_out, refusal, tree_of
from gpugate.webhook.rendering.options import ChartValues

if TYPE_CHECKING:
    from collections.abc import Sequence

_YAML: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Configured:
    """What paths stand for, with what configurations among them name, and the values with which they install charts."""

    parts: list[Found | Chart | Kustomization]
    charts: tuple[ChartValues, ...] = ()


def configured(inputs: Sequence[Found | Chart | Kustomization]) -> Configured:
    """Read the configurations among what was found, and mark the templates that they evaluate.

    A file or chart that they name is held to the rule for paths that a repository names. Without the parser, which is an
    extra, configurations are left out, and counted.
    """
    if not terraform.is_readable():
        return Configured(_without(inputs))
    named = {os.path.realpath(part.name) for part in inputs if isinstance(part, Input | Chart)}
    templates: dict[str, Input] = {}
    files: dict[str, Input] = {}
    charts: list[ChartValues] = []
    further: list[Chart] = []
    for part in inputs:
        if not (isinstance(part, Input) and part.language is Language.HCL):
            continue
        data = part.read()
        for reference in terraform.referred(part.name, data) if isinstance(data, bytes) else ():
            real = _allowed(part.name, reference)
            if not real:
                continue
            if reference.chart:
                further += [] if real in named else [Chart(reference.path)]
                named.add(real)
                charts.append(_values(part.name, reference))
            elif reference.is_template:
                templates[real] = Input(reference.path, explicit=False, language=Language.TEMPLATE)
            elif reference.path.endswith(_YAML):
                files[real] = Input(reference.path, explicit=False)
    marked = [_marked(part, templates) for part in inputs]
    added = [reference for real, reference in {**files, **templates}.items() if real not in named]
    return Configured([*marked, *added, *further], tuple(charts))


def _marked(part: Found | Chart | Kustomization, templates: dict[str, Input]) -> Found | Chart | Kustomization:
    if isinstance(part, Input) and not part.language and os.path.realpath(part.name) in templates:
        return replace(part, language=Language.TEMPLATE)
    return part


def _without(inputs: Sequence[Found | Chart | Kustomization]) -> list[Found | Chart | Kustomization]:
    """Leave out configurations: one that the user named is a problem, the others are counted."""
    parts: list[Found | Chart | Kustomization] = []
    count = 0
    for part in inputs:
        if not (isinstance(part, Input) and part.language is Language.HCL):
            parts.append(part)
        elif part.explicit:
            parts.append(Problem(part.label, 0, 0, "the parser for Terraform is not installed", terraform.INSTALL))
        else:
            count += 1
    if count:
        parts.append(
            Passed(f"{count:,} Terraform {'file' if count == 1 else 'files'}", f"not read: {terraform.INSTALL}")
        )
    return parts


def _allowed(source: str, named: terraform.Referred) -> str:
    """Return the real path of what a configuration names; empty where it is not there, or may not be read."""
    top = tree_of(source)
    wanted = Wanted.DIRECTORY if named.chart else Wanted.FILE
    try:
        real = os.path.realpath(named.path)
        is_there = Path(real, CHART_FILE).is_file() if named.chart else Path(real).is_file()
        wrong = refusal(named.path, top, wanted) if top is not None else link_out(named.path)
    except (OSError, ValueError):
        return ""
    return real if is_there and not wrong else ""


def _values(source: str, release: terraform.Referred) -> ChartValues:
    name = f"{release.chart} of {source}:{release.line}"
    return ChartValues(
        release.path, release=release.release, namespace=release.namespace, texts=release.values, source=name
    )
