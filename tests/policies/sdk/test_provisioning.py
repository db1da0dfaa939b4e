"""Which NodePools can launch a node for a Pod, and the first term by which the others cannot."""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.sdk import provisioning
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.launch_failures import Result, results
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.pod_requests import demand, requested
from gpugate.policies.sdk.policy import Context, Params
from gpugate.policies.sdk.provisioning import launchable
from gpugate.policies.sdk.scheduling import is_only
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]
CATALOGUE = load_instance_types()
ALLOCATABLE = CATALOGUE.allocatable["memory"]
TYPE, FAMILY = "node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
TOLERATED = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}


def needs(key: str, *values: str, operator: str = "In") -> Object:
    return {"key": key, "operator": operator, "values": [*values]}


def pool(name: str, *requirements: Object, **rest: Any) -> Object:
    labels, limits, replicas = rest.pop("labels", {}), rest.pop("limits", None), rest.pop("replicas", None)
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"nodeClassRef": reference, "requirements": [*requirements], **rest},
    }
    spec = {"template": template, "limits": limits, "replicas": replicas}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def pod(requests: Mapping[str, str] = MappingProxyType({}), **spec: Any) -> Object:
    container = {"name": "main", "resources": {"requests": {**requests}}}
    return {"metadata": {"name": "pod"}, "spec": {"containers": [container], **spec}}


def gpus(count: int, **spec: Any) -> Object:
    return pod({"nvidia.com/gpu": str(count)}, **TOLERATED, **spec)


def daemon(name: str, requests: Mapping[str, str], **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "kube-system"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {"template": pod(requests, **spec)},
    }


def node_class(**kubelet: Any) -> Object:
    api_version = "karpenter.k8s.aws/v1"
    return {
        "apiVersion": api_version,
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu"},
        "spec": {"kubelet": kubelet},
    }


def overlay(*resources: str) -> Object:
    spec = {"capacity": dict.fromkeys(resources, "4")}
    return {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"}, "spec": spec}


def context(wanted: Object, *known: Object) -> Context[Params]:
    facts = RunFacts([_request(each) for each in known], complete=True)
    request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, wanted, namespace="ml")
    tables = {INSTANCE_TYPES.name: CATALOGUE}
    return Context(Params(), Field(wanted), None, request, facts, Platform(), Target(), tables)


def _request(obj: Object) -> Request:
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    return Request(kind, Operation.CREATE, obj, namespace=obj["metadata"].get("namespace", ""))


def asked(wanted: Object, *known: Object, **how: bool) -> list[Result]:
    ctx = context(wanted, *known)
    found = list(results(demand(ctx.subject, ctx), ctx, **how))
    if not how:
        assert launchable(demand(ctx.subject, ctx), ctx) is any(each.failure is None for each in found)
    return found


G5 = pool("g5", needs(FAMILY, "g5"), taints=[GPU_TAINT])
ZONE = "topology.kubernetes.io/zone"
SOFT = {"key": "example.com/spot", "effect": "PreferNoSchedule"}


def terms(*entries: Object) -> Object:
    """Required node affinity: one of some terms."""
    found = [{"matchExpressions": [entry]} for entry in entries]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}


def preferring(*weighed: tuple[int, Object]) -> Object:
    """Preferred node affinity, by weight."""
    found = [{"weight": weight, "preference": {"matchExpressions": [entry]}} for weight, entry in weighed]
    return {"preferredDuringSchedulingIgnoredDuringExecution": found}


def choosing(*families: str, preferred: Mapping[str, Any] = MappingProxyType({}), **spec: Any) -> Object:
    """A Pod with a GPU on one of some families."""
    affinity = {**terms(*(needs(FAMILY, family) for family in families)), **preferred}
    return pod({"nvidia.com/gpu": "1"}, **{**TOLERATED, **spec}, affinity={"nodeAffinity": affinity})


@pytest.mark.parametrize(
    ("wanted", "known"),
    [
        pytest.param(gpus(1), [G5], id="a type has as many"),
        pytest.param(gpus(8), [G5], id="the largest type has as many"),
        pytest.param(gpus(8, nodeSelector={"karpenter.sh/nodepool": "g5"}), [G5], id="the pool by its name"),
        pytest.param(
            gpus(1, nodeSelector={"karpenter.k8s.aws/ec2nodeclass": "gpu"}), [G5], id="the label of its class"
        ),
        pytest.param(gpus(1, nodeSelector={"topology.kubernetes.io/zone": "a"}), [G5], id="a zone, not limited"),
        pytest.param(gpus(1, nodeSelector={"kubernetes.io/os": "linux"}), [G5], id="a label that every node has"),
        pytest.param(
            gpus(1, nodeSelector={"team": "a"}),
            [{**pool("g", needs(FAMILY, "g5"), labels={"team": "a"})}],
            id="own label",
        ),
        pytest.param(gpus(16), [pool("p9", needs(TYPE, "p9.48xlarge"))], id="a type newer than the catalogue"),
        pytest.param(
            gpus(16), [pool("p", needs(TYPE, "p5.48xlarge", "p9.48xlarge"))], id="one newer than the catalogue"
        ),
        pytest.param(
            pod({"example.com/fpga": "1"}), [pool("g"), overlay("example.com/fpga")], id="a resource of an overlay"
        ),
        pytest.param(gpus(99), [pool("static", needs(FAMILY, "g5"), replicas=2)], id="a pool of a fixed size"),
        pytest.param(pod({"cpu": "4"}), [pool("x", needs(TYPE, "g5.xlarge"))], id="all CPUs, reservation unknown"),
        pytest.param(
            pod({"cpu": "3920m"}), [pool("x", needs(TYPE, "g5.xlarge")), node_class()], id="beside the reservation"
        ),
        pytest.param(
            pod({"cpu": "4"}),
            [pool("x", needs(TYPE, "g5.xlarge")), node_class(kubeReserved={"cpu": "0"})],
            id="nothing is reserved",
        ),
        pytest.param(
            pod({"cpu": "3"}),
            [pool("x", needs(TYPE, "g5.xlarge")), daemon("big", {"cpu": "4"}, nodeSelector={"a": "b"})],
            id="a DaemonSet that runs elsewhere",
        ),
        *(
            pytest.param(
                pod({"cpu": "3"}),
                [pool("x", needs(TYPE, "g5.xlarge")), daemon("big", {"cpu": "4"}, nodeSelector={key: value})],
                id=f"a DaemonSet that may run elsewhere: {key}",
            )
            for key, value in (
                ("kubernetes.io/os", "windows"),
                ("topology.kubernetes.io/zone", "us-east-1a"),
                ("karpenter.k8s.aws/capacity-reservation-id", "cr-1"),
                ("karpenter.sh/capacity-type", "reserved"),
            )
        ),
        pytest.param(
            pod({"cpu": "3"}),
            [
                pool("x", needs(TYPE, "g5.xlarge", "g4dn.xlarge")),
                daemon("a", {"cpu": "4"}, affinity={"nodeAffinity": terms(needs(FAMILY, "g5"), needs(FAMILY, "m7i"))}),
            ],
            id="a DaemonSet with a term that some types do not meet",
        ),
        pytest.param(
            pod({"cpu": "3"}),
            [
                pool("x", needs(TYPE, "g5.xlarge")),
                pool("y", needs(TYPE, "m7i.xlarge")),
                daemon("a", {"cpu": "4"}, affinity={"nodeAffinity": terms(needs(FAMILY, "g5"), needs(FAMILY, "p5"))}),
            ],
            id="a DaemonSet with a term that the types of another pool do not meet",
        ),
        pytest.param(
            pod({"cpu": "3"}), [pool("m", needs(TYPE, "g5.xlarge"), limits={"memory": "15155Mi"})], id="limit of memory"
        ),
        pytest.param(choosing("m7i", "g5"), [pool("soft", taints=[SOFT])], id="the last term, and a preferred taint"),
        pytest.param(
            choosing("g5", "m7i", tolerations=[{"operator": "Exists"}]),
            [pool("soft", taints=[SOFT])],
            id="a preferred taint that is tolerated",
        ),
        pytest.param(
            choosing("g5", "m7i", preferred=preferring((1, needs(ZONE, "b")), (9, needs(ZONE, "a")))),
            [pool("a", needs(FAMILY, "g5"), needs(ZONE, "a"), taints=[GPU_TAINT])],
            id="an earlier term with the heaviest preference",
        ),
        pytest.param(
            choosing("m7i", "g5", preferred=preferring((9, needs(ZONE, "b")))),
            [pool("a", needs(FAMILY, "g5"), needs(ZONE, "a"), taints=[GPU_TAINT])],
            id="the last term without its preference",
        ),
    ],
)
def test_it_can(wanted: Object, known: list[Object]) -> None:
    assert {each.failure for each in asked(wanted, *known)} == {None}


@pytest.mark.parametrize(
    ("wanted", "known", "term", "text", "change"),
    [
        pytest.param(
            gpus(8), [pool("g4", needs(TYPE, "g4dn.xlarge", "g4dn.12xlarge"))],
            "resources", "8 nvidia.com/gpu requested, and its instance types have at most 4", "allow a type such as g4dn.metal", id="count",
        ),
        pytest.param(
            gpus(1), [pool("c", needs(FAMILY, "c7i"))],
            "resources", "1 nvidia.com/gpu requested, and none of its instance types has it", "allow a type such as g4dn.xlarge", id="none",
        ),
        pytest.param(
            pod({"example.com/fpga": "1"}), [pool("g")],
            "resources", "1 example.com/fpga requested, and Karpenter knows no instance type that has it",
            "add example.com/fpga to the capacity of a NodeOverlay", id="unknown resource",
        ),
        pytest.param(
            pod({"cpu": "4"}), [pool("x", needs(TYPE, "g5.xlarge")), node_class()],
            "resources", "4 cpu requested, and its instance types have at most 3.92", "allow a type such as g5.2xlarge", id="reserved CPU",
        ),
        pytest.param(
            pod({"memory": "16Gi"}), [pool("x", needs(TYPE, "g5.xlarge")), node_class()],
            "resources", "16Gi memory requested, and its instance types have at most 15.75Gi", "allow a type such as g5.2xlarge", id="reserved memory",
        ),
        pytest.param(
            pod({"cpu": "3"}), [pool("x", needs(TYPE, "g5.xlarge")), daemon("a", {"cpu": "600m"}), daemon("b", {"cpu": "500m"})],
            "resources", "no instance type of it has 3 cpu in addition to what DaemonSets request there", "allow a type such as g5.2xlarge", id="daemons",
        ),
        pytest.param(
            pod({"cpu": "3"}),
            [pool("x", needs(TYPE, "g5.xlarge")), daemon("a", {"cpu": "1100m"}, nodeSelector={"kubernetes.io/os": "linux"})],
            "resources", "no instance type of it has 3 cpu in addition to what DaemonSets request there", "allow a type such as g5.2xlarge", id="daemon of Linux nodes",
        ),
        pytest.param(
            pod({"nvidia.com/gpu": "1"}), [G5],
            "taints", "taint nvidia.com/gpu=true:NoSchedule is not tolerated",
            "tolerate the taint nvidia.com/gpu=true:NoSchedule", id="taint",
        ),
        pytest.param(
            gpus(1, nodeSelector={"team": "a"}), [G5],
            "labels", "label team is required, which it does not define", "add the label team=a to its template", id="label",
        ),
        pytest.param(
            gpus(1, nodeSelector={FAMILY: "g6"}), [G5],
            "labels", f"{FAMILY} g6 is required, and it allows g5", f"allow g6 for {FAMILY}", id="value",
        ),
        pytest.param(
            gpus(1, nodeSelector={"karpenter.k8s.aws/instance-gpu-name": "h100"}), [G5],
            "types", "none of its instance types has karpenter.k8s.aws/instance-gpu-name h100", "allow a type such as p5.4xlarge", id="types",
        ),
        pytest.param(
            gpus(1, nodeSelector={"karpenter.sh/capacity-type": "SPOT"}), [G5],
            "labels", "karpenter.sh/capacity-type SPOT is required, and its values are on-demand, reserved, spot",
            "select one of on-demand, reserved, spot", id="capacity type",
        ),
        pytest.param(
            gpus(1, nodeSelector={"karpenter.sh/capacity-type": "SPOT"}),
            [pool("s", needs("karpenter.sh/capacity-type", "spot"))],
            "labels", "karpenter.sh/capacity-type SPOT is required, and its values are on-demand, reserved, spot",
            "select one of on-demand, reserved, spot", id="capacity type that the pool allows in another spelling",
        ),
        pytest.param(
            gpus(8), [pool("l", needs(FAMILY, "g5"), limits={"nvidia.com/gpu": "4"})],
            "limits", "its limit leaves 4 nvidia.com/gpu, and every instance type that fits the Pod has more",
            "raise its limit of nvidia.com/gpu", id="limit",
        ),
        pytest.param(
            gpus(1), [pool("m", needs(TYPE, "g5.xlarge"), limits={"memory": "15154Mi"})],
            "limits", "its limit leaves 14.8Gi memory, and every instance type that fits the Pod has more",
            "raise its limit of memory", id="limit of memory",
        ),
        pytest.param(
            gpus(1), [pool("arm", needs(TYPE, "g5g.xlarge"), limits={"memory": "7517Mi"})],
            "limits", "its limit leaves 7.34Gi memory, and every instance type that fits the Pod has more",
            "raise its limit of memory", id="limit of memory of an Arm type",
        ),
        pytest.param(
            choosing("g5", "m7i"), [pool("soft", taints=[SOFT])],
            "taints", "taint example.com/spot:PreferNoSchedule is not tolerated, and Karpenter compares only the last required term "
            "of its node affinity with this pool", "tolerate the taint example.com/spot:PreferNoSchedule", id="preferred taint",
        ),
        pytest.param(
            choosing("g5", "m7i", preferred=preferring((9, needs(ZONE, "b")), (1, needs(ZONE, "a")))),
            [pool("a", needs(FAMILY, "g5"), needs(ZONE, "a"), taints=[GPU_TAINT])],
            "labels", "its preferred node affinity is not met, and Karpenter compares only the last required term of its node "
            "affinity with this pool", "write the required term that this pool meets last", id="preference",
        ),
        pytest.param(
            pod({"cpu": "3"}),
            [
                pool("x", needs(TYPE, "g5.xlarge")),
                daemon("a", {"cpu": "1100m"}, affinity={"nodeAffinity": terms(needs(FAMILY, "g5"), needs(FAMILY, "m7i"))}),
            ],
            "resources", "no instance type of it has 3 cpu in addition to what DaemonSets request there",
            "allow a type such as g5.2xlarge", id="a DaemonSet with a term that all types meet",
        ),
        *(
            pytest.param(
                pod({"cpu": "3"}), [pool("x", needs(TYPE, "g5.xlarge")), daemon("a", {"cpu": "1100m"}, **placed)],
                "resources", "no instance type of it has 3 cpu in addition to what DaemonSets request there",
                "allow a type such as g5.2xlarge", id=name,
            )
            for name, placed in {
                "a DaemonSet for nodes without a label": {
                    "affinity": {"nodeAffinity": terms({"key": "example.com/team", "operator": "DoesNotExist"})}
                },
                # Karpenter reads the two values as DoesNotExist, though no node runs its Pods.
                "a DaemonSet with a term that contradicts its selector": {
                    "nodeSelector": {"example.com/team": "a"},
                    "affinity": {"nodeAffinity": terms(needs("example.com/team", "b"))},
                },
            }.items()
        ),
        pytest.param(
            gpus(1), [pool("l", needs(FAMILY, "g5"), limits={"cpu": "0"})],
            "limits", "its limit of cpu is 0", "raise its limit of cpu", id="switched off",
        ),
        pytest.param(
            gpus(1, resourceClaims=[{"name": "gpu"}]), [G5],
            "claims", "the Pod uses a ResourceClaim, and Karpenter ignores such Pods (--ignore-dra-requests)",
            "request an extended resource such as nvidia.com/gpu instead of the claim", id="claim",
        ),
    ],
)  # fmt: skip
def test_the_first_term_that_fails(wanted: Object, known: list[Object], term: str, text: str, change: str) -> None:
    (result,) = asked(wanted, *known)

    assert result.failure is not None
    assert (result.failure.term, result.failure.text, result.failure.change) == (term, text, change)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, {"cpu": 2}, id="a limit is the request"
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}]},
            {"cpu": 1},
            id="request",
        ),
        pytest.param(
            {
                "initContainers": [
                    {"resources": {"requests": {"cpu": "1"}}, "restartPolicy": "Always"},
                    {"resources": {"requests": {"cpu": "5", "memory": "1Ki"}}},
                ],
                "containers": [{"resources": {"requests": {"cpu": "2"}}}],
            },
            {"cpu": 6, "memory": 1024},
            id="the largest init container beside a sidecar",
        ),
        pytest.param(
            {
                "resources": {"requests": {"cpu": "8", "nvidia.com/gpu": "8"}},
                "containers": [{"resources": {"requests": {"cpu": "2", "memory": "1Ki"}}}],
                "overhead": {"cpu": "1"},
            },
            {"cpu": 9, "memory": 1024},
            id="what the Pod states for all containers, and its overhead",
        ),
        pytest.param({"containers": [{"resources": {"requests": {"cpu": "x", "memory": "0"}}}]}, {}, id="none"),
    ],
)
def test_what_the_scheduler_counts(spec: Object, expected: Object) -> None:
    assert requested(Field({"spec": spec})) == expected


def test_a_pod_can_meet_one_of_its_terms() -> None:
    terms = [{"matchExpressions": [needs(FAMILY, family)]} for family in ("p5", "g5")]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    assert asked(gpus(1, affinity=affinity), G5)[0].failure is None
    other = asked(gpus(1, affinity=affinity), pool("g6", needs(FAMILY, "g6")))[0]

    assert other.failure is not None
    assert other.failure.text == f"{FAMILY} p5 is required, and it allows g6"


def test_the_capacity_of_memory_is_that_of_the_catalogue() -> None:
    """What Pods can have is the capacity less 255 MiB, 11 MiB for each Pod and 100 MiB below which Pods are evicted."""
    sizes, arm = CATALOGUE.scales[provisioning.MEMORY_LABEL], CATALOGUE.of("kubernetes.io/arch", "arm64")
    reserved = {}
    for size in sizes.numbers:
        for position in CATALOGUE.positions_in(sizes.at_least(size) & ~sizes.at_least(size + 1)):
            of_pods = max(amount for amount in ALLOCATABLE.numbers if ALLOCATABLE.at_least(amount) >> position & 1)
            capacity = (size - 64 * (arm >> position & 1)) * 37 // 40
            reserved[CATALOGUE.names[position]] = capacity - of_pods - 255 - 100
            limit = Fraction(capacity * 2**20)
            assert not provisioning.types_beyond("memory", limit, CATALOGUE) >> position & 1
            assert provisioning.types_beyond("memory", limit - 1, CATALOGUE) >> position & 1

    assert {name for name, amount in reserved.items() if amount % 11 or amount <= 0} == set()


@pytest.mark.parametrize(
    ("selected", "own", "text"),
    [
        pytest.param({ZONE: "a"}, ("a", "b"), None, id="zone of the volume"),
        pytest.param({}, ("b",), f"its volumes require {ZONE} a, which the pool does not allow", id="other pool"),
        pytest.param(
            {ZONE: "b"},
            ("a", "b"),
            f"its volumes require {ZONE} a, and the Pod requires b",
            id="the Pod selects another",
        ),
        pytest.param({"team": "x"}, ("a",), "label team is required, which it does not define", id="label"),
    ],
)
def test_volumes_and_pods_have_to_agree(selected: dict[str, str], own: tuple[str, ...], text: str | None) -> None:
    ctx = context(gpus(1, nodeSelector=selected), pool("p", needs(FAMILY, "g5"), needs(ZONE, *own)))
    terms_of_volumes = ({ZONE: is_only("a"), "team": is_only("y")},)
    volumes = tuple({k: r for k, r in term.items() if k == ZONE or k in selected} for term in terms_of_volumes)
    wanted = replace(demand(ctx.subject, ctx), volumes=volumes)

    (result,) = results(wanted, ctx)

    assert (result.failure.text if result.failure else None) == text
    assert launchable(wanted, ctx) is (text is None)


def test_used_resources_count_only_if_asked() -> None:
    limited = pool("l", needs(FAMILY, "g5"), limits={"nvidia.com/gpu": "8"})
    full = limited | {"status": {"resources": {"nvidia.com/gpu": "8"}}}

    assert asked(gpus(1), full)[0].failure is None
    now = asked(gpus(1), full, used=True, ignores_claims=True)
    assert now[0].failure is not None


def test_types_are_divided_by_the_daemon_sets_that_run_on_them() -> None:
    everywhere, large = daemon("a", {"cpu": "100m"}), daemon("b", {"cpu": "1"}, nodeSelector={TYPE: "g5.48xlarge"})
    untolerated = daemon("c", {"cpu": "7"}, tolerations=[{"key": "other", "operator": "Exists"}])
    pools = pool("g5", needs(TYPE, "g5.xlarge", "g5.48xlarge"), taints=[GPU_TAINT])
    for agent in (everywhere, large):
        agent["spec"]["template"]["spec"] |= TOLERATED
    (launching,) = provisioning.launch_pools(context(gpus(1), pools, everywhere, large, untolerated))

    assert launching.offer is not None
    groups = {tuple(CATALOGUE.decode(group.types)): group.daemons for group in launching.offer.groups}
    assert groups == {("g5.48xlarge",): {"cpu": 1100}, ("g5.xlarge",): {"cpu": 100}}


@pytest.mark.parametrize("count", [1, 400])
def test_daemon_sets_with_the_same_constraints_are_compared_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    narrowed = provisioning.narrowed_types
    monkeypatch.setattr(provisioning, "narrowed_types", lambda *given: (compared.append(given), narrowed(*given))[1])
    placed = {"nodeSelector": {FAMILY: "g5"}, "tolerations": [{"operator": "Exists"}]}
    agents = [daemon(f"agent-{number}", {"cpu": "1m"}, **placed) for number in range(count)]
    ctx = context(gpus(1), G5, node_class(), *agents)

    (launching,) = provisioning.launch_pools(ctx)

    assert launching.offer is not None
    assert [group.daemons for group in launching.offer.groups] == [{"cpu": count}]
    assert len(compared) == 1
