"""Requests for the tests of the registration: what is sent to which path, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from library_examples import read_example

import gpugate.policies
from gpugate.policies.sdk.concerns import any_of
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.ruleset import Ruleset

_Json = dict[str, Any]
_POD: Final = GroupVersionKind("", "v1", "Pod")
_MAIN: Final = {"name": "main", "image": "busybox"}
_GPU: Final = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
BOTH: Final = {"/mutate", "/validate"}
CHECKED: Final = {"/validate"}
NOWHERE: Final[set[str]] = set()


def pod(namespace: str, spec: _Json, **metadata: Any) -> _Json:
    """Return a Pod called `asked`, with a container unless the spec has some."""
    named = {"name": "asked", "namespace": namespace, **metadata}
    # No scheduler cares for it, so that nobody else writes to it.
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": named,
        "spec": {"containers": [_MAIN], "schedulerName": "nobody", **spec},
    }


def example_pods(namespace: str) -> Iterator[tuple[str, _Json]]:
    """Yield the Pods of the library's examples, and a Pod of each of their templates."""
    for file in sorted(Path(gpugate.policies.__file__).parent.glob("*/examples/*/*.yaml")):
        for number, subject in enumerate(read_example(file.name, file.read_text(encoding="utf-8")).request.subjects):
            if subject.kind == _POD:
                written = {key: subject.field["metadata", key].value for key in ("labels", "annotations")}
                metadata = {key: value for key, value in written.items() if value}
                spec = {"restartPolicy": "Never", **subject.field["spec"].mapping}
                yield f"{file.parent.name}/{file.name} {number}", pod(namespace, spec, **metadata)


def may_interest(ruleset: Ruleset, obj: _Json, path: str) -> bool:
    """Tell whether a Pod can interest a policy that answers at a path."""
    bound = ruleset.handlers(_POD, mutating=path == "/mutate")
    concern = any_of(*(handler.concerns for _, handler in bound))
    return concern.holds(Field(obj), ruleset.config.platform, "admin")


# What a Pod has in its spec, and where it is sent.
PODS: Final[dict[str, tuple[_Json, set[str]]]] = {
    "a web server": ({}, NOWHERE),
    "selects its nodes": ({"nodeSelector": {"kubernetes.io/os": "linux"}}, NOWHERE),
    "is privileged and runs anywhere": (
        {"containers": [_MAIN | {"securityContext": {"privileged": True}}]},
        NOWHERE,
    ),
    "is privileged and selects its nodes": (
        {
            "containers": [_MAIN | {"securityContext": {"privileged": True}}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
        },
        CHECKED,
    ),
    "reads the logs of its node": ({"volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}]}, NOWHERE),
    "reads the devices of its node": ({"volumes": [{"name": "x", "hostPath": {"path": "/dev/nvidia0"}}]}, CHECKED),
    "tolerates something else": ({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}, NOWHERE),
    "tolerates the taint of GPU nodes": (
        {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]},
        CHECKED,
    ),
    "tolerates everything": ({"tolerations": [{"operator": "Exists"}]}, CHECKED),
    "asks for a GPU": ({"containers": [_MAIN | _GPU]}, BOTH),
    "asks for a GPU in an init container": ({"initContainers": [_MAIN | _GPU | {"name": "first"}]}, BOTH),
    "asks for something else": (
        {"containers": [_MAIN | {"resources": {"limits": {"example.com/fuse": "1"}}}]},
        NOWHERE,
    ),
    "names visible devices": (
        {"containers": [_MAIN | {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]},
        CHECKED,
    ),
    "has a claim": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]},
        BOTH,
    ),
    "spreads by a dropped label": (
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "karpenter.sh/provisioner-name",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "a"}},
                },
            ]
        },
        CHECKED,
    ),
}
_CLASS: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
_REQUIREMENT: Final = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
_NODE: Final = {"nodeClassRef": _CLASS, "requirements": [_REQUIREMENT]}
_CLAIM: Final = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": _NODE}
_OWNER: Final = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "a", "uid": "1"}
_LABELLED: Final = {"labels": {"app": "a"}}
_TEMPLATE: Final = {"metadata": _LABELLED, "spec": {"containers": [_MAIN]}}
_SELECTOR: Final = {"matchLabels": {"app": "a"}}
# Objects of other kinds, and where they are sent.
OBJECTS: Final[dict[str, tuple[_Json, set[str]]]] = {
    "NodePool": ({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": {"template": {"spec": _NODE}}}, BOTH),
    "NodeClaim made by hand": (_CLAIM, CHECKED),
    "NodeClaim that names a pool as its owner": (
        {**_CLAIM, "metadata": {"ownerReferences": [_OWNER], "labels": {"karpenter.sh/nodepool": "a"}}},
        CHECKED,
    ),
    "Deployment": (
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
        CHECKED,
    ),
    "Namespace": ({"apiVersion": "v1", "kind": "Namespace"}, CHECKED),
    "ConfigMap": ({"apiVersion": "v1", "kind": "ConfigMap"}, NOWHERE),
    "ServiceAccount": ({"apiVersion": "v1", "kind": "ServiceAccount"}, NOWHERE),
    "Lease": ({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}, NOWHERE),
    "Node": ({"apiVersion": "v1", "kind": "Node"}, NOWHERE),
}
