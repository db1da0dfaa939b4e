"""Runs the mutations of a request on a working copy until they come to rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine import patching
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Patch, Stance
from gpugate.policies.sdk.request import subjects_of

if TYPE_CHECKING:
    from gpugate.policies.engine.judging import Judge
    from gpugate.policies.engine.ruleset import Bound
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.request import Subject

# A mutation that is not content with its own result after this many rounds never will be.
_ROUNDS: Final = 4


@dataclass(slots=True)
class Mutated:
    """The object after the mutations.

    `working` has the Pod templates changed too, as their Pods will be; `stored` is what the request would store, and
    `operations` lead to it. `writers` are the policies by the path that they wrote to.
    """

    working: dict[str, Json]
    stored: dict[str, Json]
    operations: tuple[patching.Operation, ...] = ()
    writers: dict[Path, str] = field(default_factory=dict)


class _BrokenError(Exception):
    """Patches that cannot be made: they do not fit the object, or two policies write to one place."""

    def __init__(self, text: str, *policies: str) -> None:
        super().__init__(text)
        self.policies = policies


def mutate(judge: Judge, *, templates_only: bool) -> Mutated:
    """Run every mutation that concerns the request, in turn, until all have seen the last change and want no other.

    Where two write to the same place, or one is never content, none of the patches is made and those policies broke.

    Args:
        judge: what calls the rules and keeps what they find.
        templates_only: leave the object itself alone, and keep nothing: only see templates as their Pods will be.
    """
    untouched = judge.request.object or {}
    mutated = Mutated(untouched, untouched)
    places = range(1 if templates_only else 0, len(judge.request.subjects))
    steps = [(place, bound) for place in places for bound in judge.bound(judge.request.subjects[place], mutating=True)]
    if not steps:
        return mutated
    subjects, memos = judge.request.subjects, _memos(judge)
    content = 0
    try:
        for turn in range(_ROUNDS * len(steps)):
            place, bound = steps[turn % len(steps)]
            first = turn < len(steps) and not templates_only
            if _step(judge, mutated, bound, subjects[place], memos[place], keep=first):
                subjects, memos, content = subjects_of(judge.request.kind, mutated.working), _memos(judge), 0
                continue
            content += 1
            if content == len(steps):
                return mutated
    except _BrokenError as broken:
        judge.fail(broken.policies, str(broken))
    else:
        judge.fail(tuple(dict.fromkeys(mutated.writers.values())), "still not content with its own patches")
    return Mutated(untouched, untouched)


def _memos(judge: Judge) -> list[dict[object, object]]:
    return [{} for _ in judge.request.subjects]


def _step(
    judge: Judge, mutated: Mutated, bound: Bound, subject: Subject, memo: dict[object, object], *, keep: bool
) -> bool:
    """Run one mutation on one subject; tell whether it changed anything. `keep` what else it says."""
    rule, handler = bound
    changed = False
    for item in judge.call(rule, handler, subject, memo):
        if not isinstance(item, Patch):
            if keep:
                judge.record(rule, handler, subject, item)
            continue
        allowed = subject.wrapper is not None or judge.may_patch(rule, handler, item)
        if judge.standing(rule).stance is Stance.ENFORCE and allowed:
            _apply(mutated, item, rule.policy.id, in_template=subject.wrapper is not None)
            judge.record_patch(rule, subject, item)
            changed = True
        elif keep:
            judge.record_unmade(rule, subject, item, lowered=not allowed)
    return changed


def _apply(mutated: Mutated, patch: Patch, policy: str, *, in_template: bool) -> None:
    writer = mutated.writers.setdefault(patch.path, policy)
    if writer != policy and patch.op != "append":
        raise _BrokenError(f"{writer} and {policy} do not agree on {render(patch.path)}", writer, policy)
    try:
        mutated.working, operation = patching.apply(mutated.working, patch)
        if not in_template:
            mutated.stored, _ = patching.apply(mutated.stored, patch)
            mutated.operations = (*mutated.operations, operation)
    except patching.PatchError as error:
        raise _BrokenError(f"a patch does not fit: {error}", policy) from None
