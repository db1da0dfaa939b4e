"""What the front counts; a closed set, because each is the value of a metric's label."""

from __future__ import annotations

from enum import Enum


class FrontEvent(Enum):
    """Something that happened to a connection or a request before, or instead of, its being judged."""

    ACCEPTED = "accepted"
    REFUSED_TOTAL = "refused_total"
    REFUSED_SOURCE = "refused_source"
    HANDSHAKE_FAILED = "handshake_failed"
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    CLIENT_REFUSED = "client_refused"
    HEADER_TIMEOUT = "header_timeout"
    BODY_TIMEOUT = "body_timeout"
    WRITE_TIMEOUT = "write_timeout"
    BAD_REQUEST = "bad_request"
    CLIENT_GONE = "client_gone"
    SHED_BYTES = "shed_bytes"
    SHED_WORK = "shed_work"
    AWAITED_FACTS = "awaited_facts"
