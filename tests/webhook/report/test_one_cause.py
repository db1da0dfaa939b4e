"""Which findings of one run are left out for another one."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.sdk.findings import Other, Stance
from gpugate.webhook.report.one_cause import Statement, followers

HPA, SCALER = Other("HorizontalPodAutoscaler", "a", "hpa"), Other("ScaledObject", "a", "llm")
NAMESPACE, POD, DEPLOYMENT = Other("Namespace", "a", "a"), Other("Pod", "a", "p"), Other("Deployment", "a", "d")
POOL, SECOND, AGENT = Other("NodePool", "", "x"), Other("NodePool", "", "y"), Other("DaemonSet", "a", "agent")
REPLICA_SET = Other("ReplicaSet", "a", "r")


def said(at: Other, *others: Other, follows: bool = False, **more: Any) -> Statement:
    stance = more.pop("stance", Stance.WARN)
    policy, message = more.pop("policy", "p"), more.pop("message", "m")
    return Statement(policy, message, stance, at.kind, at.namespace, at.name, others, follows, **more)


CASES: dict[str, tuple[list[Statement], dict[int, tuple[int, ...]]]] = {
    "both ends of a pair": ([said(HPA, SCALER, follows=True), said(SCALER, HPA)], {0: (1,)}),
    "the other end is not in the run": ([said(HPA, SCALER, follows=True)], {}),
    "the other end is about a third object": ([said(HPA, SCALER, follows=True), said(SCALER, DEPLOYMENT)], {}),
    "another policy": ([said(HPA, SCALER, follows=True), said(SCALER, HPA, policy="q")], {}),
    "the other end costs less": (
        [said(HPA, SCALER, follows=True, stance=Stance.ENFORCE), said(SCALER, HPA)],
        {},
    ),
    "all that a namespace has": (
        [said(POD, NAMESPACE, follows=True), said(DEPLOYMENT, NAMESPACE, follows=True), said(NAMESPACE)],
        {0: (2,), 1: (2,)},
    ),
    "a namespace that is stored without one": (
        [said(POD, NAMESPACE, follows=True), said(Other("Namespace", "", "a"))],
        {0: (1,)},
    ),
    "several that it follows": (
        [said(AGENT, POOL, SECOND, follows=True), said(POOL, AGENT), said(SECOND, AGENT)],
        {0: (1, 2)},
    ),
    "one of several is without a finding": ([said(AGENT, POOL, SECOND, follows=True), said(POOL, AGENT)], {}),
    "a Pod that a workload made": (
        [said(POD, owner=REPLICA_SET), said(REPLICA_SET, owner=DEPLOYMENT), said(DEPLOYMENT)],
        {0: (2,), 1: (2,)},
    ),
    "a Pod that is not as the template of its workload": (
        [said(POD, owner=DEPLOYMENT, message="n"), said(DEPLOYMENT)],
        {},
    ),
    "a Pod of a workload that follows its namespace": (
        [said(POD, owner=DEPLOYMENT), said(DEPLOYMENT, NAMESPACE, follows=True), said(NAMESPACE)],
        {0: (2,), 1: (2,)},
    ),
    "owners in a circle": ([said(POD, owner=DEPLOYMENT), said(DEPLOYMENT, owner=POD)], {}),
    "two that follow each other": ([said(POOL, SECOND, follows=True), said(SECOND, POOL, follows=True)], {}),
}


@pytest.mark.parametrize(("statements", "expected"), CASES.values(), ids=CASES)
def test_a_finding_is_left_out_for_one_that_states_its_cause(
    statements: list[Statement], expected: dict[int, tuple[int, ...]]
) -> None:
    assert followers(statements) == expected


def test_thousands_of_copies_take_time_in_proportion() -> None:
    copies = 3_000
    others = [said(SCALER, DEPLOYMENT)] * copies
    assert followers([*([said(HPA, SCALER, follows=True)] * copies), *others]) == {}
