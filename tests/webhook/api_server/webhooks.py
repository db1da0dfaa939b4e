"""A registered webhook: an entry of a (Mutating|Validating)WebhookConfiguration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from api_server import reviews
from api_server.responses import Response, verify

if TYPE_CHECKING:
    from api_server.attributes import Attributes
    from api_server.responses import HttpAnswer

_TIMEOUT_SECONDS = 10


class Transport(Protocol):
    """What carries a body to a webhook: `client.Client`, or a function of the test."""

    def post(self, body: bytes, timeout_seconds: float) -> HttpAnswer:
        """Send a body and return the answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Webhook:
    """Where a webhook is and how the API server treats it.

    Attributes:
        name: qualified, such as `mutate.gpugate.dev`.
        transport: carries bodies to it.
        reinvocation_policy: whether a mutating webhook is called again after others changed the object.
        version: of AdmissionReview, `v1` or `v1beta1`.
        ours: hold it to more than the API server does: see `patch_conduct`.
    """

    name: str
    transport: Transport
    reinvocation_policy: Literal["Never", "IfNeeded"] = "Never"
    version: str = "v1"
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a webhook, and its answer."""

    webhook: str
    response: Response


def call(webhook: Webhook, attributes: Attributes, uid: str, *, mutating: bool) -> Call:
    """Ask a webhook.

    Raises:
        CallError: no answer came, or the API server would not use it.
    """
    version = f"admission.k8s.io/{webhook.version}"
    answer = webhook.transport.post(reviews.body(attributes, uid, version), _TIMEOUT_SECONDS)
    return Call(webhook.name, verify(answer, uid, version, mutating=mutating))
