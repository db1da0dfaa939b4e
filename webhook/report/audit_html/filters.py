"""The controls above the findings; they are hidden until the script that answers to them runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report.audit_html.looks import MARKS, VERBS
from gpugate.webhook.report.audit_html.markup import Html, tag
from gpugate.webhook.report.audited import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.report.audited import Audited


def filters(shown: Sequence[Audited]) -> Html:
    """Return the form that narrows some objects down."""
    present = {finding.action for audited in shown for finding in audited.findings}
    return tag(
        "form",
        # The script fills these from the list, where everything stands already.
        _select("namespace", "Namespace", ()),
        _select("policy", "Policy", ()),
        _select("action", "Would be", [(MARKS[each], VERBS[each]) for each in Action if each in present]),
        tag("label", "Search", tag("input", type="search", name="search", placeholder="Name, field or words")),
        tag("button", "Reset", type="reset"),
        tag("output", aria_live="polite"),
        class_="filters",
        hidden="",
    )


def _select(name: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    found = [tag("option", text, value=value) for value, text in options]
    return tag("label", label, tag("select", Html('<option value="">All</option>'), *found, name=name))
