"""The API server's audit log: what webhooks noted of a request, which its user does not see."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_PATIENCE_SECONDS = 90
_PAUSE_SECONDS = 0.002


class AuditLog:
    """Reads the events of one user agent in the order in which its requests were answered."""

    def __init__(self, file: Path, user_agent: str) -> None:
        self._file = file.open(encoding="utf-8")
        self._file.seek(0, 2)
        self._mark = f'"userAgent":{json.dumps(user_agent)}'
        self._begun = ""

    def next(self) -> dict[str, Any]:
        """Return the next event, which the API server writes once it has answered.

        Raises:
            AssertionError: there is none for a while.
        """
        latest = time.monotonic() + _PATIENCE_SECONDS
        while True:
            self._begun += self._file.readline()
            if self._begun.endswith("\n"):
                line, self._begun = self._begun, ""
                if self._mark in line:
                    event: dict[str, Any] = json.loads(line)
                    return event
            else:
                assert time.monotonic() < latest, "the API server wrote no audit event for a request it answered"
                time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
