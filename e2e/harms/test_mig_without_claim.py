"""Neither a Pod that asks for a MIG slice nor one with a claim for it makes Karpenter launch a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mig_devices as mig
import pytest

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

SLICE = f"nvidia.com/mig-{mig.PROFILE}"
TYPES = ("p4d.24xlarge", "p5.48xlarge")


@pytest.mark.quick
@pytest.mark.harm("pods/mig-without-claim")
def test_karpenter_launches_nothing_for_a_slice(harm: Harm) -> None:
    # Given: a pool of GPUs that can be cut, the template of the slice, and no node yet.
    for side in harm.sides:
        side.create(side.pool(TYPES), mig.claim_template(side.name))
    harm.without.create(asking(harm.without, "by-resource"), claiming(harm.without, "by-claim"))

    harm.happens(
        "a Pod that requests the extended resource and a Pod with a claim stay Pending, because Karpenter launches a node for neither",
        lambda: is_refused(harm.without, SLICE) and is_refused(harm.without, "Dynamic Resource Allocation"),
    )
    assert {pod["metadata"]["name"] for pod in harm.without.unscheduled()} == {"by-resource", "by-claim"}
    assert not harm.without.node_claims()

    # As the claim would not help, gpugate writes none, and says why.
    asked = harm.guarded.asked(asking(harm.guarded, "by-resource"))
    assert any("Karpenter launches no nodes for Pods with claims" in warning for warning in asked.warnings)
    assert "resourceClaims" not in asked.body["spec"]
    harm.refused(
        asking(harm.guarded, "by-resource"),
        "no claim is added, and Karpenter launches a node only for a Pod with a whole GPU",
    )
    harm.guarded.create(harm.guarded.pod("whole"))
    assert harm.guarded.until_running("whole")


def asking(side: Side, name: str) -> dict[str, Any]:
    """A Pod that asks for the slice as for an extended resource."""
    return with_resources(side.pod(name, gpus=0), {"limits": {SLICE: "1"}})


def claiming(side: Side, name: str) -> dict[str, Any]:
    """A Pod that asks for it by a claim of the template."""
    claim = {"name": "slice", "resourceClaimTemplateName": mig.TEMPLATE}
    return with_resources(side.pod(name, gpus=0, resourceClaims=[claim]), {"claims": [{"name": "slice"}]})


def with_resources(pod: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    resources = container["resources"]
    container["resources"] = {**resources, **more, "limits": {**resources["limits"], **more.get("limits", {})}}
    return pod


def is_refused(side: Side, why: str) -> bool:
    """Whether Karpenter says that it can do nothing for a Pod."""
    return bool(side.said("FailedScheduling", why) and side.unscheduled())
