"""Which objects can interest a policy, in words that can be checked here and told to an API server too.

A concern may hold for more objects than a policy finds something in, never for fewer: an object for which it does not
hold is not sent to the webhook. All of it reads one object and who sends it, nothing else, and an absent string is
empty, as everywhere.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.data import accelerators
from gpugate.policies.sdk import globs

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Platform


class Listed(Enum):
    """Patterns of names that depend on the platform."""

    ACCELERATOR_RESOURCES = "resources that count as accelerators"
    GPU_TAINTS = "keys of the taints on nodes with accelerators"


def patterns(like: tuple[str, ...] | Listed, platform: Platform) -> tuple[str, ...]:
    """Return the patterns that are meant, in which `*` stands for any run of characters."""
    return (*known(like), *own(like, platform)) if isinstance(like, Listed) else like


def known(like: Listed) -> tuple[str, ...]:
    """Return the patterns that are meant on every platform."""
    if like is Listed.GPU_TAINTS:
        return tuple(dict.fromkeys(accelerators.TAINT_KEYS.values()))
    implicit = (accelerators.IMPLICIT_CLASS_PREFIX + name for name in accelerators.DEVICE_CLASSES)
    return (*accelerators.RESOURCES, *implicit)


def own(like: Listed, platform: Platform) -> tuple[str, ...]:
    """Return the patterns that a platform adds."""
    if like is Listed.GPU_TAINTS:
        return tuple(dict.fromkeys(taint.key for taints in platform.taints.values() for taint in taints))
    implicit = (accelerators.IMPLICIT_CLASS_PREFIX + name for name in platform.accelerators.device_classes)
    return tuple(dict.fromkeys((*platform.accelerators.resources, *implicit)))


class Concern(msgspec.Struct, frozen=True):
    """Says of an object whether it can interest a policy; `|`, `&` and `~` make others of it."""

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:
        """Tell whether it holds for an object that a user sends."""
        raise NotImplementedError

    def __or__(self, other: Concern) -> Concern:
        return any_of(self, other)

    def __and__(self, other: Concern) -> Concern:
        mine = self.parts if isinstance(self, AllOf) else (self,)
        return AllOf((*mine, *(other.parts if isinstance(other, AllOf) else (other,))))

    def __invert__(self) -> Concern:
        return Not(self)


class AnyOf(Concern, frozen=True):
    """One of several holds; of none, nothing does."""

    parts: tuple[Concern, ...]

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:
        """Ask them in turn."""
        return any(part.holds(obj, platform, user) for part in self.parts)


class AllOf(Concern, frozen=True):
    """All of several hold."""

    parts: tuple[Concern, ...]

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:
        """Ask them in turn."""
        return all(part.holds(obj, platform, user) for part in self.parts)


class Not(Concern, frozen=True):
    """Another does not hold; that one must then hold for no object too many."""

    part: Concern

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:
        """Ask the other."""
        return not self.part.holds(obj, platform, user)


class Each(Concern, frozen=True):
    """Something holds for an element of the list at a path such as `spec.tolerations`."""

    path: str
    where: Concern

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:
        """Look at each element."""
        return any(self.where.holds(element, platform, user) for element in _at(obj, self.path))


class Key(Concern, frozen=True):
    """A key of the object at a path fits a pattern."""

    path: str
    like: tuple[str, ...] | Listed = ("*",)

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:  # noqa: ARG002 -- of no matter here
        """Look at each key."""
        known = patterns(self.like, platform)
        return any(globs.matches(pattern, key) for key in _at(obj, self.path).mapping for pattern in known)


class Text(Concern, frozen=True):
    """The string at a path fits a pattern; the empty pattern fits where there is none."""

    path: str
    like: tuple[str, ...] | Listed

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:  # noqa: ARG002 -- of no matter here
        """Look at the string."""
        text = _at(obj, self.path).text
        return any(globs.matches(pattern, text) for pattern in patterns(self.like, platform))


class Flag(Concern, frozen=True):
    """The value at a path is true."""

    path: str

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:  # noqa: ARG002 -- of no matter here
        """Look at the value."""
        return _at(obj, self.path).value is True


class SentBy(Concern, frozen=True):
    """A user whose name fits a pattern sends the object."""

    like: str

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:  # noqa: ARG002 -- of no matter here
        """Look at the name."""
        return globs.matches(self.like, user)


# What a policy is concerned with that does not say: every object of its kinds.
EVERY_OBJECT: Final = AllOf(())


def any_of(*parts: Concern) -> Concern:
    """Return what holds where one of several does, each said once; every object, where one of them means that."""
    flat: dict[Concern, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if isinstance(part, AnyOf) else (part,)))
    return EVERY_OBJECT if EVERY_OBJECT in flat else AnyOf(tuple(flat))


def _at(obj: Field, path: str) -> Field:
    return obj[tuple(path.split("."))]
