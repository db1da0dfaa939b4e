"""The pytest fixtures. Their dependencies are imported when a test uses one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.testing.pytest_plugin import builders

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.testing.pytest_plugin.builders import Object
    from gpugate.webhook.testing.pytest_plugin.charts import EvaluatedChart
    from gpugate.webhook.testing.pytest_plugin.reviewing import ManifestFiles, Reviewer, Titled


ANSWERS: pytest.StashKey[list[Titled]] = pytest.StashKey()


@pytest.fixture
def gpugate(request: pytest.FixtureRequest) -> Reviewer:
    """Evaluate objects as the webhook: `gpugate.review(obj)`, `gpugate.check(*objects)`, `gpugate.configured(...)`."""
    from gpugate.webhook.testing.pytest_plugin.reviewing import Reviewer  # noqa: PLC0415 -- as the module says
    from gpugate.webhook.testing.pytest_plugin.surroundings import surroundings  # noqa: PLC0415

    return Reviewer(surroundings(request.config), request.node.stash.setdefault(ANSWERS, []))


@pytest.fixture
def manifest(request: pytest.FixtureRequest) -> ManifestFiles:
    """Read the object in a file beside the test, or below the root of the tests: `manifest("pods/trainer.yaml")`."""
    from gpugate.webhook.testing.pytest_plugin.reviewing import ManifestFiles  # noqa: PLC0415 -- as the module says

    return ManifestFiles((request.path.parent, request.config.rootpath))


@pytest.fixture
def gpugate_chart(request: pytest.FixtureRequest) -> EvaluatedChart:
    """Evaluate the objects of the marker's chart, rendered with one values file."""
    from gpugate.webhook.testing.pytest_plugin.charts import evaluated_chart  # noqa: PLC0415 -- as the module says

    variant = getattr(request, "param", None)
    if variant is None:
        raise pytest.UsageError("gpugate_chart: say which with @pytest.mark.gpugate_chart('charts/NAME')")
    chart = evaluated_chart(variant, (request.path.parent, request.config.rootpath), request.config)
    request.node.stash.setdefault(ANSWERS, []).append(chart)
    return chart


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
