"""Diagnose the path from the API server to the webhook: Service, endpoints, Pods and failed calls.

Failures are recognised by the messages of Go's net, crypto/tls and crypto/x509 (1.26), of `k8s.io/apiserver`
pkg/util/webhook and of `k8s.io/client-go` rest (v0.36). The end-to-end tests provoke most of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.generate.probe import answer, entry_name, question
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.operate.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names, Object


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the webhook is not reached.

    Attributes:
        what: what is wrong.
        remedy: what to look at or to do.
        said: what the API server said, where it did.
    """

    what: str
    remedy: str
    said: str = ""


_BEFORE: Final = re.compile(r'^.*?failed calling webhook "[^"]*": (failed to call webhook: )?', re.DOTALL)

# The first one that is found in the message counts.
_SIGNS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        r"unable to load root certificates|unable to parse bytes as PEM",
        "the caBundle of the entry holds no certificates",
        "the leader writes it again within a minute; if it does not, see its log",
    ),
    (
        r"x509: certificate signed by unknown authority",
        "the certificate that answers was not signed by an authority in the caBundle",
        "see who answers there, and whether the caBundle of the entry is the one that gpugate publishes: gpugate doctor",
    ),
    (
        r"x509: certificate has expired or is not yet valid",
        "the certificate is not valid now",
        "compare the clocks of the node and of the API server; the leader makes a new certificate by itself: see its log",
    ),
    (
        r"x509: certificate is (not )?valid for|x509: cannot validate certificate for|legacy Common Name",
        "the certificate has not the name that the API server asks for",
        "the Service that the entry names must be gpugate's: see --service and --tls-san of `gpugate serve`",
    ),
    (r"x509: ", "the certificate is refused", "gpugate doctor looks at each certificate"),
    (
        r"tls: (bad certificate|certificate required|unknown certificate)",
        "the webhook wants a client certificate that the API server does not show",
        "give the API server one (--admission-control-config-file), or take --client-ca from `gpugate serve`",
    ),
    (
        r"does not look like a TLS handshake|gave HTTP response to HTTPS client",
        "what answers there speaks no TLS",
        "the Service must lead to the port for reviews, not to the one for health and metrics",
    ),
    (
        r'service "[^"]*" not found',
        "there is no such Service",
        "apply the chart again, or mend the entry's clientConfig",
    ),
    (
        r"no endpoints available|no service port|no endpoints",
        "no Pod behind the Service is ready",
        "kubectl get pods of the Service; what a Pod lacks it says at /readyz and in its log",
    ),
    (
        r"no such host|server misbehaving",
        "the name does not resolve",
        "mend the URL of the entry, or the DNS of the API server",
    ),
    (
        r"connection refused",
        "nobody listens there",
        "compare the ports of the Service and of the Pod, and see whether the process runs",
    ),
    (
        r"no route to host|network is unreachable",
        "there is no way from the API server to the Pod",
        "with a network that the API server is no part of, run the Pods with hostNetwork",
    ),
    (
        r"context deadline exceeded|i/o timeout|Client\.Timeout|TLS handshake timeout|request canceled",
        "no answer came in time",
        "a firewall or NetworkPolicy drops what the API server sends to the port, or the webhook is too slow: see its log",
    ),
    (
        r"No agent available|proxy error|error dialing backend|failed to dial",
        "the tunnel from the API server to the nodes is broken",
        "see the konnectivity agents, or what your provider has instead",
    ),
    (
        r"could not find the requested resource|not found|405|methodNotAllowed",
        "what answers there is not gpugate, or not at this path",
        "compare the path of the entry with /mutate and /validate, and the Service's selector with the Pod's labels",
    ),
    (r"too many requests", "the webhook has more work than it can do", "raise the number of replicas, or their CPU"),
    (r"EOF|connection reset|broken pipe", "the connection was closed without an answer", "see the log of the webhook"),
)
_UNKNOWN: Final = ("the API server could not ask", "gpugate doctor looks at every part")


def of_message(message: str) -> Trouble:
    """Explain why an API server could not call a webhook."""
    said = _BEFORE.sub("", message, count=1)
    what, remedy = next(((what, remedy) for sign, what, remedy in _SIGNS if re.search(sign, said)), _UNKNOWN)
    return Trouble(what, remedy, said)


PHASES: Final = ("mutate", "validate")


@dataclass(frozen=True, slots=True)
class Probed:
    """What became of a probe.

    Attributes:
        silent: the phases for which nobody was asked, or that did not answer.
        trouble: why, where the API server says so.
        incomplete: whether it could not be found out, because the probe itself was refused or got no answer.
    """

    silent: Sequence[str]
    trouble: Trouble | None = None
    incomplete: bool = False


def probe(connection: Connection, namespace: str, nonce: str) -> Probed:
    """Have the API server ask the webhook in a namespace once; nothing is stored."""
    try:
        warnings = connection.try_create(f"/api/v1/namespaces/{namespace}/configmaps", question(namespace, nonce))
    except ApiError as error:
        if any(f'failed calling webhook "{entry_name(phase)}"' in error.message for phase in PHASES):
            return Probed(PHASES, of_message(error.message))
        return Probed(PHASES, _refused(error, namespace), incomplete=True)
    except CallError as error:
        trouble = Trouble(str(error), "gpugate must reach the API server before it can ask what that reaches")
        return Probed(PHASES, trouble, incomplete=True)
    return Probed([phase for phase in PHASES if answer(phase, nonce) not in warnings])


def _refused(error: ApiError, namespace: str) -> Trouble:
    if error.code == 401:
        return Trouble("the API server does not take these credentials", "log in again", error.message)
    if error.code == 404:
        return Trouble(f"there is no namespace {namespace}", "name the webhook's own with --namespace", error.message)
    if error.code == 403 and "cannot create resource" in error.message:
        remedy = f"let this user create ConfigMaps in {namespace}; the probe stores none"
        return Trouble("these credentials may not ask", remedy, error.message)
    return Trouble("the API server refused the probe before the webhook was asked", "see what refuses it", str(error))


# The EndpointSlice controller writes it on each slice of a Service (`k8s.io/api` discovery/v1 well_known_labels.go, v0.36).
_SERVICE: Final = "kubernetes.io/service-name"


def backends(connection: Connection, names: Names) -> Iterator[Trouble]:
    """Say what is missing behind the Service; nothing where it is not there or may not be read."""
    reader = Reader(connection)
    inside = f"namespaces/{names.namespace}"
    what = f"Service {names.namespace}/{names.service}"
    service = reader.one(f"/api/v1/{inside}/services/{names.service}", what)
    if service is None or isinstance(service, Unread):
        return
    slices = reader.several(
        f"/apis/discovery.k8s.io/v1/{inside}/endpointslices", what, {"labelSelector": f"{_SERVICE}={names.service}"}
    )
    if isinstance(slices, Unread):
        return
    ready, known = ready_endpoints(slices)
    if not ready:
        remedy = f"kubectl -n {names.namespace} get pods; what a Pod lacks it says at /readyz and in its log"
        yield Trouble(f"{what} has {known} endpoints, none of them ready", remedy)


def ready_endpoints(slices: Iterable[Object]) -> tuple[int, int]:
    """Return how many endpoints are ready, and how many there are.

    No condition means ready (`k8s.io/api` discovery/v1 types.go, v0.36).
    """
    conditions = [each.get("conditions") or {} for found in slices for each in found.get("endpoints") or ()]
    return sum(each.get("ready") is not False for each in conditions), len(conditions)
