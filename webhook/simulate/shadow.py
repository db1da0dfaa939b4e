"""Read what servers with a shadow policy file decided, from files or from the Pods of an installation, into a simulation.

The servers have evaluated the requests already, with the cluster data that they had when each request arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
import orjson

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.admission.decisions import MALFORMED
from gpugate.webhook.admission.shadow_table import SCHEMA, Shadowed, merged, strictest
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.words import plural
from gpugate.webhook.cluster.errors import ApiError
from gpugate.webhook.simulate.model import Change, Coverage, PolicyChange, Requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gpugate.webhook.admission.shadow_table import CountedOwner, CountedPair
    from gpugate.webhook.cluster.connection import Connection

_MARK: Final = SCHEMA.rpartition("/")[0].encode()
_HEAD: Final = 256
_LARGEST: Final = 64 << 20
_HEALTH_PORT: Final = 8081
# The EndpointSlice controller sets it on each slice of a Service (`k8s.io/api` discovery/v1 well_known_labels.go, v0.36).
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_REASONS: Final = {
    "dropped": "dropped, because the server had other requests",
    "late": "the evaluation took too long",
    "failed": "the evaluation failed",
}


class ShadowError(GpugateError):
    """The decisions of the shadow policy file cannot be read; the text says why and what to do."""


class Shadow(NamedTuple):
    """The decisions of all servers.

    Attributes:
        document: those that compare the same two policy files, added up.
        servers: their number.
        others: the number of servers that compare other policy files, which are left out.
    """

    document: Shadowed
    servers: int
    others: int = 0

    @classmethod
    def of(cls, documents: Sequence[Shadowed]) -> Shadow:
        """Add up the documents; of different policy files, those that began last count.

        Raises:
            ShadowError: there is none, or none has a valid shadow policy file.
        """
        valid = sorted(
            (document for document in documents if document.candidate),
            key=lambda document: document.since,
            reverse=True,
        )
        whole = merged(valid)
        if whole is None:
            error = next((document.error for document in documents), "no server has one")
            raise ShadowError(f"no valid shadow policy file: {error}")
        same = sum((document.current, document.candidate) == (whole.current, whole.candidate) for document in valid)
        return cls(whole, same, len(documents) - same)

    def coverage(self) -> Coverage:
        """Return what was evaluated."""
        reviews, left_out = self.document.reviews, self.document.left_out
        not_evaluated = {text: reviews[result] for result, text in _REASONS.items() if reviews.get(result)}
        if left_out:
            not_evaluated["of further owners, which the table of the server has no room for"] = left_out
        return Coverage(
            requests=sum(reviews.values()),
            evaluated=reviews.get("evaluated", 0) - left_out,
            not_evaluated=not_evaluated,
            first=self.document.since,
            last=self.document.until,
        )

    def changes(self) -> Iterator[Change]:
        """Yield the owners whose requests the shadow policy file treats differently."""
        for owner in self.document.owners:
            changed = tuple(change for change in _policies(owner) if change.current is not change.candidate)
            if changed:
                current, candidate = Action(owner.current), Action(owner.candidate)
                yield Change(owner.object, "shadow", current, candidate, changed, _requests(owner))

    def remarks(self) -> Iterator[str]:
        """Yield what limits the result."""
        yield f"the decisions of {plural(self.servers, 'server')}; a request counts once for each webhook that received it"
        if self.others:
            yield f"{plural(self.others, 'server')} left out: they compare other policy files; try again after the reload"
        if self.document.error:
            yield f"the shadow policy file is invalid now, and its last valid version is in use: {self.document.error}"


def _requests(owner: CountedOwner) -> Requests:
    people = max((requests.people for requests in owner.requests), default=0)
    controllers = max((requests.controllers for requests in owner.requests), default=0)
    return Requests(people, controllers, owner.operations, owner.first, owner.last)


def _policies(owner: CountedOwner) -> Iterator[PolicyChange]:
    by_policy: dict[str, list[CountedPair]] = {}
    for pair in owner.pairs:
        by_policy.setdefault(pair.policy, []).append(pair)
    for policy, counted in by_policy.items():
        current = strictest(*(pair.current for pair in counted))
        candidate = strictest(*(pair.candidate for pair in counted))
        sample = next(pair.sample for pair in counted if pair.candidate == candidate)
        name = "" if policy == MALFORMED else policy
        yield PolicyChange(name, Action(current), Action(candidate), sample.message, sample.hint)


def read_document(path: Path) -> Shadowed | None:
    """Read a saved document of `/shadow`; None if the file is something else.

    Raises:
        OSError: the file cannot be read.
        ShadowError: the document is damaged.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if _MARK not in head:
            return None
        return _decoded(head + file.read(_LARGEST), str(path))


def read_servers(connection: Connection, namespace: str, service: str) -> Iterator[Shadowed]:
    """Yield the document of each Pod behind the Service of the webhook, through the API server.

    Raises:
        ShadowError: a Pod does not answer, or the credentials do not allow the call.
        UnreachableError: the API server does not answer.
    """
    where = f"Service {namespace}/{service}"
    pods = _pods(connection, namespace, service)
    if not pods:
        raise ShadowError(f"{where}: has no Pods: set --namespace and --service to those of the webhook")
    for pod in pods:
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}"
        try:
            port = _health_port(read_json(orjson.loads, connection.read(path, {})))
            body = connection.read(f"{path}:{port}/proxy/shadow", {})
        except ApiError as error:
            raise ShadowError(f"Pod {namespace}/{pod}: {error}\n{_advice(error, namespace, pod)}") from None
        yield _decoded(body, f"Pod {namespace}/{pod}")


def _pods(connection: Connection, namespace: str, service: str) -> Sequence[str]:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{quote(namespace, safe='')}/endpointslices"
    try:
        slices = read_json(orjson.loads, connection.read(path, {"labelSelector": f"{_SERVICE_NAME}={service}"}))
    except ApiError as error:
        raise ShadowError(f"EndpointSlices of Service {namespace}/{service}: {error}") from None
    references = [
        endpoint.get("targetRef") or {}
        for endpoint_slice in slices.get("items") or ()
        for endpoint in endpoint_slice.get("endpoints") or ()
    ]
    return sorted({str(reference["name"]) for reference in references if reference.get("kind") == "Pod"})


def _health_port(pod: Mapping[str, Any]) -> int:
    containers = (pod.get("spec") or {}).get("containers") or ()
    ports = (port for container in containers for port in container.get("ports") or ())
    return next((int(port["containerPort"]) for port in ports if port.get("name") == "health"), _HEALTH_PORT)


def _advice(error: ApiError, namespace: str, pod: str) -> str:
    if "shadow policy file" in error.message:
        return "set policy.shadow in the chart, or --shadow-policy-file"
    reason = (
        "these credentials may not `get` pods/proxy: use others" if error.code == 403 else "the Pod was not reached"
    )
    return (
        f"{reason}, or run `kubectl -n {namespace} port-forward {pod} {_HEALTH_PORT}`, save "
        f"http://localhost:{_HEALTH_PORT}/shadow to a file, and read it with --from"
    )


def _decoded(body: bytes, where: str) -> Shadowed:
    try:
        return read_json(msgspec.json.Decoder(Shadowed).decode, body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ShadowError(f"{where}: not a document {SCHEMA}: {error}: save /shadow of the health port again") from None
