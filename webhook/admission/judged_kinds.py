"""Which kinds are told apart where the set of names must be closed, as in the label of a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.pod_templates import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.gate import Observation

# A kind that no policy judges or looks up.
OTHER: Final = "other"
# What is said of a request that could not be read.
UNREAD: Final = "unread"


def judged_kinds(catalog: Iterable[Policy]) -> Mapping[tuple[str, str], str]:
    """Return group and kind -> name, for every kind that policies judge or look up, and every workload.

    Kinds of different groups that share a name share it here.
    """
    handlers = [handler for policy in catalog for handler in policy.handlers]
    kinds = {kind for handler in handlers for kind in (*handler.kinds, *(need.kind for need in handler.needs))}
    return {(kind.group, kind.name): kind.name for kind in kinds} | {key: key[1] for key in TEMPLATES}


def kind_of(observation: Observation, kinds: Mapping[tuple[str, str], str]) -> str:
    """Name the kind that a review is about, `OTHER` when it is none of those, `UNREAD` when it could not be read."""
    if observation.review is None:
        return UNREAD
    kind = observation.review.request.kind
    return kinds.get((kind.group, kind.kind), OTHER)
