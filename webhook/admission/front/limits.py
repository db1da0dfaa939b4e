"""How much of everything a client may take, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one worker.

    Seconds: `handshake` from accept to the end of the TLS handshake; `header` from the first byte of a request (of the
    first one: from the handshake) to the end of its head; `body` from there to its end; `write` until the client has
    taken an answer; `keep_alive` between requests, longer than the 90 s for which the API server keeps a connection
    (Go 1.26 net/http DefaultTransport); `waiting` is how much work may queue before more is turned away; `late_facts`
    is how long a review waits until its worker hears of what made a Pod; `body_grace` is how long an unfinished body is
    safe from newer ones that need its room.

    Bytes: `url`, `header_line` (name and value), `head` (all of them), `in_flight` (bodies of all requests).

    Counts: `headers` of a request; `awaiting_facts`, reviews that wait so; `connections` in all, and `per_source`, of
    one address. An API server keeps 25 idle connections (client-go v0.36 transport; seen with v1.36.3), and all of
    them may come from one address.
    """

    handshake: float = 5
    header: float = 5
    body: float = 10
    write: float = 10
    keep_alive: int = 120
    waiting: float = 1
    late_facts: float = 0.5
    body_grace: float = 1
    url: int = 8 * 1024
    header_line: int = 8 * 1024
    head: int = 16 * 1024
    headers: int = 100
    awaiting_facts: int = 256
    in_flight: int = 64 * _MIB
    connections: int = 4096
    per_source: int = 512
