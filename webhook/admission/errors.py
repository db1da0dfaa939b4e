"""What can be wrong with a review.

ReviewError              what is wrong, as an HTTP code and a sentence without content of the object
├── UnattributableError  no uid is known: only an HTTP error can answer
└── UnacceptableError    the uid is known: answered by a review with that uid, which no failurePolicy can turn around
"""

from __future__ import annotations


class ReviewError(Exception):
    """A review that cannot be judged; `code` is an HTTP status, `message` says what is wrong."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class UnattributableError(ReviewError):
    """Whoever sent it is not the API server, or is broken: there is no uid to answer to."""


class UnacceptableError(ReviewError):
    """A review with a uid that cannot be judged."""

    def __init__(self, code: int, message: str, uid: str, api_version: str) -> None:
        super().__init__(code, message)
        self.uid = uid
        self.api_version = api_version
