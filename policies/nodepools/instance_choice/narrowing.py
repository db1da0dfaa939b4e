"""Which requirement or limit of a pool rules out the most instance types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.sdk import node_pools, scheduling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.node_pools import Entry, MatchingTypes


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Something that narrows a pool's types.

    Attributes:
        field: where it is written.
        name: the label, or the limit, for people.
        meets: the types that it leaves.
        others: the types that everything else leaves.
        entry: the requirement it is; None for a limit.
    """

    field: Field
    name: str
    meets: int
    others: int
    entry: Entry | None

    @property
    def short(self) -> str:
        """The name without the domain of a label."""
        return self.name.rpartition("/")[2] if self.entry else self.name


def within_limits(types: MatchingTypes, pool: Field) -> int:
    """Return the known types of which the limits of the pool allow at least one node."""
    fitting = types.known
    for resource, limit in node_pools.limits(pool).items():
        fitting &= ~node_pools.above(types.catalogue, resource, limit)
    return fitting


def narrowest(types: MatchingTypes, pool: Field, offered: int, needed: int = 1) -> Narrowing | None:
    """Return what rules out the most types that all else would leave; None when nothing narrows them.

    `offered` are the types to begin with. Where the requirements alone leave as many as needed, it is a limit.
    """
    found = tuple(_narrowings(types, pool, offered))
    limits = tuple(narrowing for narrowing in found if narrowing.entry is None)
    if limits and (types.known & offered).bit_count() >= needed:
        found = limits
    return max(found, key=lambda n: (n.others.bit_count(), -n.meets.bit_count()), default=None)


def edited(field: Field) -> Field:
    """Return what a person changes of a requirement: its values, or else what is given, a label or a limit."""
    return field["values"] or field


def _narrowings(types: MatchingTypes, pool: Field, offered: int) -> Iterator[Narrowing]:
    catalogue = types.catalogue
    parts: list[tuple[Field, str, int, Entry | None]] = []
    for key, required in types.requirements.items():
        if key in catalogue:
            meets = scheduling.meeting(key, required, catalogue)
            tightest = _tightest([e for e in types.entries if e.key == key], types)
            parts.append((tightest.field, key, meets, tightest))
    for resource, limit in node_pools.limits(pool).items():
        too_large = node_pools.above(catalogue, resource, limit)
        if too_large:
            field = pool["spec", "limits", resource]
            parts.append((field, f"the limit on {resource}", catalogue.everything & ~too_large, None))
    for number, (field, name, meets, entry) in enumerate(parts):
        others = offered
        for other, (_, _, kept, _) in enumerate(parts):
            others &= kept if other != number else others
        yield Narrowing(field, name, meets, others, entry)


def _tightest(entries: Sequence[Entry], types: MatchingTypes) -> Entry:
    return min(
        entries,
        key=lambda e: scheduling.meeting(e.key, e.requirement, types.catalogue).bit_count(),
    )
