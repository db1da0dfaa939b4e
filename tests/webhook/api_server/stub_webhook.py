"""Answers of a webhook, right and wrong, and a webhook that is a plain function."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from api_server.responses import HttpAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Json = dict[str, Any]


def answer(response: Any, *, status: int = 200, **envelope: Any) -> HttpAnswer:
    """An AdmissionReview with a response; members of the envelope that are None are left out."""
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response} | envelope
    body = json.dumps({key: value for key, value in review.items() if value is not None})
    return raw(body.encode(), status)


def raw(body: bytes, status: int = 200, **headers: str) -> HttpAnswer:
    """Bytes as they are."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status, {"content-type": "application/json"} | named, body)


def allowing(request: Json, **members: Any) -> HttpAnswer:
    """A correct answer to a request, and more members or others of its response."""
    return answer({"uid": request["uid"], "allowed": True} | members)


def patching(request: Json, operations: Sequence[Json] | bytes, **members: Any) -> HttpAnswer:
    """A correct answer that carries a patch, which need not be one."""
    patch = operations if isinstance(operations, bytes) else json.dumps(operations).encode()
    encoded = base64.b64encode(patch).decode()
    return allowing(request, **({"patch": encoded, "patchType": "JSONPatch"} | members))


@dataclass(slots=True)
class InProcess:
    """A webhook that is a function; keeps the requests it got."""

    behaviour: Callable[[Json], HttpAnswer]
    seen: list[Json] = field(default_factory=list)

    def post(self, body: bytes, timeout_seconds: float) -> HttpAnswer:
        """Answer a body."""
        assert timeout_seconds > 0
        self.seen.append(json.loads(body)["request"])
        return self.behaviour(self.seen[-1])
