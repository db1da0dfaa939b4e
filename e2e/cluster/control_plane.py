"""etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok as processes on loopback."""

from __future__ import annotations

import shutil
import ssl
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cluster.components import Components
from cluster.probe import answers
from cluster.process import Process

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from cluster.certificates import Files
    from cluster.components import Component


@dataclass(frozen=True)
class ControlPlane:
    """A control plane that runs: where it is, and how to be its administrator.

    `ready_seconds` is the time from nothing to ready; `audit_log` is where the API server writes down what the administrator
    changes, and None where that is out of reach.
    """

    url: str
    ca_file: Path
    admin: Files
    admin_kubeconfig: Path
    processes: Mapping[str, Process]
    ready_seconds: float
    audit_log: Path | None = None

    def log(self, component: str) -> str:
        """Return what a component has logged so far."""
        return self.processes[component].log()


@contextmanager
def running_control_plane(folder: Path, *api_server_flags: str) -> Iterator[ControlPlane]:
    """Start everything, with its data, certificates and logs in an empty folder, and stop it at the end.

    `api_server_flags` are for the API server, besides those that it needs.

    Raises:
        ProcessError: a component died or did not become ready; what ran has been stopped.
        ToolsError: a program is missing; says how to get it.
    """
    started = time.monotonic()
    components = Components(folder)
    with ExitStack() as stack:
        # Logs stay for whoever looks for a reason; the data are large.
        stack.callback(shutil.rmtree, folder / "etcd", ignore_errors=True)
        starting = _Starting(components, stack)
        starting.together(components.etcd())
        starting.together(components.api_server(*api_server_flags))
        starting.together(components.controller_manager(), components.scheduler(), components.kwok())
        yield ControlPlane(
            components.url,
            components.certificates.authority,
            components.admin,
            components.kubeconfig("admin", components.admin),
            starting.processes,
            time.monotonic() - started,
            components.audit_log,
        )


class _Starting:
    def __init__(self, components: Components, stack: ExitStack) -> None:
        self.processes: dict[str, Process] = {}
        self._stack = stack
        self._folder = components.folder
        self._programs = {
            tool.name: tools.path(tool.name) for tool in tools.TOOLS if tool.module == tools.CONTROL_PLANE
        }
        self._trust = ssl.create_default_context(cafile=components.certificates.authority)

    def together(self, *components: Component) -> None:
        """Start some at once, and wait until all are ready."""
        for component in components:
            self._start(component.name, component.flags)
        for component in components:
            self.processes[component.name].wait_until(partial(self._healthy, component.health))

    def _start(self, name: str, flags: Sequence[str]) -> None:
        process = Process(name, [str(self._programs[name]), *flags], self._folder / f"{name}.log")
        self._stack.callback(process.stop)
        self.processes[name] = process

    def _healthy(self, url: str) -> bool:
        return answers(url, self._trust)
