"""What can differ between a webhook configuration and what is generated: the reasons, which are labels of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpugate.webhook.generate.drift import Object


class Reason(StrEnum):
    """In what way a configuration is not as generated."""

    MISSING = "missing"
    """There is no configuration."""
    DISABLED = "disabled"
    """Somebody turned it off in an emergency."""
    NOT_SENT = "not-sent"
    """Requests that rules judge are not sent."""
    NOT_PROBED = "not-probed"
    """Nobody can see whether the API server reaches the webhook."""
    MATCH_CONDITIONS = "match-conditions"
    """A condition was added or changed: objects escape."""
    OBJECT_SELECTOR = "object-selector"
    """Objects escape by their labels."""
    NAMESPACE_SELECTOR = "namespace-selector"
    """Namespaces escape."""
    FAILURE_POLICY = "failure-policy"
    """Another one than was meant."""
    PATH = "path"
    """Requests of one phase are sent to another."""
    ADDRESS = "address"
    """Requests are sent to somebody else."""
    TOO_WIDE = "too-wide"
    """Requests are sent that a cluster needs to heal, or whatever there is."""
    NOT_JUDGED = "not-judged"
    """Requests are sent that no rule judges."""
    UNCONDITIONAL = "unconditional"
    """A condition is gone: objects are sent that interest no policy."""
    NOT_EXCLUDED = "not-excluded"
    """Requests are sent from namespaces that should be left alone."""
    SIDE_EFFECTS = "side-effects"
    """Dry runs are refused."""
    REVIEW_VERSIONS = "review-versions"
    """The API server may send what we do not read."""
    MATCH_POLICY = "match-policy"
    """Requests in other versions of a resource escape."""
    REINVOCATION = "reinvocation-policy"
    """Another webhook's changes are not looked at."""
    TIMEOUT = "timeout"
    """Requests may be held up for long."""
    BUNDLE_EMPTY = "ca-bundle-empty"
    """No authority is trusted."""
    BUNDLE_EXPIRED = "ca-bundle-expired"
    """No authority that is trusted is valid any more."""
    BUNDLE_INCOMPLETE = "ca-bundle-incomplete"
    """An authority of ours is not trusted."""
    BUNDLE_FOREIGN = "ca-bundle-foreign"
    """Somebody else's authority is trusted."""
    BUNDLES_DIFFER = "ca-bundles-differ"
    """Entries trust different authorities."""
    SEVERAL = "several-installations"
    """There is another installation."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference: of what sort, in which entry, what is found there, and what to do about it."""

    reason: Reason
    where: str
    found: str
    remedy: str


APPLY_AGAIN: Final = "apply again what is generated: `helm upgrade`, or `gpugate registration ... | kubectl apply -f -`"


def where(configuration: Object, entry: Object | None = None) -> str:
    """Name a configuration, or an entry of it."""
    name = f"{configuration['kind']} {configuration['metadata']['name']}"
    return f"{name}, webhook {entry['name']}" if entry else name
