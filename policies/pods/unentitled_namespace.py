"""Pod with GPUs in a namespace that is not entitled to GPUs.

## Why is this bad?
The permission to create Pods in any namespace is enough to take GPUs, and Karpenter launches nodes for these Pods. Other teams wait
for the GPUs, and the cost is attributed to a namespace that was never meant to have any.

## Instead
This policy is off by default. Enable it if a namespace must have a label before its Pods can request GPUs:

```yaml
policies:
  pods/unentitled-namespace:
    mode: enforce
    params:
      label: gpugate.dev/gpus
      values: ["true"]
```

Then label the namespaces of the teams that use GPUs. This needs the permission to change namespaces:

```yaml
apiVersion: v1
kind: Namespace
metadata:
  name: research
  labels:
    gpugate.dev/gpus: "true"
```

Extended resources and DRA claims of accelerators count. `pods/hidden-gpu-access` denies Pods that use GPUs without a request. If the
namespace is not known, the policy is not evaluated.

## Sources
Kubernetes v1.36 "Schedule GPUs" (no permission is needed to request an extended resource), `resource/v1` (only `adminAccess` needs a
label of the namespace); deckhouse/deckhouse pull requests 22757 and 16917.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import NAMESPACE, POD
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.workload_class import namespace_doubt, namespace_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_FIRST: Final = "first template that requests GPUs in a namespace that is not entitled"


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which label entitles a namespace to GPUs.

    Attributes:
        label: the key of the label.
        values: the values that entitle; empty for any value.
    """

    label: Annotated[str, msgspec.Meta(min_length=1, max_length=317)] = "gpugate.dev/gpus"
    values: tuple[str, ...] = ("true",)


@validates(
    POD,
    params=Params,
    mode=Stance.OFF,
    needs=(*CLAIM_NEEDS, Need(NAMESPACE, ("metadata.labels",))),
    concerns=MAY_DEMAND,
)
def check(pod: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a Pod or template that requests accelerators in a namespace without the label."""
    demand = ctx.derived(gpu_demand)
    if not demand and not demand.doubt:
        return
    label, values = ctx.params.label, ctx.params.values
    value = namespace_labels(ctx).get(label)
    if value is not None and (not values or value in values):
        return
    doubt = namespace_doubt(ctx) or (None if demand else demand.doubt)
    if doubt:
        yield doubt
        return
    # One finding for all templates, at the first that requests GPUs.
    if ctx.wrapper and ctx.wrapper.memo.setdefault(_FIRST, pod.path) != pod.path:
        return
    namespace = ctx.request.namespace
    wanted = f"{label}={values[0]}" if values else label
    actual = "" if value is None else f" (its value is {value[:63]})"
    metadata = ctx.wrapper.root["metadata"] if ctx.wrapper else pod["metadata"]
    yield Violation(
        metadata["namespace"].path,
        f"requests {', '.join(demand.names)} in namespace {namespace}, which is missing label {wanted}{actual}",
        hint=f"label namespace {namespace} with {wanted}, or use a namespace that is entitled to GPUs",
    )
