"""The decisions on a review and on each policy in it: the closed sets of words that metrics, log and traces share.

A module of its own, because importing `metrics` loads prometheus-client, which reads its environment when it is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.policies.engine.verdict import Outcome
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.gate import Observation

PASSED: Final = "passed"
PATCHED: Final = "patched"
DENIED: Final = "denied"
MALFORMED: Final = "malformed"
BROKE: Final = "broke"
REFUSED: Final = "refused"
# Of a review; the last is one that could not be judged.
REVIEW_DECISIONS: Final = (PASSED, PATCHED, DENIED, MALFORMED, BROKE, REFUSED)

WARNED: Final = "warned"
RECORDED: Final = "recorded"
SKIPPED: Final = "skipped"
# Of a policy in a review; one that passed has none.
OUTCOME_DECISIONS: Final = (DENIED, PATCHED, WARNED, RECORDED, SKIPPED, BROKE)
# Looked up once: a member of an enumeration takes as long to name as all else that is asked of a policy that passed.
_ENFORCE: Final = Stance.ENFORCE
_VALIDATE: Final = Phase.VALIDATE
# What a finding counts as, by its stance, which is a number.
_VALIDATING: Final = (RECORDED, RECORDED, WARNED, DENIED)
_MUTATING: Final = (RECORDED, RECORDED, WARNED, WARNED)


def decision(observation: Observation) -> str:
    """Return what became of a review, one of `REVIEW_DECISIONS`."""
    verdict = observation.verdict
    if verdict is None:
        return REFUSED
    if verdict.is_malformed:
        return MALFORMED
    validating, broke = observation.phase is _VALIDATE, False
    # Not `verdict.allowed`, which writes every message to know whether there is one.
    for outcome in verdict.outcomes:
        if outcome.findings or outcome.error:
            if validating and denies(outcome):
                return DENIED
            broke = broke or bool(outcome.error)
    if verdict.operations:
        return PATCHED
    return BROKE if broke else PASSED


def denies(outcome: Outcome) -> bool:
    """Tell whether a validating answer is a denial because of this policy."""
    if outcome.error and outcome.stance is _ENFORCE:
        return True
    for finding in outcome.findings:  # noqa: SIM110 -- `any` takes longer than the look at the one or two there are
        if finding.stance is _ENFORCE:
            return True
    return False


def outcome_decisions(outcome: Outcome, phase: Phase) -> set[str]:
    """Return what a policy made of a review: every word of `OUTCOME_DECISIONS` that applies, none when it passed.

    A mutating answer never denies, so what would deny counts as a warning there.
    """
    by_stance = _VALIDATING if phase is _VALIDATE else _MUTATING
    words = {by_stance[finding.stance] for finding in outcome.findings}
    if outcome.patches:
        words.add(PATCHED)
    if outcome.skipped:
        words.add(SKIPPED)
    if outcome.error:
        words.add(BROKE)
    return words


# A kind that no policy judges or looks up.
OTHER: Final = "other"
# What is said of a request that could not be read.
UNREAD: Final = "unread"


def judged_kinds(catalog: Iterable[Policy]) -> Mapping[tuple[str, str], str]:
    """Return group and kind -> name, for every kind that policies judge or look up, and every workload.

    Kinds of different groups that share a name share it here.
    """
    handlers = [handler for policy in catalog for handler in policy.handlers]
    kinds = {kind for handler in handlers for kind in (*handler.kinds, *(need.kind for need in handler.needs))}
    return {(kind.group, kind.name): kind.name for kind in kinds} | {key: key[1] for key in TEMPLATES}


def kind_of(observation: Observation, kinds: Mapping[tuple[str, str], str]) -> str:
    """Name the kind that a review is about, `OTHER` when it is none of those, `UNREAD` when it could not be read."""
    if observation.review is None:
        return UNREAD
    kind = observation.review.request.kind
    return kinds.get((kind.group, kind.kind), OTHER)
