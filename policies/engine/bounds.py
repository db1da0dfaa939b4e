"""Find lists and maps that are too large to evaluate, before any policy reads them.

Policies are linear in the object, but the API server accepts 3 MiB (`k8s.io/apiserver` pkg/server/config.go
MaxRequestBodyBytes, v1.36), and every review of a worker waits for the previous one. The data that policies read is
therefore bounded. A bound counts all lists at one path together: the environment variables of all containers, the
values of all requirements. Texts that policies parse are bounded too, in characters. An object that exceeds a bound is
not evaluated.

The bounds are several times what any real object has, and at least twice what its API allows. A NodePool has at most
100 requirements, taints and labels, and 50 budgets; an EC2NodeClass 30 selector terms and 50 block devices (CRDs of
Karpenter v1.14.1); a ResourceClaim 32 requests, constraints, configurations and selectors, and 8 alternatives
(`k8s.io/api` resource/v1 types.go, v0.36). Pods have no such limits. A node runs 110 Pods by default (kubelet `maxPods`,
v1.36), and etcd refuses objects above 1.5 MiB (`--max-request-bytes`, v3.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import field

from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.pod_templates import TEMPLATES, nested
from gpugate.policies.sdk.structs import MutableStruct, Struct
from gpugate.policies.sdk.template_views import shared

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import GroupVersionKind, Request, Subject
    from gpugate.policies.sdk.template_views import Shared

MOST_TEMPLATES: Final = 200
_TEXTS: Final = (".expression", ".query")
# An object that exceeds a bound by this factor runs on no cluster.
_EXTREME: Final = 20

_METADATA: Final = {"annotations": 2_000, "finalizers": 500, "labels": 1_000, "ownerReferences": 500}
_EXPRESSIONS: Final = {"matchExpressions": 2_000, "matchExpressions.*.values": 10_000, "matchFields": 2_000}
_CONTAINER: Final = {
    "args": 10_000,
    "command": 10_000,
    "env": 5_000,
    "envFrom": 5_000,
    "ports": 5_000,
    "resources.claims": 1_000,
    "resources.limits": 500,
    "resources.requests": 500,
    "volumeDevices": 5_000,
    "volumeMounts": 5_000,
}


def _below(path: str, bounds: Mapping[str, int]) -> dict[str, int]:
    return {f"{path}.{name}": most for name, most in bounds.items()}


_NODE_AFFINITY: Final = "spec.affinity.nodeAffinity"
_REQUIRED_TERMS: Final = f"{_NODE_AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
_PREFERRED_TERMS: Final = f"{_NODE_AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution"
_POD: Final = {
    **_below("metadata", _METADATA),
    "spec.containers": 250,
    "spec.ephemeralContainers": 250,
    "spec.initContainers": 250,
    **_below("spec.containers.*", _CONTAINER),
    **_below("spec.ephemeralContainers.*", _CONTAINER),
    **_below("spec.initContainers.*", _CONTAINER),
    "spec.nodeSelector": 200,
    "spec.resourceClaims": 500,
    "spec.schedulingGates": 500,
    "spec.tolerations": 500,
    "spec.topologySpreadConstraints": 500,
    "spec.volumes": 1_000,
    _REQUIRED_TERMS: 200,
    **_below(f"{_REQUIRED_TERMS}.*", _EXPRESSIONS),
    _PREFERRED_TERMS: 200,
    **_below(f"{_PREFERRED_TERMS}.*.preference", _EXPRESSIONS),
}
_NODE: Final = {
    **_below("metadata", _METADATA),
    "spec.requirements": 1_000,
    "spec.requirements.*.values": 2_000,
    "spec.startupTaints": 1_000,
    "spec.taints": 1_000,
}
_LEGACY_NODE_CLASS: Final = {
    "amiSelector": 1_000,
    "blockDeviceMappings": 500,
    "securityGroupSelector": 1_000,
    "subnetSelector": 1_000,
    "tags": 1_000,
}
_DEVICES: Final = {
    "config": 500,
    "config.*.requests": 2_000,
    "constraints": 500,
    "constraints.*.requests": 2_000,
    "requests": 200,
    "requests.*.exactly.selectors": 1_000,
    "requests.*.firstAvailable": 1_000,
    "requests.*.firstAvailable.*.selectors": 1_000,
    "requests.*.selectors": 1_000,
    # Characters: the API server accepts 10 KiB in each expression.
    "requests.*.exactly.selectors.*.cel.expression": 50_000,
    "requests.*.firstAvailable.*.selectors.*.cel.expression": 50_000,
    "requests.*.selectors.*.cel.expression": 50_000,
}
_SCALER: Final = {
    **_below("metadata", _METADATA),
    "spec.triggers": 500,
    "spec.triggers.*.metadata": 5_000,
    # Characters.
    "spec.triggers.*.metadata.query": 50_000,
}
_BOUNDS: Final[dict[tuple[str, str], dict[str, int]]] = {
    ("", "Pod"): _POD,
    ("", "ResourceQuota"): {
        **_below("metadata", _METADATA),
        "spec.hard": 1_000,
    },
    ("autoscaling", "HorizontalPodAutoscaler"): {**_below("metadata", _METADATA), "spec.metrics": 500},
    ("karpenter.sh", "NodePool"): {
        **_below("metadata", _METADATA),
        "spec.disruption.budgets": 500,
        "spec.disruption.budgets.*.reasons": 2_000,
        "spec.limits": 1_000,
        **_below("spec.template", _NODE),
    },
    ("karpenter.sh", "NodeClaim"): _NODE,
    ("karpenter.sh", "NodeOverlay"): {
        **_below("metadata", _METADATA),
        "spec.capacity": 1_000,
        "spec.requirements": 1_000,
        "spec.requirements.*.values": 2_000,
    },
    ("karpenter.sh", "Machine"): _NODE,
    ("karpenter.sh", "Provisioner"): {
        **_NODE,
        "spec.labels": 1_000,
        "spec.limits.resources": 1_000,
        **_below("spec.provider", _LEGACY_NODE_CLASS),
    },
    ("karpenter.k8s.aws", "AWSNodeTemplate"): {
        **_below("metadata", _METADATA),
        **_below("spec", _LEGACY_NODE_CLASS),
    },
    ("karpenter.k8s.aws", "EC2NodeClass"): {
        **_below("metadata", _METADATA),
        **_below("spec", _LEGACY_NODE_CLASS),
        "spec.amiSelectorTerms": 500,
        "spec.amiSelectorTerms.*.tags": 1_000,
        "spec.capacityReservationSelectorTerms": 500,
        "spec.securityGroupSelectorTerms": 500,
        "spec.securityGroupSelectorTerms.*.tags": 1_000,
        "spec.subnetSelectorTerms": 500,
        "spec.subnetSelectorTerms.*.tags": 1_000,
    },
    ("keda.sh", "ScaledJob"): _SCALER,
    ("keda.sh", "ScaledObject"): _SCALER,
    ("policy", "PodDisruptionBudget"): {
        **_below("metadata", _METADATA),
        "spec.selector.matchExpressions": 1_000,
        "spec.selector.matchExpressions.*.values": 10_000,
        "spec.selector.matchLabels": 1_000,
    },
    ("resource.k8s.io", "ResourceClaim"): {
        **_below("metadata", _METADATA),
        **_below("spec.devices", _DEVICES),
    },
    ("resource.k8s.io", "ResourceClaimTemplate"): {
        **_below("metadata", _METADATA),
        **_below("spec.spec.devices", _DEVICES),
    },
}


class _Part(MutableStruct, eq=False):
    """A path in objects of one kind: the bound for all lists at it, if any, and the paths below it."""

    path: str
    most: int | None = None
    members: dict[str, _Part] = field(default_factory=dict)
    elements: _Part | None = None


class Excess(Struct, frozen=True):
    """A path with more entries than are evaluated.

    Attributes:
        violation: the path, the number of entries, and the bound.
        grown: whether the update added entries; true without an old object.
        is_extreme: whether it exceeds the bound so far that not even the concerns of policies are evaluated.
    """

    violation: Violation
    grown: bool = True
    is_extreme: bool = False


def _tree(bounds: Mapping[str, int]) -> _Part:
    root = _Part("")
    for dotted, most in bounds.items():
        part = root
        for name in dotted.split("."):
            path = f"{part.path}[*]" if name == "*" else f"{part.path}.{name}".removeprefix(".")
            if name == "*":
                part.elements = part.elements or _Part(path)
                part = part.elements
            else:
                part = part.members.setdefault(name, _Part(path))
        part.most = most
    return root


_TREES: Final = {kind: _tree(bounds) for kind, bounds in _BOUNDS.items()}
_OTHER_TREE: Final = _tree(_below("metadata", _METADATA))


def bounded() -> Mapping[tuple[str, str], Mapping[str, int]]:
    """Return the bounds: (group, kind) -> path -> the maximum of all lists, maps or texts at the path together."""
    return _BOUNDS


def too_many_templates(request: Request) -> tuple[Excess, ...]:
    """Return the excess of a workload with too many Pod templates, or whose templates copy too much from it.

    Called before the subjects of the templates are created, which costs the time and memory of the copies.
    """
    kind = request.kind
    paths = (*TEMPLATES.get((kind.group, kind.kind), ()), *request.added_templates)
    if not paths:
        return ()
    excesses = []
    for dotted in paths:
        if "*" in dotted:
            path = dotted[: dotted.index("*")]
            size = _members(request.object, dotted)
            if size > MOST_TEMPLATES:
                violation = _violation(path, ".".join(path), size, MOST_TEMPLATES)
                excesses.append(Excess(violation, size > _members(request.old_object, dotted), is_extreme=True))
    return tuple(excesses or [*_too_many_nested(request)] or _too_much_shared(request))


def _too_much_shared(request: Request) -> Iterator[Excess]:
    """Yield the lists that the templates of a workload copy from it, if the copies together exceed a bound by far."""
    before = {copied.field.path: copied.size for copied in _shared(request.kind, request.old_object)}
    for copied in _shared(request.kind, request.object):
        most = _POD[copied.target]
        if copied.size > _EXTREME * most:
            path = copied.field.path
            grown = copied.size > before.get(path, 0)
            yield Excess(_violation(path, copied.target, copied.size, most), grown, is_extreme=True)


def _shared(kind: GroupVersionKind, obj: dict[str, Json] | None) -> Iterator[Shared]:
    root = Field(obj)
    yield from shared(kind.group, kind.kind, root)
    for inner in nested(kind.group, kind.kind, root):
        yield from shared(inner.api_version.rpartition("/")[0], inner.kind, inner.root)


def _too_many_nested(request: Request) -> Iterator[Excess]:
    """Yield the path of the objects inside an object that have too many templates together."""
    total = 0
    for inner in nested(request.kind.group, request.kind.kind, Field(request.object)):
        group = inner.api_version.rpartition("/")[0]
        for dotted in TEMPLATES.get((group, inner.kind), ()):
            total += _members(inner.root.value, dotted)
            if total > MOST_TEMPLATES:
                path = (*inner.root.path, *dotted[: dotted.index("*")])
                yield Excess(_violation(path, render(path), total, MOST_TEMPLATES), is_extreme=True)
                return


def too_large(subjects: Sequence[Subject], old_subjects: Sequence[Subject]) -> tuple[Excess, ...]:
    """Return each path with more entries in all subjects of a request than are evaluated."""
    sizes = _sizes(subjects)
    if not any(size > (part.most or 0) for part, (size, _) in sizes.items()):
        return ()
    before = _sizes(old_subjects)
    excesses = []
    for part, (size, first) in sizes.items():
        most = part.most or 0
        if size > most:
            path = first.field[tuple(part.path.partition("[*]")[0].split("."))].path
            grown = part not in before or size > before[part][0]
            unit = "characters" if part.path.endswith(_TEXTS) else "entries"
            excesses.append(Excess(_violation(path, part.path, size, most, unit), grown, size > _EXTREME * most))
    return tuple(excesses)


def _violation(path: Path, lists: str, size: int, most: int, unit: str = "entries") -> Violation:
    message = f"too large to evaluate: {lists} has {size} {unit} (limit: {most})"
    return Violation(path, message, hint="remove entries, or split the object")


def _members(value: object, path: Path) -> int:
    """Return the largest number of values at a `*` of a path. Above the maximum, values below it are not counted."""
    values, most = [value], 0
    for name in path:
        if name != "*":
            values = [item[name] for item in values if isinstance(item, dict) and name in item]
            continue
        lists = [item for item in values if isinstance(item, list | dict)]
        most = max(most, sum(map(len, lists)))
        if most > MOST_TEMPLATES:
            return most
        values = [member for item in lists for member in (item.values() if isinstance(item, dict) else item)]
    return most


def _sizes(subjects: Sequence[Subject]) -> dict[_Part, tuple[int, Subject]]:
    """Return the number of entries at each path, and the first subject with entries there."""
    sizes: dict[_Part, tuple[int, Subject]] = {}
    for subject in subjects:
        tree = _TREES.get((subject.kind.group, subject.kind.kind), _OTHER_TREE)
        if isinstance(subject.field.value, dict):
            _count(tree, subject.field.value, subject, sizes)
    return sizes


def _count(part: _Part, value: dict[str, Json], subject: Subject, sizes: dict[_Part, tuple[int, Subject]]) -> None:
    for name, member in part.members.items():
        inner = value.get(name)
        if not inner or not isinstance(inner, dict | list | str):
            continue
        if member.most is not None:
            size, first = sizes.get(member, (0, subject))
            size += len(inner)
            sizes[member] = size, first
            if size > member.most:
                # Entries inside are not counted, because there may be hundreds of thousands.
                continue
        if isinstance(inner, dict):
            if member.members:
                _count(member, inner, subject, sizes)
        elif isinstance(inner, list) and member.elements is not None:
            for element in inner:
                if isinstance(element, dict):
                    _count(member.elements, element, subject, sizes)
