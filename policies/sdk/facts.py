"""Lookups of other objects in the cluster: known, or not available.

Values derived from known objects are cached with them. Otherwise each NodePool of a run would read all others again, and
each budget all workloads and their scalers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, cast

from gpugate.policies.sdk.field import Field, UnknownValueError
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import Context, Params
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.platform import Platform, Target
    from gpugate.policies.sdk.policy import AnyContext


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
    def cache(self) -> dict[object, object]:
        """What was derived of the objects, by what derived it; `known_objects.derived` says how long it holds."""
        return {}


class Unavailable(Struct, frozen=True):
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
        return Unavailable(f"no {kind.plural} to look up")


def named(fact: Fact, name: str) -> Field | None:
    """Return the object of this name; None when it is not among those known."""
    return fact.by_name.get(name) if isinstance(fact, Known) else None


def may_come(fact: Fact, name: str) -> bool:
    """Tell whether an object is perhaps only too new to be known: all of its kind are, and it is not among them.

    What made a Pod, or is named in it, is often made right before it, and heard of right after it.
    """
    return isinstance(fact, Known) and fact.complete and name not in fact.by_name


def object_doubt(fact: Fact, kind: Kind, name: str) -> Skip | None:
    """Return why it is not known whether an object of this name exists; None where it is known."""
    if isinstance(fact, Unavailable):
        return Skip(fact.reason)
    if fact.complete or name in fact.by_name:
        return None
    return Skip(f"{kind.name} {name} was not found, but may exist")


class Need(Struct, frozen=True):
    """A kind whose objects a policy looks up, and the fields it reads of them.

    A field is dotted, goes through the elements of lists (`spec.containers.resources`) and holds all that is below it.
    Name and namespace are always kept.
    """

    kind: Kind
    fields: tuple[str, ...]


T = TypeVar("T")

_NO_SUBJECT: Final = Field(None)
_NO_KIND: Final = GroupVersionKind("", "", "")


class _RecordingFacts:
    """Facts that remember what was looked up in them, as it was the first time."""

    def __init__(self, facts: Facts) -> None:
        self.lookups: _Lookups = {}
        self._facts = facts

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        fact = self._facts.list(kind, namespace)
        return self.lookups.setdefault((kind, namespace), fact)


class _CachedValue(Struct, frozen=True):
    """A value, and everything that it was made of beside the objects it is kept with."""

    value: object
    namespace: str
    configuration: _Configuration
    lookups: _Lookups

    def holds(self, ctx: AnyContext, namespace: str) -> bool:
        """Tell whether it would be the same if it were made now."""
        return (
            self.namespace == namespace
            and all(then is now for then, now in zip(self.configuration, _configuration(ctx), strict=True))
            and all(_is_same(fact, ctx.facts.list(*key)) for key, fact in tuple(self.lookups.items()))
        )


class _Unread(Struct, frozen=True):
    """In the place of a value that cannot be computed, because the value of a placeholder is not known."""

    text: str


def derived(known: Known, compute: Callable[[Known, AnyContext], T], ctx: AnyContext, namespace: str = "") -> T:
    """Return what `compute` makes of known objects.

    It is computed again when the objects, others that it looked up, or the configuration are not the same any more. So
    it gets nothing of the current request: no subject, no parameters, and an empty request in `namespace`.

    Raises:
        UnknownValueError: it reads a value of a template that is not known.
    """
    entry = known.cache.get(compute)
    if not isinstance(entry, _CachedValue) or not entry.holds(ctx, namespace):
        facts = _RecordingFacts(ctx.facts)
        request = Request(_NO_KIND, Operation.CREATE, None, namespace=namespace)
        alone = Context(Params(), _NO_SUBJECT, None, request, facts, *_configuration(ctx))
        value: object
        with ctx.unhurried():
            try:
                value = compute(known, alone)
            except UnknownValueError as unknown:
                value = _Unread(unknown.text)
        entry = _CachedValue(value, namespace, _configuration(ctx), facts.lookups)
        known.cache[compute] = entry
    if isinstance(entry.value, _Unread):
        raise UnknownValueError(entry.value.text)
    return cast("T", entry.value)


def each(fact: Fact, ctx: AnyContext, namespace: str = "") -> tuple[AnyContext, ...]:
    """Return a context for each known object, with it as the subject, in which what is derived of it stays."""
    return derived(fact, _contexts, ctx, namespace) if isinstance(fact, Known) else ()


def _contexts(known: Known, ctx: AnyContext) -> tuple[AnyContext, ...]:
    return tuple(replace(ctx, subject=item, memo={}) for item in known.items)


def _configuration(ctx: AnyContext) -> _Configuration:
    return ctx.platform, ctx.target, ctx.tables


def _is_same(then: Fact, now: Fact) -> bool:
    """Compare by identity: facts hand out the same `Known` until one of its objects changes."""
    return then is now or (isinstance(then, Unavailable) and then == now)


if TYPE_CHECKING:
    _Configuration = tuple[Platform, Target, Mapping[str, object]]
    _Lookups = dict[tuple[Kind, str | None], Fact]
