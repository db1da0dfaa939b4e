"""What an API server says when it does not reach a webhook, and what to do about it.

The words are those of Go's net, crypto/tls and crypto/x509 (1.26) and of `k8s.io/apiserver` pkg/util/webhook and
`k8s.io/client-go` rest (v0.36); the end-to-end tests provoke most of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


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
