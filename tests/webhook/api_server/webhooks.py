"""A webhook as it is registered: one entry of a (Mutating|Validating)WebhookConfiguration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from api_server import reviews
from api_server.errors import CallError
from api_server.responses import Response, verify

if TYPE_CHECKING:
    from api_server.attributes import Attributes
    from api_server.responses import HttpAnswer


class Transport(Protocol):
    """What carries a body to a webhook: `client.Client`, or a function of the test."""

    def post(self, body: bytes, timeout_seconds: float) -> HttpAnswer:
        """Send a body and return the answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Webhook:
    """Where a webhook is and how the API server treats it; the defaults are those of admissionregistration/v1.

    Attributes:
        name: qualified, such as `mutate.gpugate.dev`.
        transport: carries bodies to it.
        failure_policy: what becomes of the request when a call fails.
        reinvocation_policy: whether a mutating webhook is called again after others changed the object.
        timeout_seconds: 1 to 30.
        versions: its `admissionReviewVersions`.
        side_effects: anything but None and NoneOnDryRun refuses dry runs.
        ours: hold it to more than the API server does: see `patch_conduct`.
    """

    name: str
    transport: Transport
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    reinvocation_policy: Literal["Never", "IfNeeded"] = "Never"
    timeout_seconds: float = 10
    versions: tuple[str, ...] = ("v1",)
    side_effects: Literal["None", "NoneOnDryRun", "Some", "Unknown"] = "None"
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a webhook: the answer that was used, or why it was not."""

    webhook: str
    uid: str
    round: int
    response: Response | None = None
    error: CallError | None = None


def call(webhook: Webhook, attributes: Attributes, uid: str, round_: int, *, mutating: bool) -> Call:
    """Ask a webhook; a failed call is a value, because failurePolicy decides what it means."""
    try:
        version = reviews.api_version(webhook.versions)
        answer = webhook.transport.post(reviews.body(attributes, uid, version), webhook.timeout_seconds)
        return Call(webhook.name, uid, round_, verify(answer, uid, version, mutating=mutating))
    except CallError as error:
        return Call(webhook.name, uid, round_, error=error)
