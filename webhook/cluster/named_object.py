"""One object by name: its path, its kept metadata, errors of its API calls, and a watch that reports changes.

A watch without a resource version begins with the current state (`k8s.io/apimachinery` meta/v1 ListOptions, v0.36), and its
consumer reads the object itself. So nothing is listed, and no resource version can expire. RBAC allows it by `watch` with
`resourceNames`, because of the field selector (kube-apiserver v1.36.3).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from gpugate.certs.protocols import ChangedMeanwhile, ClusterFailure
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
    """One object: the API and the resource under which it is served, its name, and its namespace if it has one."""

    api: str
    resource: str
    name: str
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path at which such objects are created and watched."""
        within = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        return f"{self.api}{within}/{self.resource}"

    @property
    def path(self) -> str:
        """The path of the object itself."""
        return f"{self.collection}/{quote(self.name, safe='')}"

    def __str__(self) -> str:
        where = f" in namespace {self.namespace!r}" if self.namespace else ""
        return f"{self.resource} {self.name!r}{where}"


def secret(namespace: str, name: str) -> Place:
    """Return where a Secret is."""
    return Place("/api/v1", "secrets", name, namespace)


def lease(namespace: str, name: str) -> Place:
    """Return where a Lease is."""
    return Place("/apis/coordination.k8s.io/v1", "leases", name, namespace)


def namespace(name: str) -> Place:
    """Return where a Namespace is."""
    return Place("/api/v1", "namespaces", name)


def configurations(name: str) -> dict[str, Place]:
    """Return where both webhook configurations of a name are, by their kinds."""
    api = "/apis/admissionregistration.k8s.io/v1"
    return {kind: Place(api, resource, name) for kind, resource in _CONFIGURATIONS.items()}


_LABELS: Final = {"app.kubernetes.io/name": "gpugate"}
# What people ask of us; it was asked of the one that is gone.
_REQUESTS: Final = "gpugate.dev/"


def made_metadata(place: Place, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of an object to create, with labels and annotations as the one before had them, if there was one.

    Helm tells by a label and two annotations what belongs to a release, and deletes nothing else (v4.3 pkg/action/validate.go).
    Without one before there is no `managed-by`: server-side apply by Helm would be a conflict.
    """
    annotations = {k: v for k, v in ((before or {}).get("annotations") or {}).items() if not k.startswith(_REQUESTS)}
    return {
        "name": place.name,
        "namespace": place.namespace,
        "labels": (before or {}).get("labels") or _LABELS,
        **({"annotations": annotations} if annotations else {}),
    }


# As RBAC names them.
Verb: TypeAlias = Literal["get", "watch", "create", "update", "patch"]
_READING = frozenset({"get", "watch"})


@contextmanager
def failing_as_cluster(verb: Verb, place: Place) -> Iterator[None]:
    """Explain what goes wrong in one call.

    Raises:
        ChangedMeanwhile: what was to be written is not as it was read, or is there, or is gone.
        ClusterFailure: anything else; after a write that had no answer it says that nobody knows.
    """
    try:
        yield
    except ApiError as error:
        if verb not in _READING and error.code in ({409} if verb == "create" else {404, 409, 410}):
            raise ChangedMeanwhile(f"{place} changed meanwhile: {error}") from None
        raise ClusterFailure(why(error, verb, place)) from None
    except UnreachableError as error:
        doubt = "" if verb in _READING else f"; nobody knows whether {place} was written, so it must be read again"
        raise ClusterFailure(f"{error}{doubt}") from None
    except msgspec.DecodeError:
        raise ClusterFailure(f"the answer to {verb} {place} is none of an API server") from None


def why(error: ApiError, verb: Verb, place: Place) -> str:
    """Say why a call was refused, and what to look at.

    A 403 is no matter of rights when a quota, an admission plugin or a webhook refuses, or the namespace is being
    deleted. RBAC says "cannot VERB resource" (k8s.io/apiserver pkg/endpoints/handlers/responsewriters errors.go, v0.36).
    """
    if error.code == 403 and f"cannot {verb} resource" in error.message:
        return (
            f"gpugate may not {verb} {place}: its ServiceAccount needs the verb {verb!r} on {place.resource}, which the "
            f"chart grants (rbac.create), as does `gpugate registration`; the API server says: {error.message}"
        )
    return f"{verb} {place}: {error}"


def read_or_none(connection: Connection, place: Place) -> bytes | None:
    """Return an object as the API server has it now, None if there is none.

    Raises:
        ApiError: the answer is another error.
        UnreachableError: there is no answer, or it broke off.
    """
    try:
        return connection.read(place.path, {})
    except ApiError as error:
        if error.code == 404:
            return None
        raise


# kube-apiserver v1.36.3 sends a bookmark about once a minute.
_SILENCE_SECONDS: Final = 150.0
# A watch that ended sooner did not end of itself.
_SHORT_SECONDS: Final = 60.0
_LONGEST_RETRY_AFTER: Final = 300.0


class NamedWatch:
    """Calls `changed` when an object was added, changed or deleted, or may have been; `lost` when watching failed.

    Both are called in the thread of `run`. `changed` may be called when nothing changed: after each beginning. `lost`
    gets the reason, each time; for as long as nothing is heard, whoever cares must look by himself.
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
        """Watch until the watch ends; return how many seconds to wait then."""
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
        """Watch until `stopped` is set; then `stop` ends the watch that is open."""
        pause = 0.0
        while not stopped.wait(pause):
            pause = self.step()

    def stop(self) -> None:
        """End a watch that another thread is in."""
        self._watching.stop()

    def _take(self, event: Event) -> None:
        if event.type != "BOOKMARK":
            self._changed()
