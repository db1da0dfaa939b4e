"""Plays the kubelets of a namespace: the container of each Pod is a process on this machine, with an address of its own."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from cluster.api import Api
from cluster.connections import Connections
from cluster.kubeconfig import write_kubeconfig
from cluster.process import Process
from image.pod import container_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.control_plane import ControlPlane
    from image.container import Container

Json = dict[str, Any]
_PAUSE_SECONDS = 0.05
_PROBE_SECONDS = 2
_ENDED = {"Succeeded", "Failed"}
# Kubernetes mounts it there into every container.
_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 -- where it is
_PROGRAMS = {"gpugate": [sys.executable, "-m", "gpugate.webhook.cli.main"]}
# Every address of 127.0.0.0/8 is this machine's (RFC 5735, section 3).
_addresses = (f"127.0.{high}.{low}" for high in range(1, 255) for low in range(1, 255))


@dataclass(frozen=True)
class LocalPod:
    """A Pod whose container was started; `phase` and `ready` are what the API server was told last."""

    name: str
    address: str
    spec: Json
    process: Process
    phase: str = ""
    ready: bool = False

    @property
    def port(self) -> dict[str, int]:
        """Name of a port -> its number."""
        return {each["name"]: each["containerPort"] for each in self.spec["containers"][0].get("ports", ())}

    def metrics(self) -> str:
        """What its metrics are now."""
        return _read(f"http://{self.address}:{self.port['health']}/metrics")


class LocalPods:
    """Starts, probes and ends the containers of a namespace's Pods, which stay unbound: there are no nodes.

    Args:
        control_plane: the cluster.
        namespace: whose Pods are run.
        folder: an empty one, for volumes and logs.
        started: is told of each Pod that takes connections.
    """

    def __init__(
        self, control_plane: ControlPlane, namespace: str, folder: Path, started: Callable[[LocalPod], None]
    ) -> None:
        # Whether the image can be pulled, and how many Pods that take connections there is room for.
        self.pulls = True
        self.most = sys.maxsize
        self.failures: list[BaseException] = []
        self._control_plane = control_plane
        self._namespace = namespace
        self._folder = folder
        self._started = started
        self._pods: dict[str, LocalPod] = {}
        self._leaving: list[Process] = []
        self._count = itertools.count(1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        assert self.failures == []

    def ready(self) -> list[LocalPod]:
        """Return those that serve."""
        return [each for each in tuple(self._pods.values()) if each.ready]

    def logs(self, name: str) -> str:
        """Return what the containers of Pods whose name begins so have logged, also when they are gone."""
        return "".join(file.read_text(encoding="utf-8") for file in sorted(self._folder.glob(f"*-{name}*/log")))

    def _run(self) -> None:
        connections = Connections(self._control_plane.url, self._control_plane.ca_file, self._control_plane.admin)
        with closing(connections):
            api = Api(connections)
            try:
                while not self._stopped.wait(_PAUSE_SECONDS):
                    self._step(api)
            except Exception as error:  # noqa: BLE001 -- shown by whoever waits for the thread
                self.failures.append(error)
            finally:
                self._leaving += [each.process for each in self._pods.values()]
                self._pods.clear()
                for process in self._leaving:
                    process.signal(signal.SIGTERM)
                for process in self._leaving:
                    process.stop()

    def _step(self, api: Api) -> None:
        there = {each["metadata"]["uid"]: each for each in api.list("v1", "Pod", self._namespace)}
        for uid in self._pods.keys() - there.keys():
            leaving = self._pods.pop(uid).process
            leaving.signal(signal.SIGTERM)
            self._leaving.append(leaving)
        for uid, pod in there.items():
            if uid not in self._pods and self._may_start(pod):
                self._pods[uid] = self._start(pod, api)
        for uid, pod in tuple(self._pods.items()):
            self._pods[uid] = _told(api, self._namespace, pod)

    def _may_start(self, pod: Json) -> bool:
        serves = bool(pod["spec"]["containers"][0].get("ports"))
        full = serves and sum(bool(each.port) for each in self._pods.values()) >= self.most
        return self.pulls and not full and pod["status"].get("phase") not in _ENDED

    def _start(self, pod: Json, api: Api) -> LocalPod:
        name, address = pod["metadata"]["name"], next(_addresses)
        folder = self._folder / f"{next(self._count):03}-{name}"
        folder.mkdir(parents=True)
        spec = _without_token(pod["spec"])
        workload = {"metadata": {"namespace": self._namespace}, "spec": {"template": {"spec": spec}}}
        container = container_of(workload, api, self._control_plane, folder / "volumes")
        environment = self._environment(container, address, folder)
        process = Process(name, list(_command(container)), folder / "log", environment)
        made = LocalPod(name, address, spec, process)
        if made.port:
            self._started(made)
        return made

    def _environment(self, container: Container, address: str, folder: Path) -> dict[str, str]:
        token = (container.files[_TOKEN_FOLDER] / "token").read_text(encoding="ascii")
        cluster = self._control_plane
        kubeconfig = write_kubeconfig(folder / "kubeconfig", cluster.url, cluster.ca_file, token)
        temporary = folder / "tmp"
        temporary.mkdir()
        # Files of a container are in other places here; so the token is found by a kubeconfig.
        around = {
            key: value for key, value in container.environment.items() if not key.startswith("KUBERNETES_SERVICE_")
        }
        here = {"GPUGATE_KUBECONFIG": str(kubeconfig), "GPUGATE_HOST": address, "TMPDIR": str(temporary)}
        return {"PATH": os.environ["PATH"], **around, **here}


def _command(container: Container) -> Iterator[str]:
    (program,) = container.command or ()
    yield from _PROGRAMS[program]
    for argument in container.arguments or ():
        flag, equals, value = argument.partition("=")
        for target, source in container.files.items():
            if value.startswith(f"{target}/"):
                value = f"{source}{value.removeprefix(target)}"
        yield f"{flag}{equals}{value}"


def _without_token(spec: Json) -> Json:
    """Leave out the volume that the API server adds for the token (plugin/pkg/admission/serviceaccount, v1.36)."""
    added = {each["name"] for each in spec.get("volumes", ()) if "projected" in each}
    (container,) = spec["containers"]
    mounts = [each for each in container.get("volumeMounts", ()) if each["name"] not in added]
    volumes = [each for each in spec.get("volumes", ()) if each["name"] not in added]
    return {**spec, "containers": [{**container, "volumeMounts": mounts}], "volumes": volumes}


def _told(api: Api, namespace: str, pod: LocalPod) -> LocalPod:
    """Write into the status what is so, if it is new."""
    ended = pod.process.exit_code
    if ended is not None and pod.spec["restartPolicy"] == "Never":
        now = replace(pod, phase="Failed" if ended else "Succeeded", ready=False)
    else:
        now = replace(pod, phase="Running", ready=ended is None and _answers(pod))
    if now != pod:
        ready = {"type": "Ready", "status": str(now.ready)}
        status = {"phase": now.phase, "podIP": pod.address, "conditions": [ready]}
        ref = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name, "namespace": namespace}}
        answer = api.patch(ref, {"status": status}, "strategic", subresource="status")
        # It may have been deleted meanwhile.
        assert answer.ok or answer.code == 404, answer.message
    return now


def _answers(pod: LocalPod) -> bool:
    probe = pod.spec["containers"][0].get("readinessProbe", {}).get("httpGet")
    try:
        return probe is None or bool(_read(f"http://{pod.address}:{pod.port[probe['port']]}{probe['path']}"))
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        pass
    return False


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_PROBE_SECONDS) as answer:  # noqa: S310 -- on loopback
        return str(answer.read().decode())
