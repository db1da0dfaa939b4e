"""The end of the page: changes, exemptions, what was not evaluated, and the definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.html import markup
from gpugate.webhook.audit.formats.html.markup import NOTHING, Html, join, tag
from gpugate.webhook.audit.tally import code, skipped, suppressed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.audit.comparison import Changed, Comparison
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport

_METHOD: Final = (
    "The audit listed the objects and evaluated each one as if it were created now, with the engine and the policy file of "
    "the webhook. It changed nothing. Equal Pod templates are evaluated once. If a policy had no data for an object, it is "
    "listed under “Not evaluated” and does not count as passed."
)


def changes(comparison: Comparison | None) -> Html:
    """Return the difference to an earlier audit."""
    if comparison is None:
        return NOTHING
    parts = [
        tag(
            "p",
            f"Since {comparison.since:%Y-%m-%d %H:%M %Z}. {comparison.unchanged:,} findings are unchanged.",
            class_="intro",
        )
    ]
    for title, findings in (("New", comparison.new), ("Fixed", comparison.fixed)):
        parts.append(tag("h3", f"{title} ", tag("span", f"{len(findings):,}", class_="count")))
        parts.append(_changed(f"{title} findings", findings) if findings else tag("p", "None.", class_="intro"))
    return tag("section", tag("h2", "Changes"), *parts, id="changes")


def _changed(caption: str, findings: Sequence[Changed]) -> Html:
    rows = [
        markup.row(
            markup.cell(str(item.object)),
            markup.cell(tag("code", code(item.finding))),
            markup.cell(item.finding.message),
        )
        for item in findings
    ]
    return markup.table(caption, ("Object", "Policy", "Finding"), rows)


def exemptions(report: AuditReport) -> Html:
    """Return the findings with an exemption, and the exemptions to remove."""
    passing = list(suppressed(report))
    if not (passing or report.expired or report.unused):
        return NOTHING
    parts = []
    for title, texts in (("Expired", report.expired), ("Unused", report.unused)):
        if texts:
            parts += [tag("h3", title), tag("ul", *(tag("li", text) for text in texts), class_="plain")]
    if passing:
        rows = [
            markup.row(
                markup.cell(str(audited.object)),
                markup.cell(tag("code", code(finding))),
                markup.cell(finding.message),
                markup.cell(finding.note),
            )
            for audited, finding in passing
        ]
        parts.append(markup.table("Findings with an exemption", ("Object", "Policy", "Finding", "Reason"), rows))
    return tag("section", tag("h2", "Exemptions"), *parts, id="exemptions")


def gaps(report: AuditReport) -> Html:
    """Return what was not evaluated."""
    policies = skipped(report)
    rows = [
        markup.row(
            markup.cell(gap.what),
            markup.cell(gap.reason),
            markup.number("" if gap.objects is None else f"{gap.objects:,}", gap.objects),
        )
        for gap in report.not_evaluated
    ]
    rows += [
        markup.row(markup.cell(tag("code", policy)), markup.cell(reason), markup.number(f"{count:,}", count))
        for (policy, reason), count in policies.most_common()
    ]
    intro = f"Coverage {say.percent(report.coverage)}. Unread objects never count as allowed."
    body = markup.table("Not evaluated", ("What", "Reason", "Objects"), rows, numbers=(2,)) if rows else NOTHING
    remarks = tag("ul", *(tag("li", text) for text in report.remarks), class_="plain") if report.remarks else NOTHING
    return tag("section", tag("h2", "Not evaluated"), tag("p", intro, class_="intro"), body, remarks, id="gaps")


def method(presentation: Presentation) -> Html:
    """Return the method, the definitions of all figures, and the required RBAC rules."""
    terms = [join((tag("dt", name), tag("dd", meaning))) for name, meaning in say.DEFINITIONS.items()]
    rights = NOTHING
    if presentation.rbac:
        rights = tag(
            "details",
            tag("summary", tag("b", "RBAC rules that the audit needs")),
            tag("pre", presentation.rbac.strip()),
        )
    return tag(
        "section",
        tag("h2", "Method and definitions"),
        tag("p", _METHOD),
        tag("dl", *terms, class_="terms"),
        rights,
        id="method",
    )


def footer(presentation: Presentation) -> Html:
    """Return the last line."""
    took = f" in {presentation.seconds:.1f} s" if presentation.seconds is not None else ""
    return tag("footer", f"Written by gpugate {__version__}{took}. This page loads no external resources.")
