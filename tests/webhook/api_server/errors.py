"""What the API server can hold against a webhook, and what comes of it.

CallError                    the call failed: failurePolicy says whether the request does too
├── TransportError           no answer: refused, closed, too late, not trusted
├── HttpStatusError          an HTTP status that is none of success
├── EmptyBodyError ...       an answer that is no AdmissionReview of this request
RejectedError                the request fails whatever the failurePolicy
├── PatchWithoutObjectError  a patch where there is nothing to patch
├── PatchDoesNotApplyError   a patch that cannot be applied
└── UndecodableObjectError   a patched object that is no longer one of its type
ConductError                 accepted by the API server, and still never to be sent: the test fails

Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, v1.36.
"""

from __future__ import annotations


class CallError(Exception):
    """The webhook could not be called, or its answer cannot be used."""


class TransportError(CallError):
    """No HTTP answer came."""


class HttpStatusError(CallError):
    """The HTTP status is not 200 to 206."""


class EmptyBodyError(CallError):
    """The answer has no body."""


class MediaTypeError(CallError):
    """The Content-Type of the answer cannot be parsed."""


class UndecodableReviewError(CallError):
    """The body is not JSON, or a member has the wrong type."""


class StatusAnswerError(CallError):
    """The body is a `Status`, not an AdmissionReview."""


class AbsentResponseError(CallError):
    """The AdmissionReview has no `response`."""


class WrongUidError(CallError):
    """The answer is to another call."""


class WrongTypeError(CallError):
    """The answer is not of the apiVersion and kind that was asked in."""


class PatchTypeMismatchError(CallError):
    """A patch without a patchType, or the reverse."""


class ValidatingPatchError(CallError):
    """A validating webhook sent a patch."""


class UndecodablePatchError(CallError):
    """The patch is not a JSON array of objects."""


class UnsupportedPatchTypeError(CallError):
    """The patchType is not JSONPatch."""


class NoCommonVersionError(CallError):
    """The webhook is registered for no version of AdmissionReview that the API server knows."""


class RejectedError(Exception):
    """The request is rejected with 500 whatever the failurePolicy."""


class PatchWithoutObjectError(RejectedError):
    """There is no object to patch, as on DELETE."""


class PatchDoesNotApplyError(RejectedError):
    """A parent is missing, an index is out of range, a test fails, an operation is not known."""


class UndecodableObjectError(RejectedError):
    """The patched object is no longer one of its type."""


class ConductError(AssertionError):
    """Something that the API server would accept or hide, and that we promise never to send."""
