"""The pytest fixtures. Their dependencies are imported when a test uses one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.pytest_plugin import builders
from gpugate.webhook.pytest_plugin.reviewing import Answer, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpugate.webhook.pytest_plugin.builders import Object
    from gpugate.webhook.pytest_plugin.reviewing import ManifestFiles, Reviewer


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


class Shown(Protocol):
    """Something with a title and a report for people."""

    @property
    def title(self) -> str:
        """What was judged."""
        ...

    @property
    def report(self) -> str:
        """What was found, with frames of the file."""
        ...


SHOWN = pytest.StashKey[list[Shown]]()


@pytest.fixture
def gpugate(request: pytest.FixtureRequest) -> Reviewer:
    """Judge objects as the webhook would: `gpugate.review(obj)`, `gpugate.check(*objects)`, `gpugate.configured(...)`."""
    from gpugate.webhook.pytest_plugin.reviewing import Reviewer  # noqa: PLC0415 -- as the module says
    from gpugate.webhook.pytest_plugin.surroundings import surroundings  # noqa: PLC0415

    return Reviewer(surroundings(request.config), request.node.stash.setdefault(SHOWN, []))


@pytest.fixture
def manifest(request: pytest.FixtureRequest) -> ManifestFiles:
    """Read the object in a file beside the test, or below the root of the tests: `manifest("pods/trainer.yaml")`."""
    from gpugate.webhook.pytest_plugin.reviewing import ManifestFiles  # noqa: PLC0415 -- as the module says

    return ManifestFiles((request.path.parent, request.config.rootpath))


@pytest.fixture
def gpugate_chart(request: pytest.FixtureRequest) -> JudgedChart:
    """What the chart of the marker becomes with one values file, judged."""
    variant = getattr(request, "param", None)
    if variant is None:
        raise pytest.UsageError("gpugate_chart: say which with @pytest.mark.gpugate_chart('charts/NAME')")
    found = judged_chart(variant, (request.path.parent, request.config.rootpath), request.config)
    request.node.stash.setdefault(SHOWN, []).append(found)
    return found


@pytest.fixture
def node_pool() -> Callable[..., Object]:
    """Make a NodePool with nothing to find in it; arguments say what differs."""
    return builders.node_pool


@pytest.fixture
def gpu_pod() -> Callable[..., Object]:
    """Make a Pod with a GPU and nothing to find in it; arguments say what differs."""
    return builders.gpu_pod


@pytest.fixture
def scaled_object() -> Callable[..., Object]:
    """Make a ScaledObject with nothing to find in it; arguments say what differs."""
    return builders.scaled_object


@pytest.fixture
def resource_claim_template() -> Callable[..., Object]:
    """Make a ResourceClaimTemplate with nothing to find in it; arguments say what differs."""
    return builders.resource_claim_template
