"""Run mutations to a fixed point, and record the changes as JSON Patch operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import field

from gpugate.policies.engine import patching
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Patch, Stance
from gpugate.policies.sdk.structs import MutableStruct

if TYPE_CHECKING:
    from gpugate.policies.engine.evaluate import Evaluation
    from gpugate.policies.engine.ruleset import Bound
    from gpugate.policies.sdk.field import Json, Path

# A mutation that still changes its own result after this many rounds never reaches a fixed point.
_ROUNDS: Final = 4


class Mutated(MutableStruct):
    """The object after the mutations.

    `working` also contains the mutated Pod templates, as their Pods will be; `stored` is the object that the request
    would store, and `operations` lead to it.
    """

    working: dict[str, Json]
    stored: dict[str, Json]
    operations: tuple[patching.Operation, ...] = ()


class _Changes(MutableStruct):
    """The parts of `Mutated` while patches are applied. `writers` are the policies by the path that they changed."""

    working: patching.Draft
    stored: patching.Draft
    operations: list[patching.Operation] = field(default_factory=list)
    writers: dict[Path, str] = field(default_factory=dict)


class _BrokenError(Exception):
    """Patches that cannot be applied: they do not fit the object, or two policies change one path."""

    def __init__(self, text: str, *policies: str) -> None:
        super().__init__(text)
        self.policies = policies


def mutate(evaluation: Evaluation, *, templates_only: bool) -> Mutated:
    """Run every mutation that concerns the request, in turn, until none of them changes the result.

    If two of them change the same path, or one reaches no fixed point, no patch is applied and these policies fail.

    Args:
        evaluation: the evaluation that calls the rules and records their results.
        templates_only: only mutate templates as their Pods will be, without changing the object or recording results.
    """
    untouched = evaluation.request.object or {}
    turns = _turns(evaluation, templates_only=templates_only)
    if not turns:
        return Mutated(untouched, untouched)
    changes = _Changes(patching.Draft(untouched), patching.Draft(untouched))
    sweep = _Sweep(evaluation, changes)
    content = 0
    try:
        for turn in range(_ROUNDS * len(turns)):
            bound, places = turns[turn % len(turns)]
            if sweep.run(bound, places, keep=turn < len(turns) and not templates_only):
                content = 0
                continue
            content += 1
            if content == len(turns):
                return Mutated(changes.working.root, changes.stored.root, tuple(changes.operations))
    except _BrokenError as broken:
        evaluation.fail(broken.policies, str(broken))
    else:
        evaluation.fail(
            tuple(dict.fromkeys(changes.writers.values())), "its own patches change the object again in every round"
        )
    return Mutated(untouched, untouched)


def _turns(evaluation: Evaluation, *, templates_only: bool) -> list[tuple[Bound, list[int]]]:
    """Return every mutation with the indices of the subjects that it concerns."""
    turns: dict[int, tuple[Bound, list[int]]] = {}
    for index in range(1 if templates_only else 0, len(evaluation.request.subjects)):
        for bound in evaluation.bound(evaluation.request.subjects[index], mutating=True):
            turns.setdefault(id(bound[1]), (bound, []))[1].append(index)
    return list(turns.values())


class _Sweep:
    """Run one mutation after the other, each on all of its subjects.

    Subjects are created again once for each mutation that changed something, and not for each change: a workload may
    have thousands of templates.
    """

    def __init__(self, evaluation: Evaluation, changes: _Changes) -> None:
        self._evaluation = evaluation
        self._changes = changes
        self._subjects = evaluation.request.subjects
        self._memos: dict[int, dict[object, object]] = {}

    def run(self, bound: Bound, places: list[int], *, keep: bool) -> bool:
        """Run one mutation on its subjects; return whether it changed anything. `keep` records its other results."""
        changed = False
        for index in places:
            own = self._subjects[index].field.path
            patched = self._step(bound, index, keep=keep)
            changed = changed or bool(patched)
            # A value that several templates share must not be patched once for each of them.
            if any(path[: len(own)] != own for path in patched):
                self._renew()
        if changed:
            self._renew()
        return changed

    def _renew(self) -> None:
        self._subjects = self._evaluation.request.subjects_with(self._changes.working.root)
        self._memos.clear()

    def _step(self, bound: Bound, index: int, *, keep: bool) -> list[Path]:
        """Run one mutation on one subject, and return the paths that it patched."""
        rule, handler = bound
        evaluation, subject = self._evaluation, self._subjects[index]
        patched: list[Path] = []
        for item in evaluation.call(rule, handler, subject, self._memos.setdefault(index, {})):
            if not isinstance(item, Patch):
                if keep:
                    evaluation.record(rule, handler, subject, item)
                continue
            allowed = subject.wrapper is not None or evaluation.may_patch(rule, handler, item)
            if evaluation.standing(rule).stance is Stance.ENFORCE and allowed:
                _apply(self._changes, item, rule.policy.id, in_template=subject.wrapper is not None)
                evaluation.record_patch(rule, subject, item)
                patched.append(item.path)
            elif keep:
                evaluation.record_unmade(rule, subject, item, lowered=not allowed)
        return patched


def _apply(changes: _Changes, patch: Patch, policy: str, *, in_template: bool) -> None:
    writer = changes.writers.setdefault(patch.path, policy)
    if writer != policy and patch.op != "append":
        raise _BrokenError(f"{writer} and {policy} make different changes to {render(patch.path)}", writer, policy)
    try:
        operation = changes.working.apply(patch)
        if not in_template:
            changes.stored.apply(patch)
            changes.operations.append(operation)
    except patching.PatchError as error:
        raise _BrokenError(f"a patch cannot be applied: {error}", policy) from None
