"""What a Pod requires of a node: labels, tolerations and amounts, as the scheduler counts them.

Source: Kubernetes v0.36 `k8s.io/component-helpers/resource/helpers.go` (PodRequests).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.scheduling import alternatives, heaviest_preference, tolerated
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Taint
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount
    from gpugate.policies.sdk.scheduling import Requirements

# Resources that a Pod can request for all of its containers together, in addition to huge pages.
COUNTED: Final = ("cpu", "memory")


class Demand(Struct, frozen=True):
    """What a Pod requires of a node.

    Attributes:
        pod: the Pod or Pod template.
        alternatives: its requirements for labels, one of which must hold.
        requests: resource -> amount, as the scheduler counts it.
        whole: the same in whole units: CPU in millicores.
        claims: whether it uses ResourceClaims.
        volumes: the requirements of its volumes for labels, one of which must hold; empty if they have none.
        preferred: its preference for labels with the greatest weight; empty if it has a single requirement, so that the
            preference does not matter.
        tolerations: a cache: whether it tolerates a taint.
    """

    pod: Field
    alternatives: tuple[Requirements, ...]
    requests: dict[str, Amount]
    whole: dict[str, int]
    claims: bool
    volumes: tuple[Requirements, ...] = ()
    preferred: Requirements = msgspec.field(default_factory=dict)
    tolerations: dict[tuple[Taint, str], bool] = msgspec.field(default_factory=dict)

    def tolerates(self, taint: tuple[Taint, str]) -> bool:
        """Tell whether the Pod tolerates a taint with its effect."""
        known = self.tolerations.get(taint)
        if known is None:
            known = self.tolerations[taint] = tolerated(self.pod, *taint)
        return known


def demand(pod: Field, ctx: AnyContext) -> Demand:
    """Return what a Pod or Pod template requires of a node."""
    requests, required = requested(pod), ctx.derived(alternatives)
    preferred = heaviest_preference(pod) if len(required) > 1 else {}
    return Demand(pod, required, requests, in_whole_units(requests), has_claims(pod), preferred=preferred)


def has_claims(pod: Field) -> bool:
    """Tell whether a Pod uses ResourceClaims."""
    spec = pod["spec"]
    containers = (*spec["containers"], *spec["initContainers"])
    return any(spec["resourceClaims"]) or any(any(c["resources", "claims"]) for c in containers)


def requested(pod: Field) -> dict[str, Amount]:
    """Return the amounts that the scheduler counts for a Pod, without invalid ones.

    These are the sum of containers and sidecars, or the largest init container with the sidecars before it, whichever
    is more. The requests of the whole Pod (`spec.resources`) replace them, and its overhead is added.
    """
    spec = pod["spec"]
    total: dict[str, Amount] = {}
    peak: dict[str, Amount] = {}
    for step in spec["initContainers"]:
        own = _own_requests(step["resources"])
        for name, amount in own.items():
            peak[name] = max(peak.get(name, 0), total.get(name, 0) + amount)
        if step["restartPolicy"].text == "Always":
            _add(total, own)
    for container in spec["containers"]:
        _add(total, _own_requests(container["resources"]))
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    if spec["resources"]:
        stated = _own_requests(spec["resources"])
        total |= {name: amount for name, amount in stated.items() if name in COUNTED or name.startswith("hugepages-")}
    if spec["overhead"]:
        _add(total, dict(read_amounts(spec["overhead"])))
    return {name: amount for name, amount in total.items() if amount > 0}


def _own_requests(resources: Field) -> dict[str, Amount]:
    return dict(read_amounts(resources["limits"])) | dict(read_amounts(resources["requests"]))


def read_amounts(block: Field) -> Iterator[tuple[str, Amount]]:
    """Yield the resources of a block and their amounts, without invalid ones."""
    for name, field in block.items():
        amount = quantity.parse_or_none(field.value)
        if amount is not None:
            yield name, amount


def _add(total: dict[str, Amount], more: Mapping[str, Amount]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def in_whole_units(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """Return amounts in whole units: CPU in millicores, the smallest unit of Kubernetes, and others unchanged."""
    return {name: math.ceil(amount * 1000 if name == "cpu" else amount) for name, amount in amounts.items()}
