"""Encode the response to an AdmissionReview: a verdict in, bytes out.

The API server refuses a response with another uid, a patch without a patchType or the reverse, and a patch from a
validating webhook. Under any failurePolicy it refuses a patch that does not apply or that comes with a DELETE
(`k8s.io/apiserver` pkg/admission/plugin/webhook, v1.36).
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
from gpugate.webhook.admission.decisions import MUTATE, OUTCOME_DECISIONS, outcome_decisions
from gpugate.webhook.admission.review import KIND
from gpugate.webhook.registration.probe import ANNOTATION, NONCE, answer

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
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def cut(text: str, length: int) -> str:
    """Shorten a text to at most `length` characters; an ellipsis replaces the rest."""
    return text if len(text) <= length else text[: length - len(ELLIPSIS)] + ELLIPSIS


def brief(text: str, length: int) -> str:
    """Write a text with `plain` in at most `length` characters; reads only that many characters."""
    return cut(plain(text[: length + 1]), length)


def within(text: str, size: int) -> str:
    """Shorten a text to at most `size` bytes of UTF-8; an ellipsis replaces the rest."""
    data = text.encode()
    return text if len(data) <= size else data[: size - len(ELLIPSIS)].decode(errors="ignore") + ELLIPSIS


def listed(items: Iterable[str], length: int) -> str:
    """Join items with commas in about `length` characters; a count replaces the rest."""
    listed, omitted, used_length = [], 0, 0
    for item in items:
        used_length += len(item) + 1
        if used_length > length - len(" and 10000 more"):
            omitted += 1
        else:
            listed.append(item)
    return ",".join(listed) + (f" and {omitted} more" if omitted else "")


# In bytes. Controllers copy a denial into events and logs, so it is kept short.
LONGEST_MESSAGE: Final = 1024
# In characters. The API server may cut longer warnings (`k8s.io/api` admission/v1 types.go, v0.36).
LONGEST_WARNING: Final = 120
MOST_WARNINGS: Final = 20
# Up to this many warnings are compared, so that each is shown once; the rest is only counted.
_MOST_COMPARED: Final = 1000


def denial(verdict: Verdict) -> str:
    """Write the denials of a verdict with their hints, one line each, in at most 1 KiB."""
    reasons = verdict.reasons(Stance.ENFORCE)
    denials: list[str] = []
    remaining = LONGEST_MESSAGE - len("\nand 1000000 more")
    for reason in reasons:
        text = within(plain(_with_hint(reason)[:LONGEST_MESSAGE]), LONGEST_MESSAGE)
        # The first denial is always shown. The limit leaves space for the count of the others.
        if denials and len(text.encode()) > remaining:
            denials.append(f"and {len(reasons) - len(denials)} more")
            break
        denials.append(within(text, remaining))
        remaining -= len(denials[-1].encode()) + 1
    return "\n".join(denials)


def warnings(verdict: Verdict, *, and_denials: bool) -> list[str]:
    """Write the warnings of a verdict: each once, at most 20, each at most 120 characters long.

    Args:
        verdict: the result of the evaluation.
        and_denials: whether to include the findings that deny, because the response cannot deny the request.
    """
    reasons = verdict.reasons(Stance.WARN)
    if and_denials:
        reasons = verdict.reasons(Stance.ENFORCE) + reasons
    texts = list(dict.fromkeys(brief(_warning(reason), LONGEST_WARNING) for reason in reasons[:_MOST_COMPARED]))
    total = len(texts) + max(0, len(reasons) - _MOST_COMPARED)
    if total == len(texts) <= MOST_WARNINGS:
        return texts
    listed = texts[: MOST_WARNINGS - 1]
    return [*listed, f"and {total - len(listed)} more warnings"]


def _warning(reason: Violation | Finding | Outcome) -> str:
    line = line_of(reason)
    # If the line is too long for both, the message is more useful than the path.
    if isinstance(reason, Finding) and len(line) > LONGEST_WARNING:
        return f"[{reason.policy}] {reason.message}"
    return line


def _with_hint(reason: Violation | Finding | Outcome) -> str:
    line = line_of(reason)
    return f"{line}; {reason.hint}" if isinstance(reason, Finding) and reason.hint else line


# The API server reads a response of any size into memory (`k8s.io/client-go` rest/request.go, v0.36), and etcd stores
# objects of at most 1.5 MiB.
LARGEST: Final = 1024 * 1024
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def encode_operations(operations: Sequence[Operation]) -> bytes:
    """Encode patch operations as JSON.

    Raises:
        ValueError: JSON cannot represent a value: NaN, a date, a lone surrogate.
    """
    data = orjson.dumps(operations, option=_STRICT)
    if orjson.loads(data) != list(operations):
        raise ValueError("a patch contains a value that JSON cannot represent")
    return data


_PROBE_KIND: Final = GroupVersionKind("", "v1", "ConfigMap")


def probe_warnings(request: Request, phase: Phase) -> Sequence[str]:
    """Return the warning that answers a reachability probe; empty for any other request.

    A probe is a dry run on a kind that no policy evaluates, and the response repeats only the digits of its nonce.
    """
    if not request.dry_run or request.kind != _PROBE_KIND:
        return ()
    metadata = (request.object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    nonce = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(nonce, str) or not NONCE.fullmatch(nonce):
        return ()
    return (answer(phase.value, nonce),)


# In characters: enough for about twenty policy ids. The audit log stores the annotations of every request.
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
    """Encode the response to an evaluated review.

    A mutating response always allows the request and reports findings as warnings, because the validating webhook
    decides on the final object. A validating response never contains a patch.
    """
    mutating = phase is Phase.MUTATE
    # Most policies pass, and their outcomes are empty; of most objects, all are.
    notable = [o for o in verdict.outcomes if o.findings or o.patches or o.skipped or o.error]
    silent = not notable and not verdict.malformed
    response: _Response = {"uid": review.uid, "allowed": mutating or silent or verdict.allowed}
    texts = [] if silent else warnings(verdict, and_denials=mutating)
    annotations = _annotations(notable)
    texts += probe_warnings(review.request, phase)
    if not response["allowed"]:
        response["status"] = _failure(_code(verdict), denial(verdict))
    elif mutating and verdict.operations and review.request.operation is not AdmissionOperation.DELETE:
        operations = encode_operations(verdict.operations)
        if len(operations) > LARGEST:
            texts = [f"{_NOT_MUTATED}the patch is larger than {LARGEST >> 20} MiB", *texts[: MOST_WARNINGS - 1]]
            annotations["not-mutated"] = annotations.pop(MUTATE, "")
        else:
            response["patch"] = base64.b64encode(operations).decode("ascii")
            response["patchType"] = "JSONPatch"
    if texts:
        response["warnings"] = texts
    response["auditAnnotations"] = {"generation": generation, **annotations}
    return _encode_review(review.api_version, response)


def refuse(error: UnacceptableError, phase: Phase, generation: str = "") -> bytes:
    """Encode the response to a review that could not be evaluated: a denial, or a warning from the mutating webhook.

    `generation` is that of the ruleset in force; empty if the review could not be decoded.
    """
    response: _Response = {"uid": error.uid, "allowed": phase is Phase.MUTATE}
    if phase is Phase.MUTATE:
        response["warnings"] = [brief(_NOT_MUTATED + error.message, LONGEST_WARNING)]
    else:
        response["status"] = _failure(error.code, _shorten_message(error.message))
    if generation:
        response["auditAnnotations"] = {"generation": generation}
    return _encode_review(error.api_version, response)


def status(code: int, message: str) -> bytes:
    """Encode a `metav1.Status`, the body of every HTTP error; the API server shows its message to the user."""
    return orjson.dumps(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, **_failure(code, _shorten_message(message))}
    )


def _encode_review(api_version: str, response: _Response) -> bytes:
    return orjson.dumps({"kind": KIND, "apiVersion": api_version, "response": response})


def _failure(code: int, message: str) -> Status:
    return {"status": "Failure", "message": message, "reason": _REASONS.get(code, ""), "code": code}


def _shorten_message(message: str) -> str:
    return within(plain(message[: LONGEST_MESSAGE + 1]), LONGEST_MESSAGE)


def _code(verdict: Verdict) -> int:
    if verdict.is_malformed:
        return 422
    # Without an enforced finding, a policy that raised an error denies. That is an error of the server.
    return 403 if any(finding.stance is Stance.ENFORCE for finding in verdict.findings) else 500


def _annotations(notable: Sequence[Outcome]) -> dict[str, str]:
    """Return the audit annotations: for each decision, the policies that made it. The keys are legal annotation names.

    `notable` are the outcomes that are not empty.
    """
    by_key: dict[str, list[str]] = {}
    for outcome in notable:
        # A response of either phase names what would deny.
        for key in outcome_decisions(outcome, Phase.VALIDATE):
            by_key.setdefault(key, []).append(outcome.policy)
    return {key: listed(by_key[key], _LONGEST_ANNOTATION) for key in OUTCOME_DECISIONS if key in by_key}
