"""What exists beside the examples in the cluster: always, or because an example says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.namespaces import namespace_object

from library.cases import FILES, case, placed
from library.storable import storable

if TYPE_CHECKING:
    from library.cases import Case

Json = dict[str, Any]
# Two that NVIDIA's DRA driver installs (kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, deployments/helm).
_DEVICE_CLASSES = {"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig"}
# NVIDIA's GPU operator installs it (gpu-operator v26.7.0).
_RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}


def beside(judged: Case) -> list[Json]:
    """Return the objects that exist beside an example, but for those of Kubernetes itself."""
    return [obj for obj in STANDING if not contradicts(obj, judged)] + context_of(judged)


def context_of(judged: Case) -> list[Json]:
    """Return what an example says that exists, namespaces first."""
    objects = [storable(placed(request)) for request in judged.example.context]
    return sorted(objects, key=lambda obj: obj["kind"] != "Namespace")


def contradicts(obj: Json, judged: Case) -> bool:
    """Tell whether an example has an object of its own in the place of this one, or device classes of its own."""
    own = [judged.judged, *context_of(judged)]
    if obj["kind"] == "DeviceClass":
        return any(other["kind"] == "DeviceClass" for other in own)
    return any((other["kind"], other["metadata"]["name"]) == (obj["kind"], obj["metadata"]["name"]) for other in own)


def _namespaces() -> set[str]:
    requests = [request for file in FILES for request in (*case(file).example.context, case(file).example.request)]
    return {request.namespace for request in requests if request.kind.kind != "Namespace"} - {
        "",
        "default",
        "kube-system",
    }


def _device_class(name: str) -> Json:
    driver, sort = "device.driver == 'gpu.nvidia.com'", _DEVICE_CLASSES[name]
    expression = f"{driver} && device.attributes['gpu.nvidia.com'].type == '{sort}'"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


STANDING = (*map(namespace_object, sorted(_namespaces())), *map(_device_class, _DEVICE_CLASSES), _RUNTIME_CLASS)
