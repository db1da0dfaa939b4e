"""What there is in a cluster, followed by watches, and waiting until it is as wanted."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cluster.control_plane import ControlPlane

Object = dict[str, Any]
T = TypeVar("T")

PATHS: Final[Mapping[str, str]] = {
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Deployment": "/apis/apps/v1/deployments",
    "Event": "/api/v1/events",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/horizontalpodautoscalers",
    "Job": "/apis/batch/v1/jobs",
    "Node": "/api/v1/nodes",
    "NodeClaim": "/apis/karpenter.sh/v1/nodeclaims",
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "Pod": "/api/v1/pods",
    "ResourceQuota": "/api/v1/resourcequotas",
    "ScaledObject": "/apis/keda.sh/v1alpha1/scaledobjects",
}
# How long nothing may change before it is asked again whether everything still runs.
_LOOK_SECONDS = 1.0
_CONNECT_SECONDS = 10


class TooLateError(AssertionError):
    """Something did not happen in time."""


class InterruptedWaitError(Exception):
    """Nobody waits for it any more."""


class Watched:
    """The objects of some kinds, kept as they change, until it is closed.

    Args:
        control_plane: where they are.
        look: called again and again while anybody waits; raises to end the waiting.
    """

    def __init__(self, control_plane: ControlPlane, look: Callable[[], None]) -> None:
        self._url = urlsplit(control_plane.url)
        self._trust = ssl.create_default_context(cafile=control_plane.ca_file)
        self._trust.load_cert_chain(control_plane.admin.certificate, control_plane.admin.key)
        self._look = look
        self._changed = threading.Condition()
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in PATHS}
        self._gone: dict[str, dict[str, Object]] = {kind: {} for kind in PATHS}
        self._closed = False
        self._interrupted = False
        self._sockets: dict[str, socket.socket] = {}
        self._threads = [threading.Thread(target=self._follow, args=(kind,), daemon=True) for kind in PATHS]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the watches."""
        self._closed = True
        for open_socket in list(self._sockets.values()):
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_CONNECT_SECONDS)

    def interrupt(self) -> None:
        """End all waiting."""
        self._interrupted = True

    def resume(self) -> None:
        """Let there be waiting again."""
        self._interrupted = False

    def of(self, kind: str) -> list[Object]:
        """Return the objects of a kind that are there."""
        with self._changed:
            return list(self._objects[kind].values())

    def gone(self, kind: str) -> list[Object]:
        """Return the objects of a kind that were there, as they were last."""
        with self._changed:
            return list(self._gone[kind].values())

    def until(self, condition: Callable[[], T], what: str, seconds: float) -> T:
        """Wait until a condition gives something true, and return that; it is asked when anything has changed.

        Raises:
            InterruptedWaitError: the run ends.
            TooLateError: it never did in this time; names `what`.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (found := condition()):
                self._look()
                if self._interrupted:
                    raise InterruptedWaitError(what)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TooLateError(f"not seen in {seconds:.0f} s: {what}")
                self._changed.wait(min(left, _LOOK_SECONDS))
            return found

    def _follow(self, kind: str) -> None:
        version = ""
        while not self._closed:
            try:
                version = version or self._list(kind)
                version = self._watch(kind, version)
            except (OSError, http.client.HTTPException, ValueError):
                # A connection that broke, or a line that was cut: it goes on where it was.
                with self._changed:
                    self._changed.wait(_LOOK_SECONDS)

    def _list(self, kind: str) -> str:
        with self._asked(kind, PATHS[kind]) as response:
            read = json.loads(response.read())
        if response.status != http.client.OK:
            raise ValueError(read.get("message"))
        with self._changed:
            # The items of a list do not say what they are.
            group_version = "/".join(PATHS[kind].split("/")[2:-1])
            said = {"apiVersion": group_version, "kind": kind}
            found = {item["metadata"]["uid"]: {**said, **item} for item in read["items"]}
            self._gone[kind].update({uid: item for uid, item in self._objects[kind].items() if uid not in found})
            self._objects[kind] = found
            self._changed.notify_all()
        return str(read["metadata"]["resourceVersion"])

    def _watch(self, kind: str, version: str) -> str:
        """Take over changes until the server ends it; return where to go on, empty for a list."""
        path = f"{PATHS[kind]}?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
        with self._asked(kind, path) as response:
            for line in iter(response.readline, b""):
                event = json.loads(line)
                if event.get("type") == "ERROR" or response.status != http.client.OK:
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._take(kind, event["type"], event["object"])
        return version

    def _take(self, kind: str, happened: str, changed: Object) -> None:
        uid = changed["metadata"]["uid"]
        with self._changed:
            if happened == "DELETED":
                self._objects[kind].pop(uid, None)
                self._gone[kind][uid] = changed
            else:
                self._objects[kind][uid] = changed
            self._changed.notify_all()

    @contextlib.contextmanager
    def _asked(self, kind: str, path: str) -> Iterator[http.client.HTTPResponse]:
        host, port = self._url.hostname or "", self._url.port
        connection = http.client.HTTPSConnection(host, port, context=self._trust, timeout=_CONNECT_SECONDS)
        with contextlib.closing(connection):
            connection.connect()
            # Nothing may change for as long as it likes.
            connection.sock.settimeout(None)
            self._sockets[kind] = connection.sock
            if self._closed:
                raise OSError("closed")
            connection.request("GET", path)
            with contextlib.closing(connection.getresponse()) as response:
                yield response
