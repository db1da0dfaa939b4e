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


# Kinds whose controller writes the resources of containers from other fields or from defaults of its own.
OWN_AMOUNTS: Final = frozenset(
    {
        *("DynamoGraphDeployment", "FlinkDeployment", "InferenceService", "LLMInferenceService"),
        *("ScheduledSparkApplication", "SparkApplication", "VLLMRuntime"),
    }
)


class RequestedAmount(Struct, frozen=True):
    """What a container asks of one accelerator resource; None where it says nothing."""

    container: Field
    name: str
    limit: Amount | None
    request: Amount | None

    @property
    def amount(self) -> Amount:
        """What counts: the request, which is the limit where there is none."""
        return (self.limit if self.request is None else self.request) or 0

    @property
    def field(self) -> Field:
        """Where it stands: the limit, or else the request."""
        return self.container["resources", "requests" if self.limit is None else "limits", self.name]


def requested_amounts(pod: Field, ctx: AnyContext) -> tuple[RequestedAmount, ...]:
    """Return what each container asks of each accelerator; what is no quantity is left out, and refused elsewhere."""
    return tuple(_requested_amounts(pod, ctx))


def _requested_amounts(pod: Field, ctx: AnyContext) -> Iterator[RequestedAmount]:
    for container in (*pod["spec", "initContainers"], *pod["spec", "containers"]):
        blocks = container["resources", "limits"], container["resources", "requests"]
        names = dict.fromkeys(name for block in blocks for name in block.mapping if "/" in name)
        for name in filter(ctx.platform.is_accelerator, names):
            limit, request = (_amount(block[name]) for block in blocks)
            if limit is not None or request is not None:
                yield RequestedAmount(container, name, limit, request)


def _amount(field: Field) -> Amount | None:
    try:
        return quantity.parse(field.value) if field else None
    except quantity.QuantityError:
        return None
