"""A Pod waits for ever, and Karpenter launches node after node, where GPU Feature Discovery overwrites a label of the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.simulated_types import GPU

from harms.manifests import HARM
from harms.side import enough

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

Object = dict[str, Any]
TYPES = ("g4dn.xlarge", "g4dn.2xlarge")
PRODUCT = "nvidia.com/gpu.product"
DECLARED, DETECTED = "NVIDIA-T4", "Tesla-T4"
# Only the limit ends the launches.
LIMIT = 3
# As of a driver or network agent, which removes it when the node is prepared. Pods start after that.
UNPREPARED = {"key": "example.com/unprepared", "effect": "NoSchedule"}


@pytest.mark.harm("nodepools/contested-label")
def test_karpenter_launches_nodes_that_do_not_keep_the_label(harm: Harm) -> None:
    for side in harm.sides:
        side.create(discovery(side))
    harm.without.create(declaring(harm.without), selecting(harm.without, PRODUCT, DECLARED))
    wasted = harm.happens(
        f"the Pod stays Pending, and Karpenter launches {LIMIT} nodes for it, each of which loses the label that it selects",
        lambda: harm.without.unscheduled("infer") and enough(prepared(harm.without), LIMIT),
    )
    assert {node["metadata"]["labels"][PRODUCT] for node in wasted} == {DETECTED}
    assert not harm.without.running("infer")
    harm.wastes(wasted)

    declared = declaring(harm.guarded)
    harm.guarded.until(lambda: harm.guarded.asked(declared).warnings, "gpugate knows the DaemonSet")
    harm.refused(
        declared, f"a Pod that selects the value {DETECTED}, which the pool then declares, runs on the first node"
    )
    harm.guarded.create(
        declaring(harm.guarded, DETECTED),
        selecting(harm.guarded, PRODUCT, DETECTED),
    )
    harm.guarded.until(lambda: prepared(harm.guarded) and harm.guarded.running("infer"), "the Pod runs", 120)
    assert len(harm.guarded.nodes()) == 1


def declaring(side: Side, product: str = DECLARED) -> Object:
    """A pool that declares the product of its GPUs."""
    pool = side.pool(TYPES, limits={GPU: str(LIMIT)}, template={"startupTaints": [UNPREPARED]})
    pool["spec"]["template"]["metadata"]["labels"][PRODUCT] = product
    return pool


def selecting(side: Side, label: str, value: str) -> Object:
    """A Pod for the nodes of this side's pool that have a label."""
    made = side.pod("infer")
    made["spec"]["nodeSelector"][label] = value
    return made


def prepared(side: Side) -> list[Object]:
    """Do on each new node what happens before Pods start: discovery writes its label, then the startup taint goes.

    Returns the nodes on which both have been done. Karpenter writes the labels of the pool until the node is registered.
    """
    done = []
    for node in side.nodes():
        taints = node["spec"].get("taints", [])
        left = [taint for taint in taints if taint["key"] != UNPREPARED["key"]]
        if node["metadata"]["labels"].get("karpenter.sh/registered") != "true":
            continue
        if node["metadata"]["labels"].get(PRODUCT) != DETECTED:
            changed = side.api.patch(node, {"metadata": {"labels": {PRODUCT: DETECTED}}})
        elif left != taints:
            changed = side.api.patch(node, {"spec": {"taints": left}})
        else:
            done.append(node)
            continue
        assert changed.ok, changed.message
    return done


def discovery(side: Side) -> Object:
    """The DaemonSet of GPU Feature Discovery; its Pods run on no simulated node, where `prepared` does its work."""
    labels = {"app": "gpu-feature-discovery"}
    container = {
        "name": "gfd",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.4",
        "command": ["gpu-feature-discovery"],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "gpu-feature-discovery", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "nodeSelector": {HARM: f"none-{side.name}"}},
            },
        },
    }
