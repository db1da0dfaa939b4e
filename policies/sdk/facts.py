"""Other objects a policy may look at: known, or not available."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.kinds import Kind


@dataclass(frozen=True)
class Known:
    """Objects of one kind. When not `complete`, what is here exists, but what is missing may exist elsewhere."""

    items: Sequence[Field]
    complete: bool

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """The objects by their name; made on first use, so it pays to hand out the same `Known` again."""
        return {item["metadata", "name"].text: item for item in self.items}

    @cached_property
    def kept(self) -> dict[object, object]:
        """What was derived of the objects, by what derived it; `known_objects.derived` says how long it holds."""
        return {}


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Nothing is known about this kind; `reason` says why."""

    reason: str


Fact: TypeAlias = "Known | Unavailable"


class Facts(Protocol):
    """Where a policy looks other objects up; answers at once, from memory."""

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, of one namespace where one is given."""
        ...


class NoFacts:
    """Facts when there is neither a cluster nor a set of files to look at."""

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:  # noqa: ARG002 -- the protocol's signature
        """Say that nothing is available."""
        return Unavailable(f"no {kind.plural} to look at")


def named(fact: Fact, name: str) -> Field | None:
    """Return the object of this name; None when it is not among those known."""
    return fact.by_name.get(name) if isinstance(fact, Known) else None


def may_come(fact: Fact, name: str) -> bool:
    """Tell whether an object is perhaps only too new to be known: all of its kind are, and it is not among them.

    What made a Pod, or is named in it, is often made right before it, and heard of right after it.
    """
    return isinstance(fact, Known) and fact.complete and name not in fact.by_name


@dataclass(frozen=True, slots=True)
class Need:
    """A kind whose objects a policy looks up, and the fields it reads of them.

    A field is dotted, goes through the elements of lists (`spec.containers.resources`) and holds all that is below it.
    Name and namespace are always kept.
    """

    kind: Kind
    fields: tuple[str, ...]
