"""What many findings have in common: written in place a few times, and once where the others point to.

Only reports of many findings do so; ten thousand findings are mostly a few hundred, over and over. Links to what stands once
are without text: the style sheet has the name of the policy of each, which a browser shows without a script too. The kind of
objects alike is written so too, once for the list of them.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from gpugate.webhook.report.audit_html.markup import Html, join, tag
from gpugate.webhook.report.plain import plain

MOST_IN_FULL: Final = 2_000
_IN_PLACE: Final = 2


class Shared:
    """The bodies of findings in one report of some findings, and the kinds of objects that are alike."""

    def __init__(self, findings: int) -> None:
        self._limit = _IN_PLACE if findings > MOST_IN_FULL else findings
        self._seen: Counter[Html] = Counter()
        self._numbers: dict[Html, tuple[int, str]] = {}
        self._kinds: set[str] = set()

    @property
    def is_long(self) -> bool:
        """Whether the report is one of many findings."""
        return self._limit == _IN_PLACE

    def __call__(self, body: Html, policy: str) -> str:
        """Return where a body stands once for all; empty where it is to be written in place."""
        self._seen[body] += 1
        if not body or self._seen[body] <= self._limit:
            return ""
        number, _ = self._numbers.setdefault(body, (len(self._numbers) + 1, policy))
        return f"#f{number}"

    def kind(self, name: str) -> str:
        """Return the kind that a list says for all its objects; empty where each says its own."""
        if not self.is_long:
            return ""
        self._kinds.add(name)
        return name

    @property
    def style(self) -> str:
        """Rules by which links to what stands once show the name of their policy, and objects that of their kind."""
        owners: dict[str, list[str]] = {}
        for number, policy in self._numbers.values():
            owners.setdefault(policy, []).append(f'[href="#f{number}"]::after')
        links = "".join(f"{','.join(links)}{{content:{_quoted(policy)}}}\n" for policy, links in sorted(owners.items()))
        kinds = (
            f"[data-kind={_quoted(kind)}]>li::before{{content:{_quoted(f'{kind}/')}}}\n" for kind in sorted(self._kinds)
        )
        return links + "".join(kinds)

    def of(self, policy: str) -> Html:
        """Return what links on findings of a policy point to."""
        shown = [(body, number) for body, (number, owner) in self._numbers.items() if owner == policy]
        return join(tag("div", body, id=f"f{number}", class_="body") for body, number in shown)


def _quoted(text: str) -> str:
    """Write a text as a string of CSS, in which anything but a letter is escaped by its number (CSS Syntax level 3, 4.3.7)."""
    return (
        '"' + "".join(c if (c.isalnum() and c.isascii()) or c in "/-" else f"\\{ord(c):06x}" for c in plain(text)) + '"'
    )
