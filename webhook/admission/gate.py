"""The ruleset in force and the facts to hand: answers reviews, bytes in and bytes out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from gpugate.policies.engine.breakage import described
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.attribution import too_large
from gpugate.webhook.admission.errors import ReviewError, UnacceptableError, UnattributableError
from gpugate.webhook.admission.response import encode, refuse, status
from gpugate.webhook.admission.review import decode

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts
    from gpugate.webhook.admission.review import Review


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body; whatever has a uid is answered with 200."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Observation:
    """What became of one review: judged (`review`, `verdict`), or not (`error`); `seconds` it took."""

    phase: Phase
    seconds: float
    review: Review | None = None
    verdict: Verdict | None = None
    error: ReviewError | None = None


Observe: TypeAlias = "Callable[[Observation], None]"


def _unobserved(_: Observation) -> None:
    """Observe nothing."""


class Gate:
    """Judges reviews by one ruleset; safe to call from several threads, because nothing in it changes."""

    def __init__(
        self,
        ruleset: Ruleset,
        facts: Facts,
        clock: Callable[[], dt.datetime],
        observe: Observe = _unobserved,
    ) -> None:
        self._ruleset = ruleset
        self._facts = facts
        self._clock = clock
        self._observe = observe

    def mutate(self, body: bytes) -> Answer:
        """Answer a review sent to the mutating webhook: a patch, or none."""
        return self.answer(Phase.MUTATE, body)

    def validate(self, body: bytes) -> Answer:
        """Answer a review sent to the validating webhook: allowed, or not and why."""
        return self.answer(Phase.VALIDATE, body)

    def answer(self, phase: Phase, body: bytes) -> Answer:
        """Answer a review sent to the webhook of a phase; never raises."""
        started = perf_counter()
        try:
            review = decode(body)
        except ReviewError as error:
            return self._refused(phase, error, started)
        except Exception as error:  # noqa: BLE001 -- as below, with no uid to answer to
            return self._refused(phase, UnattributableError(500, _broke(error)), started)
        try:
            verdict = evaluate(
                self._ruleset,
                review.request,
                self._facts,
                today=self._clock().date(),
                phase=phase,
                template_ceiling=Stance.WARN,
            )
            answer = Answer(200, encode(review, verdict, phase))
        except Exception as error:  # noqa: BLE001 -- whatever breaks in here, the API server gets an answer with its uid
            broke = UnacceptableError(500, _broke(error), review.uid, review.api_version)
            return self._refused(phase, broke, started, review)
        self._tell(Observation(phase, perf_counter() - started, review, verdict))
        return answer

    def too_large(self, phase: Phase, head: bytes) -> Answer:
        """Answer a review whose body is larger than may be read, of which these are the first bytes."""
        return self._refused(phase, too_large(head), perf_counter())

    def _refused(self, phase: Phase, error: ReviewError, started: float, review: Review | None = None) -> Answer:
        self._tell(Observation(phase, perf_counter() - started, review, error=error))
        if isinstance(error, UnacceptableError):
            return Answer(200, refuse(error, phase))
        return Answer(error.code, status(error.code, error.message))

    def _tell(self, observation: Observation) -> None:
        # A log that cannot be written is no reason to lose a request.
        with suppress(Exception):
            self._observe(observation)


def _broke(error: Exception) -> str:
    return f"gpugate broke ({described(error)})"
