"""Writes a Provisioner (`karpenter.sh/v1alpha5`) as a NodePool, and the provider inside it as an EC2NodeClass.

Sources: aws/karpenter-provider-aws v0.31 `pkg/apis/v1alpha5/provisioner.go` (SetDefaults: what a Provisioner requires
without saying so); Karpenter's "v1beta1 migration" guide, v0.32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.legacy_apis import PROVISIONER_MOVES
from gpugate.policies.nodepools.conversion.node_template import from_template
from gpugate.policies.nodepools.conversion.objects import Converted, left_over, moved, node_class_ref, ordered, put
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.node_pools import AWS, CAPACITY_TYPE

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field, Json

_IMPLICIT: Final = (
    ("kubernetes.io/os", "In", "linux"),
    ("kubernetes.io/arch", "In", "amd64"),
    (CAPACITY_TYPE, "In", "on-demand"),
)
_CATEGORY, _GENERATION = f"{AWS}/instance-category", f"{AWS}/instance-generation"
_CHOOSES_TYPES: Final = {"node.kubernetes.io/instance-type", f"{AWS}/instance-family", _CATEGORY, _GENERATION}
_HANDLED = ("consolidation", "kubeletConfiguration", "provider", "providerRef")
_LIFETIMES = ("ttlSecondsAfterEmpty", "ttlSecondsUntilExpired")


def from_provisioner(obj: Field) -> Converted:
    """Return the NodePool that does what the Provisioner did, with what it left unsaid written out."""
    pool = moved(obj, PROVISIONER_MOVES, "karpenter.sh/v1", "NodePool")
    spec = obj["spec"]
    open_points = list(left_over(spec, PROVISIONER_MOVES, *_HANDLED, *_LIFETIMES))
    put(pool, "spec.template.spec.requirements", [*_written(spec), *implicit_requirements(spec["requirements"])])
    open_points += _disruption(pool, spec)
    others = _node_class(pool, obj, open_points)
    body = pool["spec"]
    ordered(body, "template", "disruption", "limits", "weight")
    template = body["template"] if isinstance(body, dict) else None
    ordered(template, "metadata", "spec")
    if isinstance(template, dict):
        ordered(template["spec"], "nodeClassRef", "requirements", "taints", "startupTaints", "expireAfter")
    return Converted((pool, *others), tuple(open_points))


def _written(spec: Field) -> list[Json]:
    written = spec["requirements"].value
    return written if isinstance(written, list) else []


def implicit_requirements(written: Field) -> list[Json]:
    """Return what a Provisioner requires where its own requirements do not speak of it."""
    present = {scheduling.normalized(entry["key"].text) for entry in written}
    implicit = [one for one in _IMPLICIT if one[0] not in present]
    out: list[Json] = [{"key": key, "operator": operator, "values": [value]} for key, operator, value in implicit]
    if not present & _CHOOSES_TYPES:
        out.append({"key": _CATEGORY, "operator": "In", "values": ["c", "m", "r"]})
        out.append({"key": _GENERATION, "operator": "Gt", "values": ["2"]})
    return out


def _disruption(pool: dict[str, Json], spec: Field) -> list[str]:
    empty, expired = spec["ttlSecondsAfterEmpty"].integer, spec["ttlSecondsUntilExpired"].integer
    # A Provisioner's nodes never expired unless it said so; a NodePool's do after 720h.
    put(pool, "spec.template.spec.expireAfter", "Never" if expired is None else f"{expired}s")
    if spec["consolidation", "enabled"].value is True:
        put(pool, "spec.disruption", {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})
    elif empty is not None:
        put(pool, "spec.disruption", {"consolidationPolicy": "WhenEmpty", "consolidateAfter": f"{empty}s"})
    else:
        put(pool, "spec.disruption", {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"})
        return ["consolidateAfter: Never keeps empty nodes, as the Provisioner did; a time such as 5m removes them"]
    return []


def _node_class(pool: dict[str, Json], obj: Field, open_points: list[str]) -> tuple[dict[str, Json], ...]:
    spec = obj["spec"]
    kubelet = spec["kubeletConfiguration"]
    if spec["provider"]:
        node_class = from_template(obj, spec["provider"])
        open_points += node_class.open_points
        put(pool, "spec.template.spec.nodeClassRef", node_class_ref(obj["metadata"]))
        if kubelet:
            put(node_class.objects[0], "spec.kubelet", kubelet.value)
        return node_class.objects
    reference = node_class_ref(spec["providerRef"])
    if reference:
        put(pool, "spec.template.spec.nodeClassRef", reference)
    else:
        open_points.append("spec.template.spec.nodeClassRef needs the group, kind and name of a node class")
    if kubelet:
        open_points.append("kubeletConfiguration goes to spec.kubelet of the EC2NodeClass")
    return ()
