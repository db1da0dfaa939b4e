"""The HTML page of an audit.

Large data is embedded as gzip in base64, so that the file stays small enough to send.
"""

from __future__ import annotations

import base64
import gzip
import re
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.audit.formats.html import breakdown, closing, overview
from gpugate.webhook.audit.formats.html.document import asset, contents, document
from gpugate.webhook.audit.formats.html.findings import Shared, findings
from gpugate.webhook.audit.formats.html.markup import NOTHING, Html, join, tag
from gpugate.webhook.audit.formats.json import encode
from gpugate.webhook.audit.model import SCHEMA
from gpugate.webhook.audit.tally import MALFORMED, grouped
from gpugate.webhook.report import policy_text
from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport

MOST_PLAIN: Final = 200_000


def embedded(report: AuditReport, presentation: Presentation, most_plain: int = MOST_PLAIN) -> Html:
    """Return the script element with the JSON document; no text in it can close the element."""
    data = encode(report, presentation)
    if len(data) > most_plain:
        # No modification time, so that equal audits give equal files.
        packed = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
        data = msgspec.json.encode({"contains": SCHEMA, "encoding": "gzip+base64", "data": packed})
    # In JSON, these characters occur only in strings, where they can be escaped.
    text = plain_json(data.decode()).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Html(f'<script type="application/json" id="data">{text}</script>')


_CODE: Final = re.compile(r"`([^`]+)`")
_MALFORMED: Final = "A field has a type that the API server rejects. It accepted the object in the past."


def policy_pages(anchors: Mapping[str, str], known: Mapping[str, Policy], shared: Shared) -> Html:
    """Return a page for each policy; `anchors` maps policies to the ids that findings link to."""
    if not anchors:
        return NOTHING
    pages = [_page(name, anchor, known.get(name), shared) for name, anchor in anchors.items()]
    return tag("section", tag("h2", "About these policies"), *pages, id="about")


def _page(name: str, anchor: str, policy: Policy | None, shared: Shared) -> Html:
    parts: list[Html] = []
    title = policy.title if policy else ""
    # Without the sources, which `gpugate explain` and the policy's page have: a page of 10,000 findings is limited to 2 MB.
    for heading in (policy_text.WHY, policy_text.INSTEAD) if policy else ():
        text = policy_text.section(policy.doc, heading) if policy else ""
        if text:
            parts += [tag("h4", heading), join(_blocks(text))]
    if name == MALFORMED:
        parts.append(tag("p", _MALFORMED))
    else:
        parts.append(tag("p", "In a terminal: ", tag("code", f"gpugate explain {name}")))
    fixes = shared.of(name)
    if fixes:
        parts += [tag("h4", "How to fix its findings"), fixes]
    # A browser opens the details element around the target of a link, but not a target that is one.
    inside = tag("div", *parts, id=anchor, class_="page")
    return tag("details", tag("summary", tag("b", name), tag("em", title)), inside)


def _blocks(text: str) -> Iterator[Html]:
    """Convert the Markdown of policy documentation: paragraphs, lists, tables, fenced blocks, code."""
    for index, part in enumerate(re.split(r"^```\w*\n", text, flags=re.MULTILINE)):
        if index % 2:
            yield tag("pre", part.rstrip("\n"))
            continue
        for block in filter(None, re.split(r"\n\s*\n", part.strip())):
            if block.startswith("|"):
                yield _table(block)
                continue
            lines = re.split(r"^[-*] ", block, flags=re.MULTILINE)
            if len(lines) > 1:
                before = " ".join(lines[0].split())
                yield tag("p", _inline(before)) if before else NOTHING
                yield tag("ul", *(tag("li", _inline(" ".join(line.split()))) for line in lines[1:]))
            else:
                yield tag("p", _inline(" ".join(block.split())))


def _table(block: str) -> Html:
    header, _, *rows = ([_inline(cell.strip()) for cell in line.strip("| ").split("|")] for line in block.splitlines())
    titles = tag("tr", *(tag("th", cell) for cell in header))
    return tag("table", titles, *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))


def _inline(text: str) -> Html:
    parts = _CODE.split(text)
    return join(tag("code", part) if index % 2 else part for index, part in enumerate(parts))


_SECTIONS: Final = {
    "money": "GPU spend",
    "overview": "Objects",
    "trend": "Trend",
    "spending": "Spend by team",
    "idle": "Idle GPUs",
    "pending": "Pending Pods",
    "unbounded": "Unbounded and wasted",
    "today": "Would be denied",
    "others": "Other findings",
    "namespaces": "Namespaces",
    "policies": "Policies",
    "pools": "GPUs by pool",
    "changes": "Changes",
    "exemptions": "Exemptions",
    "gaps": "Not evaluated",
    "about": "About the policies",
    "method": "Method",
}


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit."""
    script = asset("report.js") + asset("tables.js")
    shared = Shared(sum(len(audited.findings) for audited in report.audited))
    groups = [group.name for group in grouped(report, "policy")]
    anchors = {name: f"p{number}" for number, name in enumerate(groups, 1)}
    known = {policy.id: policy for policy in presentation.policies}
    titles = {name: policy.title for name, policy in known.items()}
    main = join(
        (
            overview.money(report, presentation),
            overview.tiles(report),
            overview.trend(presentation.trend, presentation.amount),
            breakdown.spending(report, presentation),
            breakdown.idle(report, presentation),
            breakdown.pending(report),
            overview.warnings(report, presentation.amount),
            closing.changes(presentation.comparison),
            findings(report, shared, anchors, presentation.amount),
            breakdown.namespaces(report, presentation),
            breakdown.policies(report, anchors, titles, presentation.amount),
            breakdown.pools(report, presentation.amount),
            closing.exemptions(report),
            closing.gaps(report),
            policy_pages(anchors, known, shared),
            closing.method(presentation),
        )
    )
    style = asset("report.css") + shared.style
    body = tag(
        "body",
        tag("a", "Skip to the findings", class_="skip", href="#findings"),
        overview.header(report),
        contents(main, _SECTIONS),
        tag("main", main),
        closing.footer(presentation),
        embedded(report, presentation),
        Html(f"<script>{script}</script>"),
    )
    title = f"gpugate audit of {report.cluster.name}, {report.time:%Y-%m-%d}"
    return document(title, body, style, script)
