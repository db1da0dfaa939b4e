"""A ResourceQuota that names GPUs without the prefix `requests.` limits nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harms.side import enough

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

TYPES = ("g5.xlarge", "g5.2xlarge")


@pytest.mark.quick
@pytest.mark.harm("quotas/ineffective-gpu-quota")
def test_a_namespace_uses_more_than_its_quota(harm: Harm) -> None:
    # Given: a namespace that is meant to have one GPU, and a pool.
    for side in harm.sides:
        side.create(side.pool(TYPES))
    harm.without.create(quota("nvidia.com/gpu"))
    harm.refused(quota("nvidia.com/gpu"), "with requests.nvidia.com/gpu the quota denies the second Pod")
    harm.guarded.create(quota("requests.nvidia.com/gpu"))
    for side in harm.sides:
        side.until(lambda side=side: is_counted(side), "the quota is in force")

    harm.without.create(harm.without.pod("first"), harm.without.pod("second"))
    harm.happens(
        "in a namespace with a quota of one GPU, two Pods run, each with one GPU",
        lambda: enough(harm.without.running(), 2),
    )

    harm.guarded.create(harm.guarded.pod("first"))
    assert "exceeded quota: gpus" in harm.guarded.asked(harm.guarded.pod("second")).message
    assert harm.guarded.until_running("first")


def quota(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus"},
        "spec": {"hard": {name: "1"}},
    }


def is_counted(side: Side) -> bool:
    """Whether the quota controller has taken the quota up; until then admission does not know it."""
    return any(quota.get("status", {}).get("hard") for quota in side.all("ResourceQuota"))
