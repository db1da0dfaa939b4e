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


class ObjectLocation(NamedTuple):
    """The location of an object: the path of its API, its resource, its name, and its namespace if it has one."""

    api: str
    resource: str
    name: str
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path at which objects of this resource are created and watched."""
        prefix = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        return f"{self.api}{prefix}/{self.resource}"

    @property
    def path(self) -> str:
        """The path of the object."""
        return f"{self.collection}/{quote(self.name, safe='')}"

    def __str__(self) -> str:
        suffix = f" in namespace {self.namespace!r}" if self.namespace else ""
        return f"{self.resource} {self.name!r}{suffix}"


def secret(namespace: str, name: str) -> ObjectLocation:
    """Locate a Secret."""
    return ObjectLocation("/api/v1", "secrets", name, namespace)


def lease(namespace: str, name: str) -> ObjectLocation:
    """Locate a Lease."""
    return ObjectLocation("/apis/coordination.k8s.io/v1", "leases", name, namespace)


def namespace(name: str) -> ObjectLocation:
    """Locate a Namespace."""
    return ObjectLocation("/api/v1", "namespaces", name)


def configurations(name: str) -> dict[str, ObjectLocation]:
    """Locate both webhook configurations of a name, by kind."""
    api = "/apis/admissionregistration.k8s.io/v1"
    return {kind: ObjectLocation(api, resource, name) for kind, resource in _CONFIGURATIONS.items()}


_LABELS: Final = {"app.kubernetes.io/name": "gpugate"}
# Requests by annotation are not copied, because they were meant for the deleted object.
_REQUESTS: Final = "gpugate.dev/"


def build_metadata(location: ObjectLocation, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Build the metadata of an object to create, with the labels and annotations of the deleted one, if there was one.

    Helm recognizes the objects of a release by a label and two annotations, and deletes only these (v4.3
    pkg/action/validate.go). A new object gets no `managed-by`, because server-side apply by Helm would conflict.
    """
    annotations = {k: v for k, v in ((before or {}).get("annotations") or {}).items() if not k.startswith(_REQUESTS)}
    return {
        "name": location.name,
        "namespace": location.namespace,
        "labels": (before or {}).get("labels") or _LABELS,
        **({"annotations": annotations} if annotations else {}),
    }


# The verbs of RBAC.
Verb: TypeAlias = Literal["get", "watch", "create", "update", "patch"]
_READ_VERBS = frozenset({"get", "watch"})


@contextmanager
def convert_call_errors(verb: Verb, location: ObjectLocation) -> Iterator[None]:
    """Convert errors of one call, with a text that explains them.

    Raises:
        ConflictError: another client changed, created or deleted the object to write.
        ClusterFailure: any other error; after a write without a response, it says that the result is unknown.
    """
    try:
        yield
    except ApiError as error:
        if verb not in _READ_VERBS and error.code in ({409} if verb == "create" else {404, 409, 410}):
            raise ConflictError(f"{location} was changed by another client: {error}") from None
        raise ClusterFailure(explain_error(error, verb, location)) from None
    except UnreachableError as error:
        doubt = "" if verb in _READ_VERBS else f"; {location} may have been written and must be read again"
        raise ClusterFailure(f"{error}{doubt}") from None
    except msgspec.DecodeError:
        raise ClusterFailure(f"the response to {verb} {location} is not from an API server") from None


def explain_error(error: ApiError, verb: Verb, location: ObjectLocation) -> str:
    """Explain why a call was rejected, and what to check.

    A 403 does not mean missing rights if a quota, an admission plugin or a webhook rejects the call, or the namespace is
    being deleted. RBAC says "cannot VERB resource" (k8s.io/apiserver pkg/endpoints/handlers/responsewriters errors.go,
    v0.36).
    """
    if error.code == 403 and f"cannot {verb} resource" in error.message:
        return (
            f"gpugate may not {verb} {location}: grant its ServiceAccount the verb {verb!r} on {location.resource}, by the "
            f"chart (rbac.create) or `gpugate registration`; the API server says: {error.message}"
        )
    return f"{verb} {location}: {error}"


def read_or_none(connection: Connection, location: ObjectLocation) -> bytes | None:
    """Read an object from the API server; None if it does not exist.

    Raises:
        ApiError: the response is another error.
        UnreachableError: the response is missing or incomplete.
    """
    try:
        return connection.read(location.path, {})
    except ApiError as error:
        if error.code == 404:
            return None
        raise


# kube-apiserver v1.36.3 sends a bookmark about once a minute.
_READ_TIMEOUT: Final = 150.0
# A watch that ends sooner did not reach its own timeout.
_SHORT_SECONDS: Final = 60.0
_MAX_RETRY_AFTER: Final = 300.0


class NamedWatch:
    """Watch one object: call `on_change` after each possible change of it, and `on_failure` when the watch fails.

    Both are called in the thread of `run`. `on_change` is also called when a watch starts, even without a change. `on_failure`
    gets the reason of each failure; until the next call of `on_change`, the caller must poll the object.
    """

    def __init__(
        self,
        connection: Connection,
        location: ObjectLocation,
        on_change: Callable[[], None],
        on_failure: Callable[[str], None],
        chance: Chance | None = None,
    ) -> None:
        self.location = location
        self._on_change = on_change
        self._on_failure = on_failure
        self._chance = chance or Chance()
        self._backoff = Backoff(self._chance)
        self._watch_call = WatchCall(connection, self._chance)

    def step(self) -> float:
        """Watch until the watch ends; return how many seconds to wait before the next step."""
        started = self._chance.clock()
        selector = {"fieldSelector": f"metadata.name={self.location.name}"}
        try:
            self._watch_call.follow(self.location.collection, selector, self._on_change, self._handle, _READ_TIMEOUT)
        except CallError as error:
            if self._watch_call.stopped:
                return 0.0
            self._on_failure(
                explain_error(error, "watch", self.location) if isinstance(error, ApiError) else str(error)
            )
            return max(self._backoff.next(), min(error.retry_after, _MAX_RETRY_AFTER))
        short = self._chance.clock() - started < _SHORT_SECONDS
        return self._backoff.next() if short else 0.0

    def run(self, stopped: threading.Event) -> None:
        """Watch until `stopped` is set; call `stop` as well, to end the open watch."""
        pause = 0.0
        while not stopped.wait(pause):
            pause = self.step()

    def stop(self) -> None:
        """End the open watch from another thread."""
        self._watch_call.stop()

    def _handle(self, event: Event) -> None:
        if event.type != "BOOKMARK":
            self._on_change()
