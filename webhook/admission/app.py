"""The Flask application: routes requests to the gate and limits the time of each."""

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
    """Return why a body with these headers is not supported; empty if it is.

    The API server sends `application/json` (`k8s.io/apiserver` pkg/util/webhook, v1.36). A missing type is treated as
    JSON too, for manual requests.
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


# The default and the maximum of `timeoutSeconds`, the time that the API server waits
# (`k8s.io/api` admissionregistration/v1 types.go, v0.36).
DEFAULT_SECONDS: Final = 10.0
MOST_SECONDS: Final = 30.0
# The rest of the time is for the network and for the policy that runs when the limit expires.
_SHARE: Final = 0.8

_TIMEOUT = re.compile(r"(?:^|&)timeout=([^&]*)")
_LONGEST: Final = 32
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[0-9]+)?)(h|ms|m|s)")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds_left(query: bytes | str, waited: float) -> float:
    """Return the seconds that remain to evaluate a review, at least 0.

    The API server sends its timeout in `?timeout=` as a Go duration of whole seconds
    (`k8s.io/apiserver` pkg/admission/plugin/webhook, `k8s.io/client-go` rest/request.go, v1.36). The first parameter
    counts. The default for a missing or invalid one is 10 s, the maximum 30 s.

    Args:
        query: the query of the URL, not decoded.
        waited: the seconds since the review arrived.
    """
    text = query if isinstance(query, str) else query.decode("latin-1")
    match = _TIMEOUT.search(text)
    timeout = _seconds(match[1]) if match else DEFAULT_SECONDS
    return max(0.0, timeout * _SHARE - waited)


def timeout_query(seconds: float) -> str:
    """Return the query of a URL for which `seconds_left` is this number of seconds, at least a millisecond."""
    return f"timeout={max(1, round(seconds / _SHARE * 1000))}ms"


def _seconds(text: str) -> float:
    total, position = 0.0, 0
    while position < len(text) <= _LONGEST:
        part = _AMOUNT.match(text, position)
        if part is None:
            break
        total += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    # A timeout of 0 would leave every review without a verdict, so it is treated as invalid.
    return min(total, MOST_SECONDS) if total > 0 and position == len(text) else DEFAULT_SECONDS


# The path of each phase. The ASGI application reads it too, because reviews bypass Flask.
ADMISSION = {"/mutate": Phase.MUTATE, "/validate": Phase.VALIDATE}
_HEALTH = ("/healthz", "/readyz", "/metrics", "/shadow")
# The paths of each port: admission with TLS, health and metrics without.
_PATHS = {"https": frozenset(ADMISSION), "http": frozenset(_HEALTH)}


class Health(Protocol):
    """The readiness and the metrics of the server."""

    def missing(self) -> Sequence[str]:
        """Return what the server needs before it is ready; empty if it is ready."""
        ...

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Return the content type and the body of the metrics, in the best format that `accept` allows."""
        ...

    def shadowed(self) -> bytes | None:
        """Return what the shadow policy file would decide differently, as JSON; None without a shadow policy file."""
        ...


def create_app(gate: Gate, health: Health) -> Flask:
    """Create the application that answers reviews with a gate.

    Paths are matched exactly and never redirected, because the API server follows redirects. Every error is a
    `metav1.Status` in JSON. The debugger is off, whatever the environment variables of Flask contain.
    """
    app = Flask(__name__, static_folder=None)
    app.debug = False
    app.url_map.merge_slashes = False
    for path, phase in ADMISSION.items():
        view = _admission(gate, phase)
        app.add_url_rule(path, path, view, methods=["POST"], provide_automatic_options=False)
    for path, answer in zip(_HEALTH, (_alive, _ready(health), _metrics(health), _shadow(health)), strict=True):
        app.add_url_rule(path, path, answer, methods=["GET"], provide_automatic_options=False)
    app.before_request(_refuse_other_paths)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _broken)
    return app


def _refuse_other_paths() -> None:
    # Werkzeug would route //validate to /validate.
    if request.environ["PATH_INFO"] not in _PATHS[request.scheme]:
        abort(404)


def _admission(gate: Gate, phase: Phase) -> Callable[[], Response]:
    def view() -> Response:
        refusal = unsupported(request.headers.get("Content-Type", ""), request.headers.get("Content-Encoding", ""))
        if refusal:
            return _json(415, status(415, refusal))
        # Werkzeug's own limit would truncate a chunked body silently. Reading one byte more shows that it is too large.
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


def _shadow(health: Health) -> Callable[[], Response]:
    def view() -> Response:
        document = health.shadowed()
        if document is None:
            return _json(404, status(404, "no shadow policy file: start the server with --shadow-policy-file"))
        return _json(200, document)

    return view


def _http_error(error: HTTPException) -> Response:
    assert error.code is not None  # noqa: S101 -- for the type checker: Flask itself handles exceptions without a code
    message = f"{request.method} {request.path}: {error.name.lower()}"
    response = _json(error.code, status(error.code, message))
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _broken(_: Exception) -> Response:
    return _json(500, status(500, "internal error in gpugate"))


def _json(code: int, body: bytes) -> Response:
    return Response(body, code, mimetype="application/json")
