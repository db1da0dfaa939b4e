"""Writes NodePools and NodeClaims of `karpenter.sh/v1beta1`, and Machines, as v1.

Source: Karpenter's "v1 migration" guide, v1.1; `pkg/apis/v1beta1` and `pkg/apis/v1` at v1.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.data.legacy_apis import NODE_CLAIM_MOVES, NODE_POOL_MOVES
from gpugate.policies.nodepools.conversion.objects import Converted, left_over, moved, node_class_ref, ordered, put

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field, Json

_POLICIES = {"WhenUnderutilized": "WhenEmptyOrUnderutilized"}
_KUBELET = "{} goes to spec.kubelet of the EC2NodeClass"
_NO_CLASS = "{}.nodeClassRef needs the group, kind and name of a node class"


def from_node_pool(obj: Field) -> Converted:
    """Return the v1 NodePool for one of v1beta1."""
    pool = moved(obj, NODE_POOL_MOVES, "karpenter.sh/v1", "NodePool")
    template = obj["spec", "template", "spec"]
    open_points = list(left_over(obj["spec"], NODE_POOL_MOVES))
    reference = node_class_ref(template["nodeClassRef"])
    if reference:
        put(pool, "spec.template.spec.nodeClassRef", reference)
    else:
        open_points.append(_NO_CLASS.format("spec.template.spec"))
    if template["kubelet"]:
        open_points.append(_KUBELET.format("spec.template.spec.kubelet"))
    _disruption(pool, obj["spec", "disruption"])
    body = pool["spec"]
    ordered(body, "template", "disruption", "limits", "weight")
    inner = body["template"] if isinstance(body, dict) and "template" in body else None
    ordered(inner, "metadata", "spec")
    return Converted((pool,), tuple(open_points))


def _disruption(pool: dict[str, Json], old: Field) -> None:
    """Write the block in full where v1beta1 said anything that stays in it: v1 requires consolidateAfter in it."""
    policy, after = old["consolidationPolicy"].text, old["consolidateAfter"].text
    if policy or after or old["budgets"]:
        put(pool, "spec.disruption.consolidationPolicy", _POLICIES.get(policy, policy) or "WhenEmptyOrUnderutilized")
        put(pool, "spec.disruption.consolidateAfter", after or "0s")


def from_node_claim(obj: Field) -> Converted:
    """Return the v1 NodeClaim for one of v1beta1, or for a Machine."""
    claim = moved(obj, NODE_CLAIM_MOVES, "karpenter.sh/v1", "NodeClaim")
    spec = obj["spec"]
    open_points = list(left_over(spec, NODE_CLAIM_MOVES, "nodeClassRef", "machineTemplateRef", "kubelet"))
    reference = node_class_ref(spec["nodeClassRef"] or spec["machineTemplateRef"])
    if reference:
        put(claim, "spec.nodeClassRef", reference)
    else:
        open_points.append(_NO_CLASS.format("spec"))
    if spec["kubelet"]:
        open_points.append(_KUBELET.format("spec.kubelet"))
    ordered(claim["spec"], "nodeClassRef", "requirements")
    return Converted((claim,), tuple(open_points))
