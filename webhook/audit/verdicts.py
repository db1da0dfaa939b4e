"""Judges one object as if it were created now, and says what was found as reports show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.enforcement import ExemptionUse
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation, Request
from gpugate.webhook.report.audited import Action, Finding
from gpugate.webhook.report.explained import patch_groups, reasons

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping

    from gpugate.policies.engine import verdict as engine
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.audit.as_created import Object

# No policy finds a field of the wrong type.
MALFORMED: Final = ""
_ACTIONS: Final = {Stance.ENFORCE: Action.BLOCK, Stance.WARN: Action.WARN}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found in one object.

    Attributes:
        findings: what policies found.
        skipped: policy -> why it could not look, or how it broke.
        called: how many policies judged it, those that could not look included.
        exemptions: which exemptions of the configuration lowered a finding, by their place there.
    """

    findings: tuple[Finding, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    called: int = 0
    exemptions: frozenset[int] = frozenset()


class Judging:
    """Judges objects with some rules, facts and day."""

    def __init__(self, ruleset: Ruleset, facts: Facts, today: dt.date) -> None:
        self._ruleset = ruleset
        self._facts = facts
        self._today = today
        self._reasons = reasons(rule.policy for rule in ruleset.rules)
        self._exemptions = ExemptionUse(ruleset, today)

    def judge(self, request: Request) -> Judgement:
        """Judge the creation of an object, both halves of admission, and its Pods as if they came."""
        verdict = evaluate(
            self._ruleset,
            with_defaults(request),
            self._facts,
            today=self._today,
            phase=Phase.BOTH,
            template_ceiling=Stance.ENFORCE,
        )
        if not verdict.outcomes and not verdict.malformed:
            return _NOTHING
        return Judgement(
            tuple(self._findings(verdict)),
            dict(_skipped(verdict)),
            len(verdict.outcomes),
            self._exemptions.of(verdict),
        )

    def _findings(self, verdict: engine.Verdict) -> Iterator[Finding]:
        for wrong in verdict.malformed:
            action = _ACTIONS.get(wrong.at_most, Action.RECORD)
            yield Finding(MALFORMED, render(wrong.path), wrong.message, wrong.at_most, action, "", wrong.hint)
        for outcome in verdict.outcomes:
            for found in outcome.findings:
                yield Finding(
                    policy=found.policy,
                    path=render(found.path),
                    message=found.message,
                    stance=found.stance,
                    action=_ACTIONS.get(found.stance, Action.RECORD),
                    why=self._reasons.get(found.policy, ""),
                    hint=found.hint,
                    note=found.note,
                    fix=found.fix,
                    template_of=found.template_of.kind if found.template_of else "",
                )
            for group in patch_groups(outcome):
                yield Finding(
                    policy=outcome.policy,
                    path=render(group.patches[0].path),
                    message=group.reason,
                    stance=Stance.ENFORCE,
                    action=Action.MUTATE,
                    why=self._reasons.get(outcome.policy, ""),
                    patches=group.patches,
                    template_of=group.template_of,
                )


_NOTHING: Final = Judgement()


def creation(kind: GroupVersionKind, obj: Object, user: str = "") -> Request:
    """Return the request that would create an object, as far as it can be told."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or "")
    # The API server gives the creation of a Namespace the namespace itself (apiserver v0.36 handlers/create.go).
    namespace = name if (kind.group, kind.kind) == ("", "Namespace") else str(metadata.get("namespace") or "")
    return Request(
        kind=kind,
        operation=Operation.CREATE,
        object=obj,
        name=name,
        generate_name=str(metadata.get("generateName") or ""),
        namespace=namespace,
        user=user,
    )


def _skipped(verdict: engine.Verdict) -> Iterator[tuple[str, str]]:
    for outcome in verdict.outcomes:
        said = "; ".join(outcome.skipped)
        broke = f"broke: {outcome.error}" if outcome.error else ""
        if said or broke:
            yield outcome.policy, said or broke
