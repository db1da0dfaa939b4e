"""What the policies that found something say of themselves: why it is bad, what to write instead, where that is known from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.webhook.report import policy_text
from gpugate.webhook.report.audit_html.markup import NOTHING, Html, join, tag
from gpugate.webhook.report.audit_tally import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.report.audit_html.shared import Shared

_CODE: Final = re.compile(r"`([^`]+)`")
_MALFORMED: Final = "A field has a type that the API server refuses today; the object was stored before it did."


def policy_pages(anchors: Mapping[str, str], known: Mapping[str, Policy], shared: Shared) -> Html:
    """Return a page for each policy; `anchors` are policy -> where its findings link to."""
    if not anchors:
        return NOTHING
    pages = [_page(name, anchor, known.get(name), shared) for name, anchor in anchors.items()]
    return tag("section", tag("h2", "About these policies"), *pages, id="about")


def _page(name: str, anchor: str, policy: Policy | None, shared: Shared) -> Html:
    parts: list[Html] = []
    title = policy.title if policy else ""
    for heading in (policy_text.WHY, policy_text.INSTEAD, policy_text.SOURCES) if policy else ():
        text = policy_text.section(policy.doc, heading) if policy else ""
        if text:
            parts += [tag("h4", heading), join(_blocks(text))]
    if name == MALFORMED:
        parts.append(tag("p", _MALFORMED))
    else:
        parts.append(tag("p", "In a terminal: ", tag("code", f"gpugate explain {name}")))
    fixes = shared.of(name)
    if fixes:
        parts += [tag("h4", "How to mend what it found"), fixes]
    # A browser opens the details around what a link points to, not those that it points to.
    inside = tag("div", *parts, id=anchor, class_="page")
    return tag("details", tag("summary", tag("b", name), tag("em", title)), inside)


def _blocks(text: str) -> Iterator[Html]:
    """Read the little Markdown that policies are documented in: paragraphs, lists, fenced blocks, code."""
    for index, part in enumerate(re.split(r"^```\w*\n", text, flags=re.MULTILINE)):
        if index % 2:
            yield tag("pre", part.rstrip("\n"))
            continue
        for block in filter(None, re.split(r"\n\s*\n", part.strip())):
            lines = re.split(r"^[-*] ", block, flags=re.MULTILINE)
            if len(lines) > 1:
                before = " ".join(lines[0].split())
                yield tag("p", _inline(before)) if before else NOTHING
                yield tag("ul", *(tag("li", _inline(" ".join(line.split()))) for line in lines[1:]))
            else:
                yield tag("p", _inline(" ".join(block.split())))


def _inline(text: str) -> Html:
    parts = _CODE.split(text)
    return join(tag("code", part) if index % 2 else part for index, part in enumerate(parts))
