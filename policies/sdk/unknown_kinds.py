"""Pods and GPU requests in objects of unknown kinds.

A Pod spec has `containers`, a list of objects with a name or an image (`k8s.io/api` core/v1 PodSpec, v0.36). A GPU request
is the name of an accelerator with an amount above 0 in a map `limits`, `requests` or `resources`, as in core/v1
ResourceRequirements.

A TrainJob has no Pod template: its training runtime has (Kubeflow trainer v2.0.0
`pkg/apis/trainer/v1alpha1/trainjob_types.go`, RuntimeRef, of which the kind defaults to ClusterTrainingRuntime).

Some objects install Helm charts, whose Pods are in no file: Argo CD v3.0 `pkg/apis/application/v1alpha1/types.go`
(ApplicationSource, ApplicationSourceHelm), Flux helm-controller v1.3 `api/v2/helmrelease_types.go` (HelmReleaseSpec),
K3s helm-controller v0.16 `pkg/apis/helm.cattle.io/v1/types.go` (HelmChartSpec).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.platform import Platform

_AMOUNTS: Final = frozenset({"limits", "requests", "resources"})
# Characters of a pattern, a placeholder or a template, which policies of other tools contain in place of a name.
_NO_NAME: Final = frozenset("*?|!<>(")


class UnknownKind(Struct, frozen=True, order=True):
    """A kind that no policy evaluates, with the Pods and GPU requests in its objects.

    Attributes:
        api_version: group and version.
        kind: the kind.
        objects: the number of its objects that contain a Pod spec or request GPUs.
        gpu_objects: the number of these that request GPUs.
    """

    api_version: str
    kind: str
    objects: int
    gpu_objects: int


class HelmApplications(Struct, frozen=True):
    """Objects that install Helm charts, such as Applications of Argo CD.

    Attributes:
        objects: the number of objects.
        gpu_objects: the number of objects whose values request GPUs.
        kinds: the number of objects of each of `CHART_INSTALLERS`, by its name in messages.
    """

    objects: int = 0
    gpu_objects: int = 0
    kinds: Mapping[str, int] = {}


class PodContent(Struct, frozen=True):
    """Whether an object contains a Pod spec, and whether it contains a GPU request."""

    pods: bool
    gpus: bool

    def __bool__(self) -> bool:
        return self.pods or self.gpus


def find_pod_content(obj: Mapping[str, Json] | None, platform: Platform) -> PodContent:
    """Search a whole object except its metadata and status; linear in its size."""
    pods = gpus = False
    pending: list[tuple[str, Json]] = [(k, v) for k, v in (obj or {}).items() if k not in {"metadata", "status"}]
    while pending and not (pods and gpus):
        key, value = pending.pop()
        if isinstance(value, dict):
            gpus = gpus or (key in _AMOUNTS and any(_asks(name, amount, platform) for name, amount in value.items()))
            pending.extend(value.items())
        elif isinstance(value, list):
            pods = pods or (key == "containers" and any(map(_is_container, value)))
            pending.extend(("", element) for element in value)
    return PodContent(pods, gpus)


def _asks(name: str, amount: Json, platform: Platform) -> bool:
    if not isinstance(amount, str | int | float) or not platform.is_accelerator(name):
        return False
    return (quantity.parse_or_none(amount) or 0) > 0


def _is_container(value: Json) -> bool:
    texts = [value.get(key) for key in ("name", "image")] if isinstance(value, dict) else []
    return any(isinstance(text, str) and text and _NO_NAME.isdisjoint(text) for text in texts)


# Kinds whose objects install Helm charts, and their names in messages.
CHART_INSTALLERS: Final[Mapping[tuple[str, str], str]] = {
    ("argoproj.io", "Application"): "Application of Argo CD",
    ("argoproj.io", "ApplicationSet"): "ApplicationSet of Argo CD",
    ("helm.cattle.io", "HelmChart"): "HelmChart of K3s",
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "HelmRelease of Flux",
}


def chart_values(group: str, obj: Mapping[str, Json] | None) -> Iterator[tuple[Field, ...]]:
    """Yield the values of each Helm chart that an object of a chart installer installs, as objects or YAML."""
    spec = Field(dict(obj or {}))["spec"]
    if group == "helm.toolkit.fluxcd.io":
        yield from [(spec["values"],)] if spec["chart"] or spec["chartRef"] else ()
    elif group == "helm.cattle.io":
        yield from [(spec["values"], spec["valuesContent"])] if spec["chart"] or spec["chartContent"] else ()
    else:
        for part in (spec, spec["template", "spec"]):
            for source in (part["source"], *part["sources"]):
                if source["chart"] or source["helm"]:
                    yield source["helm", "valuesObject"], source["helm", "values"]


# Kinds whose Pods are described by another object, so they have no path to a Pod template.
WITHOUT_TEMPLATE: Final = frozenset({("trainer.kubeflow.org", "TrainJob")})


def training_runtime(obj: Mapping[str, Json] | None) -> tuple[str, str]:
    """Return kind and name of the runtime that a TrainJob names; the name is empty if it names none."""
    reference = Field(dict(obj or {}))["spec", "runtimeRef"]
    return reference["kind"].text or "ClusterTrainingRuntime", reference["name"].text
