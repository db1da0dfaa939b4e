"""Parse the documentation of a policy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.policies.engine.verdict import Outcome
    from gpugate.policies.sdk.findings import Patch
    from gpugate.policies.sdk.policy import Policy

WHY = "Why is this bad?"
INSTEAD = "Instead"
SOURCES = "Sources"

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def section(doc: str, heading: str) -> str:
    """Return the text under a `## heading`; empty when there is none."""
    _, found, rest = f"\n{doc}".partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0].strip() if found else ""


def first_sentence(text: str) -> str:
    """Return the first sentence, on one line."""
    return " ".join(_SENTENCE_END.split(text, maxsplit=1)[0].split())


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
