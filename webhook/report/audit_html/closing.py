"""The end of the page: what changed, exemptions, what was not looked at, and how the figures are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.webhook.report import audit_words as say
from gpugate.webhook.report.audit_html import markup
from gpugate.webhook.report.audit_html.markup import NOTHING, Html, join, tag
from gpugate.webhook.report.audit_tally import code, skipped, suppressed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.report.audit_comparison import Changed, Comparison
    from gpugate.webhook.report.audit_presentation import Presentation
    from gpugate.webhook.report.audited import AuditReport

_METHOD: Final = (
    "Objects were listed and judged as if they were created now, by the engine and the policy file of the webhook. "
    "Nothing was changed. Equal Pod templates are judged once. A policy that could not look at what it needs is listed "
    "under “Not evaluated”, and never counts as passed."
)


def changes(comparison: Comparison | None) -> Html:
    """Return what changed since an earlier audit."""
    if comparison is None:
        return NOTHING
    parts = [
        tag(
            "p",
            f"Since {comparison.since:%Y-%m-%d %H:%M %Z}. {comparison.unchanged:,} findings are as they were.",
            class_="intro",
        )
    ]
    for title, found in (("New", comparison.new), ("Fixed", comparison.fixed)):
        parts.append(tag("h3", f"{title} ", tag("span", f"{len(found):,}", class_="count")))
        parts.append(_changed(f"{title} findings", found) if found else tag("p", "None.", class_="intro"))
    return tag("section", tag("h2", "Changes"), *parts, id="changes")


def _changed(caption: str, found: Sequence[Changed]) -> Html:
    rows = [
        markup.row(
            markup.cell(str(each.object)),
            markup.cell(tag("code", code(each.finding))),
            markup.cell(each.finding.message),
        )
        for each in found
    ]
    return markup.table(caption, ("Object", "Policy", "Found"), rows)


def exemptions(report: AuditReport) -> Html:
    """Return what exemptions let pass, and those to take out."""
    passing = list(suppressed(report))
    if not (passing or report.expired or report.unused):
        return NOTHING
    parts = []
    for title, texts in (("Over", report.expired), ("Matching nothing", report.unused)):
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
        parts.append(markup.table("Findings let pass", ("Object", "Policy", "Found", "Because"), rows))
    return tag("section", tag("h2", "Exemptions"), *parts, id="exemptions")


def gaps(report: AuditReport) -> Html:
    """Return what was not looked at."""
    blind = skipped(report)
    rows = [
        markup.row(
            markup.cell(each.what),
            markup.cell(each.reason),
            markup.number("" if each.objects is None else f"{each.objects:,}", each.objects),
        )
        for each in report.not_evaluated
    ]
    rows += [
        markup.row(markup.cell(tag("code", policy)), markup.cell(reason), markup.number(f"{count:,}", count))
        for (policy, reason), count in blind.most_common()
    ]
    said = f"Coverage {say.percent(report.coverage)}. What could not be read is never counted as passed."
    body = markup.table("What was not looked at", ("What", "Why", "Objects"), rows, numbers=(2,)) if rows else NOTHING
    remarks = tag("ul", *(tag("li", text) for text in report.remarks), class_="plain") if report.remarks else NOTHING
    return tag("section", tag("h2", "Not evaluated"), tag("p", said, class_="intro"), body, remarks, id="gaps")


def method(presentation: Presentation) -> Html:
    """Return the definitions of all figures, the method and the rights."""
    terms = [join((tag("dt", name), tag("dd", meaning))) for name, meaning in say.DEFINITIONS.items()]
    rights = NOTHING
    if presentation.rbac:
        rights = tag(
            "details", tag("summary", tag("b", "Rights that the audit needs")), tag("pre", presentation.rbac.strip())
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
    return tag("footer", f"Written by gpugate {__version__}{took}. This file asks for nothing from anywhere.")
