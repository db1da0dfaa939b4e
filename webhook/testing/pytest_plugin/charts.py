"""What a Helm chart becomes, judged as `gpugate check` does."""

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
    """A chart with one values file, or with its own values, and what is set beside them."""

    chart: str
    values: str = ""
    settings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What the test is called by."""
        return self.values or "its own values"


@dataclass(frozen=True, slots=True, repr=False)
class JudgedChart(Answer):
    """What was found in all objects of a chart; `objects` counts them."""

    objects: int


def variants(marker: pytest.Mark) -> list[Variant]:
    """Return what a marker asks for: one variant for each values file.

    Raises:
        pytest.UsageError: it names no chart, or has an argument that is none of its own.
    """
    unknown = set(marker.kwargs) - {"values", "set"}
    if len(marker.args) != 1 or unknown:
        raise pytest.UsageError(
            'write @pytest.mark.gpugate_chart("charts/NAME", values=[FILE, ...], set=["key=value"])'
        )
    values, settings = _texts(marker.kwargs.get("values", ())), tuple(_texts(marker.kwargs.get("set", ())))
    return [Variant(str(marker.args[0]), each, settings) for each in values or [""]]


def judged_chart(variant: Variant, directories: Sequence[Path], config: pytest.Config) -> JudgedChart:
    """Render a chart and judge what it becomes; the chart is looked for in each of some directories.

    Raises:
        pytest.UsageError: there is no such chart, or flags are refused.
    """
    chart = next((each / variant.chart for each in directories if (each / variant.chart).is_dir()), None)
    if chart is None:
        raise pytest.UsageError(f"gpugate_chart: {variant.chart} is a directory neither of {_places(directories)}")
    arguments = ["--helm", str(chart)]
    if variant.values:
        arguments += ["--values", str(_values(variant.values, (chart, *directories)))]
    arguments += [f"--set={setting}" for setting in variant.settings]
    try:
        report = checked(arguments, config)
    except GpugateError as error:
        raise pytest.UsageError(str(error)) from None
    return JudgedChart(f"{variant.chart} with {variant.label}", report.findings, report.objects)


def _values(name: str, directories: Sequence[Path]) -> Path:
    for directory in directories:
        if (directory / name).is_file():
            return directory / name
    raise pytest.UsageError(f"gpugate_chart: the values file {name} is neither in {_places(directories)}")


def _places(directories: Sequence[Path]) -> str:
    return " nor in ".join(dict.fromkeys(map(str, directories)))


def _texts(given: object) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [str(each) for each in given] if isinstance(given, list | tuple) else []
