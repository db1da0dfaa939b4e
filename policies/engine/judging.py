"""Calls rules on subjects, and keeps what they find with what it costs."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gpugate.policies.engine.breakage import described, release
from gpugate.policies.engine.enforcement import Standing, is_left_alone, stance
from gpugate.policies.engine.errors import OutOfTimeError
from gpugate.policies.engine.update_ratchet import Ratchet
from gpugate.policies.engine.verdict import Finding, Outcome, TemplatePatch
from gpugate.policies.sdk.concerns import any_of, exactly
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.policy import Context

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from gpugate.policies.engine.bounds import Excess
    from gpugate.policies.engine.ruleset import Bound, Rule, Ruleset
    from gpugate.policies.engine.update_ratchet import Identity
    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import GroupVersionKind, Request, Subject
    from gpugate.policies.sdk.policy import Handler

_HAD_BEFORE = "the object had this before the update"
_TOO_LARGE = "the object is too large to evaluate"


@dataclass(slots=True)
class _Draft:
    """An outcome while it is written."""

    stance: Stance
    findings: list[Finding] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)
    template_patches: list[TemplatePatch] = field(default_factory=list)
    skipped: dict[str, None] = field(default_factory=dict)
    error: str = ""
    coming: bool = False


class Judge:
    """Judges one request: which rules concern it, what they find, what that costs."""

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
        # Around what is computed for other requests too.
        self.unhurried: Callable[[], AbstractContextManager[None]] = nullcontext
        self._ratchet = Ratchet(request)
        self._standings: dict[str, Standing] = {}
        # Every policy that was called, with its stance; most have nothing to say, and no draft.
        self._called: dict[str, Stance] = {}
        self._drafts: dict[str, _Draft] = {}
        self._bound: dict[tuple[GroupVersionKind, bool, bool], list[Bound]] = {}
        self._before: dict[int, frozenset[Identity]] = {}
        self._left_alone = is_left_alone(request, ruleset.config)

    def bound(self, subject: Subject, *, mutating: bool) -> list[Bound]:
        """Return the rules that judge a subject now: of its kind, subresource and operation, and not off here."""
        whole = subject.wrapper is None
        key = (subject.kind, whole, mutating)
        if self._left_alone:
            return []
        if key not in self._bound:
            subresource = self.request.subresource
            handlers = self._ruleset.handlers(subject.kind, subresource, mutating=mutating)
            requested = self.request.requested_kind
            if whole and requested is not None and requested.kind == subject.kind.kind and requested != subject.kind:
                # The API server may have converted the object; a rule may be about the version the user sent.
                sent = self._ruleset.handlers(requested, subresource, mutating=mutating)
                handlers = (*handlers, *(bound for bound in sent if bound not in handlers))
            operation = self.request.operation
            self._bound[key] = [(r, h) for r, h in handlers if operation in h.operations and self.standing(r).stance]
        return self._bound[key]

    def concerns(self, subject: Subject) -> bool:
        """Tell whether any rule judges a subject."""
        return bool(self.bound(subject, mutating=False) or self.bound(subject, mutating=True))

    def refuse(self, excesses: Sequence[Excess], subjects: Sequence[Subject]) -> tuple[Violation, ...]:
        """Return what is too large, with the highest mode of the policies that would have been run on it.

        Policies that decide it are skipped. Nothing is returned for an object that concerns none. What an update did not
        add to is a warning at most.
        """
        groups: dict[tuple[int, Concern], list[tuple[Rule, Stance]]] = {}
        for place, subject in enumerate(subjects):
            for rule, handler in (*self.bound(subject, mutating=True), *self.bound(subject, mutating=False)):
                ceiling = Stance.WARN if handler.mutates else self._ceiling if subject.wrapper else Stance.ENFORCE
                mode = min(self.standing(rule).stance, handler.at_most, ceiling)
                groups.setdefault((place, handler.concerns), []).append((rule, mode))
        every = any(excess.is_extreme for excess in excesses)
        # Together first, because that reads each list once: most objects that are this large concern no policy.
        holds = exactly(self._ruleset.config.platform, self.request.user)
        together = [any_of(*(c for at, c in groups if at == place)) for place in range(len(subjects))]
        if not every and not any(
            holds(concern, subject.field) for concern, subject in zip(together, subjects, strict=True)
        ):
            return ()
        highest = Stance.OFF
        # What concerns most policies first: once the highest mode is known, the rest need not be looked at.
        for (place, concern), rules in sorted(groups.items(), key=lambda group: -len(group[1])):
            mode = max(mode for _, mode in rules)
            if mode > highest and (every or holds(concern, subjects[place].field)):
                highest = mode
                for rule, _ in rules:
                    self._called.setdefault(rule.policy.id, self.standing(rule).stance)
                    self._draft(rule.policy.id).skipped[_TOO_LARGE] = None
        if highest is Stance.OFF:
            return ()
        modes = ((e.violation, highest if e.grown else min(highest, Stance.WARN)) for e in excesses)
        return tuple(replace(violation, at_most=min(violation.at_most, mode)) for violation, mode in modes)

    def standing(self, rule: Rule) -> Standing:
        """Return what a finding of a rule costs in this request, before what lowers a single finding."""
        known = self._standings.get(rule.policy.id)
        if known is None:
            known = stance(rule, self.request, self._ruleset.config, self._today)
            self._standings[rule.policy.id] = known
        return known

    def call(
        self,
        rule: Rule,
        handler: Handler[Any],  # Any: handlers with different parameters pass through here
        subject: Subject,
        memo: dict[object, object],
    ) -> list[Patch | Violation | Skip]:
        """Run a handler on a subject; an exception is kept as the outcome of its policy and gives nothing.

        Raises:
            OutOfTimeError: the time is over.
        """
        if self._out_of_time is not None and self._out_of_time():
            raise OutOfTimeError(rule.policy.id)
        ctx = Context(
            params=rule.params,
            subject=subject.field,
            wrapper=subject.wrapper,
            request=self.request,
            facts=self._facts,
            platform=self._ruleset.config.platform,
            target=self._ruleset.config.target,
            tables=self._ruleset.tables,
            memo=memo,
            unhurried=self.unhurried,
        )
        self._called.setdefault(rule.policy.id, self.standing(rule).stance)
        try:
            return list(handler(subject.field, ctx))
        except OutOfTimeError:
            raise OutOfTimeError(rule.policy.id) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- what a policy raises is its outcome, never a lost request
            ceiling = Stance.WARN if handler.mutates else self._ceiling if subject.wrapper else Stance.ENFORCE
            draft = self._draft(rule.policy.id)
            draft.stance = min(draft.stance, handler.at_most, ceiling)
            draft.error = described(error)
            release(error)
            return []

    def record(self, rule: Rule, handler: Handler[Any], subject: Subject, item: Violation | Skip) -> None:
        """Keep a violation with what it costs, or that the policy could not look."""
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
        finding = Finding(rule.policy.id, item.path, item.message, cost, item.hint, item.fix, note=note)
        self._keep(draft, finding, standing, subject)

    def record_patch(self, rule: Rule, subject: Subject, patch: Patch) -> None:
        """Keep a patch that is made, or that the Pods of a template will get."""
        draft = self._draft(rule.policy.id)
        if subject.wrapper:
            draft.template_patches.append(TemplatePatch(patch, subject.wrapper.kind))
        else:
            draft.patches.append(patch)

    def record_unmade(self, rule: Rule, subject: Subject, patch: Patch, *, lowered: bool) -> None:
        """Keep a patch that is not made, because of the mode or (`lowered`) because of the update."""
        standing = self.standing(rule)
        cost = min(standing.stance, Stance.WARN)
        message = f"would be patched: {patch.reason}"
        note = _HAD_BEFORE if lowered else ""
        finding = Finding(rule.policy.id, patch.path, message, cost, note=note, would_patch=True)
        self._keep(self._draft(rule.policy.id), finding, standing, subject)

    def may_patch(self, rule: Rule, handler: Handler[Any], patch: Patch) -> bool:
        """Tell whether the request may be changed so; on an UPDATE only what the update itself made necessary."""
        if not self.request.old_subjects:
            return True
        return self._ratchet.may_patch(self.request, patch) and not self._had_before(rule, handler, patch)

    def fail(self, policies: tuple[str, ...], error: str) -> None:
        """Let mutations break together: none of their patches is made."""
        for policy in policies:
            draft = self._draft(policy)
            draft.stance, draft.error = min(draft.stance, Stance.WARN), error
        for draft in self._drafts.values():
            draft.patches.clear()
            draft.template_patches.clear()

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return what every rule that was called made of the request, in the order of the catalogue."""
        order = self._ruleset.order
        return tuple(self._outcome(policy) for policy in sorted(self._called, key=order.__getitem__))

    def _outcome(self, policy: str) -> Outcome:
        draft = self._drafts.get(policy)
        if draft is None:
            return Outcome(policy, self._called[policy])
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

    def _keep(self, draft: _Draft, finding: Finding, standing: Standing, subject: Subject) -> None:
        if subject.wrapper:
            finding = replace(finding, template_of=subject.wrapper.kind)
        if standing.exemption:
            exemption = standing.exemption
            finding = replace(finding, note=f"exempt until {exemption.expires}: {exemption.reason}")
        draft.findings.append(finding)

    def _draft(self, policy: str) -> _Draft:
        draft = self._drafts.get(policy)
        if draft is None:
            draft = self._drafts[policy] = _Draft(self._called[policy])
        return draft

    def _had_before(self, rule: Rule, handler: Handler[Any], item: Violation | Patch) -> bool:
        """Tell whether the old object of an UPDATE gives the same."""
        old_subjects = self.request.old_subjects
        if not old_subjects:
            return False
        if id(handler) not in self._before:
            kept = self._draft(rule.policy.id).error
            found = [
                self._ratchet.before(rule.policy.id, old)
                for subject in old_subjects
                if (rule, handler) in self.bound(subject, mutating=handler.mutates)
                for old in self.call(rule, handler, subject, {})
                if not isinstance(old, Skip)
            ]
            self._draft(
                rule.policy.id
            ).error = kept  # an old object that breaks a policy says nothing about the new one
            self._before[id(handler)] = frozenset(found)
        return self._ratchet.now(rule.policy.id, item) in self._before[id(handler)]
