"""Says why no instance type is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.nodepools.instance_choice.advice import more_types, shown, spelling
from gpugate.policies.nodepools.instance_choice.narrowing import edited, narrowest
from gpugate.policies.sdk.findings import Violation

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import MatchingTypes


def no_types(types: MatchingTypes, pool: Field, offered: int) -> Violation:
    """Return the finding for a pool whose requirements and limits leave none of the types offered."""
    catalogue = types.catalogue
    cause = narrowest(types, pool, offered)
    if cause is None:
        return Violation((), "EC2 offers no instance type here", hint="check the parameter offered_types")
    path = edited(cause.field).path
    if cause.entry and not cause.meets:
        values = shown(sorted(cause.entry.requirement.values))
        hint = spelling(cause, catalogue) or f"write a value that a type has (EC2 types of {catalogue.date})"
        return Violation(path, f"no EC2 instance type has {cause.name} {values}".rstrip(), hint=hint)
    message = f"no EC2 instance type meets the requirements and limits together, most of all {cause.short}"
    return Violation(path, message, hint=more_types(cause, (), types))
