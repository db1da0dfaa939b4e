"""Metrics of Karpenter that no longer exist, and what to query instead.

Source: the lists of renamed and dropped metrics in Karpenter's "v1 Migration" guide and "v1beta1 Upgrade Reference"; names and labels
today: Karpenter v1.14.1 `pkg/metrics/metrics.go`, `pkg/controllers/**/metrics.go`. Read on 2026-11-23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX: Final = "karpenter_"
_RENAMED: Final = {
    "deprovisioning_actions_performed": "voluntary_disruption_decisions_total",
    "deprovisioning_consolidation_timeouts": "voluntary_disruption_consolidation_timeouts_total",
    "deprovisioning_evaluation_duration_seconds": "voluntary_disruption_decision_evaluation_duration_seconds",
    "disruption_actions_performed_total": "voluntary_disruption_decisions_total",
    "disruption_budgets_allowed_disruptions": "nodepools_allowed_disruptions",
    "disruption_consolidation_timeouts_total": "voluntary_disruption_consolidation_timeouts_total",
    "disruption_eligible_nodes": "voluntary_disruption_eligible_nodes",
    "disruption_evaluation_duration_seconds": "voluntary_disruption_decision_evaluation_duration_seconds",
    "disruption_replacement_nodeclaim_failures_total": "voluntary_disruption_queue_failures_total",
    "interruption_deleted_messages": "interruption_deleted_messages_total",
    "interruption_message_latency_time_seconds": "interruption_message_queue_duration_seconds",
    "interruption_received_messages": "interruption_received_messages_total",
    "nodeclaims_created": "nodeclaims_created_total",
    "nodeclaims_disrupted": "nodeclaims_disrupted_total",
    "nodeclaims_terminated": "nodeclaims_terminated_total",
    "nodepool_limit": "nodepools_limit",
    "nodepool_usage": "nodepools_usage",
    "nodes_created": "nodes_created_total",
    "nodes_terminated": "nodes_terminated_total",
    "nodes_termination_time_seconds": "nodes_termination_duration_seconds",
    "pods_startup_time_seconds": "pods_startup_duration_seconds",
    "provisioner_scheduling_queue_depth": "scheduler_queue_depth",
    "provisioner_scheduling_simulation_duration_seconds": "scheduler_scheduling_duration_seconds",
    "provisioners_limit": "nodepools_limit",
    "provisioners_usage": "nodepools_usage",
}
# The nearest metric of today; empty where there is none.
_DROPPED: Final = {
    "consistency_errors": "",
    "disruption_pods_disrupted_total": "",
    "disruption_queue_depth": "",
    "disruption_replacement_nodeclaim_initialized_seconds": "",
    "interruption_actions_performed": "",
    "nodeclaims_drifted": "nodeclaims_disrupted_total",
    "nodeclaims_initialized": "nodeclaims_created_total",
    "nodeclaims_launched": "nodeclaims_created_total",
    "nodeclaims_registered": "nodeclaims_created_total",
    "nodes_leases_deleted": "",
    "provisioner_scheduling_duration_seconds": "scheduler_scheduling_duration_seconds",
    "provisioners_usage_pct": "",
}
RENAMED: Final[Mapping[str, str]] = {_PREFIX + old: _PREFIX + new for old, new in _RENAMED.items()}
"""Metric before Karpenter 1.0 -> its name since then."""
DROPPED: Final[Mapping[str, str]] = {_PREFIX + old: new and _PREFIX + new for old, new in _DROPPED.items()} | {
    # Never exported under these names, which are a common mistake.
    f"{_PREFIX}nodeclaims_{name}_total": f"{_PREFIX}nodeclaims_created_total"
    for name in ("initialized", "launched", "registered")
}
"""Metric that Karpenter 1.0 does not have -> the nearest metric; empty if there is none."""
WITHOUT_REASON: Final = frozenset({"karpenter_nodeclaims_terminated_total", "karpenter_nodes_terminated_total"})
"""Metrics without a label `reason`; `karpenter_nodeclaims_disrupted_total` has it."""
WITH_REASON: Final = "karpenter_nodeclaims_disrupted_total"
