"""One object by name: its path, its metadata when created again, errors of its API calls, and a watch for its changes.

A watch without a resource version begins with the current state (`k8s.io/apimachinery` meta/v1 ListOptions, v0.36), and its
consumer reads the object itself. Therefore no list is needed, and no resource version can expire. RBAC allows such a watch
by `resourceNames`, because it has a field selector (kube-apiserver v1.36.3).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from gpugate.certs.protocols import ClusterFailure, ConflictError
from gpugate.webhook.cluster.backoff import Backoff, Chance
from gpugate.webhook.cluster.errors import ApiError, CallError, UnreachableError
from gpugate.webhook.cluster.reflector import WatchCall

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.reflector import Event

MUTATING = "MutatingWebhookConfiguration"
VALIDATING = "ValidatingWebhookConfiguration"
_CONFIGURATIONS = {MUTATING: "mutatingwebhookconfigurations", VALIDATING: "validatingwebhookconfigurations"}


class Place(NamedTuple):
    """The location of an object: the path of its API, its resource, its name, and its namespace if it has one."""

    api: str
    resource: str
    name: str
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path at which objects of this resource are created and watched."""
        within = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        return f"{self.api}{within}/{self.resource}"

    @property
    def path(self) -> str:
        """The path of the object."""
        return f"{self.collection}/{quote(self.name, safe='')}"

    def __str__(self) -> str:
        where = f" in namespace {self.namespace!r}" if self.namespace else ""
        return f"{self.resource} {self.name!r}{where}"


def secret(namespace: str, name: str) -> Place:
    """Locate a Secret."""
    return Place("/api/v1", "secrets", name, namespace)


def lease(namespace: str, name: str) -> Place:
    """Locate a Lease."""
    return Place("/apis/coordination.k8s.io/v1", "leases", name, namespace)


def namespace(name: str) -> Place:
    """Locate a Namespace."""
    return Place("/api/v1", "namespaces", name)


def configurations(name: str) -> dict[str, Place]:
    """Locate both webhook configurations of a name, by kind."""
    api = "/apis/admissionregistration.k8s.io/v1"
    return {kind: Place(api, resource, name) for kind, resource in _CONFIGURATIONS.items()}


_LABELS: Final = {"app.kubernetes.io/name": "gpugate"}
# Requests by annotation are not copied, because they were meant for the deleted object.
_REQUESTS: Final = "gpugate.dev/"


def made_metadata(place: Place, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Build the metadata of an object to create, with the labels and annotations of the deleted one, if there was one.

    Helm recognizes the objects of a release by a label and two annotations, and deletes only these (v4.3
    pkg/action/validate.go). A new object gets no `managed-by`, because server-side apply by Helm would conflict.
    """
    annotations = {k: v for k, v in ((before or {}).get("annotations") or {}).items() if not k.startswith(_REQUESTS)}
    return {
        "name": place.name,
        "namespace": place.namespace,
        "labels": (before or {}).get("labels") or _LABELS,
        **({"annotations": annotations} if annotations else {}),
    }


# The verbs of RBAC.
Verb: TypeAlias = Literal["get", "watch", "create", "update", "patch"]
_READING = frozenset({"get", "watch"})


@contextmanager
def failing_as_cluster(verb: Verb, place: Place) -> Iterator[None]:
    """Convert errors of one call, with a text that explains them.

    Raises:
        ConflictError: another client changed, created or deleted the object to write.
        ClusterFailure: any other error; after a write without a response, it says that the result is unknown.
    """
    try:
        yield
    except ApiError as error:
        if verb not in _READING and error.code in ({409} if verb == "create" else {404, 409, 410}):
            raise ConflictError(f"{place} was changed by another client: {error}") from None
        raise ClusterFailure(why(error, verb, place)) from None
    except UnreachableError as error:
        doubt = "" if verb in _READING else f"; {place} may have been written and must be read again"
        raise ClusterFailure(f"{error}{doubt}") from None
    except msgspec.DecodeError:
        raise ClusterFailure(f"the response to {verb} {place} is not from an API server") from None


def why(error: ApiError, verb: Verb, place: Place) -> str:
    """Explain why a call was rejected, and what to check.

    A 403 does not mean missing rights if a quota, an admission plugin or a webhook rejects the call, or the namespace is
    being deleted. RBAC says "cannot VERB resource" (k8s.io/apiserver pkg/endpoints/handlers/responsewriters errors.go,
    v0.36).
    """
    if error.code == 403 and f"cannot {verb} resource" in error.message:
        return (
            f"gpugate may not {verb} {place}: grant its ServiceAccount the verb {verb!r} on {place.resource}, by the "
            f"chart (rbac.create) or `gpugate registration`; the API server says: {error.message}"
        )
    return f"{verb} {place}: {error}"


def read_or_none(connection: Connection, place: Place) -> bytes | None:
    """Read an object from the API server; None if it does not exist.

    Raises:
        ApiError: the response is another error.
        UnreachableError: there is no response, or it is incomplete.
    """
    try:
        return connection.read(place.path, {})
    except ApiError as error:
        if error.code == 404:
            return None
        raise


# kube-apiserver v1.36.3 sends a bookmark about once a minute.
_SILENCE_SECONDS: Final = 150.0
# A watch that ends sooner did not reach its own timeout.
_SHORT_SECONDS: Final = 60.0
_LONGEST_RETRY_AFTER: Final = 300.0


class NamedWatch:
    """Watch one object: call `changed` after each possible change of it, and `lost` when the watch fails.

    Both are called in the thread of `run`. `changed` is also called when a watch starts, even without a change. `lost`
    gets the reason of each failure; until the next call of `changed`, the caller must poll the object.
    """

    def __init__(
        self,
        connection: Connection,
        place: Place,
        changed: Callable[[], None],
        lost: Callable[[str], None],
        chance: Chance | None = None,
    ) -> None:
        self.place = place
        self._changed = changed
        self._lost = lost
        self._chance = chance or Chance()
        self._backoff = Backoff(self._chance)
        self._watching = WatchCall(connection, self._chance)

    def step(self) -> float:
        """Watch until the watch ends; return how many seconds to wait before the next step."""
        started = self._chance.clock()
        named = {"fieldSelector": f"metadata.name={self.place.name}"}
        try:
            self._watching.follow(self.place.collection, named, self._changed, self._take, _SILENCE_SECONDS)
        except CallError as error:
            if self._watching.stopped:
                return 0.0
            self._lost(why(error, "watch", self.place) if isinstance(error, ApiError) else str(error))
            return max(self._backoff.next(), min(error.retry_after, _LONGEST_RETRY_AFTER))
        short = self._chance.clock() - started < _SHORT_SECONDS
        return self._backoff.next() if short else 0.0

    def run(self, stopped: threading.Event) -> None:
        """Watch until `stopped` is set; call `stop` as well, to end the open watch."""
        pause = 0.0
        while not stopped.wait(pause):
            pause = self.step()

    def stop(self) -> None:
        """End the open watch from another thread."""
        self._watching.stop()

    def _take(self, event: Event) -> None:
        if event.type != "BOOKMARK":
            self._changed()
