"""Find the Kubernetes objects in a document, and make each a request to create it.

Sources: Kubernetes v1.36 (`k8s.io/api`), Karpenter v1.14.1 and its former versions back to v0.1, karpenter-provider-aws
v1.14.1, KEDA v2.20.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.policies.sdk.quantity import type_name
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.documents import HEAD, SourceText, is_foreign
from gpugate.webhook.manifests.placeholders import found_in
from gpugate.webhook.manifests.problems import Passing, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.webhook.manifests.documents import Document

_NAMESPACED: Final = {
    "": (
        "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController "
        "ResourceQuota Secret Service ServiceAccount"
    ),
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling": "HorizontalPodAutoscaler Scale",
    "batch": "CronJob Job",
    "karpenter.k8s.aws": "",
    "karpenter.sh": "HorizontalAutoscaler MetricsProducer ScalableNodeGroup",
    "keda.sh": "ScaledJob ScaledObject TriggerAuthentication",
    "policy": "Eviction PodDisruptionBudget",
}
_CLUSTER_WIDE: Final = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "apps": "",
    "autoscaling": "",
    "batch": "",
    "karpenter.k8s.aws": "AWSNodeTemplate EC2NodeClass",
    "karpenter.sh": "Machine NodeClaim NodeOverlay NodePool Provisioner",
    "keda.sh": "ClusterTriggerAuthentication",
    "policy": "PodSecurityPolicy",
}
_OPEN_NAMESPACED: Final = frozenset(
    {
        ("kueue.x-k8s.io", "LocalQueue"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("serving.kserve.io", "LLMInferenceServiceConfig"),
        ("serving.kserve.io", "ServingRuntime"),
        ("trainer.kubeflow.org", "TrainJob"),
    }
)
_OPEN_CLUSTER_WIDE: Final = frozenset(
    {
        ("eks.amazonaws.com", "NodeClass"),
        ("kueue.x-k8s.io", "ClusterQueue"),
        ("kueue.x-k8s.io", "ResourceFlavor"),
        ("resource.k8s.io", "DeviceClass"),
        ("serving.kserve.io", "ClusterServingRuntime"),
    }
)

_CLUSTER_WIDE_TEMPLATES: Final = frozenset(
    {("trainer.kubeflow.org", "ClusterTrainingRuntime"), ("argoproj.io", "ClusterWorkflowTemplate")}
)


def is_namespaced(kind: GroupVersionKind) -> bool | None:
    """Tell whether objects of a type live in a namespace; None when the type is not known."""
    pair = (kind.group, kind.kind)
    if pair in _CLUSTER_WIDE_TEMPLATES:
        return False
    if pair in TEMPLATES or pair in _OPEN_NAMESPACED or kind.kind in _NAMESPACED.get(kind.group, "").split():
        return True
    if pair in _OPEN_CLUSTER_WIDE or kind.kind in _CLUSTER_WIDE.get(kind.group, "").split():
        return False
    return None


def correction(kind: GroupVersionKind) -> str | None:
    """Say what to write instead when a group has no such kind; None when it may have one."""
    if kind.group not in _NAMESPACED or is_namespaced(kind) is not None:
        return None
    for group, names in (*_NAMESPACED.items(), *_CLUSTER_WIDE.items()):
        if kind.kind in names.split():
            return f"write the apiVersion of {group or 'the core group'}, which has this kind"
    import difflib  # noqa: PLC0415 -- only a mistake needs it, and it costs start-up time

    names_here = f"{_NAMESPACED[kind.group]} {_CLUSTER_WIDE[kind.group]}".split()
    near = difflib.get_close_matches(kind.kind, names_here, n=1)
    return f"did you mean {near[0]}?" if near else f"known kinds: {', '.join(sorted(names_here))}"


_MAX_LISTS = 3  # a list of lists of lists is what `kubectl get -o yaml` makes at worst
# Files that look like objects and are instructions for a tool on the user's side.
_TOOL_FILES: Final = {
    "gpugate.dev": "gpugate's own configuration",
    "kustomize.config.k8s.io": "a kustomization: check what `kustomize build` makes of it",
}


class Manifest(Struct, frozen=True):
    """An object of a document; `prefix` is the path to it where a list holds it."""

    document: Document
    prefix: Path
    request: Request


class NotAManifest(Struct, frozen=True):
    """A document that is not meant for the API server; `detail` is worth telling where it is not empty."""

    source: str
    line: int
    passing: Passing = Passing.NON_MANIFEST
    detail: str = ""


Found = Manifest | Problem | NotAManifest


def objects(document: Document, *, namespace: str = "default", lenient: bool = False) -> Iterator[Found]:
    """Yield the objects of a document.

    Args:
        document: where they stand.
        namespace: the namespace of a namespaced object that names none.
        lenient: pass over what is not meant to be an object, as a directory holds much of it.
    """
    root = Field(document.value)
    if lenient and is_foreign(document.value):
        yield NotAManifest(document.source, document.first_line)
    else:
        yield from _objects(SourceText(document), root, namespace, 0)


def _objects(source: SourceText, field: Field, namespace: str, level: int) -> Iterator[Found]:
    is_list, wrong = _listed(field, level)
    is_open = bool(found_in(field["apiVersion"].text) or found_in(field["kind"].text))
    refusal = wrong or (None if is_open else _refusal(field, is_list=is_list))
    if refusal:
        at, message, remedy = refusal
        yield _problem(source, at.path, message, remedy)
        if wrong or not is_list:
            return
    kind = GroupVersionKind.of(field["apiVersion"].text, field["kind"].text)
    if is_open:
        yield NotAManifest(source.document.source, source.document.first_line, Passing.TEMPLATE)
    elif is_list:
        yield from _items(source, field, kind, namespace, level)
    elif kind.group in _TOOL_FILES:
        yield _for_tool(source.document, _TOOL_FILES[kind.group])
    elif (kind.group, kind.kind) == ("", "Config"):
        yield _for_tool(source.document, "a kubeconfig")
    else:
        yield Manifest(source.document, field.path, _request(kind, field, namespace))


def _for_tool(document: Document, detail: str) -> NotAManifest:
    return NotAManifest(document.source, document.first_line, Passing.TOOL_FILE, detail)


def _listed(field: Field, level: int) -> tuple[bool, tuple[Field, str, str] | None]:
    """Tell whether kubectl takes something for a list, and what is wrong if it takes it for one and cannot read it.

    `items` alone makes a list, whatever the kind and the name are (apimachinery v0.36 unstructured/helpers.go: decode);
    within a list only a list of `items` does (unstructured.go: IsList).
    """
    if not isinstance(field.value, dict) or "items" not in field.value:
        return False, None
    items = field.value["items"]
    if items is None or isinstance(items, list):
        return not level or items is not None, None
    if found_in(field["items"].text):
        return False, None
    wrong = (
        field["items"],
        f"items is {type_name(items)}, not a list",
        "kubectl takes any object with items for a list",
    )
    return (False, None) if level else (True, wrong)


def _items(source: SourceText, field: Field, kind: GroupVersionKind, namespace: str, level: int) -> Iterator[Found]:
    if level >= _MAX_LISTS:
        yield _problem(source, field.path, f"more than {_MAX_LISTS} lists in each other", "flatten them")
        return
    if level:
        message, remedy = "a list within a list, which kubectl does not read", "flatten them"
        yield _problem(source, field["items"].path, message, remedy, warning=True)
    elif field["metadata", "name"] and not kind.kind.endswith("List"):
        message = f"kubectl takes a {kind.kind[:80]} with items for a list, and creates only the items"
        remedy = "remove items, or give them documents of their own"
        yield _problem(source, field["items"].path, message, remedy, warning=True)
    for item in field["items"]:
        yield from _objects(source, _typed(item, field), namespace, level + 1)


def _problem(source: SourceText, path: Path, message: str, remedy: str, *, warning: bool = False) -> Problem:
    span, around = source.find(path)
    file = source.document.source
    return Problem(file, span.line, span.column, message, remedy, warning, excerpt=around, end=span.end)


def _refusal(field: Field, *, is_list: bool) -> tuple[Field, str, str] | None:
    """Return the field, message and remedy if a document is not an object that can be evaluated."""
    if not isinstance(field.value, dict):
        return field, f"not a Kubernetes object but {type_name(field.value)}", _not_an_object(field.value)
    if field["sops"] and not field["kind"]:
        return field, "encrypted with SOPS", "decrypt it first, as in `sops -d FILE | gpugate check -`"
    for key in HEAD:
        if not isinstance(field[key].value, str) or not field[key].text:
            problem = f"{key} is {type_name(field[key].value)}" if field[key] else f"missing {key}"
            return field[key], problem, f"write {key} at the top, as in `apiVersion: apps/v1` and `kind: Deployment`"
    kind = GroupVersionKind.of(field["apiVersion"].text, field["kind"].text)
    better = correction(kind) if not kind.kind.endswith(("List", "Config")) else None
    if better:
        return field["kind"], f"{kind.api_version} has no kind {kind.kind[:80]}", better
    return _nameless(kind, field) if is_namespaced(kind) is not None and not is_list else None


def _nameless(kind: GroupVersionKind, field: Field) -> tuple[Field, str, str] | None:
    metadata = field["metadata"]
    if found_in(metadata.text):
        return None
    if metadata and not isinstance(metadata.value, dict):
        return metadata, f"metadata is {type_name(metadata.value)}", "write an object with a name"
    for key in ("name", "generateName", "namespace"):
        member = metadata[key]
        if member and not isinstance(member.value, str):
            problem = f"{render(member.path)} is {type_name(member.value)}"
            return (
                member,
                problem,
                "put it in quotes" if not isinstance(member.value, dict | list) else "write a string",
            )
    if not metadata["name"].text and not metadata["generateName"].text:
        beside = "indent what belongs to it: `name` stands beside metadata, not under it"
        return metadata["name"], f"{kind.kind} without a name", beside if field["name"] else "write metadata.name"
    return None


def _not_an_object(value: Json) -> str:
    if isinstance(value, list):
        return "begin each object with ---, or put them under `items:` of a `kind: List`"
    return "write `key: value` lines; if this was an object once, its indentation or its line breaks are lost"


def _typed(item: Field, listed: Field) -> Field:
    """Give an item that says neither part of its type the list's own, as the items of a PodList need it."""
    if isinstance(item.value, dict) and not any(item[key].text for key in HEAD):
        kind = listed["kind"].text.removesuffix("List")
        item.value |= {"apiVersion": listed["apiVersion"].text, "kind": kind} if kind else {}
    return item


def _request(kind: GroupVersionKind, field: Field, default_namespace: str) -> Request:
    metadata = field["metadata"]
    name, namespaced = metadata["name"].text, is_namespaced(kind)
    namespace = metadata["namespace"].text
    if namespaced is None:
        pass
    elif namespaced:
        namespace = namespace or default_namespace
    else:
        # The API server gives the creation of a Namespace the namespace itself (apiserver v0.36 handlers/create.go).
        namespace = name if kind.kind == "Namespace" else ""
    return Request(
        kind=kind,
        operation=Operation.CREATE,
        object=field.value if isinstance(field.value, dict) else None,
        name=name,
        generate_name=metadata["generateName"].text,
        namespace=namespace,
    )
