"""The sentences that all formats share."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Patches, Replacement, Stance
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.located import Located, Location, Sort
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.sdk.findings import Patch

_VERBS = {Stance.ENFORCE: "DENIED", Stance.WARN: "allowed with a warning", Stance.AUDIT: "allowed and recorded"}
BY_CONVENTION: Final = "note, because no policy file says which labels, tags and classes your platform uses (`gpugate config init` writes one)"
# The pages about findings without a policy, below `docs`.
_PAGES = {
    Sort.MALFORMED: "schema-checks",
    Sort.SCHEMA: "schema-checks",
    Sort.UNREADABLE: "inputs",
    Sort.AMBIGUOUS: "inputs",
    Sort.IGNORE: "how-to/exempt",
}


class Fixable(Protocol):
    """A finding of a check or of an audit that may have a fix."""

    @property
    def hint(self) -> str:
        """What to do, as text."""

    @property
    def patches(self) -> tuple[Patch, ...]:
        """The patches of the policy."""

    @property
    def fix(self) -> Patches | Replacement | None:
        """The fix that a program can apply, or None."""


def code(finding: Located) -> str:
    """Return the policy of a finding, or its kind."""
    return plain(finding.policy) or finding.sort.value


def page(finding: Located, base_url: str) -> str:
    """Return the address of the page about a finding on the documentation's site; empty if there is none.

    Args:
        finding: any finding.
        base_url: the address of the site, or empty.
    """
    if not base_url:
        return ""
    from gpugate.policies.catalog import IDS  # noqa: PLC0415 -- importing it reads every policy

    name = f"policies/{finding.policy}" if finding.policy else _PAGES.get(finding.sort, "")
    if finding.policy and finding.policy not in IDS:
        return ""  # a policy outside the library, whose page is not on the site
    return f"{base_url.rstrip('/')}/docs/{plain(name)}.html" if name else ""


def message(finding: Located) -> str:
    """Return the message for a service that shows it next to a file, with a note if the line is not the file's."""
    line = finding.location.rendered
    return f"{finding.message} (line {line:,} of what this renders to)" if line else finding.message


def unrendered(location: Location) -> str:
    """Return the note that a file was evaluated unchanged, because its chart or kustomization was not rendered."""
    left_out = ", without its patches" if location.altered else ""
    return f"{location.unrendered} was not rendered: this file was evaluated as it is{left_out}"


def at_admission(finding: Located) -> str:
    """Return the effect at admission as text; empty if there is none."""
    if finding.location.altered and finding.sort is not Sort.UNREADABLE:
        return f"depends on what {finding.location.unrendered} changes, which was not built"
    if finding.sort is Sort.MALFORMED and finding.exempt:
        return "would be allowed by gpugate (audit) and REFUSED by the API server"
    if finding.sort is Sort.MALFORMED:
        return "would be DENIED (the API server refuses it too)"
    if finding.sort is Sort.SCHEMA:
        return "would be REFUSED before any webhook, by the schema of its kind"
    if finding.stance is None or finding.sort is Sort.UNREADABLE:
        return ""
    patched = finding.sort is Sort.PATCH and finding.stance is Stance.ENFORCE
    verb = "MUTATED" if patched else _VERBS.get(finding.stance, "")
    # A workload gets the warnings of its template; the effect on its Pods depends on the policy.
    of_pods = finding.template_of and finding.stance is Stance.ENFORCE
    who = f"Pods of this {finding.template_of} would be" if of_pods else "would be"
    return f"{who} {verb} ({finding.stance.word})" if verb else ""


def fixes(finding: Fixable) -> Iterator[str]:
    """Yield the lines of the remedy: the hint, then the fix."""
    if finding.hint:
        yield finding.hint
    yield from changes(finding.patches)
    if isinstance(finding.fix, Patches):
        yield from changes(finding.fix.patches)
    elif isinstance(finding.fix, Replacement):
        yield "write this instead:"
        for index, obj in enumerate(finding.fix.objects):
            yield from ["---"] if index else []
            yield from (f"  {line}" for line in yaml_text.block(obj).splitlines())


def changes(patches: Iterable[Patch]) -> Iterator[str]:
    """Yield a line for each patch; additions to one list share a line."""
    for _, group in groupby(patches, key=lambda patch: (patch.op, patch.path)):
        yield change(tuple(group))


def change(patches: Sequence[Patch]) -> str:
    """Return patches of one path as one line, such as `set spec.replicas: 2`."""
    path = render(patches[0].path)
    if patches[0].op == "remove":
        return f"remove {path}"
    verb = "append to" if patches[0].op == "append" else "set"
    return f"{verb} {path}: {', '.join(yaml_text.inline(patch.value) for patch in patches)}"
