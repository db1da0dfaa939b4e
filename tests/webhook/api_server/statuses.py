"""What the user is told: `metav1.Status`, in the words of the API server.

Sources: `k8s.io/apiserver` pkg/admission/plugin/webhook/errors/statuserror.go and pkg/util/webhook/error.go,
`k8s.io/apimachinery` pkg/api/errors, v1.36.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
_GENERIC = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    413: "Request entity too large: ",
    415: "the body of the request was in an unknown format - accepted media types include: ",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
}
# How much of a body that is no Status is shown.
_SHOWN = 2048


def denial(webhook: str, status: Json | None) -> Json:
    """What the user is told when a webhook says no; a code below 400 and a Success are not believed."""
    told = dict(status or {})
    told["code"] = told.get("code") or 0
    told["code"] = max(told["code"], 400)
    if told.get("status") in {None, "", "Success"}:
        told["status"] = "Failure"
    denied = f'admission webhook "{webhook}" denied the request'
    said = told.get("message") or told.get("reason")
    told["message"] = f"{denied}: {said}" if said else f"{denied} without explanation"
    return told


def internal_error(message: str) -> Json:
    """What the user is told when the API server or a call fails."""
    return {
        "status": "Failure",
        "code": 500,
        "reason": "InternalError",
        "message": f"Internal error occurred: {message}",
    }


def bad_request(message: str) -> Json:
    """What the user is told when a dry run meets a webhook with side effects."""
    return {"status": "Failure", "code": 400, "reason": "BadRequest", "message": message}


def of_http_answer(code: int, body: bytes) -> str:
    """Say in words what an HTTP status that is none of success means; a Status in the body speaks for itself."""
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("message"):
        return str(status["message"])
    if code >= 500 and code != 503:
        text = body[:_SHOWN].decode(errors="replace").strip() or "unknown"
        return f'an error on the server ("{text}") has prevented the request from succeeding'
    return _GENERIC.get(code, f"the server responded with the status code {code} but did not return more information")
