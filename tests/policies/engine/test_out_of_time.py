from __future__ import annotations

import contextlib
import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import OutOfTimeError, PolicyConfig
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Patch, Violation
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Field

OBJECT: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}


@mutates(POD)
def labels(pod: Field, _: AnyContext) -> Iterator[Patch]:
    if not pod["metadata", "labels", "seen"]:
        yield Patch("set", ("metadata", "labels", "seen"), "yes", "adds a label")


@validates(POD)
def finds(pod: Field, _: AnyContext) -> Iterator[Violation]:
    yield Violation(pod.path, "is a Pod")


@validates(POD)
def swallows(pod: Field, _: AnyContext) -> Iterator[Violation]:
    with contextlib.suppress(BaseException):
        yield Violation(pod.path, "is a Pod")


RULES = bind(
    (
        Policy("pods/labels", "", (labels,)),
        Policy("pods/finds", "", (finds,)),
        Policy("pods/swallows", "", (swallows,)),
    ),
    PolicyConfig(),
)


def judge(phase: Phase, out_of_time: Callable[[], bool], **members: Any) -> Verdict:
    request = Request(
        GroupVersionKind("", "v1", "Pod"), **({"operation": Operation.CREATE, "object": OBJECT} | members)
    )
    return evaluate(RULES, request, NoFacts(), today=dt.date(2026, 11, 21), phase=phase, out_of_time=out_of_time)


def after(calls: int) -> Callable[[], bool]:
    """Say that the time is over after being asked so often."""
    left = iter([False] * calls)
    return lambda: next(left, True)


@pytest.mark.parametrize(
    ("phase", "calls", "policy"),
    [
        (Phase.MUTATE, 0, "pods/labels"),
        (Phase.MUTATE, 1, "pods/labels"),
        (Phase.VALIDATE, 0, "pods/finds"),
        (Phase.VALIDATE, 1, "pods/swallows"),
        (Phase.BOTH, 2, "pods/finds"),
    ],
)
def test_no_further_policy_is_called(phase: Phase, calls: int, policy: str) -> None:
    with pytest.raises(OutOfTimeError) as stopped:
        judge(phase, after(calls))
    assert stopped.value.policy == policy


def test_the_old_object_takes_time_too() -> None:
    with pytest.raises(OutOfTimeError):
        judge(Phase.VALIDATE, after(1), operation=Operation.UPDATE, old_object=OBJECT)


def test_the_last_policy_may_end_after_its_time() -> None:
    assert len(judge(Phase.VALIDATE, after(2)).denials) == 2


def test_where_nothing_is_to_be_judged_there_is_time_enough() -> None:
    kind = GroupVersionKind("", "v1", "ConfigMap")
    request = Request(kind, Operation.CREATE, {"metadata": {"name": "a"}})
    today = dt.date(2026, 11, 21)
    assert evaluate(RULES, request, NoFacts(), today=today, out_of_time=lambda: True).allowed
