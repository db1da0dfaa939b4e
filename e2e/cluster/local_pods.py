"""Plays the kubelets of a namespace: the containers of each Pod are processes on this machine, with an address of its own.

Init containers run to their end one after the other, before the container that stays.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from cluster.api import Api
from cluster.connections import Connections
from cluster.local_container import started_container, update_volumes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.control_plane import ControlPlane
    from cluster.process import Process

Json = dict[str, Any]
_PAUSE_SECONDS = 0.05
_PROBE_SECONDS = 2
# How long what fails is tried again, as a kubelet does: what a Pod needs may be deleted a moment before the Pod is.
_PATIENCE_SECONDS = 15
# From one start of an init container that fails to the next; a kubelet doubles 10 s each time.
_BACK_OFF_SECONDS = 2
_ENDED = {"Succeeded", "Failed"}
# Every address of 127.0.0.0/8 is this machine's (RFC 5735, section 3).
_addresses = (f"127.0.{high}.{low}" for high in range(1, 255) for low in range(1, 255))


@dataclass(frozen=True)
class LocalPod:
    """A Pod whose containers are started; `phase` and `ready` are what the API server was told last.

    `process` is of the first of the `containers`, by their names: of an init container while others follow. `ready_seconds` is how
    long after its start the Pod was ready, and `folder` is where its volumes are.
    """

    name: str
    address: str
    spec: Json
    containers: tuple[str, ...]
    process: Process
    process_begun: float
    folder: Path
    begun: float = field(default_factory=time.monotonic)
    phase: str = ""
    ready: bool = False
    ready_seconds: float = 0.0

    @property
    def port(self) -> dict[str, int]:
        """Name of a port -> its number."""
        return {each["name"]: each["containerPort"] for each in self.spec["containers"][0].get("ports", ())}

    @property
    def initializes(self) -> bool:
        """Whether an init container runs, or ended last."""
        return len(self.containers) > 1

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
        self._failing: dict[str, float] = {}
        self._count = itertools.count(1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        if self.failures:
            raise RuntimeError(f"the Pods of {self._namespace} could not be run") from self.failures[0]

    def ready(self) -> list[LocalPod]:
        """Return those that serve."""
        return [each for each in tuple(self._pods.values()) if each.ready]

    def update_config_maps(self, api: Api) -> None:
        """Let the Pods that serve have the ConfigMaps that they mount as they are now."""
        for each in self.ready():
            update_volumes(each.spec, self._namespace, api, each.folder)

    def logs(self, name: str) -> str:
        """Return what the containers of Pods whose name begins so have logged, also when they are gone."""
        return "".join(file.read_text(encoding="utf-8") for file in sorted(self._folder.glob(f"*-{name}*/log")))

    def _run(self) -> None:
        connections = Connections(self._control_plane.url, self._control_plane.ca_file, self._control_plane.admin)
        with closing(connections):
            api = Api(connections)
            try:
                while not self._stopped.wait(_PAUSE_SECONDS):
                    # What is not answered is asked again.
                    with suppress(OSError):
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
        for uid in self._failing.keys() - there.keys():
            del self._failing[uid]
        for uid, pod in there.items():
            with self._again_if_it_fails(uid):
                if uid not in self._pods and self._may_start(pod):
                    self._pods[uid] = self._begin(pod, api)
                if uid in self._pods:
                    self._pods[uid] = self._continue(pod, api, self._pods[uid])
                    self._pods[uid] = _told(api, self._namespace, self._pods[uid])

    @contextmanager
    def _again_if_it_fails(self, uid: str) -> Iterator[None]:
        """Leave a Pod that fails to the next step, until it has failed for too long."""
        try:
            yield
        except (AssertionError, KeyError):
            if time.monotonic() > self._failing.setdefault(uid, time.monotonic() + _PATIENCE_SECONDS):
                raise
        else:
            self._failing.pop(uid, None)

    def _may_start(self, pod: Json) -> bool:
        serves = bool(pod["spec"]["containers"][0].get("ports"))
        full = serves and sum(bool(each.port) for each in self._pods.values()) >= self.most
        return self.pulls and not full and pod["status"].get("phase") not in _ENDED

    def _begin(self, pod: Json, api: Api) -> LocalPod:
        name, spec, address = pod["metadata"]["name"], pod["spec"], next(_addresses)
        folder = self._folder / f"{next(self._count):03}-{name}"
        folder.mkdir(parents=True)
        (last,) = spec["containers"]
        containers = (*(each["name"] for each in spec.get("initContainers", ())), last["name"])
        process = started_container(pod, containers[0], address, api, self._control_plane, folder)
        made = LocalPod(name, address, spec, containers, process, time.monotonic(), folder)
        self._tell(made)
        return made

    def _continue(self, pod: Json, api: Api, made: LocalPod) -> LocalPod:
        """Start the next container where an init container has ended; the same one again where it has failed."""
        ended = made.process.exit_code
        if not made.initializes or ended is None:
            return made
        if ended and (_runs_once(made) or time.monotonic() < made.process_begun + _BACK_OFF_SECONDS):
            return made
        containers = made.containers if ended else made.containers[1:]
        process = started_container(pod, containers[0], made.address, api, self._control_plane, made.folder)
        now = replace(made, containers=containers, process=process, process_begun=time.monotonic())
        self._tell(now)
        return now

    def _tell(self, pod: LocalPod) -> None:
        if pod.port and not pod.initializes:
            self._started(pod)


def _runs_once(pod: LocalPod) -> bool:
    return bool(pod.spec["restartPolicy"] == "Never")


def _told(api: Api, namespace: str, pod: LocalPod) -> LocalPod:
    """Write into the status what is so, if it is new."""
    ended = pod.process.exit_code
    if ended is not None and _runs_once(pod) and (ended or not pod.initializes):
        now = replace(pod, phase="Failed" if ended else "Succeeded", ready=False)
    elif pod.initializes:
        now = replace(pod, phase="Pending")
    else:
        answers = ended is None and _answers(pod)
        took = time.monotonic() - pod.begun if answers and not pod.ready else pod.ready_seconds
        now = replace(pod, phase="Running", ready=answers, ready_seconds=took)
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
