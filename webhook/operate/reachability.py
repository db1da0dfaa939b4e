"""Diagnose the path from the API server to the webhook: Service, endpoints, Pods and failed calls.

Failures are recognised by error messages of Go's net, crypto/tls and crypto/x509 (1.26), `k8s.io/apiserver`
pkg/util/webhook and `k8s.io/client-go` rest (v0.36). The end-to-end tests cause most of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.operate.reading import Reader
from gpugate.webhook.registration.probe import answer, entry_name, question

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names, Object


@dataclass(frozen=True, slots=True)
class Trouble:
    """A reason why the API server does not reach the webhook.

    Attributes:
        problem: the problem.
        remedy: what to check or to do.
        message: the message of the API server; empty if there is none.
    """

    problem: str
    remedy: str
    message: str = ""


_PREFIX: Final = re.compile(r'^.*?failed calling webhook "[^"]*": (failed to call webhook: )?', re.DOTALL)

# Host, port and path of the webhook, which must not choose the explanation: a port can be 40561.
_CALLED: Final = re.compile(r'\bPost "[^"]*": ')

# The first pattern that matches the message, without the URL, counts.
_FAILURES: Final[tuple[tuple[str, str, str], ...]] = (
    (
        r"unable to load root certificates|unable to parse bytes as PEM",
        "the caBundle of the entry contains no certificates",
        "the leader repairs it within a minute; if it does not, see its log",
    ),
    (
        r"x509: certificate signed by unknown authority",
        "no CA in the caBundle signed the certificate of the webhook",
        "check which server answers, and whether the caBundle is the one that gpugate publishes: gpugate doctor",
    ),
    (
        r"x509: certificate has expired or is not yet valid",
        "the certificate is not valid now",
        "compare the clocks of the node and of the API server; the leader renews the certificate automatically: see its log",
    ),
    (
        r"x509: certificate is (not )?valid for|x509: cannot validate certificate for|legacy Common Name",
        "the certificate is not valid for the name that the API server verifies",
        "the entry must name the Service of gpugate: see --service and --tls-san of `gpugate serve`",
    ),
    (r"x509: ", "the API server refuses the certificate", "run gpugate doctor, which checks each certificate"),
    (
        r"tls: (bad certificate|certificate required|unknown certificate)",
        "the webhook requires a client certificate, and the API server has none that it accepts",
        "configure one for the API server (--admission-control-config-file), or remove --client-ca from `gpugate serve`",
    ),
    (
        r"does not look like a TLS handshake|gave HTTP response to HTTPS client",
        "the server at this address does not use TLS",
        "point the Service to the port for reviews, not to the port for health and metrics",
    ),
    (
        r'service "[^"]*" not found',
        "the Service does not exist",
        "apply the chart again, or correct the clientConfig of the entry",
    ),
    (
        r"no endpoints available|no service port|no endpoints",
        "no Pod of the Service is ready",
        "run kubectl get pods; each Pod reports what it waits for at /readyz and in its log",
    ),
    (
        r"no such host|server misbehaving",
        "the host name does not resolve",
        "correct the URL of the entry, or the DNS of the API server",
    ),
    (
        r"connection refused",
        "no process listens at this address",
        "compare the ports of the Service and of the Pod, and check that the process runs",
    ),
    (
        r"no route to host|network is unreachable",
        "the API server has no network route to the Pod",
        "if the API server is not part of the Pod network, run the Pods with hostNetwork",
    ),
    (
        r"context deadline exceeded|i/o timeout|Client\.Timeout|TLS handshake timeout|request canceled",
        "the webhook did not answer in time",
        "check whether a firewall or NetworkPolicy drops packets to the port, and whether the webhook is slow: see its log",
    ),
    (
        r"No agent available|proxy error|error dialing backend|failed to dial",
        "the tunnel from the API server to the nodes is broken",
        "check the konnectivity agents, or the equivalent of your provider",
    ),
    (
        r"could not find the requested resource|not found|does not allow this method",
        "the server at this address is not gpugate, or the path is wrong",
        "compare the path of the entry with /mutate and /validate, and the Service's selector with the Pod's labels",
    ),
    (r"too many requests", "the webhook is overloaded", "increase the number of replicas, or their CPU"),
    (r"EOF|connection reset|broken pipe", "the connection was closed without a response", "see the log of the webhook"),
)
_UNKNOWN: Final = ("the API server could not call the webhook", "run gpugate doctor, which checks each part")


def explain_failure(message: str) -> Trouble:
    """Explain why an API server could not call a webhook."""
    reason = _PREFIX.sub("", message, count=1)
    failure = _CALLED.sub("", reason)
    problem, remedy = next(
        ((problem, remedy) for sign, problem, remedy in _FAILURES if re.search(sign, failure)), _UNKNOWN
    )
    return Trouble(problem, remedy, reason)


PHASES: Final = ("mutate", "validate")


@dataclass(frozen=True, slots=True)
class Probed:
    """The result of a probe.

    Attributes:
        silent: the phases without a response of the webhook.
        trouble: the reason, if the API server reports one.
        incomplete: whether the result is unknown, because the probe itself was refused or not answered.
    """

    silent: Sequence[str]
    trouble: Trouble | None = None
    incomplete: bool = False


def probe(connection: Connection, namespace: str, nonce: str) -> Probed:
    """Send a probe through the API server to the webhook once; nothing is stored."""
    try:
        warnings = connection.try_create(f"/api/v1/namespaces/{namespace}/configmaps", question(namespace, nonce))
    except ApiError as error:
        if any(f'failed calling webhook "{entry_name(phase)}"' in error.message for phase in PHASES):
            return Probed(PHASES, explain_failure(error.message))
        return Probed(PHASES, _explain_refusal(error, namespace), incomplete=True)
    except CallError as error:
        trouble = Trouble(str(error), "check the connection to the API server; the probe is sent through it")
        return Probed(PHASES, trouble, incomplete=True)
    return Probed([phase for phase in PHASES if answer(phase, nonce) not in warnings])


def _explain_refusal(error: ApiError, namespace: str) -> Trouble:
    if error.code == 401:
        return Trouble("the API server does not accept these credentials", "log in again", error.message)
    if error.code == 404:
        return Trouble(
            f"namespace {namespace} does not exist", "set --namespace to the namespace of the webhook", error.message
        )
    if error.code == 403 and "cannot create resource" in error.message:
        remedy = f"allow this user to create ConfigMaps in {namespace}; the probe stores none"
        return Trouble("these credentials do not allow a probe", remedy, error.message)
    return Trouble("the API server refused the probe before it called the webhook", "check what refuses it", str(error))


# The EndpointSlice controller sets this label on each slice of a Service (`k8s.io/api` discovery/v1
# well_known_labels.go, v0.36).
_SERVICE: Final = "kubernetes.io/service-name"


def backends(connection: Connection, names: Names) -> Iterator[Trouble]:
    """Yield a Service without ready endpoints; nothing if the Service does not exist or cannot be read."""
    reader = Reader(connection)
    namespace = f"namespaces/{names.namespace}"
    subject = f"Service {names.namespace}/{names.service}"
    service = reader.read_object(f"/api/v1/{namespace}/services/{names.service}", subject)
    if service is None or isinstance(service, Unread):
        return
    slices = reader.read_objects(
        f"/apis/discovery.k8s.io/v1/{namespace}/endpointslices",
        subject,
        {"labelSelector": f"{_SERVICE}={names.service}"},
    )
    if isinstance(slices, Unread):
        return
    ready, total = ready_endpoints(slices)
    if not ready:
        remedy = f"kubectl -n {names.namespace} get pods; each Pod reports what it waits for at /readyz and in its log"
        yield Trouble(f"{subject} has {total} endpoints, none of them ready", remedy)


def ready_endpoints(slices: Iterable[Object]) -> tuple[int, int]:
    """Return the number of ready endpoints and of all endpoints.

    An endpoint without the condition is ready (`k8s.io/api` discovery/v1 types.go, v0.36).
    """
    conditions = [
        condition.get("conditions") or {}
        for endpoint_slice in slices
        for condition in endpoint_slice.get("endpoints") or ()
    ]
    return sum(condition.get("ready") is not False for condition in conditions), len(conditions)
