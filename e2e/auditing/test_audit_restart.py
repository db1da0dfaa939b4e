"""An API server that is killed between two pages, and comes back: every object is read, and none twice."""

from __future__ import annotations

import signal
import ssl
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from cluster.api import Api
from cluster.components import Components
from cluster.connections import Connections
from cluster.probe import answers
from cluster.process import Process

import tools
from gpugate.policies.sdk.objects import Kind
from gpugate.webhook.audit.live import LiveSource, Throttle
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.options import ClusterOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.components import Component

CONFIG_MAP = Kind("", ("v1",), "ConfigMap", "configmaps")
NAMES = {f"stored-{number:03}" for number in range(90)}
PAGE = 10


class RestartedApiServer:
    """etcd and an API server; `restart` kills the one that answers, and starts another on its data."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._components = Components(folder)
        self._stack = stack
        self._started(self._components.etcd())
        self.kubeconfig = self._components.kubeconfig("admin", self._components.admin)
        self.certificate, self.authority = self._components.admin, self._components.certificates.authority
        self.url = self._components.url
        self._server = self._started(self._components.api_server())

    def restart(self) -> None:
        """Come back when it is up; who asks meanwhile is refused."""
        self._server.signal(signal.SIGKILL)
        self._server.stop()
        self._server = self._started(self._components.api_server())

    def _started(self, component: Component) -> Process:
        program = str(tools.path(component.name))
        process = Process(
            component.name, [program, *component.flags], self._components.folder / f"{component.name}.log"
        )
        self._stack.callback(process.stop)
        trust = ssl.create_default_context(cafile=self._components.certificates.authority)
        process.wait_until(lambda: answers(component.health, trust))
        return process


@contextmanager
def _filled(folder: Path) -> Iterator[RestartedApiServer]:
    try:
        tools.path("kube-apiserver")
    except tools.ToolsError as error:
        pytest.exit(str(error), returncode=1)
    with ExitStack() as stack:
        server = RestartedApiServer(folder, stack)
        with closing(Connections(server.url, server.authority, server.certificate)) as connections:
            for name in NAMES:
                answer = Api(connections).create(
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
                )
                assert answer.ok, answer.message
        yield server


def test_the_list_goes_on_where_it_was(tmp_path: Path) -> None:
    pages: list[int | None] = []
    with _filled(tmp_path) as server, closing(connect(ClusterOptions(server.kubeconfig))) as connection:

        def told(_kind: Kind, _count: int, left: int | None) -> None:
            pages.append(left)
            if len(pages) == 3:
                server.restart()

        source = LiveSource(connection, "restarted", Throttle(1000, 1000), limit=PAGE, page_read=told)
        read = [each.object["metadata"]["name"] for each in source.read(CONFIG_MAP)]

    assert len(pages) >= len(NAMES) / PAGE
    assert len(read) == len(set(read))
    assert NAMES - set(read) == set()
