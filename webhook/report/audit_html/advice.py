"""Where a finding is and how to mend it: the field, the hint, and the fix as the YAML that it adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.findings import Patches, Replacement
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.audit_html.markup import Html, escape, join, tag
from gpugate.webhook.report.patch_lines import Mark, patch_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.findings import Patch
    from gpugate.webhook.report.audited import Finding

_TAGS: Final = {Mark.ADDED: "ins", Mark.REMOVED: "del"}


def advice(finding: Finding) -> Html:
    """Return what a reader needs to mend a finding."""
    return join(_advice(finding))


def _advice(finding: Finding) -> Iterator[Html]:
    if finding.hint:
        yield tag("p", finding.hint, class_="hint")
    if finding.patches:
        yield tag("p", "Admission makes this change:", class_="lead")
        yield _diff(finding.patches)
    if isinstance(finding.fix, Patches):
        yield tag("p", f"Fix{_caution(finding.fix)}:", class_="lead")
        yield _diff(finding.fix.patches)
    elif isinstance(finding.fix, Replacement):
        yield tag("p", f"Write this instead{_caution(finding.fix)}:", class_="lead")
        text = "---\n".join(yaml_text.block(obj) for obj in finding.fix.objects).rstrip("\n")
        yield tag("pre", tag("ins", text))


def _caution(fix: Patches | Replacement) -> str:
    return "" if fix.safe else ", which may alter scheduling or cost"


def _diff(patches: tuple[Patch, ...]) -> Html:
    lines = []
    for mark, line in patch_lines(patches):
        name = _TAGS.get(mark)
        lines.append(tag(name, line) if name else escape(line))
    return tag("pre", join(lines, "\n"))
