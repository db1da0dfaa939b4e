"""Evaluates the objects of a Helm chart as `gpugate check` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.testing.pytest_plugin.reviewing import Answer, checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Variant:
    """A chart with one values file, or with its own values, and further settings."""

    chart: str
    values: str = ""
    settings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The values file in the name of the test."""
        return self.values or "its own values"


@dataclass(frozen=True, slots=True, repr=False)
class EvaluatedChart(Answer):
    """The findings in all objects of a chart; `objects` counts the objects."""

    objects: int


def variants(marker: pytest.Mark) -> list[Variant]:
    """Return one variant for each values file of a marker.

    Raises:
        pytest.UsageError: it names no chart, or has an argument that is none of its own.
    """
    unknown = set(marker.kwargs) - {"values", "set"}
    if len(marker.args) != 1 or unknown:
        raise pytest.UsageError(
            'write @pytest.mark.gpugate_chart("charts/NAME", values=[FILE, ...], set=["key=value"])'
        )
    values, settings = _texts(marker.kwargs.get("values", ())), tuple(_texts(marker.kwargs.get("set", ())))
    return [Variant(str(marker.args[0]), values_file, settings) for values_file in values or [""]]


def evaluated_chart(variant: Variant, directories: Sequence[Path], config: pytest.Config) -> EvaluatedChart:
    """Render a chart and evaluate its objects; the chart is searched in each of some directories.

    Raises:
        pytest.UsageError: there is no such chart, or flags are refused.
    """
    chart = next((directory / variant.chart for directory in directories if (directory / variant.chart).is_dir()), None)
    if chart is None:
        raise pytest.UsageError(f"gpugate_chart: {variant.chart} is a directory neither of {_places(directories)}")
    arguments = ["--helm", str(chart)]
    if variant.values:
        arguments += ["--values", str(_values(variant.values, (chart, *directories)))]
    arguments += [f"--set={setting}" for setting in variant.settings]
    try:
        report, known = checked(arguments, config)
    except GpugateError as error:
        raise pytest.UsageError(str(error)) from None
    return EvaluatedChart(f"{variant.chart} with {variant.label}", report.findings, known, report.objects)


def _values(name: str, directories: Sequence[Path]) -> Path:
    for directory in directories:
        if (directory / name).is_file():
            return directory / name
    raise pytest.UsageError(f"gpugate_chart: the values file {name} is neither in {_places(directories)}")


def _places(directories: Sequence[Path]) -> str:
    return " nor in ".join(dict.fromkeys(map(str, directories)))


def _texts(argument: object) -> list[str]:
    if isinstance(argument, str):
        return [argument]
    return [str(entry) for entry in argument] if isinstance(argument, list | tuple) else []
