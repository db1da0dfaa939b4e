"""Convert objects of removed Karpenter APIs to the v1 API.

Sources: aws/karpenter-provider-aws v0.31 `pkg/apis/v1alpha1`, v1.0 `pkg/apis/v1beta1/ec2nodeclass.go` and v1.14.1
`pkg/apis/v1/ec2nodeclass.go` for node classes; v0.31 `pkg/apis/v1alpha5/provisioner.go` (SetDefaults: what a Provisioner
requires by default); `pkg/apis/v1beta1` and `pkg/apis/v1` at v1.0 for NodePools; Karpenter's "v1beta1 migration" guide,
v0.32, and "v1 migration" guide, v1.1.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import islice, product
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.legacy_apis import NODE_CLAIM_MOVES, NODE_CLASS_MOVES, NODE_POOL_MOVES, PROVISIONER_MOVES
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.node_pools import AWS, CAPACITY_TYPE
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gpugate.policies.data.legacy_apis import Move
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.objects import GroupVersionKind

# Annotations that only Karpenter, kubectl and Karpenter v1.0's conversion webhook read.
_BOOKKEEPING = ("kubectl.kubernetes.io/last-applied-configuration", "compatibility.karpenter.sh/", "karpenter.sh/")


class Converted(Struct, frozen=True):
    """The v1 objects, and the remaining manual changes, each as a phrase."""

    objects: tuple[dict[str, Json], ...]
    open_points: tuple[str, ...] = ()


def moved(obj: Field, moves: Iterable[Move], api_version: str, kind: str) -> dict[str, Json]:
    """Return an object of another type with the fields that only have a new path."""
    out: dict[str, Json] = {"apiVersion": api_version, "kind": kind, "metadata": metadata(obj), "spec": {}}
    for move in moves:
        field = obj[tuple(move.old.split("."))]
        if field:
            put(out, move.new, field.value)
    return out


def metadata(obj: Field) -> dict[str, Json]:
    """Return the metadata that the user wrote."""
    fields = obj["metadata"]
    result: dict[str, Json] = {key: fields[key].text for key in ("name", "generateName") if fields[key].text}
    if fields["labels"].labels:
        result["labels"] = dict(fields["labels"].labels)
    annotations = {k: v for k, v in fields["annotations"].labels.items() if not k.startswith(_BOOKKEEPING)}
    if annotations:
        result["annotations"] = dict(annotations)
    return result


def put(obj: dict[str, Json], path: str, value: Json) -> None:
    """Set a copy of a value at a path, and create the objects that lead to it."""
    *parents, last = path.split(".")
    for parent in parents:
        inner = obj.setdefault(parent, {})
        if not isinstance(inner, dict):
            return
        obj = inner
    obj[last] = deepcopy(value)


def ordered(block: Json, *keys: str) -> None:
    """Sort the members of an object; unknown members come last."""
    if isinstance(block, dict):
        for key in (*(k for k in keys if k in block), *(k for k in tuple(block) if k not in keys)):
            block[key] = block.pop(key)


def node_class_ref(reference: Field) -> dict[str, Json] | None:
    """Return the reference to a node class with group, kind and name; None without a name."""
    name = reference["name"].text
    if not name:
        return None
    group, slash, _ = reference["apiVersion"].text.rpartition("/")
    kind = reference["kind"].text.replace("AWSNodeTemplate", "EC2NodeClass")
    own_group = reference["group"].text
    return {"group": own_group or (group if slash else AWS), "kind": kind or "EC2NodeClass", "name": name}


def left_over(spec: Field, moves: Iterable[Move], *handled: str) -> Iterator[str]:
    """Return the names of the fields of a spec that no part of the conversion reads."""
    read = {move.old.split(".")[1] for move in moves}
    for key in spec.mapping:
        if key not in read and key not in handled:
            yield f"spec.{key} has no equivalent in v1 and was removed"


_SELECTORS: Final = {
    "subnetSelector": "subnetSelectorTerms",
    "securityGroupSelector": "securityGroupSelectorTerms",
    "amiSelector": "amiSelectorTerms",
}
_MAX_TERMS = 30
_IDS = ("aws::ids", "aws-ids")
_OWN_FIELDS = {"aws::name": "name", "aws::owners": "owner"}
# AL2 has no images for Kubernetes 1.33 and later, so AL2023 replaces it.
_ALIASES: Final = {
    "AL2": "al2023",
    "AL2023": "al2023",
    "Bottlerocket": "bottlerocket",
    "Windows2019": "windows2019",
    "Windows2022": "windows2022",
}


def from_template(obj: Field, spec: Field) -> Converted:
    """Return the EC2NodeClass for the spec of a node template, with the name of `obj`."""
    whole = Field({"metadata": obj["metadata"].value, "spec": spec.value})
    node_class = moved(whole, NODE_CLASS_MOVES, "karpenter.k8s.aws/v1", "EC2NodeClass")
    handled = (*_SELECTORS, "amiFamily", "apiVersion", "kind")
    open_points = list(left_over(spec, NODE_CLASS_MOVES, *handled))
    for old, new in _SELECTORS.items():
        terms = selector_terms(spec[old])
        if terms:
            put(node_class, f"spec.{new}", terms)
    open_points += _images(node_class, spec)
    body = node_class["spec"]
    written = body if isinstance(body, dict) else {}
    open_points += [f"spec.{new} is required" for new in _SELECTORS.values() if new not in written]
    if "role" not in written and "instanceProfile" not in written:
        open_points.append("spec.role or spec.instanceProfile is required")
    ordered(body, "role", "instanceProfile", "amiFamily", *reversed(_SELECTORS.values()))
    return Converted((node_class,), tuple(open_points))


def selector_terms(selector: Field) -> list[Json]:
    """Return the alternative terms for a map of tags and IDs.

    A value may list several, separated by commas. Every combination becomes a term, up to the 30 that v1 allows.
    """
    choices = {key: [v.strip() for v in value.split(",") if v.strip()] for key, value in selector.labels.items()}
    ids = [value for key in _IDS for value in choices.pop(key, ())]
    if ids:
        return [{"id": value} for value in ids[:_MAX_TERMS]]
    if not choices:
        return []
    terms: list[Json] = []
    for combination in islice(product(*choices.values()), _MAX_TERMS):
        term: dict[str, Json] = {}
        tags: dict[str, Json] = {}
        for key, value in zip(choices, combination, strict=True):
            if key in _OWN_FIELDS:
                term[_OWN_FIELDS[key]] = value
            else:
                tags[key] = value
        if tags:
            term["tags"] = tags
        terms.append(term)
    return terms


def _images(node_class: dict[str, Json], spec: Field) -> list[str]:
    family = spec["amiFamily"].text or "AL2"
    if spec["amiSelectorTerms"] or spec["amiSelector"]:
        if family == "Ubuntu":
            return ["v1 does not support spec.amiFamily Ubuntu: write the family that fits the userData of the image"]
        if not any(term["alias"] for term in spec["amiSelectorTerms"]) or spec["amiFamily"]:
            put(node_class, "spec.amiFamily", family)
        return []
    if family not in _ALIASES:
        return []
    put(node_class, "spec.amiSelectorTerms", [{"alias": f"{_ALIASES[family]}@latest"}])
    open_points = []
    if family == "AL2" and spec["userData"]:
        open_points.append("rewrite the userData, which is for AL2, for AL2023")
    if not family.startswith("Windows"):
        open_points.append(
            f"pin the image version ({_ALIASES[family]}@VERSION), because the alias selects the newest image, as before"
        )
    return open_points


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
    """Return the NodePool for a Provisioner, with the Provisioner's defaults as explicit values."""
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
    """Return the default requirements of a Provisioner for labels that its own requirements do not contain."""
    present = {scheduling.normalized(entry["key"].text) for entry in written}
    implicit = [requirement for requirement in _IMPLICIT if requirement[0] not in present]
    out: list[Json] = [{"key": key, "operator": operator, "values": [value]} for key, operator, value in implicit]
    if not present & _CHOOSES_TYPES:
        out.append({"key": _CATEGORY, "operator": "In", "values": ["c", "m", "r"]})
        out.append({"key": _GENERATION, "operator": "Gt", "values": ["2"]})
    return out


def _disruption(pool: dict[str, Json], spec: Field) -> list[str]:
    empty, expired = spec["ttlSecondsAfterEmpty"].integer, spec["ttlSecondsUntilExpired"].integer
    # By default, nodes of a Provisioner never expired, and those of a NodePool expire after 720h.
    put(pool, "spec.template.spec.expireAfter", "Never" if expired is None else f"{expired}s")
    if spec["consolidation", "enabled"].value is True:
        put(pool, "spec.disruption", {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})
    elif empty is not None:
        put(pool, "spec.disruption", {"consolidationPolicy": "WhenEmpty", "consolidateAfter": f"{empty}s"})
    else:
        put(pool, "spec.disruption", {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"})
        return [
            "consolidateAfter: Never keeps empty nodes, as the Provisioner did; write a duration such as 5m to remove them"
        ]
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
        open_points.append("write the group, kind and name of a node class in spec.template.spec.nodeClassRef")
    if kubelet:
        open_points.append("move kubeletConfiguration to spec.kubelet of the EC2NodeClass")
    return ()


_POLICIES = {"WhenUnderutilized": "WhenEmptyOrUnderutilized"}
_KUBELET = "move {} to spec.kubelet of the EC2NodeClass"
_NO_CLASS = "write the group, kind and name of a node class in {}.nodeClassRef"


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
    _v1beta1_disruption(pool, obj["spec", "disruption"])
    body = pool["spec"]
    ordered(body, "template", "disruption", "limits", "weight")
    inner = body["template"] if isinstance(body, dict) and "template" in body else None
    ordered(inner, "metadata", "spec")
    return Converted((pool,), tuple(open_points))


def _v1beta1_disruption(pool: dict[str, Json], old: Field) -> None:
    """Write the whole block if v1beta1 set a member that stays in it, because v1 requires consolidateAfter in it."""
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


def converted(obj: Field, gvk: GroupVersionKind) -> Converted | None:
    """Return the replacement of an object of this type; None if it cannot be computed.

    Provisioners before v1alpha5 and the kinds of Karpenter v0.1 had other fields, which have no counterpart.
    """
    convert = _CONVERSIONS.get((gvk.version, gvk.kind))
    return convert(obj) if convert else None


def as_received(obj: Field) -> Converted:
    """Return an object that the API server has already converted, without the fields that only the server writes."""
    header = {"apiVersion": obj["apiVersion"].value, "kind": obj["kind"].value, "metadata": metadata(obj)}
    return Converted(({**header, "spec": obj["spec"].value},))


def _node_template(obj: Field) -> Converted:
    return from_template(obj, obj["spec"])


_CONVERSIONS: Final[dict[tuple[str, str], Callable[[Field], Converted]]] = {
    ("v1alpha5", "Provisioner"): from_provisioner,
    ("v1alpha5", "Machine"): from_node_claim,
    ("v1alpha1", "AWSNodeTemplate"): _node_template,
    ("v1beta1", "NodePool"): from_node_pool,
    ("v1beta1", "NodeClaim"): from_node_claim,
    ("v1beta1", "EC2NodeClass"): _node_template,
}
