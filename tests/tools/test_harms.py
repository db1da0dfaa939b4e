from __future__ import annotations

from pathlib import Path

from gpugate.policies.catalog import CATALOG
from gpugate.policies.data.harms_seen import SeenHarm, load_harms_seen
from gpugate.tools.policy_page import seen_happening

ROOT = Path(__file__).parents[2]
WASTEFUL = SeenHarm(
    policy="nodepools/budget-blocks-empty",
    test="e2e/harms/test_budget_blocks_empty.py::test_an_empty_node_is_kept",
    happened="Karpenter keeps the empty node",
    seconds=31,
    prevented="the empty node goes",
    gpu_hours=1_096,
    dollars=1_136.1,
    controllers=("Kubernetes v1.36.3", "Karpenter v1.14.1"),
    date="2026-11-21",
)


def test_a_harm_is_told_with_its_cost_its_versions_and_its_test() -> None:
    assert list(seen_happening(WASTEFUL.policy, [WASTEFUL])) == [
        "## Observed",
        "",
        ("**Without gpugate:** Karpenter keeps the empty node. This costs 1,096 GPU-hours ($1,136.10) a day.\\"),
        "**With gpugate:** the empty node goes.\\",
        (
            "Observed with Kubernetes v1.36.3 and Karpenter v1.14.1, on 2026-11-21, 31 s into the test"
            " [test_an_empty_node_is_kept](../../../e2e/harms/test_budget_blocks_empty.py)."
        ),
        "",
    ]


def test_a_policy_whose_harm_was_not_seen_has_no_such_section() -> None:
    assert list(seen_happening("pods/other", [WASTEFUL])) == []


def test_every_harm_is_of_a_policy_and_shown_by_a_test() -> None:
    harms = load_harms_seen()
    assert {harm.policy for harm in harms} <= {policy.id for policy in CATALOG}
    assert [harm.test for harm in harms if not (ROOT / harm.test.partition("::")[0]).is_file()] == []
