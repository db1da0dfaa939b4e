"""Encode the response to an AdmissionReview: a verdict in, bytes out.

What the API server makes of it is in `k8s.io/apiserver` pkg/admission/plugin/webhook (v1.36): it refuses an answer with
another uid, a patch without a patchType or the reverse, a patch from a validating webhook, and, whatever the
failurePolicy, a patch that does not apply or that comes with a DELETE.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

import orjson

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Finding, line_of
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.policies.sdk.objects import Operation as AdmissionOperation
from gpugate.webhook.admission.review import KIND
from gpugate.webhook.generate.probe import ANNOTATION, NONCE, answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpugate.policies.engine.patching import Operation
    from gpugate.policies.engine.verdict import Outcome, Verdict
    from gpugate.policies.sdk.findings import Violation
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.admission.review import Review, UnacceptableError

ELLIPSIS = "..."


def plain(text: str) -> str:
    """Write control, bidirectional and other unprintable characters as Python's escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)


def cut(text: str, length: int) -> str:
    """Shorten a text to at most `length` characters; what was cut shows as an ellipsis."""
    return text if len(text) <= length else text[: length - len(ELLIPSIS)] + ELLIPSIS


def brief(text: str, length: int) -> str:
    """Write a text plainly in at most `length` characters; looks at no more of it than that."""
    return cut(plain(text[: length + 1]), length)


def within(text: str, size: int) -> str:
    """Shorten a text to at most `size` bytes of UTF-8; what was cut shows as an ellipsis."""
    data = text.encode()
    return text if len(data) <= size else data[: size - len(ELLIPSIS)].decode(errors="ignore") + ELLIPSIS


def listed(items: Iterable[str], length: int) -> str:
    """Join items with commas as far as they fit; what did not fit shows as a count."""
    shown, rest, used = [], 0, 0
    for item in items:
        used += len(item) + 1
        if used > length - len(" and 10000 more"):
            rest += 1
        else:
            shown.append(item)
    return ",".join(shown) + (f" and {rest} more" if rest else "")


# In bytes; nobody reads more of a denial, and it is written into events and logs.
LONGEST_MESSAGE: Final = 1024
# Advice of `k8s.io/api` admission/v1 types.go (v0.36): longer ones may be cut by the API server.
LONGEST_WARNING: Final = 120
MOST_WARNINGS: Final = 20
# Of so many warnings each is written, to show each once; of more the rest is only counted.
_MOST_COMPARED: Final = 1000


def denial(verdict: Verdict) -> str:
    """Write every denial of a verdict with what to do instead, one line each, in 1 KiB."""
    reasons = verdict.reasons(Stance.ENFORCE)
    shown: list[str] = []
    room = LONGEST_MESSAGE - len("\nand 1000000 more")
    for reason in reasons:
        text = within(plain(_with_hint(reason)[:LONGEST_MESSAGE]), LONGEST_MESSAGE)
        # The first is always shown, and room is left to say that others are not.
        if shown and len(text.encode()) > room:
            shown.append(f"and {len(reasons) - len(shown)} more")
            break
        shown.append(within(text, room))
        room -= len(shown[-1].encode()) + 1
    return "\n".join(shown)


def warnings(verdict: Verdict, *, and_denials: bool) -> list[str]:
    """Write the warnings of a verdict, each once, at most 20 of at most 120 characters.

    Args:
        verdict: what was found.
        and_denials: tell what the request would be refused for too, because the answer cannot refuse it.
    """
    reasons = verdict.reasons(Stance.WARN)
    if and_denials:
        reasons = verdict.reasons(Stance.ENFORCE) + reasons
    told = list(dict.fromkeys(brief(_warning(reason), LONGEST_WARNING) for reason in reasons[:_MOST_COMPARED]))
    unseen = max(0, len(reasons) - _MOST_COMPARED)
    if len(told) + unseen > MOST_WARNINGS:
        told[MOST_WARNINGS - 1 :] = [f"and {len(told) + unseen - MOST_WARNINGS + 1} more warnings"]
    return told


def _warning(reason: Violation | Finding | Outcome) -> str:
    line = line_of(reason)
    # Where there is no room for both, what was found tells more than where.
    if isinstance(reason, Finding) and len(line) > LONGEST_WARNING:
        return f"[{reason.policy}] {reason.message}"
    return line


def _with_hint(reason: Violation | Finding | Outcome) -> str:
    line = line_of(reason)
    return f"{line}; {reason.hint}" if isinstance(reason, Finding) and reason.hint else line


# The API server reads an answer whole, whatever its size (`k8s.io/client-go` rest/request.go, v0.36), and objects
# that etcd keeps are of 1.5 MiB at most.
LARGEST: Final = 1024 * 1024
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def written(operations: Sequence[Operation]) -> bytes:
    """Write operations as JSON.

    Raises:
        ValueError: JSON would say something else than their values: NaN, a date, a lone surrogate.
    """
    data = orjson.dumps(operations, option=_STRICT)
    if orjson.loads(data) != list(operations):
        raise ValueError("a patch holds a value that JSON does not have")
    return data


_ASKED_BY: Final = GroupVersionKind("", "v1", "ConfigMap")


def answers(request: Request, phase: Phase) -> Sequence[str]:
    """Return the warning that answers a probe; none for any other request.

    Only what is not stored is answered, of a kind that no policy judges, and never more than the digits that were sent.
    """
    if not request.dry_run or request.kind != _ASKED_BY:
        return ()
    metadata = (request.object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    nonce = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(nonce, str) or not NONCE.fullmatch(nonce):
        return ()
    return (answer(phase.value, nonce),)


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
    told += answers(review.request, phase)
    if not response["allowed"]:
        response["status"] = _failure(_code(verdict), denial(verdict))
    elif mutating and verdict.operations and review.request.operation is not AdmissionOperation.DELETE:
        operations = written(verdict.operations)
        if len(operations) > LARGEST:
            told = [f"{_NOT_MUTATED}the patch is larger than {LARGEST >> 20} MiB", *told[: MOST_WARNINGS - 1]]
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
