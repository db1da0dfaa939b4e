"""A run that hangs keeps its GPU node until its Job is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.component_files import HANGS

from harms.manifests import EMPTY_GOES

if TYPE_CHECKING:
    from harms.harm import Harm
    from harms.side import Side

# From the creation of the Job: longer than Karpenter takes for a node, also on a machine that does much else.
DEADLINE_SECONDS = 45


@pytest.mark.harm("pods/endless-job")
def test_a_run_that_hangs_keeps_its_node(harm: Harm) -> None:
    # Given: Karpenter removes empty nodes, and a run that never ends.
    harm.refused(job(harm.guarded), "with activeDeadlineSeconds the Job is ended, and Karpenter removes the node")
    for side in harm.sides:
        side.create(side.pool(["g5.xlarge", "g5.2xlarge"], disruption=EMPTY_GOES))
    harm.without.create(job(harm.without))
    harm.guarded.create(job(harm.guarded, activeDeadlineSeconds=DEADLINE_SECONDS))
    for side in harm.sides:
        side.until_running("tune")

    harm.guarded.until(lambda: "DeadlineExceeded" in failures(harm.guarded), "the Job is ended", 120)
    harm.guarded.until(lambda: harm.guarded.gone_nodes() and not harm.guarded.nodes(), "the node is removed", 120)
    # What Karpenter has done to one node, it has had the chance to do to the other.
    harm.happens(
        "the Job does not end, and Karpenter keeps its GPU node",
        lambda: harm.without.running("tune") and harm.without.said("Unconsolidatable", "not empty"),
    )
    assert not harm.without.gone_nodes()
    harm.wastes(harm.without.nodes())


def job(side: Side, **spec: Any) -> dict[str, Any]:
    run = side.pod("tune", workload="training", annotations={HANGS: "true"}, restartPolicy="Never")
    name = run["metadata"].pop("name")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": run["metadata"]["labels"]},
        "spec": {"template": run, **spec},
    }


def failures(side: Side) -> set[str]:
    """Why the Job controller has ended Jobs."""
    conditions = [one for made in side.all("Job") for one in made.get("status", {}).get("conditions", ())]
    return {one["reason"] for one in conditions if one["type"] == "Failed"}
