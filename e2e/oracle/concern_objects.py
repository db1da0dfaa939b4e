"""Objects that are made for a concern: those that cost most to evaluate, and random ones that it reads something of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from gpugate.policies.sdk.concerns import (
    EVERY_OBJECT,
    MOST_CHARACTERS,
    MOST_ELEMENTS,
    MOST_INNER_ELEMENTS,
    MOST_KEYS,
    AllOf,
    AnyOf,
    Concern,
    Each,
    Flag,
    Key,
    Not,
    SentBy,
    Text,
    patterns,
)
from gpugate.webhook.registration.match_conditions import nesting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.platform import Platform

Json = dict[str, Any]


# Fits no pattern, and is a valid value wherever a string is.
def _junk(most: int) -> str:
    return "zz/" + "z" * (most - 3)


# Some name that is never among those that a concern names.
_OTHER: Final = ("", "a", "zz/z", "nvidia", "/dev/null", _junk(MOST_CHARACTERS), _junk(MOST_CHARACTERS + 1))


def leaves(concern: Concern) -> Iterator[Concern]:
    """Yield what a concern reads in an object, without what it reads in elements of that."""
    match concern:
        case AnyOf(parts) | AllOf(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
            yield from leaves(part)
        case _:
            yield concern


def costly(concern: Concern, platform: Platform) -> tuple[Json, str]:
    """Return an object within every limit for which a concern is false as late as can be, and who sends it."""
    obj: Json = {}
    _fill(concern, obj, outer=True)
    sender = _made(concern, obj, platform, wanted=False)
    return obj, sender or "alice"


def oversized(concern: Concern, platform: Platform) -> Iterator[tuple[str, Json, str]]:
    """Yield the same object with one of the things it reads as large as a request can be, by its path."""
    for leaf in dict.fromkeys(leaves(concern)):
        if not isinstance(leaf, SentBy | Flag):
            obj, sender = costly(concern, platform)
            _enlarge(leaf, obj)
            yield leaf.path, obj, sender


def objects(concern: Concern, platform: Platform) -> st.SearchStrategy[Json]:
    """Return random objects in which some of what a concern reads is present, fits or is too large."""
    by_path = {leaf.path: [each for each in leaves(concern) if _same(each, leaf)] for leaf in _pathed(concern)}
    members = {path: _values(found, platform) for path, found in by_path.items()}
    return st.fixed_dictionaries({}, optional=members).map(_nested)


def _pathed(concern: Concern) -> list[Each | Key | Text | Flag]:
    return [leaf for leaf in leaves(concern) if isinstance(leaf, Each | Key | Text | Flag)]


def _same(one: Concern, other: Each | Key | Text | Flag) -> bool:
    return isinstance(one, Each | Key | Text | Flag) and one.path == other.path


def _values(found: list[Concern], platform: Platform) -> st.SearchStrategy[Any]:
    """Return what may be at the path that some concerns read."""
    first = found[0]
    names = [name for each in found if isinstance(each, Key | Text) for name in _fitting(each, platform)]
    if isinstance(first, Text):
        limits = {each.most for each in found if isinstance(each, Text)}
        around = [_junk(most + more) for most in sorted(limits) for more in (0, 1)]
        return st.sampled_from([*names, *_OTHER, *around])
    if isinstance(first, Flag):
        return st.booleans()
    if isinstance(first, Key):
        some = st.dictionaries(st.sampled_from([*names, *_OTHER]), st.just("0"), max_size=3)
        many = st.sampled_from([MOST_KEYS - 1, MOST_KEYS, MOST_KEYS + 1]).map(_keys)
        return some | st.builds(lambda one, other: {**one, **other}, many, some)
    inner = any_element([each.where for each in found if isinstance(each, Each)])
    element = objects(inner, platform) if _pathed(inner) else st.just({})
    few = st.lists(element, max_size=3)
    counts = st.sampled_from([MOST_ELEMENTS - 1, MOST_ELEMENTS, MOST_ELEMENTS + 1, MOST_INNER_ELEMENTS + 1])
    return few | st.builds(lambda one, count, some: [one] * count + some, element, counts, few)


def any_element(wheres: list[Concern]) -> Concern:
    """Return something that reads in an element what any of some concerns reads."""
    return AnyOf(tuple(leaf for where in wheres for leaf in leaves(where)))


def _fitting(concern: Key | Text, platform: Platform) -> list[str]:
    every = patterns(concern.like, platform)
    return [pattern.replace("*", between) for pattern in every for between in ("", "z")]


def _keys(count: int) -> Json:
    return {f"zz/{number:04d}{'z' * (MOST_CHARACTERS - 7)}": "0" for number in range(count)}


def _nested(members: Json) -> Json:
    obj: Json = {}
    for path, value in members.items():
        _put(obj, path, value)
    return obj


def _put(obj: Json, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        obj = obj.setdefault(name, {})
    obj[last] = value


def _get(obj: Json, path: str) -> Any:
    value: Any = obj
    for name in path.split("."):
        value = value[name]
    return value


def _has(obj: Json, path: str) -> bool:
    value: Any = obj
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _fill(concern: Concern, obj: Json, *, outer: bool) -> None:
    """Write as much as the limits allow at every path that a concern reads, so that nothing of it fits."""
    share = 1 if outer else MOST_ELEMENTS
    for leaf in leaves(concern):
        match leaf:
            case Each(path, where):
                if not _has(obj, path):
                    count = MOST_ELEMENTS if outer else MOST_INNER_ELEMENTS // share
                    _put(obj, path, [{} for _ in range(0 if where == EVERY_OBJECT else count)])
                for element in _get(obj, path):
                    _fill(where, element, outer=False)
            case Key(path, like):
                if not _has(obj, path):
                    _put(obj, path, _keys(0 if like == ("*",) else MOST_KEYS // share))
            case Text(path, _, most):
                _put(obj, path, _junk(most))
            case Flag(path):
                _put(obj, path, value=False)
            case _:
                pass


def _made(concern: Concern, obj: Json, platform: Platform, *, wanted: bool) -> str:
    """Change an object so that a concern has an answer, by the part that is evaluated last; return who must send it."""
    match concern:
        case AnyOf(parts) | AllOf(parts):
            # All but the last leave the answer open.
            *first, last = [*sorted(parts, key=nesting)] or [AllOf(())]
            senders = [_made(part, obj, platform, wanted=isinstance(concern, AllOf)) for part in first]
            senders += [_made(last, obj, platform, wanted=wanted)] if parts else []
            return next((sender for sender in senders if sender), "")
        case Not(part):
            return _made(part, obj, platform, wanted=not wanted)
        case SentBy(like):
            return like.replace("*", "z") if wanted else ""
        case _:
            if wanted:
                _fit(concern, obj, platform)
            return ""


def _fit(leaf: Concern, obj: Json, platform: Platform) -> None:
    match leaf:
        case Each(path, where):
            elements = _get(obj, path) or [{}]
            _put(obj, path, elements)
            if where != EVERY_OBJECT:
                _made(where, elements[-1], platform, wanted=True)
        case Key(path, _):
            keys = _get(obj, path)
            if keys:
                keys.popitem()
            keys[_fitting(leaf, platform)[-1]] = "0"
        case Text(path, _):
            _put(obj, path, _fitting(leaf, platform)[-1])
        case Flag(path):
            _put(obj, path, value=True)


def _enlarge(leaf: Each | Key | Text, obj: Json) -> None:
    """Make one thing as large as a request of 3 MiB can hold."""
    if isinstance(leaf, Each):
        inner = [each for each in leaves(leaf.where) if isinstance(each, Each | Key)]
        _put(obj, leaf.path, [{} for _ in range(50_000)])
        if inner:
            # Two lists of this size would not fit into a request.
            element: Json = {}
            _put(element, inner[0].path, [{}] * 50_000 if isinstance(inner[0], Each) else _short_keys(50_000))
            _put(obj, leaf.path, [element])
    elif isinstance(leaf, Key):
        _put(obj, leaf.path, _short_keys(50_000))
    else:
        _put(obj, leaf.path, "z" * 3_000_000)


def _short_keys(count: int) -> Json:
    return {f"z/{number:x}": "0" for number in range(count)}
