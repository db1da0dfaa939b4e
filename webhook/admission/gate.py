"""Evaluate AdmissionReviews with the ruleset in force and the cluster data: bytes in, bytes out."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias

from gpugate.policies.engine.caught_error import described, release
from gpugate.policies.engine.config import OutOfTimeError
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.response import encode, refuse, status
from gpugate.webhook.admission.review import (
    Review,
    ReviewError,
    UnacceptableError,
    attributed_by_head,
    decode,
    too_large,
)

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.webhook.admission.cpu_budget import CpuBudget


@dataclass(frozen=True, slots=True)
class Rules:
    """A ruleset and the generation of its configuration; the same bytes give the same generation."""

    ruleset: Ruleset
    generation: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body; the status is 200 for every review with a uid."""

    status: int
    body: bytes


class Later(Enum):
    """Why a review has no answer yet, so that the caller has to repeat it."""

    DATA = "an object is missing that would change the patch and that may arrive soon"
    CPU = "the evaluation takes longer than one that does not delay other reviews"


# The CPU seconds of an evaluation that may end with `Later.CPU`. A review of 6 KB takes half a millisecond, the first
# review of a NodePool in a process 10 ms.
QUICK_SECONDS: Final = 0.025


Observe: TypeAlias = "Callable[[Observation], None]"


def _ignore(_: Observation) -> None:
    """Observe nothing."""


class Gate:
    """Evaluates reviews with the ruleset in force. Threads may share a gate, because only the ruleset changes."""

    def __init__(
        self,
        rules: Rules,
        facts: Facts,
        clock: Callable[[], dt.datetime],
        observe: Observe = _ignore,
        budget: CpuBudget | None = None,
    ) -> None:
        """Create a gate. A gate with a budget must be created and used in the main thread."""
        self._rules = rules
        self._facts = facts
        self._clock = clock
        self._observe = observe
        self._budget = budget

    @property
    def rules(self) -> Rules:
        """The ruleset in force."""
        return self._rules

    def use(self, rules: Rules) -> None:
        """Use this ruleset from the next review on; reviews in progress keep the previous one."""
        self._rules = rules

    def mutate(self, body: bytes) -> Answer:
        """Answer a review sent to the mutating webhook, with or without a patch."""
        return self.answer(Phase.MUTATE, body)

    def validate(self, body: bytes) -> Answer:
        """Answer a review sent to the validating webhook: allowed, or denied with the reasons."""
        return self.answer(Phase.VALIDATE, body)

    def answer(self, phase: Phase, body: bytes, seconds_left: float | None = None) -> Answer:
        """Answer a review sent to the webhook of a phase; never raises. See `try_answer` for the arguments."""
        answer = self.try_answer(phase, body, seconds_left, may_wait=False, only_quick=False)
        assert isinstance(answer, Answer)  # noqa: S101 -- for the type checker: `Later` has to be allowed
        return answer

    def try_answer(
        self, phase: Phase, body: bytes, seconds_left: float | None, *, may_wait: bool, only_quick: bool
    ) -> Answer | Later:
        """Answer a review sent to the webhook of a phase, or return why the caller has to repeat it; never raises.

        A watch reports a Pod's Job or claim template a moment after the Pod arrives. A Pod is mutated only once, so a
        caller that may wait does so and calls again. A review is observed once, when it is answered.

        Args:
            phase: the webhook that received the review.
            body: the review.
            seconds_left: the time limit. When it expires, no further policy runs: the validating webhook denies, the
                mutating webhook does not patch. The same happens when the CPU budget expires, which also interrupts
                a policy. None means no time limit.
            may_wait: whether the result may be `Later.DATA`.
            only_quick: whether the result is `Later.CPU` after `QUICK_SECONDS`. A gate without a budget never stops.
        """
        started = perf_counter()
        # Read once, so that a reload during the evaluation does not affect this review.
        rules = self._rules
        out_of_time = None if seconds_left is None else _deadline_check(started + seconds_left)
        review: Review | None = None
        try:
            if self._budget:
                self._budget.start(QUICK_SECONDS if only_quick else None)
            review = decode(body)
            verdict = evaluate(
                rules.ruleset,
                review.request,
                self._facts,
                today=self._clock().date(),
                phase=phase,
                template_ceiling=Stance.WARN,
                out_of_time=out_of_time,
                unhurried=self._budget.paused if self._budget else nullcontext,
            )
            waits = may_wait and phase is Phase.MUTATE and verdict.coming
            answer = Later.DATA if waits else Answer(200, encode(review, verdict, phase, rules.generation))
            if self._budget:
                self._budget.stop()
        except BaseException as error:  # noqa: BLE001 -- every error needs a response, even SystemExit from a policy
            if self._budget:
                self._budget.stop()
                if only_quick and self._budget.is_spent:
                    release(error)
                    return Later.CPU
            refusal = _refusal(error, review, body, perf_counter() - started)
            # The error refers to this frame, which refers to the error and the body: break the cycle.
            release(error)
            return self._refused(phase, refusal, started, rules, review)
        if isinstance(answer, Answer):
            seconds = perf_counter() - started
            self._notify(Observation(phase, seconds, rules.generation, review, verdict, size=len(body)))
        return answer

    def too_large(self, phase: Phase, head: bytes) -> Answer:
        """Answer a review with a body above the size limit; `head` is the beginning of the body."""
        return self._refused(phase, too_large(head), perf_counter(), self._rules)

    def _refused(
        self, phase: Phase, error: ReviewError, started: float, rules: Rules, review: Review | None = None
    ) -> Answer:
        self._notify(Observation(phase, perf_counter() - started, rules.generation, review, error=error))
        if isinstance(error, UnacceptableError):
            return Answer(200, refuse(error, phase, rules.generation if review else ""))
        return Answer(error.code, status(error.code, error.message))

    def _notify(self, observation: Observation) -> None:
        # An error in the log or the metrics must not fail the request.
        with suppress(Exception):
            self._observe(observation)


def _deadline_check(deadline: float) -> Callable[[], bool]:
    return lambda: perf_counter() >= deadline


def _refusal(error: BaseException, review: Review | None, body: bytes, seconds: float) -> ReviewError:
    """Return the error that explains why there is no verdict, with the uid if it is known."""
    if isinstance(error, ReviewError):
        return error
    if isinstance(error, OutOfTimeError):
        code, message = (
            504,
            (
                f"out of time after {seconds:.1f} s{f', in {error.policy}' if error.policy else ''}: apply the object "
                "again; if that fails too, make it smaller or raise timeoutSeconds of the webhook"
            ),
        )
    else:
        code, message = 500, f"internal error in gpugate ({described(error)})"
    if review is None:
        return attributed_by_head(code, message, body)
    return UnacceptableError(code, message, review.uid, review.api_version)
