"""What is observed of a review, and the decisions on it and on each policy: closed sets of words for metrics, log and traces.

They are not in `metrics`, because importing that module loads prometheus-client, which then reads its environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.pod_templates import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.policies.engine.verdict import Outcome, Verdict
    from gpugate.policies.sdk.objects import Request
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.review import Review, ReviewError

ALLOW: Final = "allow"
MUTATE: Final = "mutate"
DENY: Final = "deny"
MALFORMED: Final = "malformed"
ERROR: Final = "error"
FAILED: Final = "failed"
# Decisions on a review; `FAILED` is a review that could not be evaluated.
REVIEW_DECISIONS: Final = (ALLOW, MUTATE, DENY, MALFORMED, ERROR, FAILED)

WARN: Final = "warn"
RECORD: Final = "record"
SKIP: Final = "skip"
# Decisions of a policy on a review; a policy that passes has none.
OUTCOME_DECISIONS: Final = (DENY, MUTATE, WARN, RECORD, SKIP, ERROR)
# Looking up a member of an enumeration takes as long as the rest of the work for a policy that passes.
_ENFORCE: Final = Stance.ENFORCE
_VALIDATE: Final = Phase.VALIDATE
# The decision that a finding counts as, by its mode, which is a number.
_VALIDATING: Final = (RECORD, RECORD, WARN, DENY)
_MUTATING: Final = (RECORD, RECORD, WARN, WARN)


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one review: evaluated (`review`, `verdict`) or not (`error`), and its duration in seconds.

    `generation` is that of the ruleset in force when the review arrived, and `size` the bytes of an evaluated review.
    """

    phase: Phase
    seconds: float
    generation: str
    review: Review | None = None
    verdict: Verdict | None = None
    error: ReviewError | None = None
    size: int = 0


def decision(observation: Observation) -> str:
    """Return the decision on a review, one of `REVIEW_DECISIONS`."""
    verdict = observation.verdict
    if verdict is None:
        return FAILED
    if verdict.is_malformed:
        return MALFORMED
    validating, broke = observation.phase is _VALIDATE, False
    # `verdict.allowed` would be slower, because it formats every message.
    for outcome in verdict.outcomes:
        if outcome.findings or outcome.error:
            if validating and denies(outcome):
                return DENY
            broke = broke or bool(outcome.error)
    if verdict.operations:
        return MUTATE
    return ERROR if broke else ALLOW


def denies(outcome: Outcome) -> bool:
    """Return whether this outcome makes a validating response a denial."""
    if outcome.error and outcome.stance is _ENFORCE:
        return True
    for finding in outcome.findings:  # noqa: SIM110 -- `any` is slower for the usual one or two findings
        if finding.stance is _ENFORCE:
            return True
    return False


def outcome_decisions(outcome: Outcome, phase: Phase) -> set[str]:
    """Return the decisions of a policy on a review, from `OUTCOME_DECISIONS`; empty if it passed.

    A mutating response never denies, so a finding that would deny counts as a warning there.
    """
    by_mode = _VALIDATING if phase is _VALIDATE else _MUTATING
    words = {by_mode[finding.stance] for finding in outcome.findings}
    if outcome.patches:
        words.add(MUTATE)
    if outcome.skipped:
        words.add(SKIP)
    if outcome.error:
        words.add(ERROR)
    return words


# The label of a kind that no policy evaluates or looks up.
OTHER: Final = "other"
# The label of a request that could not be decoded.
UNREAD: Final = "unread"


def evaluated_kinds(catalog: Iterable[Policy]) -> Mapping[tuple[str, str], str]:
    """Return group and kind -> name, for every kind that policies evaluate or look up, and every workload.

    Kinds of different groups that share a name share it here.
    """
    handlers = [handler for policy in catalog for handler in policy.handlers]
    kinds = {kind for handler in handlers for kind in (*handler.kinds, *(need.kind for need in handler.needs))}
    return {(kind.group, kind.name): kind.name for kind in kinds} | {key: key[1] for key in TEMPLATES}


def kind_of(observation: Observation, kinds: Mapping[tuple[str, str], str]) -> str:
    """Return the name of a review's kind: `OTHER` if it is not in `kinds`, `UNREAD` if the review was not decoded."""
    if observation.review is None:
        return UNREAD
    return kind_of_request(observation.review.request, kinds)


def kind_of_request(request: Request, kinds: Mapping[tuple[str, str], str]) -> str:
    """Return the name of a request's kind: `OTHER` if it is not in `kinds`."""
    kind = request.stored_kind
    return kinds.get((kind.group, kind.kind), OTHER)
