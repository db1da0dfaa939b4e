"""One line of JSON for each review that was denied, patched or could not be judged; never content of the object."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Final

import orjson

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.errors import UnacceptableError
from gpugate.webhook.admission.wording import cut, plain

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.request import Request
    from gpugate.webhook.admission.gate import Observation

LOGGER: Final = "gpugate.admission"
# The longest name of an object; users are cut to it too.
_LONGEST: Final = 253


def log(observation: Observation) -> None:
    """Write what became of a review, unless it went through untouched."""
    verdict, error = observation.verdict, observation.error
    decision = _decision(verdict, observation.phase) if verdict else "refused"
    if decision == "passed":
        return
    line: dict[str, object] = {"decision": decision, "phase": observation.phase.value}
    if observation.review:
        line |= {"uid": observation.review.uid, **_about(observation.review.request)}
    elif isinstance(error, UnacceptableError):
        line["uid"] = error.uid
    if verdict:
        line["policies"] = _policies(verdict)
    if error:
        line |= {"code": error.code, "error": cut(plain(error.message), _LONGEST)}
    line["milliseconds"] = round(observation.seconds * 1000, 3)
    logging.getLogger(LOGGER).info("%s", orjson.dumps(line).decode())


def to_stderr() -> None:
    """Send the lines to stderr, one each; anything else that is logged stays where it goes."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger(LOGGER)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _decision(verdict: Verdict, phase: Phase) -> str:
    if verdict.malformed:
        return "malformed"
    if phase is Phase.VALIDATE and not verdict.allowed:
        return "denied"
    if verdict.operations:
        return "patched"
    return "broke" if any(outcome.error for outcome in verdict.outcomes) else "passed"


def _policies(verdict: Verdict) -> list[str]:
    return [
        outcome.policy
        for outcome in verdict.outcomes
        if outcome.patches or outcome.error or any(f.stance is Stance.ENFORCE for f in outcome.findings)
    ]


def _about(request: Request) -> dict[str, object]:
    return {
        "kind": _shown(str(request.kind)),
        "namespace": _shown(request.namespace),
        "name": _shown(request.shown_name),
        "operation": request.operation.value,
        "user": _shown(request.user),
        "dry_run": request.dry_run,
    }


def _shown(text: str) -> str:
    return cut(plain(text), _LONGEST)
