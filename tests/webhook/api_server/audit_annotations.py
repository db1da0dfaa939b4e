"""What becomes of a webhook's audit annotations.

Source: `k8s.io/apiserver` pkg/admission/attributes.go (`checkKeyFormat`, `AddAnnotation`), v1.36.
"""

from __future__ import annotations

import re

_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class AuditAnnotations:
    """The annotations of one request; one whose key is illegal or taken is dropped, and the request goes on."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.dropped: list[str] = []

    def add(self, webhook: str, name: str, value: str) -> None:
        """Add what a webhook says, under its name."""
        key = f"{webhook}/{name}"
        legal = _PREFIX.fullmatch(webhook) and len(webhook) <= 253 and _NAME.fullmatch(name)
        if legal and self.kept.setdefault(key, value) == value:
            return
        self.dropped.append(key)
