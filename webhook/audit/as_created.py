"""Takes back what others than the user write into an object after, or while, it is created.

What is left is what would be sent if the object were created now, as far as that can be told. Sources: Kubernetes v1.36
(`pkg/apis/core/v1/defaults.go`, `plugin/pkg/admission/{defaulttolerationseconds,priority,serviceaccount}`,
`pkg/controller/daemon/util/daemonset_util.go`), and Pods as kube-apiserver v1.36.3 stores them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

Object = dict[str, Any]  # Any: the JSON edge

_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
_ANNOTATIONS: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deployment.kubernetes.io/revision",
        "kubernetes.io/limit-ranger",
        # Networks write addresses into every Pod: Calico, Multus, OVN-Kubernetes, Amazon VPC CNI.
        "cni.projectcalico.org/containerID",
        "cni.projectcalico.org/podIP",
        "cni.projectcalico.org/podIPs",
        "k8s.ovn.org/pod-networks",
        "k8s.v1.cni.cncf.io/network-status",
        "k8s.v1.cni.cncf.io/networks-status",
        "vpc.amazonaws.com/pod-eni",
        "vpc.amazonaws.com/pod-ips",
    }
)
# The Priority plugin resolves the class of a Pod into these.
_RESOLVED: Final = ("priority", "preemptionPolicy", "serviceAccount", "ephemeralContainers")
_DEFAULTS: Final = {"serviceAccountName": "default", "enableServiceLinks": True}
_TOKEN_VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}|default-token-[a-z0-9]{5}")
_ABSENT: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_OF_DAEMON_SETS: Final = frozenset(
    f"node.kubernetes.io/{condition}"
    for condition in (
        *("not-ready", "unreachable", "disk-pressure", "memory-pressure"),
        *("pid-pressure", "unschedulable", "network-unavailable"),
    )
)


def as_created(obj: Object) -> Object:
    """Return an object without its status and what the API server keeps about it; nothing in it is changed."""
    metadata = obj.get("metadata")
    kept = {key: value for key, value in obj.items() if key != "status"}
    if isinstance(metadata, dict):
        kept["metadata"] = _metadata(metadata)
    return kept


def pod_as_created(pod: Object, owner_kind: str = "") -> Object:
    """Return a Pod, or a Pod template, the same way, and without what admission and controllers put into its spec.

    `owner_kind` is the kind of its controller: a DaemonSet's binds its Pods to nodes by affinity. The name of a node
    stays when whoever created the Pod wrote it, which the Pod's managed fields tell: a binding leaves no trace there.
    """
    kept = as_created(pod)
    spec = pod.get("spec")
    if isinstance(spec, dict):
        kept["spec"] = _spec(spec, owner_kind, names_node=_wrote_node_name(pod))
    return kept


def _metadata(metadata: Object) -> Object:
    kept = {key: metadata[key] for key in _METADATA if metadata.get(key) is not None}
    annotations = kept.get("annotations")
    if isinstance(annotations, dict) and not _ANNOTATIONS.isdisjoint(annotations):
        kept["annotations"] = {key: value for key, value in annotations.items() if key not in _ANNOTATIONS}
    return kept


def _wrote_node_name(pod: Object) -> bool:
    metadata = pod.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    fields = (e.get("fieldsV1") for e in entries if isinstance(e, dict)) if isinstance(entries, list) else ()
    specs = (found.get("f:spec") for found in fields if isinstance(found, dict))
    return any(isinstance(spec, dict) and "f:nodeName" in spec for spec in specs)


def _spec(spec: Object, owner_kind: str, *, names_node: bool) -> Object:
    kept = {
        key: value
        for key, value in spec.items()
        if key not in _RESOLVED and not (key in _DEFAULTS and value == _DEFAULTS[key])
    }
    if not names_node:
        kept.pop("nodeName", None)
    of_daemon_set = owner_kind == "DaemonSet"
    _leave_out(kept, "tolerations", lambda each: _is_added_toleration(each, of_daemon_set=of_daemon_set))
    tokens = {_name(each) for each in _list(kept.get("volumes")) if _TOKEN_VOLUME.fullmatch(_name(each))}
    if tokens:
        _leave_out(kept, "volumes", lambda each: _name(each) in tokens)
        for containers in ("containers", "initContainers"):
            if containers in kept:
                kept[containers] = [_without_mounts(each, tokens) for each in _list(kept[containers])]
    if of_daemon_set:
        _forget_node(kept)
    return kept


def _leave_out(obj: Object, key: str, unwanted: Any) -> None:
    left = [each for each in _list(obj.get(key)) if not unwanted(each)]
    if left:
        obj[key] = left
    elif isinstance(obj.get(key), list):
        del obj[key]


def _is_added_toleration(toleration: object, *, of_daemon_set: bool) -> bool:
    if not isinstance(toleration, dict) or toleration.get("operator") != "Exists":
        return False
    key, seconds = toleration.get("key"), toleration.get("tolerationSeconds")
    if seconds is not None:
        return key in _ABSENT and seconds == 300 and toleration.get("effect") == "NoExecute"
    return of_daemon_set and key in _OF_DAEMON_SETS


def _without_mounts(container: object, volumes: set[str]) -> object:
    if not isinstance(container, dict) or "volumeMounts" not in container:
        return container
    kept = dict(container)
    _leave_out(kept, "volumeMounts", lambda mount: _name(mount) in volumes)
    return kept


def _forget_node(spec: Object) -> None:
    """Take out the node that the DaemonSet controller chose: a field selector on its name in each term."""
    affinity = spec.get("affinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    node_affinity = affinity.get("nodeAffinity") if isinstance(affinity, dict) else None
    selector = node_affinity.get(required) if isinstance(node_affinity, dict) else None
    terms = selector.get("nodeSelectorTerms") if isinstance(selector, dict) else None
    left = [{k: v for k, v in term.items() if k != "matchFields"} for term in _list(terms) if isinstance(term, dict)]
    others = {key: value for key, value in node_affinity.items() if key != required} if node_affinity else {}
    if any(left):
        others[required] = {"nodeSelectorTerms": [term for term in left if term]}
    rest = (
        {key: value for key, value in affinity.items() if key != "nodeAffinity"} if isinstance(affinity, dict) else {}
    )
    kept = {**rest, **({"nodeAffinity": others} if others else {})}
    if kept:
        spec["affinity"] = kept
    else:
        spec.pop("affinity", None)


def _name(obj: object) -> str:
    name = obj.get("name") if isinstance(obj, dict) else None
    return name if isinstance(name, str) else ""


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()
