"""The Flask application: routes requests to the gate, and bounds the time of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from flask import Flask, Response, abort, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from gpugate.policies.engine.evaluate import Phase
from gpugate.webhook.admission.response import status
from gpugate.webhook.admission.review import HEAD, MAX_BODY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpugate.webhook.admission.gate import Gate


def unsupported(content_type: str, content_encoding: str) -> str:
    """Say why a body cannot be read, from its two headers; empty when it can.

    The API server sends `application/json` (`k8s.io/apiserver` pkg/util/webhook, v1.36); no type at all is read as
    that, so that a person with `curl --data-binary` is understood.
    """
    if content_encoding.strip().lower() not in {"", "identity"}:
        return "the body must not be compressed: send it without Content-Encoding"
    media_type, _, parameters = content_type.lower().partition(";")
    if media_type.strip() not in {"", "application/json"}:
        return "the body must be JSON: send Content-Type: application/json"
    name, _, charset = parameters.partition("=")
    if name.strip() == "charset" and charset.strip(' "') not in {"utf-8", "utf8"}:
        return "the body must be UTF-8: send Content-Type: application/json"
    return ""


# What the API server waits without a `timeoutSeconds`, and the most that it may be told to
# (`k8s.io/api` admissionregistration/v1 types.go, v0.36).
DEFAULT_SECONDS: Final = 10.0
MOST_SECONDS: Final = 30.0
# The rest is for the way here and back, and for one policy that takes long.
_SHARE: Final = 0.8

_TIMEOUT = re.compile(r"(?:^|&)timeout=([^&]*)")
_LONGEST: Final = 32
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[0-9]+)?)(h|ms|m|s)")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds_left(query: bytes | str, waited: float) -> float:
    """Return for how many seconds a review may be judged; none are left when it is 0.

    The API server says in `?timeout=` how long it waits, as Go writes durations, in whole seconds
    (`k8s.io/apiserver` pkg/admission/plugin/webhook, `k8s.io/client-go` rest/request.go, v1.36). The first one counts;
    without one that can be read it is taken to wait 10 s, and never more than 30 s.

    Args:
        query: the query of the URL, as it stands there.
        waited: seconds that the review has waited since it came.
    """
    text = query if isinstance(query, str) else query.decode("latin-1")
    found = _TIMEOUT.search(text)
    timeout = _seconds(found[1]) if found else DEFAULT_SECONDS
    return max(0.0, timeout * _SHARE - waited)


def _seconds(text: str) -> float:
    total, position = 0.0, 0
    while position < len(text) <= _LONGEST:
        part = _AMOUNT.match(text, position)
        if part is None:
            break
        total += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    # No time at all is no answer to any review: whoever writes that does not mean it.
    return min(total, MOST_SECONDS) if total > 0 and position == len(text) else DEFAULT_SECONDS


# The path of each phase; the fast path of the front reads it too.
ADMISSION = {"/mutate": Phase.MUTATE, "/validate": Phase.VALIDATE}
_HEALTH = ("/healthz", "/readyz", "/metrics")
# What is answered where: admission over TLS, health and metrics on a port of their own without.
_PATHS = {"https": frozenset(ADMISSION), "http": frozenset(_HEALTH)}


class Health(Protocol):
    """What the server knows of itself."""

    def missing(self) -> Sequence[str]:
        """Say what is not there yet, or not any more, for the server to be ready; empty when it is."""
        ...

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Return metrics as a content type and a body, in the best format of those that are accepted."""
        ...


def create_app(gate: Gate, health: Health) -> Flask:
    """Make the application that answers with a gate.

    Paths are matched exactly and never redirected, because the API server follows redirects. Every error is a
    `metav1.Status` in JSON. No debugger, whatever the environment says.
    """
    app = Flask(__name__, static_folder=None)
    app.config.update(DEBUG=False, TESTING=False, PROPAGATE_EXCEPTIONS=False)
    app.url_map.merge_slashes = False
    for path, phase in ADMISSION.items():
        view = _admission(gate, phase)
        app.add_url_rule(path, path, view, methods=["POST"], provide_automatic_options=False)
    for path, answer in zip(_HEALTH, (_alive, _ready(health), _metrics(health)), strict=True):
        app.add_url_rule(path, path, answer, methods=["GET"], provide_automatic_options=False)
    app.before_request(_refuse_other_paths)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _broken)
    return app


def _refuse_other_paths() -> None:
    # Werkzeug reads //validate as /validate.
    if request.environ["PATH_INFO"] not in _PATHS[request.scheme]:
        abort(404)


def _admission(gate: Gate, phase: Phase) -> Callable[[], Response]:
    def view() -> Response:
        refused = unsupported(request.headers.get("Content-Type", ""), request.headers.get("Content-Encoding", ""))
        if refused:
            return _json(415, status(415, refused))
        # Werkzeug's own limit would cut a chunked body without a word; one byte more than allowed tells.
        if (request.content_length or 0) > MAX_BODY:
            answer = gate.too_large(phase, request.stream.read(HEAD))
        else:
            answer = gate.answer(phase, request.stream.read(MAX_BODY + 1), seconds_left(request.query_string, waited=0))
        return _json(answer.status, answer.body)

    return view


def _alive() -> Response:
    return Response("ok\n", mimetype="text/plain")


def _ready(health: Health) -> Callable[[], Response]:
    def view() -> Response:
        missing = health.missing()
        text = "".join(f"missing: {part}\n" for part in missing) or "ok\n"
        return Response(text, 503 if missing else 200, mimetype="text/plain")

    return view


def _metrics(health: Health) -> Callable[[], Response]:
    def view() -> Response:
        content_type, body = health.exposition(request.headers.get("Accept", ""))
        return Response(body, content_type=content_type)

    return view


def _http_error(error: HTTPException) -> Response:
    code = error.code if error.code is not None and error.code >= 400 else 404
    response = _json(code, status(code, f"{request.method} {request.path}: {error.name.lower()}"))
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _broken(_: Exception) -> Response:
    return _json(500, status(500, "gpugate broke"))


def _json(code: int, body: bytes) -> Response:
    return Response(body, code, mimetype="application/json")
