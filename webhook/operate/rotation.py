"""Request a new certificate authority from the keeper, and follow its progress.

The keeper reads two annotations of its Secret; each new value is a new request. It records processed requests in
`state.json` of the Secret.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.certs.plan import DISTRUST, ROTATE
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster.errors import ApiError, UnreachableError
from gpugate.webhook.operate.installation import public_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names

_MANAGER: Final = "gpugate-operations"
_PAUSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the keeper with a request.

    Attributes:
        taken_up: the keeper has read the request.
        promoted: the next authority signs.
        retired: no caBundle contains the distrusted authorities.
    """

    taken_up: bool = False
    promoted: bool = False
    retired: bool = False


def request_rotation(connection: Connection, names: Names, value: str, *, distrust: bool) -> bool:
    """Request the promotion of the next authority, or the replacement of all; return False if there is no Secret.

    Raises:
        CallError: the Secret cannot be written.
    """
    annotations = {DISTRUST if distrust else ROTATE: value}
    try:
        connection.merge(_path(names), {"metadata": {"annotations": annotations}}, _MANAGER)
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return True


def progress(connection: Connection, names: Names, value: str, *, distrust: bool) -> Progress:
    """Return the progress of a request.

    Raises:
        CallError: the Secret cannot be read.
    """
    state, previous = _state(connection, names)
    if (state.get("answered") or {}).get(DISTRUST if distrust else ROTATE) != value:
        return Progress()
    promoted = not state.get("pressing")
    return Progress(taken_up=True, promoted=promoted, retired=distrust and promoted and not previous)


def follow(  # noqa: PLR0913 -- the request, the time limit and the callback
    connection: Connection,
    names: Names,
    value: str,
    seconds: float,
    report: Callable[[Progress], None],
    *,
    distrust: bool,
    pause: float = _PAUSE_SECONDS,
) -> bool:
    """Report each step of a request until it is complete; return whether it was complete within `seconds`.

    A rotation is complete when the next authority signs, distrust when the previous authorities are not trusted.

    Raises:
        CallError: the Secret cannot be read.
    """
    deadline = time.monotonic() + seconds
    last = Progress()
    while True:
        current = progress(connection, names, value, distrust=distrust)
        if current != last:
            last = current
            report(current)
        if current.retired if distrust else current.promoted:
            return True
        if time.monotonic() + pause > deadline:
            return False
        time.sleep(pause)


def _state(connection: Connection, names: Names) -> tuple[dict[str, Any], bytes]:
    secret = public_parts(read_json(orjson.loads, connection.read(_path(names), {})))
    try:
        state = read_json(orjson.loads, secret.public.get("state.json", b""))
    except orjson.JSONDecodeError:
        state = None
    if not isinstance(state, dict):
        raise UnreachableError(f"Secret {names.namespace}/{names.secret} contains no state of gpugate")
    return state, secret.public.get("previous.crt", b"")


def _path(names: Names) -> str:
    return f"/api/v1/namespaces/{names.namespace}/secrets/{names.secret}"
