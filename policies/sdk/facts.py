"""Lookups of other objects in the cluster, which are known or unavailable.

Values derived from known objects are cached with them. Otherwise each NodePool of a run would read all other NodePools
again, and each PodDisruptionBudget all workloads and their scalers.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, cast

from gpugate.policies.sdk.field import Field, UnknownValueError
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import Context, Params
from gpugate.policies.sdk.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.platform import Platform, Target
    from gpugate.policies.sdk.policy import AnyContext


class Known(Struct, frozen=True, dict=True):
    """The known objects of one kind. If not `complete`, further objects may exist."""

    items: Sequence[Field]
    complete: bool

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """The objects by name. Computed on first use, so sources return the same `Known` as long as they can."""
        return {item["metadata", "name"].text: item for item in self.items}

    @cached_property
    def cache(self) -> dict[object, object]:
        """The values derived from the objects, by the function that computed them; see `derived`."""
        return {}


class Unavailable(Struct, frozen=True):
    """The objects of a kind are unknown; `reason` says why."""

    reason: str


Fact: TypeAlias = "Known | Unavailable"


class Facts(Protocol):
    """A source of other objects, which answers from memory."""

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, in one namespace or in all."""
        ...


class NoFacts:
    """Facts without a cluster and without files: every kind is unavailable."""

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:  # noqa: ARG002 -- the protocol's signature
        """Return that the kind is unavailable."""
        return Unavailable(f"no {kind.plural} to look up")


def named(fact: Fact, name: str) -> Field | None:
    """Return the known object of this name, or None."""
    return fact.by_name.get(name) if isinstance(fact, Known) else None


def may_come(fact: Fact, name: str) -> bool:
    """Tell whether an object may be too new to be known: all objects of its kind are known, and it is not among them.

    The owner of a Pod and the objects that it names are often created right before it, and observed right after it.
    """
    return isinstance(fact, Known) and fact.complete and name not in fact.by_name


def object_doubt(fact: Fact, kind: Kind, name: str) -> Skip | None:
    """Return why it is unknown whether an object of this name exists; None if it is known."""
    if isinstance(fact, Unavailable):
        return Skip(fact.reason)
    if fact.complete or name in fact.by_name:
        return None
    return Skip(f"{kind.name} {name} was not found, but may exist")


class Need(Struct, frozen=True):
    """A kind whose objects a policy looks up, and the fields that it reads.

    A field is a dotted path that goes through the elements of lists (`spec.containers.resources`) and includes
    everything below it. Name and namespace are always included.
    """

    kind: Kind
    fields: tuple[str, ...]


T = TypeVar("T")

_NO_SUBJECT: Final = Field(None)
_NO_KIND: Final = GroupVersionKind("", "", "")


class _RecordingFacts:
    """Facts that record each lookup with its first result."""

    def __init__(self, facts: Facts) -> None:
        self.lookups: _Lookups = {}
        self._facts = facts

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        fact = self._facts.list(kind, namespace)
        return self.lookups.setdefault((kind, namespace), fact)


class _CachedValue(Struct, frozen=True):
    """A derived value with its other inputs: namespace, configuration and lookups."""

    value: object
    namespace: str
    configuration: _Configuration
    lookups: _Lookups

    def holds(self, ctx: AnyContext, namespace: str) -> bool:
        """Tell whether all inputs are unchanged, so the value is still valid."""
        return (
            self.namespace == namespace
            and all(then is now for then, now in zip(self.configuration, _configuration(ctx), strict=True))
            and all(_is_same(fact, ctx.facts.list(*key)) for key, fact in tuple(self.lookups.items()))
        )


class _Unread(Struct, frozen=True):
    """A cached failure: the value depends on a placeholder whose value is unknown."""

    text: str


def derived(known: Known, compute: Callable[[Known, AnyContext], T], ctx: AnyContext, namespace: str = "") -> T:
    """Return a value that `compute` derives from known objects, cached with them.

    The value is computed again when the objects, other objects that `compute` looked up, or the configuration change.
    `compute` gets nothing of the current request: no subject, no parameters, and an empty request in `namespace`.

    Raises:
        UnknownValueError: `compute` reads an unknown value of a template.
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


def object_contexts(fact: Fact, ctx: AnyContext, namespace: str = "") -> tuple[AnyContext, ...]:
    """Return a context for each known object, with the object as its subject and its derived values cached."""
    return derived(fact, _contexts, ctx, namespace) if isinstance(fact, Known) else ()


def _contexts(known: Known, ctx: AnyContext) -> tuple[AnyContext, ...]:
    return tuple(replace(ctx, subject=item, memo={}) for item in known.items)


def _configuration(ctx: AnyContext) -> _Configuration:
    return ctx.platform, ctx.target, ctx.tables


def _is_same(then: Fact, now: Fact) -> bool:
    """Compare by identity: facts return the same `Known` until one of its objects changes."""
    return then is now or (isinstance(then, Unavailable) and then == now)


if TYPE_CHECKING:
    _Configuration = tuple[Platform, Target, Mapping[str, object]]
    _Lookups = dict[tuple[Kind, str | None], Fact]
