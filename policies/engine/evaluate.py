"""Judges a request: mutates it to a fixed point, then validates what would be stored."""

from __future__ import annotations

from contextlib import nullcontext
from enum import Enum
from typing import TYPE_CHECKING

from gpugate.policies.engine import bounds, shapes
from gpugate.policies.engine.judging import Judge
from gpugate.policies.engine.mutating import mutate
from gpugate.policies.engine.update_ratchet import Ratchet
from gpugate.policies.engine.verdict import Verdict
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patch, Stance
from gpugate.policies.sdk.objects import _POD, Operation, Subject, Wrapper, subjects_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.findings import Violation
    from gpugate.policies.sdk.objects import Request


class Phase(Enum):
    """Which half of admission to answer for; both, where nothing stands between them."""

    MUTATE = "mutate"
    VALIDATE = "validate"
    BOTH = "both"


def evaluate(  # noqa: PLR0913 -- the three that make a verdict, and what differs between doors by its name
    ruleset: Ruleset,
    request: Request,
    facts: Facts,
    *,
    today: dt.date,
    phase: Phase = Phase.BOTH,
    template_ceiling: Stance = Stance.ENFORCE,
    out_of_time: Callable[[], bool] | None = None,
    unhurried: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Verdict:
    """Judge a request.

    Args:
        ruleset: the rules in force.
        request: what to judge; its object is left as it is.
        facts: other objects that rules look up.
        today: the day, for exemptions.
        phase: which half of admission to answer for.
        template_ceiling: the most that a finding in a workload's Pod template costs. At admission that is a warning,
            because the Pods are judged when they come.
        out_of_time: asked before every call of a policy; judging ends when it says yes.
        unhurried: around what is computed for other requests too, and does not count towards the time of this one.

    Raises:
        OutOfTimeError: the time was over before every policy was called, or raised by a timer in one of them.
    """
    judge = Judge(ruleset, request, facts, today, template_ceiling, out_of_time)
    judge.unhurried = unhurried
    too_large = _too_many_templates(request, judge)
    if too_large is None:
        if not any(judge.concerns(subject) for subject in request.subjects):
            return Verdict(request)
        too_large = _too_large(request, judge)
    if too_large is not None:
        # Wrong types are reported of an object that concerns no policy too: they may be why none recognises it.
        return Verdict(request, outcomes=judge.outcomes(), malformed=too_large or _malformed(request, judge))
    malformed = _malformed(request, judge)
    subjects: tuple[Subject, ...] = request.subjects
    mutated = None
    if not malformed and request.operation is not Operation.DELETE:
        mutated = mutate(judge, templates_only=phase is Phase.VALIDATE)
        if mutated.working is not request.object:
            subjects = subjects_of(request.kind, mutated.working)
    if phase is not Phase.MUTATE:
        _validate(judge, subjects)
    return Verdict(
        request,
        outcomes=judge.outcomes(),
        malformed=malformed,
        object=mutated.stored if mutated else None,
        operations=mutated.operations if mutated else (),
    )


def _too_many_templates(request: Request, judge: Judge) -> tuple[Violation, ...] | None:
    """Return why a workload is not evaluated, before a subject is made of each template; None where it is."""
    if request.operation is Operation.DELETE:
        return None
    excesses = bounds.too_many_templates(request.kind, request.object, request.old_object)
    if not excesses:
        return None
    root = Field(request.object)
    whole = Subject(request.kind, root)
    template = Subject(_POD, Field({}), Wrapper(request.kind, root))
    return judge.refuse(excesses, (whole, template))


def _too_large(request: Request, judge: Judge) -> tuple[Violation, ...] | None:
    """Return why a request is not evaluated, none where it concerns no policy; None where it is evaluated."""
    if request.operation is Operation.DELETE:
        return None
    excesses = bounds.too_large(request.subjects, request.old_subjects)
    return judge.refuse(excesses, request.subjects) if excesses else None


def _malformed(request: Request, judge: Judge) -> tuple[Violation, ...]:
    if request.operation is Operation.DELETE:
        return ()
    found = [v for s in request.subjects if judge.concerns(s) for v in shapes.malformed(s)]
    if found and request.old_subjects:
        ratchet = Ratchet(request)
        had = {ratchet.before("", v) for s in request.old_subjects for v in shapes.malformed(s)}
        found = [v for v in found if ratchet.now("", v) not in had]
    return tuple(found)


def _validate(judge: Judge, subjects: tuple[Subject, ...]) -> None:
    for subject in subjects:
        memo: dict[object, object] = {}
        for rule, handler in judge.bound(subject, mutating=False):
            for item in judge.call(rule, handler, subject, memo):
                if not isinstance(item, Patch):
                    judge.record(rule, handler, subject, item)
