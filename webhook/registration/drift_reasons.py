"""The reasons for differences between live and generated webhook configurations; they are values of a metric label."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


Object: TypeAlias = "Mapping[str, Any]"  # Any: the JSON edge


class Reason(StrEnum):
    """How a live configuration differs from the generated one."""

    MISSING = "missing"
    """The configuration does not exist."""
    DISABLED = "disabled"
    """The configuration was disabled with `gpugate webhook disable`."""
    NOT_SENT = "not-sent"
    """Requests that policies evaluate are not sent."""
    NOT_PROBED = "not-probed"
    """The entry for probes is missing."""
    MATCH_CONDITIONS = "match-conditions"
    """A match condition was added or changed, so objects are not evaluated."""
    OBJECT_SELECTOR = "object-selector"
    """Objects are not evaluated because of their labels."""
    NAMESPACE_SELECTOR = "namespace-selector"
    """Objects in some namespaces are not evaluated."""
    FAILURE_POLICY = "failure-policy"
    """The failure policy is not the expected one."""
    PATH = "path"
    """Requests are sent to the path of the other phase."""
    ADDRESS = "address"
    """Requests are sent to another server."""
    TOO_WIDE = "too-wide"
    """Requests are sent that a cluster needs to recover."""
    NOT_EVALUATED = "not-evaluated"
    """Requests are sent that no policy evaluates."""
    UNCONDITIONAL = "unconditional"
    """A match condition is missing, so objects are sent that no policy evaluates."""
    NOT_EXCLUDED = "not-excluded"
    """Requests are sent from namespaces that should be excluded."""
    SIDE_EFFECTS = "side-effects"
    """The API server rejects dry runs."""
    REVIEW_VERSIONS = "review-versions"
    """The API server may send an unsupported version of AdmissionReview."""
    MATCH_POLICY = "match-policy"
    """Requests in other versions of a resource are not evaluated."""
    REINVOCATION = "reinvocation-policy"
    """Changes of later webhooks are not mutated again."""
    TIMEOUT = "timeout"
    """Requests may wait too long."""
    BUNDLE_EMPTY = "ca-bundle-empty"
    """The `caBundle` contains no CA."""
    BUNDLE_EXPIRED = "ca-bundle-expired"
    """All CAs in the `caBundle` have expired."""
    BUNDLE_INCOMPLETE = "ca-bundle-incomplete"
    """The `caBundle` does not contain a CA of gpugate."""
    BUNDLE_FOREIGN = "ca-bundle-foreign"
    """The `caBundle` contains a CA that is not of gpugate."""
    BUNDLES_DIFFER = "ca-bundles-differ"
    """Entries trust different CAs."""
    SEVERAL = "several-installations"
    """The cluster has another installation of gpugate."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference: its reason, the configuration or entry, a message, and how to fix it."""

    reason: Reason
    where: str
    message: str
    remedy: str


APPLY_AGAIN: Final = (
    "apply the generated configuration again: `helm upgrade`, or `gpugate registration ... | kubectl apply -f -`"
)

REGISTER_OWN: Final = "set the chart's values to the output of `gpugate registration --chart-values --policy-path DIRECTORY`, then `helm upgrade`"


def where(configuration: Object, entry: Object | None = None) -> str:
    """Return the name of a configuration, or of one of its entries."""
    name = f"{configuration['kind']} {configuration['metadata']['name']}"
    return f"{name}, webhook {entry['name']}" if entry else name
