"""A control plane for all tests, and gpugate registered with it: `pytest -q e2e [--cluster kind]`.

Fixtures: `control_plane`, `api` (its administrator), `kubectl`, `namespace`, `webhook` (gpugate as a process, registered),
`unregistered` (without it), `gpu_node` (simulated nodes), `registry` (of policy bundles).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.api import Api
from cluster.connections import Connections
from cluster.control_plane import running_control_plane
from cluster.custom_resources import CustomResourceError, definitions, install
from cluster.installed_webhook import installed_webhook
from cluster.kind import KindError, KindMissingError, running_kind
from cluster.namespaces import made_namespaces
from cluster.nodes import is_ready, simulated_node
from cluster.process import ProcessError
from cluster.registry import running_registry
from cluster.served_webhook import served_webhook
from property_inputs import load_profile

import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cluster.control_plane import ControlPlane
    from cluster.installed_webhook import InstalledWebhook
    from cluster.registry import Registry
    from cluster.served_webhook import ServedWebhook

HERE = Path(__file__).parent
POLICIES = HERE.parent / "policies"
# Folders and files whose tests start servers that the API server is to reach, or read its files.
BESIDE = (
    "api_server_answers",
    "auditing",
    "chart/installed",
    "failure_policy",
    "harms",
    "image/test_image_chart",
    "test_certs",
    "test_control_plane",
    "test_operate",
    "test_prometheus_fleet",
)

# Folders that have a target of their own and need what others do not; `-k` with their name asks for them all the same.
APART = frozenset({"chart", "harms", "image", "integrations", "oracle", "rendering"})

FIGURES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    clusters = ("processes", "kind")
    parser.addoption("--cluster", choices=clusters, default=clusters[0], help="what the end-to-end tests run against")
    parser.addoption("--record-harms", action="store_true", help="write what harms were seen for the policies' pages")


@pytest.hookimpl(tryfirst=True)  # a folder may load a profile of its own
def pytest_configure() -> None:
    load_profile()
    # Tests and the programs that they start are compiled once, even where the environment keeps Python from it.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is apart, unless the command line names it."""
    name = collection_path.name
    if collection_path.parent != HERE or name not in APART or name in str(config.getoption("keyword") or ""):
        return None
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(path.resolve().is_relative_to(collection_path) for path in named) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, in kind, what needs an API server that reaches this machine, whose log and processes can be looked at."""
    if config.getoption("cluster") != "kind":
        return
    beside = pytest.mark.skip(reason="CLUSTER=kind: is about servers that run beside the API server; leave CLUSTER out")
    for item in items:
        if item.path.relative_to(HERE).as_posix().startswith(BESIDE):
            item.add_marker(beside)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Say how several processes share the tests."""
    from sharing import SharedFixtures  # noqa: PLC0415 -- there may be one process, and no pytest-xdist

    return SharedFixtures(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the figures over where this is one of several processes."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["figures"] = session.config.stash.get(FIGURES, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the figures of another process."""
    node.config.stash.setdefault(FIGURES, []).extend(getattr(node, "workeroutput", {}).get("figures", []))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(line)


@contextlib.contextmanager
def or_stop(request: pytest.FixtureRequest) -> Iterator[None]:
    """End the run where nothing else could be tested, rather than say the same of every test."""
    try:
        yield
    except KindMissingError as error:
        pytest.skip(str(error))
    except (CustomResourceError, KindError, ProcessError, tools.ToolsError) as error:
        if hasattr(request.config, "workeroutput"):
            # To leave at once looks like a crash to the process that this one works for.
            request.session.shouldfail = str(error)
            pytest.fail(str(error), pytrace=False)
        pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> list[str]:
    """What is said at the end of the run."""
    return pytestconfig.stash.setdefault(FIGURES, [])


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, figures: list[str]
) -> Iterator[ControlPlane]:
    running = running_kind if request.config.getoption("cluster") == "kind" else running_control_plane
    with or_stop(request), running(tmp_path_factory.mktemp("control-plane")) as started:
        figures.append(f"control plane ready after {started.ready_seconds:.1f} s")
        yield started


@pytest.fixture(scope="session")
def api(request: pytest.FixtureRequest, control_plane: ControlPlane, figures: list[str]) -> Iterator[Api]:
    with contextlib.closing(Connections(control_plane.url, control_plane.ca_file, control_plane.admin)) as connections:
        administrator = Api(connections)
        started = time.monotonic()
        with or_stop(request):
            install(administrator, definitions(POLICIES))
        figures.append(f"custom resources served after {time.monotonic() - started:.1f} s more")
        yield administrator


@pytest.fixture(scope="session")
def kubectl(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    # Its caches and its own settings live in the home folder.
    environment = {**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))}
    program = str(tools.path("kubectl"))

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [program, f"--kubeconfig={control_plane.admin_kubeconfig}", *arguments]
        return subprocess.run(  # noqa: S603 -- ours
            command, input=stdin, capture_output=True, text=True, check=False, timeout=120, env=environment
        )

    return run


@pytest.fixture(scope="session")
def registry(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry of policy bundles."""
    with or_stop(request), running_registry(tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    with made_namespaces(api, name):
        yield name


@pytest.fixture(scope="session")
def webhook(
    request: pytest.FixtureRequest, api: Api, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedWebhook | InstalledWebhook]:
    serving = installed_webhook if request.config.getoption("cluster") == "kind" else served_webhook
    with or_stop(request), serving(api, control_plane, tmp_path_factory.mktemp("webhook")) as served:
        yield served


@pytest.fixture
def unregistered(webhook: ServedWebhook) -> Iterator[None]:
    webhook.unregister()
    yield
    webhook.register()


@pytest.fixture
def gpu_node(api: Api, control_plane: ControlPlane) -> Iterator[Callable[..., dict[str, Any]]]:
    """Make simulated nodes, Ready when they are returned: `gpu_node(labels, taints, capacity)`."""
    if not control_plane.processes:
        pytest.skip("CLUSTER=kind: has no simulated nodes; leave CLUSTER out")
    made: list[dict[str, Any]] = []

    def make(
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        capacity: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        node = simulated_node(labels or {}, taints, capacity or {})
        made.append(node)
        answer = api.create(node)
        assert answer.ok, answer.message
        return api.eventually(node, is_ready)

    yield make
    for node in made:
        api.delete(node)
