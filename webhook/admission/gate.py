"""The rules in force and the facts to hand: answers reviews, bytes in and bytes out."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias, overload

from gpugate.policies.engine.config import OutOfTimeError
from gpugate.policies.engine.evaluate import Phase, described, evaluate, release
from gpugate.policies.sdk.findings import Stance
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
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts
    from gpugate.webhook.admission.cpu_budget import CpuBudget


@dataclass(frozen=True, slots=True)
class Rules:
    """A ruleset, and the generation of the configuration it was bound to: the same bytes give the same generation."""

    ruleset: Ruleset
    generation: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body; whatever has a uid is answered with 200."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Observation:
    """What became of one review: judged (`review`, `verdict`), or not (`error`); `seconds` it took.

    `generation` is that of the rules that were in force when it came.
    """

    phase: Phase
    seconds: float
    generation: str
    review: Review | None = None
    verdict: Verdict | None = None
    error: ReviewError | None = None


Observe: TypeAlias = "Callable[[Observation], None]"


def _unobserved(_: Observation) -> None:
    """Observe nothing."""


class Gate:
    """Judges reviews by the rules in force; safe to call from several threads, as nothing but those ever changes."""

    def __init__(
        self,
        rules: Rules,
        facts: Facts,
        clock: Callable[[], dt.datetime],
        observe: Observe = _unobserved,
        budget: CpuBudget | None = None,
    ) -> None:
        """Make a gate; with a budget, in the main thread, which alone may then use it."""
        self._rules = rules
        self._facts = facts
        self._clock = clock
        self._observe = observe
        self._budget = budget

    @property
    def rules(self) -> Rules:
        """The rules in force."""
        return self._rules

    def use(self, rules: Rules) -> None:
        """Judge by these rules from the next review on; reviews that are being judged keep theirs."""
        self._rules = rules

    def mutate(self, body: bytes) -> Answer:
        """Answer a review sent to the mutating webhook: a patch, or none."""
        return self.answer(Phase.MUTATE, body)

    def validate(self, body: bytes) -> Answer:
        """Answer a review sent to the validating webhook: allowed, or not and why."""
        return self.answer(Phase.VALIDATE, body)

    @overload
    def answer(self, phase: Phase, body: bytes, seconds_left: float | None = None) -> Answer: ...

    @overload
    def answer(
        self, phase: Phase, body: bytes, seconds_left: float | None = None, *, may_wait: bool
    ) -> Answer | None: ...

    def answer(
        self, phase: Phase, body: bytes, seconds_left: float | None = None, *, may_wait: bool = False
    ) -> Answer | None:
        """Answer a review sent to the webhook of a phase; never raises.

        Where the caller may wait, nothing is said while a fact is missing that would change the patch and may be known
        in a moment. What is made right before a Pod, its Job or its claim template, is heard of a moment after the Pod
        came. A Pod is patched once, so it is worth to ask again. Reviews that are asked again are observed once, at
        their answer.

        Args:
            phase: which webhook it was sent to.
            body: the review.
            seconds_left: for how long it may be evaluated. When they are over, no further policy is run: the validating
                webhook denies, the mutating one changes nothing. The same happens when the budget of CPU is over, also
                inside a policy. Without a number, time is not limited.
            may_wait: whether the caller asks again when nothing is said.
        """
        started = perf_counter()
        # Read once, so that other rules that come meanwhile judge nothing of this review.
        rules = self._rules
        out_of_time = None if seconds_left is None else _after(started + seconds_left)
        review: Review | None = None
        try:
            if self._budget:
                self._budget.start()
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
            answer = None if waits else Answer(200, encode(review, verdict, phase, rules.generation))
            if self._budget:
                self._budget.stop()
        except BaseException as error:  # noqa: BLE001 -- whatever breaks in here, even by sys.exit, an answer goes out
            if self._budget:
                self._budget.stop()
            refusal = _refusal(error, review, body, perf_counter() - started)
            # This frame now holds the error, and the error this frame with the body.
            release(error)
            return self._refused(phase, refusal, started, rules, review)
        if answer is not None:
            self._tell(Observation(phase, perf_counter() - started, rules.generation, review, verdict))
        return answer

    def too_large(self, phase: Phase, head: bytes) -> Answer:
        """Answer a review whose body is larger than may be read, of which these are the first bytes."""
        return self._refused(phase, too_large(head), perf_counter(), self._rules)

    def _refused(
        self, phase: Phase, error: ReviewError, started: float, rules: Rules, review: Review | None = None
    ) -> Answer:
        self._tell(Observation(phase, perf_counter() - started, rules.generation, review, error=error))
        if isinstance(error, UnacceptableError):
            return Answer(200, refuse(error, phase, rules.generation if review else ""))
        return Answer(error.code, status(error.code, error.message))

    def _tell(self, observation: Observation) -> None:
        # A log that cannot be written is no reason to lose a request.
        with suppress(Exception):
            self._observe(observation)


def _after(deadline: float) -> Callable[[], bool]:
    return lambda: perf_counter() >= deadline


def _refusal(error: BaseException, review: Review | None, body: bytes, seconds: float) -> ReviewError:
    """Say why there is no verdict, attributed to a uid wherever one is known."""
    if isinstance(error, ReviewError):
        return error
    if isinstance(error, OutOfTimeError):
        code, message = (
            504,
            (
                f"out of time after {seconds:.1f} s{f', at {error.policy}' if error.policy else ''}: apply it again; "
                "if that does not help, make the object smaller, or raise timeoutSeconds of the webhook"
            ),
        )
    else:
        code, message = 500, f"gpugate broke ({described(error)})"
    if review is None:
        return attributed_by_head(code, message, body)
    return UnacceptableError(code, message, review.uid, review.api_version)
