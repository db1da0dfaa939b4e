"""Puts the page together, with a policy that lets it run its own script and style, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.audit_html import breakdown, closing, overview
from gpugate.webhook.report.audit_html.embedded import embedded
from gpugate.webhook.report.audit_html.findings import findings
from gpugate.webhook.report.audit_html.markup import Html, join, tag
from gpugate.webhook.report.audit_html.policy_pages import policy_pages
from gpugate.webhook.report.audit_html.shared import Shared
from gpugate.webhook.report.audit_tally import grouped

if TYPE_CHECKING:
    from gpugate.webhook.report.audit_presentation import Presentation
    from gpugate.webhook.report.audited import AuditReport

_SECTIONS: Final = {
    "overview": "Overview",
    "money": "GPU money",
    "today": "If you enforce today",
    "others": "What else",
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
    script = _part("report.js")
    shared = Shared(sum(len(audited.findings) for audited in report.audited))
    groups = [group.name for group in grouped(report, "policy")]
    anchors = {name: f"p{number}" for number, name in enumerate(groups, 1)}
    known = {policy.id: policy for policy in presentation.policies}
    titles = {name: policy.title for name, policy in known.items()}
    main = join(
        (
            overview.tiles(report),
            overview.money(report, presentation),
            closing.changes(presentation.comparison),
            findings(report, shared, anchors),
            breakdown.namespaces(report, presentation),
            breakdown.policies(report, anchors, titles),
            breakdown.pools(report),
            closing.exemptions(report),
            closing.gaps(report),
            policy_pages(anchors, known, shared),
            closing.method(presentation),
        )
    )
    style = _part("report.css") + shared.style
    body = tag(
        "body",
        tag("a", "Skip to the findings", class_="skip", href="#findings"),
        overview.header(report, presentation),
        _contents(main),
        tag("main", main),
        closing.footer(presentation),
        embedded(report, presentation),
        Html(f"<script>{script}</script>"),
    )
    title = f"gpugate audit of {report.cluster.name}, {report.time:%Y-%m-%d}"
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        tag("meta", http_equiv="Content-Security-Policy", content=_security_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="robots", content="noindex"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _contents(main: str) -> Html:
    links = [tag("a", text, href=f"#{name}") for name, text in _SECTIONS.items() if f" id={name}>" in main]
    return tag("nav", *links, aria_label="Sections")


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _security_policy(style: str, script: str) -> str:
    """Allow this style and this script by their hashes (CSP level 3, 2.3.1), and nothing from anywhere."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
