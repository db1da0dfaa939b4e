"""What fails a test: an answer that the API server would not use, and one that it would use but we promise not to send."""

from __future__ import annotations


class CallError(AssertionError):
    """The webhook could not be called, or the API server would not use its answer."""


class TransportError(CallError):
    """No HTTP answer came: refused, closed, too late, not trusted."""


class ConductError(AssertionError):
    """The API server would accept it, and we promise never to send it."""
