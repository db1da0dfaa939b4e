"""Writes the answer to an AdmissionReview: a verdict in, bytes out.

What the API server makes of it is in `k8s.io/apiserver` pkg/admission/plugin/webhook (v1.36): it refuses an answer with
another uid, a patch without a patchType or the reverse, a patch from a validating webhook, and, whatever the
failurePolicy, a patch that does not apply or that comes with a DELETE.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

import orjson

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.request import Operation
from gpugate.webhook.admission import patch, probe
from gpugate.webhook.admission.envelope import KIND
from gpugate.webhook.admission.messages import LONGEST_MESSAGE, LONGEST_WARNING, MOST_WARNINGS, denial, warnings
from gpugate.webhook.admission.wording import brief, listed, plain, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.verdict import Outcome, Verdict
    from gpugate.webhook.admission.errors import UnacceptableError
    from gpugate.webhook.admission.review import Review

# An annotation is kept in the audit log of every request; this holds some twenty policy ids.
_LONGEST_ANNOTATION: Final = 1024

_NOT_MUTATED: Final = "[gpugate] not mutated: "

_REASONS: Final = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    504: "Timeout",
}


class Status(TypedDict):
    """A `metav1.Status` of a failure (`k8s.io/apimachinery` meta/v1, v0.36)."""

    status: str
    message: str
    reason: str
    code: int


class _Response(TypedDict):
    uid: str
    allowed: bool
    status: NotRequired[Status]
    patch: NotRequired[str]
    patchType: NotRequired[str]
    warnings: NotRequired[Sequence[str]]
    auditAnnotations: NotRequired[dict[str, str]]


def encode(review: Review, verdict: Verdict, phase: Phase, generation: str) -> bytes:
    """Write the answer to a review that was judged.

    A mutating answer always allows, and says what it found in warnings: what would be stored in the end is the
    validating webhook's to refuse. A validating answer never has a patch.
    """
    mutating = phase is Phase.MUTATE
    response: _Response = {"uid": review.uid, "allowed": mutating or verdict.allowed}
    told, annotations = warnings(verdict, and_denials=mutating), _annotations(verdict)
    told += probe.answers(review.request, phase)
    if not response["allowed"]:
        response["status"] = _failure(_code(verdict), denial(verdict))
    elif mutating and verdict.operations and review.request.operation is not Operation.DELETE:
        operations = patch.written(verdict.operations)
        if len(operations) > patch.LARGEST:
            told = [f"{_NOT_MUTATED}the patch is larger than {patch.LARGEST >> 20} MiB", *told[: MOST_WARNINGS - 1]]
            annotations["unpatched"] = annotations.pop("patched", "")
        else:
            response["patch"] = base64.b64encode(operations).decode("ascii")
            response["patchType"] = "JSONPatch"
    if told:
        response["warnings"] = told
    response["auditAnnotations"] = {"generation": generation, **annotations}
    return _written(review.api_version, response)


def refuse(error: UnacceptableError, phase: Phase, generation: str = "") -> bytes:
    """Write the answer to a review that could not be judged: a denial, or to the mutating webhook a warning.

    `generation` is that of the rules it would have been judged by, where it came so far.
    """
    response: _Response = {"uid": error.uid, "allowed": phase is Phase.MUTATE}
    if phase is Phase.MUTATE:
        response["warnings"] = [brief(_NOT_MUTATED + error.message, LONGEST_WARNING)]
    else:
        response["status"] = _failure(error.code, _shown(error.message))
    if generation:
        response["auditAnnotations"] = {"generation": generation}
    return _written(error.api_version, response)


def status(code: int, message: str) -> bytes:
    """Write a `metav1.Status`, the body of every HTTP error: the API server shows its message to the user."""
    return orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, **_failure(code, _shown(message))})


def _written(api_version: str, response: _Response) -> bytes:
    return orjson.dumps({"kind": KIND, "apiVersion": api_version, "response": response})


def _failure(code: int, message: str) -> Status:
    return {"status": "Failure", "message": message, "reason": _REASONS.get(code, ""), "code": code}


def _shown(message: str) -> str:
    return within(plain(message[: LONGEST_MESSAGE + 1]), LONGEST_MESSAGE)


def _code(verdict: Verdict) -> int:
    if verdict.is_malformed:
        return 422
    # Where no policy found anything, one that broke denies: our fault, not the user's.
    return 403 if any(finding.stance is Stance.ENFORCE for finding in verdict.findings) else 500


def _annotations(verdict: Verdict) -> dict[str, str]:
    """Say in the audit log what each policy made of the request; the keys are legal annotation names."""
    # Most outcomes say nothing: the policy passed.
    said = [o for o in verdict.outcomes if o.findings or o.patches or o.skipped or o.error]
    by_key = {
        "denied": [o.policy for o in said if _reaches(o, Stance.ENFORCE)],
        "patched": [o.policy for o in said if o.patches],
        "warned": [o.policy for o in said if _reaches(o, Stance.WARN)],
        "recorded": [o.policy for o in said if _reaches(o, Stance.AUDIT)],
        "skipped": [o.policy for o in said if o.skipped],
        "broke": [o.policy for o in said if o.error],
    }
    return {key: listed(policies, _LONGEST_ANNOTATION) for key, policies in by_key.items() if policies}


def _reaches(outcome: Outcome, stance: Stance) -> bool:
    return any(finding.stance is stance for finding in outcome.findings)
