"""The table of Karpenter's former metrics."""

from __future__ import annotations

from gpugate.policies.data.karpenter_metrics import DROPPED, RENAMED, WITH_REASON, WITHOUT_REASON

# Names of Karpenter v1.14.1 that end a rename or are a replacement (`pkg/metrics`, `pkg/controllers/**/metrics.go`).
TODAY = {
    f"karpenter_{name}"
    for name in (
        "interruption_deleted_messages_total", "interruption_message_queue_duration_seconds", "interruption_received_messages_total",
        "nodeclaims_created_total", "nodeclaims_disrupted_total", "nodeclaims_terminated_total",
        "nodepools_allowed_disruptions", "nodepools_limit", "nodepools_usage",
        "nodes_created_total", "nodes_terminated_total", "nodes_termination_duration_seconds",
        "pods_startup_duration_seconds", "scheduler_queue_depth", "scheduler_scheduling_duration_seconds",
        "voluntary_disruption_consolidation_timeouts_total", "voluntary_disruption_decision_evaluation_duration_seconds",
        "voluntary_disruption_decisions_total", "voluntary_disruption_eligible_nodes", "voluntary_disruption_queue_failures_total",
    )
}  # fmt: skip


def test_no_metric_of_today_is_reported() -> None:
    assert not TODAY & (RENAMED.keys() | DROPPED.keys())


def test_every_replacement_exists_today() -> None:
    assert {*RENAMED.values(), *DROPPED.values(), WITH_REASON, *WITHOUT_REASON} - {""} <= TODAY


def test_no_metric_is_both_renamed_and_dropped() -> None:
    assert not RENAMED.keys() & DROPPED.keys()
