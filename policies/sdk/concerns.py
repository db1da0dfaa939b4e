"""Conditions for the objects that a policy evaluates, which gpugate checks and writes as match conditions.

A concern may hold for more objects than the policy has findings for, never for fewer: an object for which it does not
hold is not sent to the webhook, and the policy is not called for it. A concern reads only one object and its sender. An
absent string is empty, as everywhere.

An API server stops evaluating a condition that costs too much, and under `failurePolicy: Ignore` it then does not send
the request (`k8s.io/apiserver` v0.36.3 `pkg/apis/cel/config.go`, `pkg/admission/plugin/webhook/matchconditions`). An
object must not bypass a policy by its size. A concern therefore holds for every object in which a list, an object or a
string that it reads is unusually large. Such an object is always sent, and the policies decide. Below the limits, the
conditions cost less than a tenth of what the API server allows; a test measures this with the API server's own library.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from gpugate.policies.data import accelerators
from gpugate.policies.sdk import formats

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.platform import Platform


# Above these limits an object is unusually large. They count the elements of a list; the elements of all lists inside
# its elements together; the keys of an object that are compared with a pattern, also together; the characters of a
# string that is compared with one; and the characters of the regular expression for the platform's own patterns.
MOST_ELEMENTS: Final = 32
MOST_INNER_ELEMENTS: Final = 256
MOST_KEYS: Final = 48
MOST_CHARACTERS: Final = 64
MOST_OWN_CHARACTERS: Final = 400


class Listed(Enum):
    """Patterns of names that depend on the platform."""

    ACCELERATOR_RESOURCES = "resources that count as accelerators"
    GPU_TAINTS = "keys of the taints on nodes with accelerators"


def patterns(like: tuple[str, ...] | Listed, platform: Platform) -> tuple[str, ...]:
    """Return the patterns, in which `*` stands for any run of characters."""
    return (*known(like), *own(like, platform)) if isinstance(like, Listed) else like


@lru_cache(maxsize=256)
def known(like: Listed) -> tuple[str, ...]:
    """Return the patterns that every platform has. Those of resources also match others, as a concern may."""
    if like is Listed.GPU_TAINTS:
        return tuple(dict.fromkeys(accelerators.TAINT_KEYS.values()))
    implicit = (accelerators.IMPLICIT_CLASS_PREFIX + name for name in accelerators.DEVICE_CLASSES)
    return (*accelerators.COVERING, *implicit)


def own(like: Listed, platform: Platform) -> tuple[str, ...]:
    """Return the patterns that a platform adds."""
    if like is Listed.GPU_TAINTS:
        return tuple(dict.fromkeys(taint.key for taints in platform.taints.values() for taint in taints))
    implicit = (accelerators.IMPLICIT_CLASS_PREFIX + name for name in platform.accelerators.device_classes)
    return tuple(dict.fromkeys((*platform.accelerators.resources, *implicit)))


@lru_cache(maxsize=256)
def exact(like: tuple[str, ...] | Listed) -> tuple[str, ...]:
    """Return the names that are compared for equality. Those of a platform are always compared as patterns."""
    return tuple(name for name in (known(like) if isinstance(like, Listed) else like) if "*" not in name)


@lru_cache(maxsize=256)
def is_exact(like: tuple[str, ...] | Listed) -> bool:
    """Tell whether all patterns are exact names."""
    return exact(like) == like


def own_expression(like: Listed, platform: Platform) -> str:
    """Return one RE2 expression for all patterns that a platform adds; empty if it adds none."""
    every = "".join(f"|{formats.expression(pattern)}" for pattern in own(like, platform))
    return f"^(?s: {every})$" if every else ""


class Terms(NamedTuple):
    """The terms under which a concern is evaluated.

    Attributes:
        platform: the platform whose names count.
        user: the name of the sender.
        unusual: the result for an unusually large object.
        counted: whether the lists and objects that are read have been counted together with others of the same path.
    """

    platform: Platform
    user: str
    unusual: bool = True
    counted: bool = False


class Concern(msgspec.Struct, frozen=True):
    """A condition for the objects that a policy evaluates. `|`, `&` and `~` combine conditions."""

    def holds(self, obj: Field, platform: Platform, user: str) -> bool:
        """Tell whether it holds for an object that a user sends, or the object is unusually large."""
        return self.answer(obj, Terms(platform, user))

    def answer(self, obj: Field, terms: Terms) -> bool:
        """Tell whether it holds for an object or an element of a list.

        Every subclass implements it.
        """
        # `abc.abstractmethod` would have no effect: it needs the metaclass `ABCMeta`, and structs have that of msgspec
        # 0.22, which is not derived from it.
        raise NotImplementedError

    def __or__(self, other: Concern) -> Concern:
        return any_of(self, other)

    def __and__(self, other: Concern) -> Concern:
        mine = self.parts if isinstance(self, AllOf) else (self,)
        return AllOf((*mine, *(other.parts if isinstance(other, AllOf) else (other,))))

    def __invert__(self) -> Concern:
        return Not(self)


class AnyOf(Concern, frozen=True):
    """One of several concerns holds. Without parts it never holds."""

    parts: tuple[Concern, ...]

    def answer(self, obj: Field, terms: Terms) -> bool:
        """Ask them in turn."""
        return any(part.answer(obj, terms) for part in self.parts)


class AllOf(Concern, frozen=True):
    """All of several concerns hold."""

    parts: tuple[Concern, ...]

    def answer(self, obj: Field, terms: Terms) -> bool:
        """Ask them in turn."""
        return all(part.answer(obj, terms) for part in self.parts)


class Not(Concern, frozen=True):
    """A concern does not hold. That concern must be exact, and not hold for more objects than it describes."""

    part: Concern

    def answer(self, obj: Field, terms: Terms) -> bool:
        """Evaluate the concern with the opposite result for unusually large objects."""
        return not self.part.answer(obj, terms._replace(unusual=not terms.unusual))


class Each(Concern, frozen=True):
    """A concern holds for at least one element of the list at a path such as `spec.tolerations`."""

    path: str
    where: Concern

    def answer(self, obj: Field, terms: Terms) -> bool:
        """Evaluate the elements, unless they or their contents exceed a limit."""
        elements = tuple(_at(obj, self.path))
        if self.where == EVERY_OBJECT:
            return bool(elements)
        if (not terms.counted and len(elements) > MOST_ELEMENTS) or self._holds_many(elements):
            return terms.unusual
        counted = terms._replace(counted=True)
        return any(self.where.answer(element, counted) for element in elements)

    def _holds_many(self, elements: tuple[Field, ...]) -> bool:
        """Tell whether the lists and objects at one path exceed a limit in all elements together."""
        return any(sum(_size(_at(e, path)) for e in elements) > most for path, most in walked(self.where))


class Key(Concern, frozen=True):
    """A key of the object at a path matches a pattern."""

    path: str
    like: tuple[str, ...] | Listed = ("*",)

    def answer(self, obj: Field, terms: Terms) -> bool:
        """Look up exact names, then compare the keys unless there are too many."""
        keys = _at(obj, self.path).mapping
        if not keys or self.like == ("*",):
            return bool(keys)
        if is_exact(self.like) or any(name in keys for name in exact(self.like)):
            return any(name in keys for name in exact(self.like))
        if not terms.counted and len(keys) > MOST_KEYS:
            return terms.unusual
        return any(_fits(self.like, key, terms) for key in keys)


class Text(Concern, frozen=True):
    """The string at a path matches a pattern; the empty pattern matches a missing string.

    Attributes:
        most: with more characters, the string is not compared with patterns: it is unusually large.
    """

    path: str
    like: tuple[str, ...] | Listed
    most: int = MOST_CHARACTERS

    def answer(self, obj: Field, terms: Terms) -> bool:
        """Compare the string, unless it is too long for a pattern."""
        return _fits(self.like, _at(obj, self.path).text, terms, self.most)


class Flag(Concern, frozen=True):
    """The value at a path is true."""

    path: str

    def answer(self, obj: Field, terms: Terms) -> bool:  # noqa: ARG002 -- one value, whatever the terms
        """Read the value."""
        return _at(obj, self.path).value is True


class SentBy(Concern, frozen=True):
    """The name of the sender matches a pattern."""

    like: str

    def answer(self, obj: Field, terms: Terms) -> bool:  # noqa: ARG002 -- reads no object
        """Compare the name of the sender."""
        return _fits((self.like,), terms.user, terms)


# The default of a policy: every object of its kinds.
EVERY_OBJECT: Final = AllOf(())


# A function of a JSON value and the sender's name that returns whether a concern holds.
Reader: TypeAlias = "Callable[[Json, str], bool]"


def reader(concern: Concern, platform: Platform) -> Reader:  # noqa: PLR0911 -- one function for each class
    """Return a function that tells whether a concern holds for an object that a user sends, however large it is.

    The engine calls it before most evaluations of a policy, so everything that depends only on the concern is computed
    here.

    Raises:
        TypeError: the class of the concern is unknown.
    """
    match concern:
        case AnyOf(parts):
            return _any_reader(tuple(reader(part, platform) for part in parts))
        case AllOf(parts):
            return _all_reader(tuple(reader(part, platform) for part in parts))
        case Not(part):
            inner = reader(part, platform)
            return lambda value, user: not inner(value, user)
        case Each(path, where):
            return _each_reader(_keys(path), None if where == EVERY_OBJECT else reader(_cheap_first(where), platform))
        case Key(path, like):
            return _key_reader(_keys(path), like, platform)
        case Text(path, like):
            return _text_reader(_keys(path), like, platform)
        case Flag(path):
            keys = _keys(path)
            return lambda value, _: _value_at(value, keys) is True
        case SentBy(like):
            return lambda _, user: formats.matches(like, user)
        case _:
            raise TypeError(f"{type(concern).__name__} has no reader: add it here")


def _cheap_first(where: Concern) -> Concern:
    """Return the same, with what reads fewer lists before the rest, which it often makes unnecessary."""
    return AnyOf(tuple(sorted(where.parts, key=_lists))) if isinstance(where, AnyOf) else where


def _lists(concern: Concern) -> int:
    """Return how many lists are read inside each other, at most."""
    match concern:
        case AnyOf(parts) | AllOf(parts):
            return max(map(_lists, parts), default=0)
        case Not(part):
            return _lists(part)
        case Each(_, where):
            return 1 + _lists(where) if where != EVERY_OBJECT else 0
        case _:
            return 0


def _any_reader(parts: tuple[Reader, ...]) -> Reader:
    def holds(value: Json, user: str) -> bool:
        for part in parts:  # noqa: SIM110 -- `any` takes twice as long for a few parts
            if part(value, user):
                return True
        return False

    return holds


def _all_reader(parts: tuple[Reader, ...]) -> Reader:
    def holds(value: Json, user: str) -> bool:
        for part in parts:  # noqa: SIM110 -- as above
            if not part(value, user):
                return False
        return True

    return holds


def _each_reader(keys: tuple[str, ...], where: Reader | None) -> Reader:
    def holds(value: Json, user: str) -> bool:
        elements = _value_at(value, keys)
        if not elements or not isinstance(elements, list):
            return False
        if where is None:
            return True
        for element in elements:  # noqa: SIM110 -- as above
            if where(element, user):
                return True
        return False

    return holds


def _key_reader(keys: tuple[str, ...], like: tuple[str, ...] | Listed, platform: Platform) -> Reader:
    names, fits = frozenset(exact(like)), None if is_exact(like) else _matcher(like, platform)

    def holds(value: Json, _: str) -> bool:
        members = _value_at(value, keys)
        if not members or not isinstance(members, dict):
            return False
        return not members.keys().isdisjoint(names) or (fits is not None and any(map(fits, members)))

    return holds


def _text_reader(keys: tuple[str, ...], like: tuple[str, ...] | Listed, platform: Platform) -> Reader:
    names, fits = frozenset(exact(like)), None if is_exact(like) else _matcher(like, platform)

    def holds(value: Json, _: str) -> bool:
        text = _value_at(value, keys)
        if not isinstance(text, str):
            text = ""
        return text in names or (fits is not None and fits(text))

    return holds


def _matcher(like: tuple[str, ...] | Listed, platform: Platform) -> Callable[[str], bool]:
    """Return a cached function that tells whether a string matches a pattern; most objects have the same strings."""
    every = patterns(like, platform)
    names, starred = frozenset(every), tuple(pattern for pattern in every if "*" in pattern)
    # An unusually large object has thousands of strings, nearly all of which begin otherwise.
    heads = tuple(pattern.partition("*")[0] for pattern in starred)

    def compare(text: str) -> bool:
        return text in names or (text.startswith(heads) and any(formats.matches(pattern, text) for pattern in starred))

    remembered = lru_cache(maxsize=_REMEMBERED)(compare)
    # A sender chooses the strings, so long strings are not cached.
    return lambda text: remembered(text) if len(text) <= _LONGEST_REMEMBERED else compare(text)


# The cache of each pattern: the number of strings, and their maximum length, which is that of an object's name.
_REMEMBERED: Final = 256
_LONGEST_REMEMBERED: Final = 253


def _value_at(value: Json, keys: tuple[str, ...]) -> Json:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def any_of(*parts: Concern) -> Concern:
    """Return a concern that holds where one of several does; `EVERY_OBJECT` if one of them is.

    Concerns that read the elements of the same list, or the keys of the same object, are merged and read once.
    """
    flat: dict[object, Concern] = {}
    for part in parts:
        for member in part.parts if isinstance(part, AnyOf) else (part,):
            target = _target(member)
            flat[target] = _merged(flat[target], member) if target in flat else member
    merged = tuple(flat.values())
    return EVERY_OBJECT if EVERY_OBJECT in merged else AnyOf(merged)


def covers(whole: Concern, part: Concern) -> bool:  # noqa: PLR0911 -- one answer for each pair
    """Tell whether a concern certainly holds wherever another one does; False if that cannot be shown."""
    if whole in (part, EVERY_OBJECT):
        return True
    match whole, part:
        case _, AnyOf(parts):
            return all(covers(whole, member) for member in parts)
        case AnyOf(parts), _ if any(covers(member, part) for member in parts):
            return True
        case _, AllOf(parts):
            return any(covers(whole, member) for member in parts)
        case Each(path, where), Each(other_path, other_where):
            return path == other_path and covers(where, other_where)
        case Key(path, tuple(like)), Key(other_path, tuple(other_like)):
            return path == other_path and set(other_like) <= set(like)
        case Text(path, tuple(like), most), Text(other_path, tuple(other_like), other_most):
            return (path, most) == (other_path, other_most) and set(other_like) <= set(like)
        case _:
            return False


def without(whole: Concern, other: Concern) -> Concern:
    """Return a concern for the objects for which one holds and another does not: the former without what the latter covers.

    It holds for other objects too, for which both hold.
    """
    if covers(other, whole):
        return AnyOf(())
    match whole:
        case AnyOf(parts):
            remaining = (without(part, other) for part in parts)
            return AnyOf(tuple(part for part in remaining if part != AnyOf(())))
        case Each(path, where):
            others = other.parts if isinstance(other, AnyOf) else (other,)
            same = (part.where for part in others if isinstance(part, Each) and part.path == path)
            return Each(path, without(where, any_of(*same)))
        case _:
            return whole


def walked(where: Concern) -> tuple[tuple[str, int], ...]:
    """Return the paths and limits of the lists and objects in an element whose entries are compared one by one."""
    match where:
        case AnyOf(parts) | AllOf(parts):
            return tuple(dict.fromkeys(limit for part in parts for limit in walked(part)))
        case Not(part):
            return walked(part)
        case Each(path, inner) if inner != EVERY_OBJECT:
            return ((path, MOST_INNER_ELEMENTS),)
        case Key(path, like) if like != ("*",) and not is_exact(like):
            return ((path, MOST_KEYS),)
        case _:
            return ()


def _target(concern: Concern) -> object:
    """Return the same value for concerns that can be merged."""
    match concern:
        case Each(path, _):
            return Each, path
        case Key(path, like) if isinstance(like, tuple):
            return Key, path
        case Text(path, like, most) if isinstance(like, tuple):
            return Text, path, most
        case _:
            return concern


def _merged(left: Concern, right: Concern) -> Concern:
    match left, right:
        case Each(path, where), Each(_, right_where):
            return Each(path, any_of(where, right_where))
        case Key(path, tuple(like)), Key(_, tuple(right_like)):
            every = tuple(dict.fromkeys((*like, *right_like)))
            return Key(path, ("*",) if "*" in every else every)
        case Text(path, tuple(like), most), Text(_, tuple(right_like)):
            return Text(path, tuple(dict.fromkeys((*like, *right_like))), most)
        case _:
            return left


def _fits(like: tuple[str, ...] | Listed, text: str, terms: Terms, most: int = MOST_CHARACTERS) -> bool:
    """Tell whether a string is one of the exact names or matches one of the patterns."""
    if is_exact(like) or text in exact(like):
        return text in exact(like)
    if len(text) > most:
        return terms.unusual
    if isinstance(like, Listed) and len(own_expression(like, terms.platform)) > MOST_OWN_CHARACTERS:
        return terms.unusual or any(formats.matches(pattern, text) for pattern in known(like))
    return any(formats.matches(pattern, text) for pattern in patterns(like, terms.platform))


def _size(field: Field) -> int:
    return len(field.value) if isinstance(field.value, (list, dict)) else 0


def _at(obj: Field, path: str) -> Field:
    return obj[_keys(path)]


@lru_cache(maxsize=256)
def _keys(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))
