"""Amounts of accelerators as containers write them, limit and request side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.quantity import Amount


# Kinds whose controller sets the resources of containers from other fields or from its own defaults.
OWN_AMOUNTS: Final = frozenset(
    {
        *("DynamoGraphDeployment", "FlinkDeployment", "InferenceService", "LLMInferenceService"),
        *("ScheduledSparkApplication", "SparkApplication", "VLLMRuntime"),
    }
)


class RequestedAmount(Struct, frozen=True):
    """The amount of one accelerator resource that a container requests; None if it does not state it."""

    container: Field
    name: str
    limit: Amount | None
    request: Amount | None

    @property
    def amount(self) -> Amount:
        """The effective amount: the request, which defaults to the limit."""
        return (self.limit if self.request is None else self.request) or 0

    @property
    def field(self) -> Field:
        """The field of the amount: the limit, or else the request."""
        return self.container["resources", "requests" if self.limit is None else "limits", self.name]


def requested_amounts(pod: Field, ctx: AnyContext) -> tuple[RequestedAmount, ...]:
    """Return the amount of each accelerator that each container requests, without invalid quantities."""
    return tuple(_requested_amounts(pod, ctx))


def _requested_amounts(pod: Field, ctx: AnyContext) -> Iterator[RequestedAmount]:
    for container in (*pod["spec", "initContainers"], *pod["spec", "containers"]):
        blocks = container["resources", "limits"], container["resources", "requests"]
        names = dict.fromkeys(name for block in blocks for name in block.mapping if "/" in name)
        for name in filter(ctx.platform.is_accelerator, names):
            limit, request = (quantity.parse_or_none(block[name].value) for block in blocks)
            if limit is not None or request is not None:
                yield RequestedAmount(container, name, limit, request)
