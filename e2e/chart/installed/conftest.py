"""The chart installed by the real Helm on a control plane of its own, its Pods run as processes of this machine.

Fixtures: `stage` is that control plane, empty but for custom resources; `prepare` makes ready for a release; `tenant` is a
namespace whose objects are judged.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import TYPE_CHECKING

import pytest
from chart.installed.leftovers import Leftovers
from chart.installed.release import NAME, Release
from chart.installed.requests import eventually
from chart.installed.stage import running_stage
from cluster.custom_resources import CustomResourceError
from cluster.namespaces import make_namespace, namespace_object
from cluster.process import ProcessError
from harness.running import RunningBalancer

import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chart.installed.stage import Stage

    Prepare = Callable[..., contextlib.AbstractContextManager[Release]]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory, figures: list[str]) -> Iterator[Stage]:
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            ready = stack.enter_context(running_stage(tmp_path_factory.mktemp("stage")))
        except (CustomResourceError, ProcessError, tools.ToolsError) as error:
            pytest.exit(str(error), returncode=1)
        figures.append(f"chart: a control plane of its own after {time.monotonic() - started:.1f} s")
        yield ready


@pytest.fixture(scope="session")
def tenant(stage: Stage) -> str:
    make_namespace(stage.api, "tenant")
    return "tenant"


@pytest.fixture(scope="session")
def service() -> Iterator[RunningBalancer]:
    balancer = RunningBalancer(0.0)
    yield balancer
    balancer.close()


@pytest.fixture(scope="session")
def prepare(stage: Stage, tenant: str, service: RunningBalancer, tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    """Give a context with a release in a namespace of its own; when it ends, nothing of the release may be left.

    But for its namespace, which is deleted where nobody did so before.
    """
    numbers = itertools.count(1)
    assert tenant
    leftovers = Leftovers(stage.api)

    @contextlib.contextmanager
    def prepared(helm: str = "helm", namespace: str = "") -> Iterator[Release]:
        where = namespace or f"guard-{next(numbers)}"
        release = Release(stage, where, tmp_path_factory.mktemp("release"), helm, service)
        try:
            with release.pods:
                yield release
                eventually(lambda: leftovers.of(where), lambda left: left == [])
                assert "worker ended" not in release.pods.logs("")
        finally:
            # Also where a test failed, so that the next one can begin.
            release.run(f"helm uninstall {NAME} --no-hooks --ignore-not-found --namespace {where}")
            stage.api.delete(namespace_object(where))

    return prepared
