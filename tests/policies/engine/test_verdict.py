"""What is denied, warned of and recorded, of what policies found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.verdict import Finding, Outcome, TemplatePatch, Verdict
from gpugate.policies.sdk.findings import Patch, Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path

POD = GroupVersionKind("", "v1", "Pod")
REQUEST = Request(POD, Operation.CREATE, {})
PATCH = Patch("set", ("metadata", "labels", "a"), "b", "")
IN_TEMPLATE = TemplatePatch(PATCH, GroupVersionKind("apps", "v1", "Deployment"))


def finding(stance: Stance, message: str = "is bad", path: Path = ("spec", "x")) -> Finding:
    return Finding("pods/bad", path, message, stance)


def found(*stances: Stance) -> Outcome:
    return Outcome("pods/bad", Stance.ENFORCE, tuple(finding(stance) for stance in stances))


def broke(stance: Stance) -> Outcome:
    return Outcome("pods/broken", stance, error="KeyError at some.py:1")


LINE = "[pods/bad] spec.x: is bad"
BROKEN = (
    "[pods/broken] could not evaluate this object (KeyError at some.py:1); "
    "the platform team can set the policy to warn until its error is fixed"
)
CASES = {
    "nothing is found": (Verdict(REQUEST), (), (), True),
    "a denial": (Verdict(REQUEST, (found(Stance.ENFORCE),)), (LINE,), (), False),
    "a warning": (Verdict(REQUEST, (found(Stance.WARN),)), (), (LINE,), True),
    "only recorded": (Verdict(REQUEST, (found(Stance.AUDIT),)), (), (), True),
    "a denial among others": (
        Verdict(REQUEST, (found(Stance.AUDIT, Stance.WARN), found(Stance.ENFORCE))),
        (LINE,),
        (LINE,),
        False,
    ),
    "a policy that broke and denies": (Verdict(REQUEST, (found(), broke(Stance.ENFORCE))), (BROKEN,), (), False),
    "a policy that broke and warns": (
        Verdict(REQUEST, (broke(Stance.WARN),)),
        (),
        ("[pods/broken] failed: KeyError at some.py:1",),
        True,
    ),
    "a policy that broke and is recorded": (Verdict(REQUEST, (broke(Stance.AUDIT),)), (), (), True),
    "a field of a wrong type": (
        Verdict(REQUEST, malformed=(Violation(("spec", "x"), "must be an object"),)),
        ("spec.x: must be an object",),
        (),
        False,
    ),
}


@pytest.mark.parametrize(("verdict", "denials", "warnings", "allowed"), CASES.values(), ids=CASES)
def test_a_verdict(verdict: Verdict, denials: tuple[str, ...], warnings: tuple[str, ...], allowed: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert (verdict.denials, verdict.warnings, verdict.allowed) == (denials, warnings, allowed)


def test_a_finding_about_the_whole_object_names_no_path() -> None:
    assert finding(Stance.WARN, path=()).line == "[pods/bad] is bad"


def test_what_is_recorded_is_what_costs_nothing() -> None:
    verdict = Verdict(REQUEST, (found(Stance.ENFORCE, Stance.AUDIT, Stance.WARN, Stance.OFF),))
    assert verdict.recorded == (finding(Stance.AUDIT),)


@pytest.mark.parametrize(
    ("coming", "expected"), [((), False), ((False, False), False), ((False, True), True), ((True, True), True)]
)
def test_a_fact_that_one_policy_missed_may_be_known_in_a_moment(coming: tuple[bool, ...], expected: bool) -> None:  # noqa: FBT001 -- a column of the table
    outcomes = tuple(Outcome("pods/bad", Stance.WARN, coming=each) for each in coming)
    assert Verdict(REQUEST, outcomes).coming is expected


def test_patches_are_told_with_their_policy() -> None:
    outcomes = (
        Outcome("pods/a", Stance.ENFORCE, patches=(PATCH,)),
        Outcome("pods/b", Stance.ENFORCE, template_patches=(IN_TEMPLATE,)),
    )
    verdict = Verdict(REQUEST, outcomes)
    assert verdict.patches == (("pods/a", PATCH),)
    assert verdict.template_patches == (("pods/b", IN_TEMPLATE),)
