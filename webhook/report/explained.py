"""What reports of every sort make of a verdict: why something is bad, and patches with one reason as one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.webhook.report.policy_text import WHY, first_sentence, section

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.policies.engine.verdict import Outcome
    from gpugate.policies.sdk.findings import Patch
    from gpugate.policies.sdk.policy import Policy


@dataclass(frozen=True, slots=True)
class PatchGroup:
    """Patches of one policy for one reason; `template_of` is the workload's kind when its Pods will get them."""

    reason: str
    template_of: str
    patches: tuple[Patch, ...]


def patch_groups(outcome: Outcome) -> Iterator[PatchGroup]:
    """Yield the patches that a policy makes, by their reasons, in order."""
    groups: dict[tuple[str, str], list[Patch]] = {}
    for patch in outcome.patches:
        groups.setdefault((patch.reason, ""), []).append(patch)
    for later in outcome.template_patches:
        groups.setdefault((later.patch.reason, later.template_of.kind), []).append(later.patch)
    for (reason, template_of), patches in groups.items():
        yield PatchGroup(reason, template_of, tuple(patches))


def reasons(policies: Iterable[Policy]) -> Mapping[str, str]:
    """Return for each policy, by its id, a sentence on what the pattern costs."""
    return {policy.id: first_sentence(section(policy.doc, WHY)) for policy in policies}
