"""Parse the documentation of a policy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.policies.engine.verdict import Outcome
    from gpugate.policies.sdk.findings import Patch
    from gpugate.policies.sdk.policy import Params, Policy

WHY = "Why is this bad?"
INSTEAD = "Instead"
SOURCES = "Sources"

_ATTRIBUTE = re.compile(r"^ {4}(\w+): ", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def section(doc: str, heading: str) -> str:
    """Return the text under a `## heading`; empty if there is none."""
    _, line, remainder = f"\n{doc}".partition(f"\n## {heading}\n")
    return remainder.partition("\n## ")[0].strip() if line else ""


def first_sentence(text: str) -> str:
    """Return the first sentence, on one line."""
    return " ".join(_SENTENCE_END.split(text, maxsplit=1)[0].split())


def outcome(policy: Policy) -> str:
    """Return the effect of a policy's default mode on a denied example, as a heading."""
    if all(handler.mutates for handler in policy.handlers):
        return "Mutated"
    return "Denied" if policy.mode is Stance.ENFORCE else "Reported"


def changed(policy: Policy) -> str:
    """Return the heading of a denied example after the change by the webhook, by `--fix`, or by either."""
    mutating = [handler.mutates for handler in policy.handlers]
    if all(mutating):
        return "After the mutation"
    return "After the mutation or fix" if any(mutating) else "With the fix"


class Parameter(Struct, frozen=True):
    """A parameter; `default` is YAML, empty when the parameter is required."""

    name: str
    default: str
    meaning: str


def parameters(params: type[Params]) -> tuple[Parameter, ...]:
    """Return the parameters of a policy in the order in which they are declared."""
    import inspect  # noqa: PLC0415 -- costs start-up time

    meanings = _meanings(inspect.cleandoc(params.__doc__ or ""))
    return tuple(
        Parameter(field.encode_name, _default(field), meanings.get(field.name, ""))
        for field in msgspec.structs.fields(params)
    )


def _meanings(doc: str) -> Mapping[str, str]:
    """Read the `Attributes:` of a docstring, each on one line."""
    _, _, attributes = doc.partition("Attributes:\n")
    # A pattern with a group splits into: the text before, then name and meaning in turn.
    parts = _ATTRIBUTE.split(attributes)
    return {name: " ".join(text.split()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return ""
    value: Any = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return yaml_text.inline(msgspec.to_builtins(value))


class PatchGroup(Struct, frozen=True):
    """Patches of one policy with one reason, as a message; `template_of` is the workload's kind if its Pods get them."""

    message: str
    template_of: str
    patches: tuple[Patch, ...]


def patch_groups(outcome: Outcome) -> Iterator[PatchGroup]:
    """Yield the patches of a policy, grouped by their reasons, in order."""
    groups: dict[tuple[str, str], list[Patch]] = {}
    for patch in outcome.patches:
        groups.setdefault((patch.reason, ""), []).append(patch)
    for later in outcome.template_patches:
        groups.setdefault((later.patch.reason, later.template_of.kind), []).append(later.patch)
    for (reason, template_of), patches in groups.items():
        yield PatchGroup(f"gpugate {reason}", template_of, tuple(patches))


def reasons(policies: Iterable[Policy]) -> Mapping[str, str]:
    """Return policy id -> a sentence on the consequence of its pattern."""
    return {policy.id: first_sentence(section(policy.doc, WHY)) for policy in policies}
