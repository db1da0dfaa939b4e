"""Generate match conditions: CEL by which the API server skips requests that concern no policy.

Optional access (`object.?spec`, `optMap`) is in the language since Kubernetes 1.29 (`k8s.io/apiserver`
pkg/cel/environment/base.go, v0.36.3). In a match condition `object` and `request` have no types, so a name is looked up
when it is evaluated. Objects of built-in kinds have been decoded by then, so a field has the type of the Go structure, and
so has `metadata` of every object; a test proves that no concern reads anything else of a custom resource.

What evaluation costs is bounded, whatever the object: every list, object and string is measured (which costs 1) before it
is read through, and where it is unusually large the whole condition is true. In that, a condition under `!` is the other
way around, so each part is written for the answer that it gives where something is unusually large.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from gpugate.policies.sdk import formats
from gpugate.policies.sdk.concerns import (
    EVERY_OBJECT,
    MOST_CHARACTERS,
    MOST_ELEMENTS,
    MOST_INNER_ELEMENTS,
    MOST_KEYS,
    MOST_OWN_CHARACTERS,
    AllOf,
    AnyOf,
    Each,
    Flag,
    Key,
    Listed,
    Not,
    SentBy,
    Text,
    exact,
    is_exact,
    known,
    own,
    own_expression,
    walked,
)
from gpugate.policies.sdk.objects import KUBELET, KUBELETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.platform import Platform

_VARIABLES: Final = "abcdefghijklmnopqrstuvwxyz"
# The resources that nearly every container names. No known pattern of accelerators fits one of them.
_ORDINARY: Final = ("cpu", "memory", "ephemeral-storage")
# Up to so many elements are not counted together: only if one of them has more than its share of what is allowed.
_FEW: Final = 4

# How tightly the outermost operator of an expression binds, which decides whether it needs parentheses.
_OR, _AND, _COMPARISON = range(3)


class _Cel(NamedTuple):
    """A CEL expression, and how tightly its outermost operator binds."""

    text: str
    binds: int = _COMPARISON


class _Around(NamedTuple):
    """What a concern is written about, and how.

    Attributes:
        name: the expression for it: `object`, or a variable.
        depth: how many variables are taken.
        platform: whose names count.
        unusual: the answer where something is unusually large.
        among: the expression for the list of which it is an element; empty for an object.
        counted: whether all lists and objects in it have been counted together with those of the other elements.
        present: expressions for the objects that exist wherever this is evaluated.
    """

    name: str
    depth: int
    platform: Platform
    unusual: bool = True
    among: str = ""
    counted: bool = False
    present: frozenset[str] = frozenset()

    @property
    def variable(self) -> str:
        """The next variable."""
        return _VARIABLES[self.depth]

    def inside(self, items: str, *, counted: bool) -> _Around:
        """Return the same for an element of a list, or for a key."""
        return self._replace(name=self.variable, depth=self.depth + 1, among=items, counted=counted)


def alternatives(concern: Concern, platform: Platform) -> str:
    """Write a concern as a condition on `object`, cheap parts first."""
    around = _Around("object", 0, platform)
    return (_any(concern.parts, around, " ||\n") if isinstance(concern, AnyOf) else _written(concern, around)).text


def names(texts: Iterable[str]) -> str:
    """Write strings as the elements of a list."""
    return ", ".join(map(_quoted, texts))


def _written(concern: Concern, around: _Around) -> _Cel:  # noqa: PLR0911 -- one expression for each class
    match concern:
        case AnyOf(parts):
            return _any(parts, around)
        case AllOf(parts):
            return _all_of(_written(part, around) for part in sorted(parts, key=nesting))
        case Not(part):
            return _not(_written(part, around._replace(unusual=not around.unusual)))
        case Each(path, where):
            return _all_of([*_present(path, around), *_element(path, where, around)])
        case Key(path, like):
            return _all_of([*_present(path, around), _key(path, like, around)])
        case Text(path, like, most):
            return _text(path, like, most, around)
        case Flag(path):
            return _all_of([*_present(path, around), _Cel(f"{around.name}.{path}")])
        case SentBy(like):
            return _fits((like,), "request.userInfo.username", around)
        case _:
            raise TypeError(f"{type(concern).__name__} has no CEL expression: add it here")


def nesting(concern: Concern) -> int:
    """Return how many lists, objects and strings are read inside each other, at most."""
    match concern:
        case AnyOf(parts) | AllOf(parts):
            return max(map(nesting, parts), default=0)
        case Not(part):
            return nesting(part)
        case Each(_, where):
            return 1 + nesting(where) if where != EVERY_OBJECT else 0
        case Key(_, like):
            return 0 if like == ("*",) or is_exact(like) else 1
        case _:
            return 0


def _any(parts: Iterable[Concern], around: _Around, operator: str = " || ", level: int = 0) -> _Cel:
    """Write that one of some concerns holds.

    Those that read fields of one object are evaluated only where this object exists. `level` counts the names at the
    beginning of their paths that they share.
    """
    ordered = sorted(parts, key=nesting)
    of_one: dict[str, list[Concern]] = {}
    for number, part in enumerate(ordered):
        of_one.setdefault(_parent(part, level) or f"{number}", []).append(part)
    written = []
    for parent, members in of_one.items():
        if len(members) == 1:
            written.append(_written(members[0], around))
            continue
        known = around._replace(present=around.present | {f"{around.name}.{parent}"})
        written.append(_all_of([*_present(parent, around), _any(members, known, operator, level + 1)]))
    first = _named_first(ordered, around) if around.among else ()
    return _all_of([*first, _any_of(written, operator)])


def _parent(concern: Concern, level: int) -> str:
    """Return the path of the object in which a concern reads a field, up to a level; empty if it needs none."""
    if isinstance(concern, Each | Key | Flag) or (isinstance(concern, Text) and not _fits_nothing(concern.like)):
        segments = concern.path.split(".")
        return ".".join(segments[: level + 1]) if len(segments) > level + 1 else ""
    return ""


def _named_first(parts: Sequence[Concern], around: _Around) -> list[_Cel]:
    """Write that a string has one of the names that all of some concerns require; nothing if they require none."""
    required = [_required(part) for part in parts]
    paths = {text.path for text in required if text}
    if len(parts) == 1 or len(paths) != 1 or None in required:
        return []
    every = tuple(dict.fromkeys(name for text in required if text for name in exact(text.like)))
    return [_text(paths.pop(), every, MOST_CHARACTERS, around)]


def _required(concern: Concern) -> Text | None:
    """Return that a string has certain names, without which a concern does not hold."""
    parts = concern.parts if isinstance(concern, AllOf) else (concern,)
    texts = (part for part in parts if isinstance(part, Text) and is_exact(part.like) and not _fits_nothing(part.like))
    return next(texts, None)


def _present(path: str, around: _Around) -> list[_Cel]:
    """Write that there is something at a path."""
    segments = path.split(".")
    parents = [f"{around.name}.{'.'.join(segments[: count + 1])}" for count in range(len(segments))]
    return [_Cel(f"has({parent})") for parent in parents if parent not in around.present]


def _element(path: str, where: Concern, around: _Around) -> Iterator[_Cel]:
    """Write that a concern holds for an element of a list that exists."""
    items = f"{around.name}.{path}"
    if where == EVERY_OBJECT:
        yield _Cel(f"{items} != null && size({items}) > 0", _AND)
        return
    if around.among:
        matching = _any_fits(items, _written(where, around.inside(items, counted=True)), around)
        yield _any_of([*_uncounted(path, MOST_INNER_ELEMENTS, around), matching])
        return
    # A list that is required is null where the sender left it out (`json` tags without omitempty).
    yield _Cel(f"{items} != null")
    totals = [(_total(items, inner, around.variable), most) for inner, most in walked(where)]
    # Under a negation, something large in one element has another answer than in all of them together.
    counted = not around.unusual or _negates(where)
    matching = _any_fits(items, _written(where, around.inside(items, counted=counted)), around)
    if not around.unusual:
        yield from _within([(f"size({items})", MOST_ELEMENTS), *totals])
        yield matching
        return
    exceeded = _above(totals)
    if exceeded and not counted:
        exceeded = [_all_of([*_above([(f"size({items})", _FEW)]), _any_of(exceeded)])]
    yield _any_of([*_above([(f"size({items})", MOST_ELEMENTS)]), *exceeded, matching])


def _negates(where: Concern) -> bool:
    """Tell whether the entries of a list or an object are compared under a negation."""
    match where:
        case AnyOf(parts) | AllOf(parts):
            return any(map(_negates, parts))
        case Not(part):
            return bool(walked(part))
        case _:
            return False


def _key(path: str, like: tuple[str, ...] | Listed, around: _Around) -> _Cel:
    """Write that an object that exists has a key."""
    members = f"{around.name}.{path}"
    if like == ("*",):
        return _Cel(f"size({members}) > 0")
    named = [_Cel(f"{_quoted(name)} in {members}") for name in exact(like)]
    if is_exact(like):
        return _any_of(named)
    key = around.inside(members, counted=True)
    if not around.unusual:
        if around.counted:
            return _any_fits(members, _fits(like, key.name, key), around)
        few = _within([(f"size({members})", MOST_KEYS)])
        return _any_of([*named, _all_of([*few, _any_fits(members, _any_of(_compared(like, key.name, key)), around)])])
    size = f"size({members})"
    many = _uncounted(path, MOST_KEYS, around) if around.among else _above([(size, MOST_KEYS)])
    if like is not Listed.ACCELERATOR_RESOURCES:
        return _any_of([*many, _any_fits(members, _fits(like, key.name, key), around)])
    ordinary = _Cel(f"!{members}.all({key.name}, {key.name} in [{names(_ORDINARY)}])")
    matching = _any_fits(members, _fits(known(like), key.name, key), around)
    unknown = _all_of([ordinary, _any_of([*many, matching])])
    return _apart(
        _any_of([unknown, *_own(like, key.name, around, lambda matches: _any_fits(members, matches, around))])
    )


def _text(path: str, like: tuple[str, ...] | Listed, most: int, around: _Around) -> _Cel:
    """Write that a string, which is empty where it is missing, has a name or fits a pattern."""
    if is_exact(like):
        return _equals(f"{_optional(around.name, path)}.orValue('')", exact(like))
    matching, present = _fits(like, f"{around.name}.{path}", around, most), _present(path, around)
    return _any_of([_not(_all_of(present)), matching]) if _fits_nothing(like) else _all_of([*present, matching])


def _fits(like: tuple[str, ...] | Listed, text: str, around: _Around, most: int = MOST_CHARACTERS) -> _Cel:
    """Write that a string is one of some names, or fits one of the patterns among them."""
    named = [_equals(text, exact(like))] if exact(like) else []
    matching = _any_of(named if is_exact(like) else [*named, *_compared(like, text, around, most)])
    return _apart(matching) if isinstance(like, Listed) else matching


def _compared(like: tuple[str, ...] | Listed, text: str, around: _Around, most: int = MOST_CHARACTERS) -> list[_Cel]:
    """Write that a string fits one of the patterns, as alternatives."""
    starred = [
        _like(text, pattern) for pattern in (known(like) if isinstance(like, Listed) else like) if "*" in pattern
    ]
    if around.unusual:
        matching = [*_above([(f"size({text})", most)]), *starred]
    else:
        matching = [_all_of([*_within([(f"size({text})", most)]), _any_of(starred)])] if starred else []
    # The platform's own come last and in a form of their own, because the Helm chart learns of them when it is
    # rendered; so everything else, parentheses too, is the same whether there are any or not.
    if isinstance(like, Listed):
        short = _within([(f"size({text})", most)])
        matching += _own(like, text, around, lambda part: part if around.unusual else _all_of([*short, part]))
    return matching


def _own(like: Listed, text: str, around: _Around, written: Callable[[_Cel], _Cel]) -> list[_Cel]:
    """Write that a string fits one of the platform's own patterns, unless their expression is too long."""
    if not own(like, around.platform):
        return []
    expression = _quoted(own_expression(like, around.platform))
    size, matches = (f"size({expression})", MOST_OWN_CHARACTERS), _Cel(f"{text}.matches({expression})")
    if around.unusual:
        return [*_above([size]), written(matches)]
    return [written(_all_of([*_within([size]), matches]))]


def _uncounted(path: str, most: int, around: _Around) -> list[_Cel]:
    """Write that a list or an object in an element is large, and those in all elements together are too large."""
    if around.counted or not around.unusual:
        return []
    total = _total(around.among, path, around.variable)
    return [_all_of(_above([(f"size({around.name}.{path})", most // _FEW), (total, most)]))]


def _total(items: str, path: str, variable: str) -> str:
    return f"{items}.map({variable}, size({_optional(variable, path)}.orValue([]))).sum()"


def _any_fits(items: str, where: _Cel, around: _Around) -> _Cel:
    # What `exists` costs is half as much again.
    return _Cel(f"size({items}.filter({around.variable}, {where.text})) > 0")


def _above(sizes: Iterable[tuple[str, int]]) -> list[_Cel]:
    return [_Cel(f"{size} > {most}") for size, most in sizes]


def _within(sizes: Iterable[tuple[str, int]]) -> list[_Cel]:
    return [_Cel(f"{size} <= {most}") for size, most in sizes]


def _fits_nothing(like: tuple[str, ...] | Listed) -> bool:
    """Tell whether a missing string fits."""
    return isinstance(like, tuple) and ("" in like or "*" in like)


def _equals(text: str, like: tuple[str, ...]) -> _Cel:
    return _Cel(f"{text} == {names(like)}" if len(like) == 1 else f"{text} in [{names(like)}]")


def _any_of(parts: Iterable[_Cel], operator: str = " || ") -> _Cel:
    return _joined(operator, _OR, list(parts), "false")


def _all_of(parts: Iterable[_Cel]) -> _Cel:
    return _joined(" && ", _AND, list(parts), "true")


def _joined(operator: str, binds: int, parts: Sequence[_Cel], nothing: str) -> _Cel:
    if len(parts) == 1:
        return parts[0]
    texts = (f"({part.text})" if part.binds < binds else part.text for part in parts)
    return _Cel(operator.join(texts), binds) if parts else _Cel(nothing)


def _apart(part: _Cel) -> _Cel:
    return _Cel(f"({part.text})")


def _not(part: _Cel) -> _Cel:
    return _Cel(f"!({part.text})")


def _optional(around: str, path: str) -> str:
    return around + "".join(f".?{name}" for name in path.split("."))


def _like(text: str, pattern: str) -> _Cel:
    first, *between, last = pattern.split("*")
    if not (first or last or any(between)):
        return _Cel("true")
    if not between and not last:
        return _Cel(f"{text}.startsWith({_quoted(first)})")
    if not between and not first:
        return _Cel(f"{text}.endsWith({_quoted(last)})")
    if len(between) == 1 and not first and not last:
        return _Cel(f"{text}.contains({_quoted(between[0])})")
    if not between:
        shortest = len(first) + len(last)
        ends = f"{text}.startsWith({_quoted(first)}) && {text}.endsWith({_quoted(last)})"
        return _Cel(f"{ends} && size({text}) >= {shortest}", _AND)
    return _Cel(f"{text}.matches({_quoted(f'^(?s:{formats.expression(pattern)})$')})")


def _quoted(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + escaped.replace("'", "\\'") + "'"


# Policies read these and the spec. An update can be denied only for what it adds, so one that does not change these
# fields is not sent. Finalizers, such as that of every Pod of a Job, can be removed while the webhook is unavailable.
CHANGES_WHAT_IS_EVALUATED: Final = {
    "name": "changes-evaluated-fields",
    "expression": (
        "request.operation != 'UPDATE' ||\n"
        "object.?spec != oldObject.?spec ||\n"
        "['labels', 'annotations', 'ownerReferences'].exists(a, object.metadata[?a] != oldObject.metadata[?a])"
    ),
}
NOT_OF_KARPENTER: Final = "is-not-from-karpenter"
# Mirror Pods are not evaluated (`engine/enforcement.py`): a kubelet creates them for Pods that it runs already.
_NO_MIRROR: Final = ~(SentBy(f"{KUBELET}*") & Key("metadata.annotations", ("kubernetes.io/config.mirror",)))
_NOT_OF_KUBELETS: Final = f"!('{KUBELETS}' in request.userInfo.?groups.orValue([]))"


class Resource(Protocol):
    """A resource whose objects are evaluated: its API group, its name in URLs, and the objects that can interest a policy."""

    group: str
    plural: str
    concern: Concern


def match_conditions(resources: Sequence[Resource], platform: Platform) -> Iterator[dict[str, Any]]:
    """Yield what must hold of an object of one of some resources; nothing, if each is sent."""
    yield CHANGES_WHAT_IS_EVALUATED
    if any((resource.group, resource.plural) == ("", "pods") for resource in resources):
        expression = f"{_NOT_OF_KUBELETS} ||\n{alternatives(_NO_MIRROR, platform)}"
        yield {"name": "is-not-a-mirror-pod", "expression": expression}
    concerns = {resource.concern for resource in resources}
    if len(concerns) == 1:
        yield from _interesting(concerns.pop(), platform)
        return
    # Several groups have a DaemonSet, and names of conditions are keys.
    several = {name for name, count in Counter(resource.plural for resource in resources).items() if count > 1}
    for kind in resources:
        resource = f"{kind.plural}.{kind.group}" if kind.plural in several else kind.plural
        for condition in _interesting(kind.concern, platform):
            other = f"request.resource.group != '{kind.group}' || request.resource.resource != '{kind.plural}'"
            name = f"{resource}-{condition['name']}"
            yield {"name": name, "expression": f"{other} ||\n{condition['expression']}"}


def not_of(users: Sequence[str]) -> dict[str, Any]:
    """Return that none of some users sends it; the API server has authenticated them."""
    return {"name": NOT_OF_KARPENTER, "expression": f"!(request.userInfo.username in [{names(users)}])"}


def _interesting(concern: Concern, platform: Platform) -> Iterator[dict[str, Any]]:
    if concern != EVERY_OBJECT:
        yield {"name": "concerns-a-policy", "expression": wanted(concern, platform)}


def wanted(concern: Concern, platform: Platform) -> str:
    """Write a concern as one condition, in which what it excludes is evaluated only for an object that it wants.

    The API server evaluates all conditions of an entry, even after one is false.
    """
    if not isinstance(concern, AllOf) or not isinstance(concern.parts[-1], Not):
        return alternatives(concern, platform)
    *parts, excluded = concern.parts
    remainder = parts[0] if len(parts) == 1 else AllOf(tuple(parts))
    first = "" if remainder == EVERY_OBJECT else f"(\n{alternatives(remainder, platform)}\n) &&\n"
    return f"{first}{alternatives(excluded, platform)}"
