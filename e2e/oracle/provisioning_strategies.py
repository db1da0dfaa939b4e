"""Pods, DaemonSets and NodePools of which some can launch a node for the Pod: random, but near each other.

Zones, reserved capacity and Windows are left out, because the types of the catalogue have no offerings. So are preferences that
contradict what the Pod requires of a label that not every node has: of both together Karpenter makes that the label must not exist,
and launches a node that the scheduler does not accept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from msgspec.structs import replace as with_fields
from oracle.requirement_strategies import CATALOGUE as WHOLE

from gpugate.policies.data.instance_types import INSTANCE_TYPE

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from gpugate.policies.data.instance_types import InstanceTypes, Scale

Json = dict[str, Any]
_GROUP = "karpenter.k8s.aws/"
_FAMILIES = ("g4dn", "g5", "g5g", "g6", "p3", "p4d", "p5", "inf2", "trn1", "m7i", "c7i")


def _some() -> InstanceTypes:
    """Return the types of some families as a catalogue: Karpenter compares a Pod with all 1,363 in half a second."""
    kept = 0
    for family in _FAMILIES:
        kept |= WHOLE.of(f"{_GROUP}instance-family", family)

    def scale(whole: Scale) -> Scale:
        return with_fields(whole, reach=tuple(types & kept for types in whole.reach))

    return replace(
        WHOLE,
        values={key: {value: types & kept for value, types in values.items()} for key, values in WHOLE.values.items()},
        labelled={key: types & kept for key, types in WHOLE.labelled.items()},
        scales={key: scale(whole) for key, whole in WHOLE.scales.items()},
        allocatable={key: scale(whole) for key, whole in WHOLE.allocatable.items()},
        everything=kept,
        accelerated=WHOLE.accelerated & kept,
    )


CATALOGUE = _some()
NAMES = tuple(CATALOGUE.decode(CATALOGUE.everything))
# Label -> values, of which pools and Pods draw a few, so that they often meet.
_LABELS: dict[str, tuple[str, ...]] = {
    INSTANCE_TYPE: NAMES[::4],
    f"{_GROUP}instance-family": _FAMILIES,
    f"{_GROUP}instance-category": ("g", "p", "inf", "trn", "c", "m"),
    f"{_GROUP}instance-gpu-name": ("a10g", "t4", "h100", "l4"),
    f"{_GROUP}instance-gpu-count": ("1", "4", "8"),
    f"{_GROUP}instance-size": ("xlarge", "12xlarge", "48xlarge"),
    f"{_GROUP}instance-hypervisor": ("nitro", "xen"),
    f"{_GROUP}ec2nodeclass": ("gpu", "other"),
    "kubernetes.io/arch": ("amd64", "arm64"),
    "kubernetes.io/os": ("plan9",),
    "karpenter.sh/capacity-type": ("spot", "SPOT"),
    "karpenter.sh/nodepool": ("pool-0", "pool-1"),
    "example.com/team": ("a", "b"),
    "nvidia.com/gpu.present": ("true",),
    "kubernetes.io/hostname": ("node-1",),
}
_OF_PODS = {"karpenter.sh/nodepool", "kubernetes.io/hostname", "kubernetes.io/os", "karpenter.sh/capacity-type"}
_OF_POOLS = tuple(key for key in _LABELS if key not in _OF_PODS)
_OF_EVERY_TYPE = {
    INSTANCE_TYPE,
    "kubernetes.io/arch",
    *(f"{_GROUP}instance-{name}" for name in ("family", "category", "size", "hypervisor")),
}
_OPERATORS = ("In", "In", "In", "In", "NotIn", "Exists", "DoesNotExist")
_BOUNDS = ("Gt", "Lt")
_TAINTS = ("nvidia.com/gpu", "example.com/spot")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_AMOUNTS = {
    "cpu": ("100m", "1", "1930m", "3920m", "4", "48", "191450m", "192"),
    "memory": ("128Mi", "16Gi", "61Gi", "1Ti", "1100G"),
    "nvidia.com/gpu": ("1", "2", "4", "8", "16"),
    "aws.amazon.com/neuron": ("1", "16"),
    "vpc.amazonaws.com/efa": ("1", "32"),
    "example.com/fpga": ("1",),
}


@st.composite
def _entry(draw: DrawFn, keys: tuple[str, ...]) -> Json:
    key = draw(st.sampled_from(keys))
    if key.endswith("gpu-count") and draw(st.booleans()):
        return {
            "key": key,
            "operator": draw(st.sampled_from(_BOUNDS)),
            "values": [draw(st.sampled_from(("0", "1", "4", "7")))],
        }
    operator = draw(st.sampled_from(_OPERATORS))
    values = draw(st.lists(st.sampled_from(_LABELS[key]), min_size=1, max_size=3, unique=True))
    return {"key": key, "operator": operator, "values": values if operator in {"In", "NotIn"} else []}


_tolerations = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(_TAINTS), "operator": st.just("Exists")}, optional={"effect": st.sampled_from(_EFFECTS)}
    )
    | st.just({"operator": "Exists"})
    | st.fixed_dictionaries({"key": st.sampled_from(_TAINTS), "value": st.sampled_from(("true", ""))}),
    max_size=2,
)


@st.composite
def _placed(draw: DrawFn) -> Json:
    """Draw what a Pod says of its node, with one of two terms at most."""
    keys = st.sampled_from(tuple(_LABELS)).flatmap(lambda key: st.tuples(st.just(key), st.sampled_from(_LABELS[key])))
    spec: Json = {"tolerations": draw(_tolerations), "nodeSelector": dict(draw(st.lists(keys, max_size=2)))}
    terms = draw(st.lists(st.lists(_entry(tuple(_LABELS)), min_size=1, max_size=2), max_size=2))
    required_keys = {*spec["nodeSelector"], *(entry["key"] for term in terms for entry in term)}
    preferable = tuple(key for key in _LABELS if key in _OF_EVERY_TYPE or key not in required_keys)
    preferred = draw(st.lists(st.tuples(st.integers(1, 100), _entry(preferable)), max_size=2))
    affinity: Json = {}
    if terms:
        required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if preferred:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": {"matchExpressions": [entry]}} for weight, entry in preferred
        ]
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    return spec


def _requests(*names: str) -> SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(_AMOUNTS[name]) for name in names})


@st.composite
def wanted_pods(draw: DrawFn) -> Json:
    """Draw a Pod."""
    container = st.fixed_dictionaries(
        {"name": st.just("a"), "resources": st.fixed_dictionaries({"requests": _requests(*_AMOUNTS)})}
    )
    spec = draw(_placed())
    spec["containers"] = draw(st.lists(container, min_size=1, max_size=2))
    spec["initContainers"] = draw(st.lists(container, max_size=1))
    if draw(st.sampled_from((False,) * 19 + (True,))):
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    return {"metadata": {"name": "wanted", "namespace": "ml"}, "spec": spec}


@st.composite
def daemons(draw: DrawFn, number: int) -> Json:
    """Draw the template of a DaemonSet."""
    spec = draw(_placed())
    requests = draw(st.fixed_dictionaries({"cpu": st.sampled_from(("100m", "2"))}) | _requests("cpu", "memory"))
    spec["containers"] = [{"name": "a", "resources": {"requests": requests}}]
    return {"metadata": {"name": f"daemon-{number}", "namespace": "kube-system"}, "spec": spec}


@st.composite
def pools(draw: DrawFn, number: int) -> Json:
    """Draw a NodePool."""
    taints = st.builds(
        lambda key, value, effect: {"key": key, "value": value, "effect": effect},
        st.sampled_from(_TAINTS),
        st.sampled_from(("true", "")),
        st.sampled_from(_EFFECTS),
    )
    entries = draw(st.lists(_entry(_OF_POOLS), max_size=3))
    if draw(st.booleans()):
        capacity_type = draw(st.sampled_from(("on-demand", "spot")))
        entries.append({"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]})
    own = st.sampled_from(("example.com/team", "nvidia.com/gpu.present"))
    labels = {key: _LABELS[key][0] for key in draw(st.lists(own, max_size=1))}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"nodeClassRef": reference, "requirements": entries, "taints": draw(st.lists(taints, max_size=2))},
    }
    amounts = {
        "cpu": st.sampled_from(("0", "4", "100")),
        "memory": st.sampled_from(("0", "15155Mi", "15154Mi", "7518Mi", "7517Mi", "100Gi", "1Ti")),
        "nvidia.com/gpu": st.sampled_from(("0", "1", "4", "100")),
        "nodes": st.sampled_from(("0", "2")),
    }
    limits = draw(st.just({}) | st.just({}) | st.fixed_dictionaries({}, optional=amounts))
    return {
        "metadata": {"name": f"pool-{number}"},
        "spec": {"template": template, **({"limits": limits} if limits else {})},
    }


@st.composite
def clusters(draw: DrawFn) -> Json:
    """Draw a Pod with the pools and DaemonSets of its cluster, and the terms of its volumes: one of them has to hold."""
    volume = st.lists(_entry(("kubernetes.io/arch", "example.com/team")), min_size=1, max_size=2)
    pod = draw(wanted_pods())
    return {
        "pod": pod,
        "pools": [draw(pools(number)) for number in range(draw(st.integers(1, 2)))],
        "daemons": [draw(daemons(number)) for number in range(draw(st.integers(0, 2)))],
        "ignoresDRA": True,
        "volumesNeed": draw(st.just([]) | st.lists(volume, max_size=2)),
    }


def instance_types() -> list[Json]:
    """Return the types of the catalogue as Karpenter has them, with what its node class reserves by default.

    Of memory, the capacity is the least that Karpenter takes it for, and Pods can have all of the type but 255 MiB for the
    kubelet, which is more: a node of the type may show it.
    """
    found: dict[int, Json] = {
        at: {"labels": {INSTANCE_TYPE: CATALOGUE.names[at]}, "capacity": {"pods": "110"}, "overhead": {}}
        for at in CATALOGUE.positions_in(CATALOGUE.everything)
    }
    for label, by_value in CATALOGUE.values.items():
        for value, having in by_value.items():
            for position in CATALOGUE.positions_in(having):
                found[position]["labels"][label] = value
    for resource, scale in CATALOGUE.allocatable.items():
        for amount in scale.numbers:
            for position in CATALOGUE.positions_in(scale.at_least(amount) & ~scale.at_least(amount + 1)):
                cpus = int(found[position]["labels"][f"{_GROUP}instance-cpu"])
                if resource == "cpu":
                    found[position]["overhead"]["cpu"] = f"{cpus * 1000 - amount}m"
                    found[position]["capacity"]["cpu"] = str(cpus)
                elif resource != "memory":
                    found[position]["capacity"][resource] = str(amount)
    for each in found.values():
        size, is_arm = int(each["labels"][f"{_GROUP}instance-memory"]), each["labels"]["kubernetes.io/arch"] == "arm64"
        capacity = (size - 64 * is_arm) * 37 // 40
        each["capacity"]["memory"] = f"{capacity}Mi"
        each["overhead"]["memory"] = f"{capacity - size + 255}Mi"
    return [*found.values()]
