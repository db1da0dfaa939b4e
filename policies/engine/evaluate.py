"""Evaluate a request: mutate it to a fixed point, then validate the object that would be stored."""

from __future__ import annotations

from contextlib import nullcontext
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import field

from gpugate.policies.engine import bounds, shapes
from gpugate.policies.engine.caught_error import described, release
from gpugate.policies.engine.config import OutOfTimeError
from gpugate.policies.engine.enforcement import (
    applying,
    exempting,
    exemption_note,
    is_left_alone,
    stance,
)
from gpugate.policies.engine.mutations import mutate
from gpugate.policies.engine.ruleset import reads_device_classes
from gpugate.policies.engine.update_ratchet import Ratchet
from gpugate.policies.engine.verdict import Finding, Outcome, TemplatePatch, Verdict
from gpugate.policies.sdk.field import Field, UnknownValueError, as_written
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import has_names_of_classes
from gpugate.policies.sdk.objects import _POD, Operation, Subject, Wrapper
from gpugate.policies.sdk.policy import Context, Params
from gpugate.policies.sdk.structs import MutableStruct, replace

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from gpugate.policies.engine.bounds import Excess
    from gpugate.policies.engine.ruleset import Bound, Due, Rule, Ruleset, Standing
    from gpugate.policies.engine.update_ratchet import Identity
    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import GroupVersionKind, Request
    from gpugate.policies.sdk.policy import Handler


def _as_written(item: Patch | Violation | Skip) -> Patch | Violation | Skip:
    """Return a result of a policy with placeholders in place of unknown values, which cannot be encoded."""
    if isinstance(item, Patch):
        return replace(item, value=as_written(item.value))
    fix = item.fix if isinstance(item, Violation) else None
    if isinstance(fix, Patches):
        fix = replace(fix, patches=tuple(replace(patch, value=as_written(patch.value)) for patch in fix.patches))
    elif fix is not None:
        fix = replace(fix, objects=tuple(as_written(obj) for obj in fix.objects))
    return replace(item, fix=fix) if isinstance(item, Violation) else item


_HAD_BEFORE = "the object had this before the update"
_TOO_LARGE = "the object is too large to evaluate"


class _Draft(MutableStruct):
    """An outcome while it is built."""

    stance: Stance
    findings: list[Finding] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)
    template_patches: list[TemplatePatch] = field(default_factory=list)
    skipped: dict[str, None] = field(default_factory=dict)
    error: str = ""
    coming: bool = False
    # Findings with the policies that may state the same cause.
    doubles: list[tuple[Finding, tuple[str, ...]]] = field(default_factory=list)


@lru_cache(maxsize=1024)
def _passed(policy: str, stance: Stance) -> Outcome:
    """Return the outcome of a policy without findings, which is the usual one."""
    return Outcome(policy, stance)


class Evaluation:
    """The evaluation of one request: the rules that concern it, their findings, and the modes of these."""

    def __init__(
        self,
        ruleset: Ruleset,
        request: Request,
        facts: Facts,
        today: dt.date,
        template_ceiling: Stance,
        out_of_time: Callable[[], bool] | None = None,
    ) -> None:
        self.request = request
        self._ruleset = ruleset
        self._facts = facts
        self._today = today
        self._ceiling = template_ceiling
        self._out_of_time = out_of_time
        # The context manager around values that other requests share.
        self.unhurried: Callable[[], AbstractContextManager[None]] = nullcontext
        self._ratchet = Ratchet(request)
        self._exemptions = applying(request, ruleset.config, today)
        self._standings: dict[str, Standing] = {} if self._exemptions else dict(ruleset.standings)
        # What the contexts of all policies share.
        self._same = (request, facts, ruleset.config.platform, ruleset.config.target, ruleset.tables)
        # Every policy that was called, with its stance. Most have no findings, and no draft.
        self._called: dict[str, Stance] = {}
        self._drafts: dict[str, _Draft] = {}
        self._dues: dict[tuple[bool, bool], Due] = {}
        self._before: dict[int, frozenset[Identity]] = {}
        self._classes_named: bool | None = None
        # Policies that might have changed the object, so their checks did not see the object that would be stored.
        self.unmutated: set[str] = set()
        self._left_alone = is_left_alone(request, ruleset.config)

    def bound(self, subject: Subject, *, mutating: bool) -> tuple[Bound, ...]:
        """Return the rules that evaluate a subject: of its kind, subresource and operation, and not off for it."""
        return self._due(subject, mutating=mutating).bound

    def concerned(self, subject: Subject, memo: dict[object, object]) -> tuple[Bound, ...]:
        """Return the validating rules that may have findings on a subject; the others count as evaluated without findings.

        `memo` keeps the answers of the rules' concerns.
        """
        due = self._due(subject, mutating=False)
        if self._exemptions or not due.stances:
            for rule, _ in due.bound:
                self._called.setdefault(rule.policy.id, self.standing(rule).stance)
        else:
            self._called.update(due.stances)
        # Concerns cannot read other fields: those of placeholders, and of objects that are put together from parts.
        if type(subject.field) is not Field:
            return due.bound
        named = due.reads_classes and self._are_classes_named()
        return due.concerned(subject.field.value, self._sender(subject), memo, classes_named=named)

    def _sender(self, subject: Subject) -> str:
        # A template has the sender of its workload, but concerns refer to that of a Pod.
        return "" if subject.wrapper else self.request.user

    def _due(self, subject: Subject, *, mutating: bool) -> Due:
        # A request has one object, and all templates in it are Pods.
        whole = subject.wrapper is None
        due = self._dues.get((whole, mutating))
        if due is None:
            due = self._dues[whole, mutating] = self._find_due(subject.kind, whole=whole, mutating=mutating)
        return due

    def _find_due(self, kind: GroupVersionKind, *, whole: bool, mutating: bool) -> Due:
        ruleset = self._ruleset
        if self._left_alone:
            return ruleset.due_of(())
        subresource, operation = self.request.subresource, self.request.operation
        parent = self.request.parent if whole else None
        due = ruleset.due(parent or kind, subresource, operation, mutating=mutating)
        requested = self.request.requested_kind
        if whole and requested is not None and requested.is_other_version_of(kind):
            # The API server may have converted the object, and a rule may apply to the version that the user sent. Only of one
            # group: no shape is known for the object of another group, and rules rely on shapes.
            sent = ruleset.due(requested, subresource, operation, mutating=mutating)
            due = ruleset.due_of((*due.bound, *(bound for bound in sent.bound if bound not in due.bound)))
        # Without modes of namespaces, no rule in force is off.
        if ruleset.standings:
            return due
        return ruleset.due_of(bound for bound in due.bound if self.standing(bound[0]).stance)

    def concerns(self, subject: Subject) -> bool:
        """Tell whether any rule evaluates a subject."""
        return bool(self.bound(subject, mutating=False) or self.bound(subject, mutating=True))

    def refuse(self, excesses: Sequence[Excess], subjects: Sequence[Subject]) -> tuple[Violation, ...]:
        """Return the excesses with the highest mode of the policies that would have evaluated the subjects.

        Those policies are skipped. Nothing is returned for an object that concerns no policy. An excess that an update
        did not add to is at most a warning.
        """
        groups: dict[tuple[int, Concern], list[tuple[Rule, Stance]]] = {}
        for index, subject in enumerate(subjects):
            for rule, handler in (*self.bound(subject, mutating=True), *self.bound(subject, mutating=False)):
                ceiling = Stance.WARN if handler.mutates else self._ceiling if subject.wrapper else Stance.ENFORCE
                mode = min(self.standing(rule).stance, handler.at_most, ceiling)
                groups.setdefault((index, handler.concerns), []).append((rule, mode))
        every = any(excess.is_extreme for excess in excesses)
        # All concerns together first, which reads each list once: most objects of this size concern no policy.
        concerned, user = self._ruleset.concerned, self.request.user
        if not every and not any(
            concerned(concern for at, concern in groups if at == index)(subject.field.value, user)
            for index, subject in enumerate(subjects)
        ):
            return ()
        highest = Stance.OFF
        # Subjects of the most policies first: after the highest mode is known, the others are not evaluated.
        for (index, concern), rules in sorted(groups.items(), key=lambda group: -len(group[1])):
            mode = max(mode for _, mode in rules)
            if mode > highest and (every or concerned([concern])(subjects[index].field.value, user)):
                highest = mode
                for rule, _ in rules:
                    self._called.setdefault(rule.policy.id, self.standing(rule).stance)
                    self._draft(rule.policy.id).skipped[_TOO_LARGE] = None
        if highest is Stance.OFF:
            return ()
        modes = ((e.violation, highest if e.grown else min(highest, Stance.WARN)) for e in excesses)
        return tuple(replace(violation, at_most=min(violation.at_most, mode)) for violation, mode in modes)

    def standing(self, rule: Rule) -> Standing:
        """Return the stance of findings of a rule in this request, before single findings are lowered."""
        known = self._standings.get(rule.policy.id)
        if known is None:
            known = stance(rule, self.request, self._exemptions)
            self._standings[rule.policy.id] = known
        return known

    def call(
        self,
        rule: Rule,
        handler: Handler[Any],  # Any: handlers have different parameters
        subject: Subject,
        memo: dict[object, object],
    ) -> list[Patch | Violation | Skip]:
        """Run a handler on a subject. An exception becomes the outcome of its policy.

        Raises:
            OutOfTimeError: the time limit expired.
        """
        self._check_time(rule)
        self._called.setdefault(rule.policy.id, self.standing(rule).stance)
        return self._run(rule, handler, subject, memo) if self._may_find(handler, subject, memo) else []

    def _check_time(self, rule: Rule) -> None:
        if self._out_of_time is not None and self._out_of_time():
            raise OutOfTimeError(rule.policy.id)

    def call_concerned(
        self,
        rule: Rule,
        handler: Handler[Any],  # Any: as in `call`
        subject: Subject,
        memo: dict[object, object],
    ) -> list[Patch | Violation | Skip]:
        """Do what `call` does, with a handler of `concerned`."""
        if self._out_of_time is not None:
            self._check_time(rule)
        return self._run(rule, handler, subject, memo)

    def _run(
        self,
        rule: Rule,
        handler: Handler[Any],  # Any: as in `call`
        subject: Subject,
        memo: dict[object, object],
    ) -> list[Patch | Violation | Skip]:
        field = subject.field
        # Positional arguments take a third of the time, and each policy and subject needs a context.
        ctx = Context(rule.params, field, subject.wrapper, *self._same, memo, self.unhurried)
        items: list[Patch | Violation | Skip] = []
        try:
            items.extend(handler.run(field, ctx))
        except UnknownValueError as unknown:
            # Earlier results do not depend on the value.
            self._draft(rule.policy.id).skipped[f"the value of placeholder {unknown.text} is unknown"] = None
            if handler.mutates:
                self.unmutated.add(rule.policy.id)
            release(unknown)
        except OutOfTimeError:
            raise OutOfTimeError(rule.policy.id) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- an exception of a policy is its outcome, and never loses the request
            ceiling = Stance.WARN if handler.mutates else self._ceiling if subject.wrapper else Stance.ENFORCE
            draft = self._draft(rule.policy.id)
            draft.stance = min(draft.stance, handler.at_most, ceiling)
            draft.error = described(error)
            release(error)
            return []
        return [_as_written(item) for item in items] if self.request.is_template else items

    def _may_find(self, handler: Handler[Any], subject: Subject, memo: dict[object, object]) -> bool:
        """Tell whether a handler may have findings or changes in a subject; `memo` caches the results of its concerns."""
        concerned = self._ruleset.readers.get(id(handler))
        # Other classes of fields contain placeholders, whose values are unknown, or are views of several fields.
        if concerned is None or type(subject.field) is not Field:
            return True
        answer = memo.get(concerned)
        if answer is None:
            answer = memo[concerned] = concerned(subject.field.value, self._sender(subject))
        return bool(answer) or (reads_device_classes(handler) and self._are_classes_named())

    def _are_classes_named(self) -> bool:
        """Tell whether DeviceClasses of the cluster name accelerators that concerns do not, as these read one object."""
        if self._classes_named is None:
            config, tables = self._ruleset.config, self._ruleset.tables
            nothing, params = Field(None), Params()
            ctx = Context(params, nothing, None, self.request, self._facts, config.platform, config.target, tables)
            ctx.unhurried = self.unhurried
            self._classes_named = has_names_of_classes(ctx)
        return self._classes_named

    def record(self, rule: Rule, handler: Handler[Any], subject: Subject, item: Violation | Skip) -> None:
        """Record a violation with its stance, or a skip."""
        draft = self._draft(rule.policy.id)
        draft.coming |= item.coming
        if isinstance(item, Skip):
            draft.skipped[item.reason] = None
            return
        standing = self.standing(rule)
        ceiling = self._ceiling if subject.wrapper else Stance.ENFORCE
        cost = min(standing.stance, handler.at_most, item.at_most, ceiling)
        note = ""
        if cost > Stance.WARN and self._had_before(rule, handler, item):
            cost, note = Stance.WARN, _HAD_BEFORE
        convention = item.convention and not rule.is_configured
        if convention:
            cost = min(cost, Stance.WARN)
        finding = Finding(
            rule.policy.id,
            item.path,
            item.message,
            cost,
            item.hint,
            item.fix,
            note=note,
            convention=convention,
            why=item.why,
            others=item.others,
            follows=item.follows,
        )
        self._keep(draft, finding, standing, subject, item.same_as)

    def record_patch(self, rule: Rule, subject: Subject, patch: Patch) -> None:
        """Record a patch that is applied, or that the Pods of a template will get."""
        draft = self._draft(rule.policy.id)
        if subject.wrapper:
            draft.template_patches.append(TemplatePatch(patch, subject.wrapper.kind))
        else:
            draft.patches.append(patch)

    def record_unmade(self, rule: Rule, subject: Subject, patch: Patch, *, lowered: bool) -> None:
        """Record a patch that is not applied because of the mode or (`lowered`) the update."""
        standing = self.standing(rule)
        cost = min(standing.stance, Stance.WARN)
        message = f"would be patched: {patch.reason}"
        note = _HAD_BEFORE if lowered else ""
        finding = Finding(rule.policy.id, patch.path, message, cost, note=note, would_patch=True)
        self._keep(self._draft(rule.policy.id), finding, standing, subject)

    def may_patch(self, rule: Rule, handler: Handler[Any], patch: Patch) -> bool:
        """Tell whether a patch may be applied; on an UPDATE only if the update itself made it necessary."""
        if not self.request.old_subjects:
            return True
        return self._ratchet.may_patch(self.request, patch) and not self._had_before(rule, handler, patch)

    def fail(self, policies: tuple[str, ...], error: str) -> None:
        """Record an error for mutations, none of whose patches is applied."""
        for policy in policies:
            draft = self._draft(policy)
            draft.stance, draft.error = min(draft.stance, Stance.WARN), error
        for draft in self._drafts.values():
            draft.patches.clear()
            draft.template_patches.clear()

    @property
    def exempts_malformed(self) -> bool:
        """Whether the configuration exempts the object's fields of the wrong type."""
        return exempting("malformed", self.request, self._ruleset.config, self._today) is not None

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the outcomes of all called rules, in the order of the catalogue."""
        self._drop_doubles()
        order, called, drafts = self._ruleset.order, self._called, self._drafts
        return tuple(
            [
                self._outcome(policy, drafts[policy]) if policy in drafts else _passed(policy, called[policy])
                for policy in sorted(called, key=order.__getitem__)
            ]
        )

    @staticmethod
    def _outcome(policy: str, draft: _Draft) -> Outcome:
        return Outcome(
            policy,
            draft.stance,
            tuple(draft.findings),
            tuple(draft.patches),
            tuple(draft.template_patches),
            tuple(draft.skipped),
            draft.error,
            draft.coming,
        )

    def _keep(
        self, draft: _Draft, finding: Finding, standing: Standing, subject: Subject, same_as: tuple[str, ...] = ()
    ) -> None:
        if subject.wrapper:
            finding = replace(finding, template_of=subject.wrapper.kind)
        if standing.exemption:
            exemption = standing.exemption
            finding = replace(finding, note=exemption_note(exemption))
        elif same_as:
            # An exempted finding is kept, so that its exemption counts as used.
            draft.doubles.append((finding, same_as))
        draft.findings.append(finding)

    def _drop_doubles(self) -> None:
        """Drop findings with the same cause as another policy's finding at the same path with at least the same stance."""
        with_doubles = [draft for draft in self._drafts.values() if draft.doubles]
        stating = {policy for draft in with_doubles for _, same_as in draft.doubles for policy in same_as}
        # A hostile object may have tens of thousands of them, so each is read once.
        stated = {
            (policy, finding.path): finding
            for policy in stating & self._drafts.keys()
            for finding in self._drafts[policy].findings
        }
        covers: dict[int, list[str]] = {}
        dropped: set[int] = set()
        for draft in with_doubles:
            for double, same_as in draft.doubles:
                covering_findings = (
                    stated[policy, double.path] for policy in same_as if (policy, double.path) in stated
                )
                covering = next((finding for finding in covering_findings if finding.stance >= double.stance), None)
                if covering is not None:
                    dropped.add(id(double))
                    covers.setdefault(id(covering), []).append(double.policy)
            draft.doubles.clear()
        for draft in self._drafts.values() if dropped else ():
            draft.findings = [
                replace(finding, covers=tuple(covers[id(finding)])) if id(finding) in covers else finding
                for finding in draft.findings
                if id(finding) not in dropped
            ]

    def _draft(self, policy: str) -> _Draft:
        draft = self._drafts.get(policy)
        if draft is None:
            draft = self._drafts[policy] = _Draft(self._called[policy])
        return draft

    def _had_before(self, rule: Rule, handler: Handler[Any], item: Violation | Patch) -> bool:
        """Tell whether the old object of an UPDATE has the same finding."""
        old_subjects = self.request.old_subjects
        if not old_subjects:
            return False
        if id(handler) not in self._before:
            error = self._draft(rule.policy.id).error
            identities = [
                self._ratchet.before(rule.policy.id, old)
                for subject in old_subjects
                if (rule, handler) in self.bound(subject, mutating=handler.mutates)
                for old in self.call(rule, handler, subject, {})
                if not isinstance(old, Skip)
            ]
            self._draft(
                rule.policy.id
            ).error = error  # an error of a policy on the old object does not matter for the new one
            self._before[id(handler)] = frozenset(identities)
        return self._ratchet.now(rule.policy.id, item) in self._before[id(handler)]


class Phase(Enum):
    """The phase of admission to evaluate; both if nothing runs between them."""

    MUTATE = "mutate"
    VALIDATE = "validate"
    BOTH = "both"


def evaluate(  # noqa: PLR0913 -- three inputs, and the differences between entry points as keywords
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
    """Evaluate a request.

    Args:
        ruleset: the rules in force.
        request: the request, whose object is not changed.
        facts: the source of other objects.
        today: the current day, for exemptions.
        phase: the phase of admission to evaluate.
        template_ceiling: the highest mode of a finding in a workload's Pod template. At admission that is a warning,
            because the Pods are evaluated when they are created.
        out_of_time: called before every call of a policy; the evaluation ends if it returns true.
        unhurried: a context manager around values that other requests share, whose time does not count for this
            request.

    Raises:
        OutOfTimeError: the time limit expired before every policy was called, or in one of them.
    """
    added = ruleset.pod_templates.get(request.kind, ())
    if added != request.added_templates:
        request = replace(request, added_templates=added)
    evaluation = Evaluation(ruleset, request, facts, today, template_ceiling, out_of_time)
    evaluation.unhurried = unhurried
    too_large = _too_many_templates(request, evaluation)
    if too_large is None:
        if not any(evaluation.concerns(subject) for subject in request.subjects):
            return Verdict(request)
        too_large = _too_large(request, evaluation)
    if too_large is not None:
        # Wrong types are reported even if an object concerns no policy, because they may be the reason.
        return Verdict(request, outcomes=evaluation.outcomes(), malformed=too_large or _malformed(request, evaluation))
    malformed = _malformed(request, evaluation)
    subjects: tuple[Subject, ...] = request.subjects
    mutated = None
    if not malformed and request.operation is not Operation.DELETE:
        mutated = mutate(evaluation, templates_only=phase is Phase.VALIDATE)
        if mutated.working is not request.object:
            subjects = request.subjects_with(mutated.working)
    if phase is not Phase.MUTATE:
        _validate(evaluation, subjects)
    return Verdict(
        request,
        outcomes=evaluation.outcomes(),
        malformed=malformed,
        object=mutated.stored if mutated else None,
        operations=mutated.operations if mutated else (),
    )


def _too_many_templates(request: Request, evaluation: Evaluation) -> tuple[Violation, ...] | None:
    """Return the faults of a workload with too many templates, before they become subjects; None if there are none."""
    if request.operation is Operation.DELETE:
        return None
    excesses = bounds.too_many_templates(request)
    if not excesses:
        return None
    root = Field(request.object)
    whole = Subject(request.kind, root)
    template = Subject(_POD, Field({}), Wrapper(request.kind, root))
    return evaluation.refuse(excesses, (whole, template))


def _too_large(request: Request, evaluation: Evaluation) -> tuple[Violation, ...] | None:
    """Return the faults of a request that is too large to evaluate; None if it is not."""
    if request.operation is Operation.DELETE:
        return None
    excesses = bounds.too_large(request.written, request.old_subjects)
    return evaluation.refuse(excesses, request.written) if excesses else None


def _malformed(request: Request, evaluation: Evaluation) -> tuple[Violation, ...]:
    if request.operation is Operation.DELETE:
        return ()
    violations = [v for s in request.written if evaluation.concerns(s) for v in shapes.malformed(s)]
    if violations and request.old_subjects:
        ratchet = Ratchet(request)
        had = {ratchet.before("", v) for s in request.old_subjects for v in shapes.malformed(s)}
        violations = [v for v in violations if ratchet.now("", v) not in had]
    if violations and evaluation.exempts_malformed:
        return tuple(replace(v, at_most=min(v.at_most, Stance.AUDIT)) for v in violations)
    return tuple(violations)


def _validate(evaluation: Evaluation, subjects: tuple[Subject, ...]) -> None:
    for subject in subjects:
        memo: dict[object, object] = {}
        for rule, handler in evaluation.concerned(subject, memo):
            if evaluation.unmutated and rule.policy.id in evaluation.unmutated:
                continue
            for item in evaluation.call_concerned(rule, handler, subject, memo):
                if not isinstance(item, Patch):
                    evaluation.record(rule, handler, subject, item)
