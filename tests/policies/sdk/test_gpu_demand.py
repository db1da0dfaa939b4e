from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.platform import Accelerators, Platform

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Contexts: TypeAlias = "Callable[..., Context[Any]]"


def pod(containers: list[dict[str, Any]], init: list[dict[str, Any]] | None = None, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, "initContainers": init or [], **spec},
    }


def asks(
    limits: dict[str, Any] | None = None, requests: dict[str, Any] | None = None, **more: object
) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": limits or {}, "requests": requests or {}}, **more}


def gpus(count: object, **more: object) -> dict[str, Any]:
    return asks({"nvidia.com/gpu": count}, **more)


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("obj", "resources"),
    [
        pytest.param(pod([asks({"cpu": "2", "memory": "1Gi"})]), {}, id="cpu and memory"),
        pytest.param(pod([asks({"vpc.amazonaws.com/efa": 1})]), {}, id="a network card"),
        pytest.param(pod([asks({"nvidia.com/gpus": 1})]), {}, id="an unknown resource"),
        pytest.param(pod([{"name": "c"}]), {}, id="no resources"),
        pytest.param(pod([gpus(1)]), {"nvidia.com/gpu": 1}, id="a limit alone"),
        pytest.param(pod([asks(None, {"nvidia.com/gpu": 1})]), {"nvidia.com/gpu": 1}, id="a request alone"),
        pytest.param(
            pod([asks({"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 2})]), {"nvidia.com/gpu": 2}, id="both differ"
        ),
        pytest.param(pod([gpus("1000m")]), {"nvidia.com/gpu": 1}, id="milli"),
        pytest.param(pod([gpus("1e0")]), {"nvidia.com/gpu": 1}, id="exponent"),
        pytest.param(pod([gpus("1k")]), {"nvidia.com/gpu": 1000}, id="kilo"),
        pytest.param(pod([gpus("500m")]), {"nvidia.com/gpu": 1}, id="half a GPU takes one"),
        pytest.param(pod([gpus("8 GPUs")]), {}, id="no quantity"),
        pytest.param(pod([gpus(0)]), {}, id="zero"),
        pytest.param(pod([gpus(-1)]), {}, id="negative"),
        pytest.param(pod([asks({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 0})]), {}, id="a request of zero wins"),
        pytest.param(pod([gpus(1), gpus(2)]), {"nvidia.com/gpu": 3}, id="containers add up"),
        pytest.param(pod([gpus(2)], [gpus(1)]), {"nvidia.com/gpu": 2}, id="init containers end before"),
        pytest.param(pod([gpus(1)], [gpus(4)]), {"nvidia.com/gpu": 4}, id="the largest init container counts"),
        pytest.param(pod([{"name": "c"}], [gpus(1)]), {"nvidia.com/gpu": 1}, id="only an init container"),
        pytest.param(pod([gpus(2)], [gpus(1, **SIDECAR)]), {"nvidia.com/gpu": 3}, id="sidecars run beside"),
        pytest.param(pod([gpus(1)], [gpus(2, **SIDECAR), gpus(3)]), {"nvidia.com/gpu": 5}, id="a sidecar before init"),
        pytest.param(pod([gpus(1)], [gpus(3), gpus(2, **SIDECAR)]), {"nvidia.com/gpu": 3}, id="a sidecar after init"),
        pytest.param(
            pod([asks({"nvidia.com/mig-1g.10gb": 1, "nvidia.com/gpu.shared": 2})]),
            {"nvidia.com/mig-1g.10gb": 1, "nvidia.com/gpu.shared": 2},
            id="slices and shared GPUs",
        ),
        pytest.param(
            pod([asks({"nvidia.com/mig-7g.80gb.shared": 1})]), {"nvidia.com/mig-7g.80gb.shared": 1}, id="both"
        ),
        pytest.param(
            pod([asks({"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1})]),
            {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1},
            id="a device class as a resource",
        ),
        pytest.param(pod([asks({"deviceclass.resource.kubernetes.io/nic.example.com": 1})]), {}, id="another class"),
        pytest.param(
            pod([asks({"aws.amazon.com/neuroncore": 2, "habana.ai/gaudi": 8, "amd.com/gpu": 1})]),
            {"aws.amazon.com/neuroncore": 2, "habana.ai/gaudi": 8, "amd.com/gpu": 1},
            id="other makers",
        ),
        pytest.param(pod([asks({"aws.amazon.com/neurondevice": 1})]), {"aws.amazon.com/neurondevice": 1}, id="legacy"),
        pytest.param(pod([asks({"google.com/tpu": 4})]), {"google.com/tpu": 4}, id="TPU"),
        pytest.param(
            pod([asks({"gpu.intel.com/i915": 1, "gpu.intel.com/millicores": 100})]),
            {"gpu.intel.com/i915": 1, "gpu.intel.com/millicores": 100},
            id="Intel",
        ),
        pytest.param(pod([asks({"nvidia.com/gpumem": 3000})]), {"nvidia.com/gpumem": 3000}, id="HAMi"),
        pytest.param({"spec": {"containers": "none"}}, {}, id="no list of containers"),
        pytest.param({"spec": {"containers": [{"resources": {"limits": ["nvidia.com/gpu"]}}]}}, {}, id="no map"),
        pytest.param({}, {}, id="no spec"),
    ],
)
def test_it_counts_as_the_scheduler_does(context: Contexts, obj: dict[str, Any], resources: dict[str, int]) -> None:
    assert context(obj).derived(gpu_demand).resources == resources


def test_a_resource_of_quantity_zero_is_remembered(context: Contexts) -> None:
    demand = context(pod([gpus("0")])).derived(gpu_demand)
    assert (bool(demand), demand.zero) == (False, {"nvidia.com/gpu"})


def test_the_platform_may_name_more_accelerators(context: Contexts) -> None:
    platform = Platform(accelerators=Accelerators(resources=("example.com/tpu-*",)))
    demand = context(pod([asks({"example.com/tpu-v5": 4})]), platform=platform).derived(gpu_demand)
    assert demand.resources == {"example.com/tpu-v5": 4}


CLASSES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {extendedResourceName: example.com/whole}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: slices}
spec:
  extendedResourceName: example.com/slice
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: network}
spec: {extendedResourceName: example.com/nic, selectors: [{cel: {expression: "device.driver == 'dra.net'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: neuron.aws.com}
"""


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        ("example.com/whole", True),
        ("example.com/slice", True),
        ("example.com/nic", False),
        ("example.com/other", False),
    ],
)
def test_the_extended_resource_of_a_device_class_counts(context: Contexts, resource: str, *, counts: bool) -> None:
    obj = pod([asks({resource: 1})])
    assert context(obj, facts=CLASSES).derived(gpu_demand).resources == ({resource: 1} if counts else {})
    assert context(obj).derived(gpu_demand).resources == {}


TEMPLATES = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: whole, namespace: research}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: former, namespace: research}
spec: {spec: {devices: {requests: [{name: a, deviceClassName: mig.nvidia.com}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: either, namespace: research}
spec:
  spec:
    devices:
      requests:
        - name: a
          firstAvailable:
            - {name: small, deviceClassName: mig-1g-10gb.nvidia.com}
            - {name: big, deviceClassName: gpu.nvidia.com, count: 4}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: network, namespace: research}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: nic.example.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: named, namespace: research}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: neuron.aws.com, allocationMode: All}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: elsewhere, namespace: other}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""


def claiming(*claims: dict[str, str], uses: tuple[str, ...] = ("x",)) -> dict[str, Any]:
    container = {"name": "c", "resources": {"claims": [{"name": name} for name in uses]}}
    return pod([container], resourceClaims=[{"name": "x", **claim} for claim in claims])


@pytest.mark.parametrize(
    ("obj", "classes", "unresolved"),
    [
        pytest.param(claiming({"resourceClaimTemplateName": "whole"}), {"gpu.nvidia.com": 2}, (), id="v1"),
        pytest.param(claiming({"resourceClaimTemplateName": "former"}), {"mig.nvidia.com": 1}, (), id="v1beta1"),
        pytest.param(
            claiming({"resourceClaimTemplateName": "either"}),
            {"mig-1g-10gb.nvidia.com": 0, "gpu.nvidia.com": 4},
            (),
            id="of alternatives the largest counts",
        ),
        pytest.param(claiming({"resourceClaimName": "named"}), {"neuron.aws.com": 1}, (), id="a claim by name"),
        pytest.param(claiming({"resourceClaimTemplateName": "network"}), {}, (), id="another device"),
        pytest.param(claiming({"resourceClaimTemplateName": "missing"}), {}, ("x",), id="an unknown template"),
        pytest.param(claiming({"resourceClaimTemplateName": "elsewhere"}), {}, ("x",), id="another namespace"),
        pytest.param(
            claiming({"resourceClaimTemplateName": "whole"}, uses=()),
            {"gpu.nvidia.com": 2},
            (),
            id="allocated to the Pod, used by no container",
        ),
        pytest.param(
            claiming({"resourceClaimTemplateName": "missing"}, uses=()), {}, ("x",), id="unknown, used by no container"
        ),
        pytest.param(claiming({}), {}, ("x",), id="a claim that names no object"),
    ],
)
def test_it_resolves_claims(
    context: Contexts, obj: dict[str, Any], classes: dict[str, int], unresolved: tuple[str, ...]
) -> None:
    demand = context(obj, facts=TEMPLATES).derived(gpu_demand)
    assert (demand.device_classes, demand.unresolved) == (classes, unresolved)


def test_without_facts_a_claim_stays_unresolved(context: Contexts) -> None:
    demand = context(claiming({"resourceClaimTemplateName": "whole"})).derived(gpu_demand)
    assert (bool(demand), demand.unresolved) == (False, ("x",))
    assert demand.doubt == Skip("the devices of claim x are unknown")


@pytest.mark.parametrize(
    ("claim", "complete", "absent"),
    [
        ({"resourceClaimTemplateName": "missing"}, True, ("x",)),
        ({"resourceClaimName": "missing"}, True, ("x",)),
        ({"resourceClaimTemplateName": "elsewhere"}, True, ("x",)),
        ({"resourceClaimTemplateName": "missing"}, False, ()),
        ({"resourceClaimTemplateName": "whole"}, True, ()),
        ({}, True, ()),
    ],
    ids=str,
)
def test_a_claim_is_absent_only_when_all_claims_are_known(
    context: Contexts, claim: dict[str, str], absent: tuple[str, ...], *, complete: bool
) -> None:
    demand = context(claiming(claim), facts=TEMPLATES, complete=complete).derived(gpu_demand)
    assert (demand.absent, bool(demand.doubt and demand.doubt.coming)) == (absent, bool(absent))
    assert demand.unknown == (() if absent else demand.unresolved)


def test_names_are_in_a_fixed_order(context: Contexts) -> None:
    obj = claiming({"resourceClaimTemplateName": "either"})
    obj["spec"]["containers"].append(asks({"nvidia.com/mig-1g.10gb": 1, "amd.com/gpu": 1}))
    assert context(obj, facts=TEMPLATES).derived(gpu_demand).names == (
        "amd.com/gpu",
        "nvidia.com/mig-1g.10gb",
        "gpu.nvidia.com",
        "mig-1g-10gb.nvidia.com",
    )
