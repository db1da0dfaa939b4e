"""Harms that policies prevent, on the real Karpenter, KEDA and scheduler: `make harms`, or `make e2e K=harms`.

Collected only where they are asked for by name, as they need programs of their own (`python e2e/tools.py harms`). A test
takes one `Harm`; all that were chosen begin together, in threads, and each is waited for where pytest runs it.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from cluster.karpenter import karpenter_kubeconfig, running_karpenter
from cluster.keda import running_keda
from cluster.memory import peak_megabytes
from cluster.process import ProcessError

import tools
from harms.prometheus import measuring_prometheus
from harms.record import record
from harms.stage import Stage
from harms.table import table
from harms.watched import Watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.process import Process
    from cluster.served_webhook import ServedWebhook

    from harms.harm import Seen

SEEN = pytest.StashKey[list["Seen"]]()
# What harms do without gpugate is named so, and the API server does not ask about it.
WITHOUT = (
    "(has(request.namespace) && request.namespace.startsWith('without-'))"
    " || (has(request.name) && request.name.startsWith('without-'))"
)

# What ships off is on where its harm is shown.
POLICIES = """
apiVersion: gpugate.dev/v1
kind: PolicyConfig
namespaces:
  with-mig-without-claim: {policies: {pods/mig-without-claim: {mode: enforce}}}
"""


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("record_harms"):
        record(session.config.stash.get(SEEN, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seen = config.stash.get(SEEN, [])
    if seen:
        terminalreporter.section("harms")
        for line in table(seen):
            terminalreporter.write_line(line)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Wait for what runs in a thread already, instead of calling the test."""
    if not _is_harm(pyfuncitem):
        return None
    with _or_stop():
        seen = pyfuncitem.funcargs["harm"].result()
    pyfuncitem.config.stash.setdefault(SEEN, []).append(seen)
    return True


@pytest.fixture(scope="package")
def chosen(request: pytest.FixtureRequest) -> list[pytest.Function]:
    """Return the harms that are to be shown."""
    return [item for item in request.session.items if isinstance(item, pytest.Function) and _is_harm(item)]


@pytest.fixture(scope="package")
def controllers(
    chosen: list[pytest.Function],
    api: Api,
    control_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
    figures: list[str],
) -> Iterator[list[Process]]:
    """Start Karpenter, and KEDA where a harm of scaling was chosen."""
    folder = tmp_path_factory.mktemp("controllers")
    with _or_stop(), ExitStack() as stack:
        karpenter = running_karpenter(api, karpenter_kubeconfig(api, control_plane, folder), folder)
        processes = [stack.enter_context(karpenter)]
        if any(_policy(item).startswith("scaling/") for item in chosen):
            processes += stack.enter_context(running_keda(api, control_plane.admin_kubeconfig, folder))
        yield processes
        megabytes = {process.name: peak_megabytes(process.pid) for process in processes}
        each = ", ".join(f"{name} {size}" for name, size in megabytes.items())
        figures.append(f"memory of the controllers at most {sum(megabytes.values())} MB: {each}")


@pytest.fixture(scope="package")
def stage(
    chosen: list[pytest.Function],
    api: Api,
    control_plane: ControlPlane,
    webhook: ServedWebhook,
    controllers: list[Process],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    """Begin with all harms that were chosen; in the end nothing is left of them."""

    def look() -> None:
        for process in controllers:
            process.check()

    with _or_stop(), ExitStack() as stack:
        webhook.use(POLICIES)
        stack.callback(webhook.reset)
        webhook.leave_out(WITHOUT)
        stack.callback(webhook.leave_out, "")
        watched = stack.enter_context(closing(Watched(control_plane, look)))
        prometheus = measuring_prometheus(tmp_path_factory.mktemp("prometheus"))
        begun = Stage(api, watched, stack.enter_context(prometheus))
        stack.enter_context(begun.showing([(_policy(item), item.nodeid, item.function) for item in chosen]))
        yield begun


@pytest.fixture
def harm(request: pytest.FixtureRequest, stage: Stage) -> Future[Seen]:
    """Return what comes of the harm that this test shows; in its thread the test is given the `Harm` itself."""
    return stage.shown[request.node.nodeid]


@contextmanager
def _or_stop() -> Iterator[None]:
    """End the run where a controller cannot be had, or has ended."""
    try:
        yield
    except (ProcessError, tools.ToolsError) as error:
        pytest.exit(str(error), returncode=1)


def _is_harm(item: pytest.Function) -> bool:
    return "harm" in item.fixturenames


def _policy(item: pytest.Function) -> str:
    marker = item.get_closest_marker("harm")
    assert marker, f"{item.nodeid} does not say which policy prevents it: @pytest.mark.harm(ID)"
    return str(marker.args[0])
