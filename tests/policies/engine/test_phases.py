"""What is evaluated of a request: what a mutation makes of it, and nothing of the shape of what is deleted."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.config import OutOfTimeError, PolicyConfig
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Patch, Violation
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Json


@mutates(POD)
def labels(pod: Field, _: AnyContext) -> Iterator[Patch]:
    if not pod["metadata", "labels", "team"]:
        yield Patch("set", ("metadata", "labels", "team"), "none", "")


@validates(POD, operations=frozenset(Operation))
def unlabelled(pod: Field, _: AnyContext) -> Iterator[Violation]:
    if not pod["metadata", "labels", "team"]:
        yield Violation(("metadata", "labels"), "has no team")


RULES = bind((Policy("pods/labels", "", (labels,)), Policy("pods/unlabelled", "", (unlabelled,))), PolicyConfig())
TODAY = dt.date(2026, 11, 21)


def request(obj: Json, operation: Operation = Operation.CREATE) -> Request:
    whole: dict[str, Json] = {"metadata": obj}
    new, old = (None, whole) if operation is Operation.DELETE else (whole, None)
    return Request(GroupVersionKind("", "v1", "Pod"), operation, new, old)


@pytest.mark.parametrize(
    ("phase", "denials", "labelled"),
    [
        (Phase.BOTH, 0, {"labels": {"team": "none"}}),
        (Phase.MUTATE, 0, {"labels": {"team": "none"}}),
        (Phase.VALIDATE, 1, {}),
    ],
)
def test_checks_see_what_mutations_made(phase: Phase, denials: int, labelled: Json) -> None:
    verdict = evaluate(RULES, request({}), NoFacts(), today=TODAY, phase=phase)
    assert (len(verdict.denials), verdict.object) == (denials, {"metadata": labelled})


def test_the_shape_of_what_is_deleted_does_not_matter() -> None:
    verdict = evaluate(RULES, request({"labels": "none"}, Operation.DELETE), NoFacts(), today=TODAY)
    assert (verdict.malformed, len(verdict.denials), verdict.operations) == ((), 1, ())


def test_the_policy_at_which_the_time_was_over_is_named() -> None:
    with pytest.raises(OutOfTimeError, match=r"^out of time at pods/labels$") as raised:
        evaluate(RULES, request({}), NoFacts(), today=TODAY, out_of_time=lambda: True)
    assert raised.value.policy == "pods/labels"
