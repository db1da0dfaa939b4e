"""What many findings have in common: written in place a few times, and once where the others point to.

Only reports of many findings do so; ten thousand findings are mostly a few hundred, over and over.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from gpugate.webhook.report.audit_html.markup import Html, join, tag

MOST_IN_FULL: Final = 2_000
_IN_PLACE: Final = 2


class Shared:
    """The bodies of findings in one report of some findings."""

    def __init__(self, findings: int) -> None:
        self._limit = _IN_PLACE if findings > MOST_IN_FULL else findings
        self._seen: Counter[Html] = Counter()
        self._numbers: dict[Html, tuple[int, str]] = {}

    def __call__(self, body: Html, policy: str) -> str:
        """Return where a body stands once for all; empty where it is to be written in place."""
        self._seen[body] += 1
        if not body or self._seen[body] <= self._limit:
            return ""
        number, _ = self._numbers.setdefault(body, (len(self._numbers) + 1, policy))
        return f"#f{number}"

    def of(self, policy: str) -> Html:
        """Return what links on findings of a policy point to."""
        shown = [(body, number) for body, (number, owner) in self._numbers.items() if owner == policy]
        return join(tag("div", body, id=f"f{number}", class_="body") for body, number in shown)
