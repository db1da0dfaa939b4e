"""Asks the keeper of the certificates for another authority, and follows what it does.

The keeper reads two annotations of its Secret; each new value is a new request. What it has answered stands in the
Secret's `state.json`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.certs.plan import DISTRUST, ROTATE
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
    """How far the keeper has come with a request.

    Attributes:
        taken_up: it has read the request.
        promoted: the next authority signs.
        left: what was distrusted is trusted no longer.
    """

    taken_up: bool = False
    promoted: bool = False
    left: bool = False


def ask(connection: Connection, names: Names, value: str, *, distrust: bool) -> bool:
    """Ask for the next authority to be promoted, or for all to be replaced; returns False if there is no Secret.

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
    """Look how far it has come.

    Raises:
        CallError: the Secret cannot be read.
    """
    state, previous = _state(connection, names)
    if (state.get("answered") or {}).get(DISTRUST if distrust else ROTATE) != value:
        return Progress()
    promoted = not state.get("pressing")
    return Progress(taken_up=True, promoted=promoted, left=distrust and promoted and not previous)


def follow(  # noqa: PLR0913 -- what was asked, for how long to look, and whom to tell
    connection: Connection,
    names: Names,
    value: str,
    seconds: float,
    tell: Callable[[Progress], None],
    *,
    distrust: bool,
    pause: float = _PAUSE_SECONDS,
) -> bool:
    """Look until it is done, and tell of each step; returns whether it was done in time.

    A rotation is done when the next authority signs; distrust, when the one before is trusted no longer.

    Raises:
        CallError: the Secret cannot be read.
    """
    deadline = time.monotonic() + seconds
    last = Progress()
    while True:
        found = progress(connection, names, value, distrust=distrust)
        if found != last:
            last = found
            tell(found)
        if found.left if distrust else found.promoted:
            return True
        if time.monotonic() + pause > deadline:
            return False
        time.sleep(pause)


def _state(connection: Connection, names: Names) -> tuple[dict[str, Any], bytes]:
    secret = public_parts(orjson.loads(connection.read(_path(names), {})))
    try:
        state = orjson.loads(secret.public.get("state.json", b""))
    except orjson.JSONDecodeError:
        state = None
    if not isinstance(state, dict):
        raise UnreachableError(f"Secret {names.namespace}/{names.secret} holds no state that gpugate wrote")
    return state, secret.public.get("previous.crt", b"")


def _path(names: Names) -> str:
    return f"/api/v1/namespaces/{names.namespace}/secrets/{names.secret}"
