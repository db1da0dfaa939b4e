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
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.platform import Platform

_VARIABLES = "abcdefghijklmnopqrstuvwxyz"


class _Around(NamedTuple):
    """What a concern is written about, and how.

    Attributes:
        name: the expression for it: `object`, or a variable.
        depth: how many variables are taken.
        platform: whose names count.
        unusual: the answer where something is unusually large.
        counted: whether its lists and objects have been counted together with those of other elements.
    """

    name: str
    depth: int
    platform: Platform
    unusual: bool = True
    counted: bool = False

    def inside(self, variables: int = 1) -> _Around:
        """Return the same for the last of some more variables."""
        depth = self.depth + variables
        return self._replace(name=_VARIABLES[depth - 1], depth=depth)


def alternatives(concern: Concern, platform: Platform) -> str:
    """Write a concern as a condition on `object`, each alternative on a line of its own, cheap ones first."""
    parts = concern.parts if isinstance(concern, AnyOf) else (concern,)
    return " ||\n".join(_written(part, _Around("object", 0, platform)) for part in sorted(parts, key=nesting))


def names(texts: Iterable[str]) -> str:
    """Write strings as the elements of a list."""
    return ", ".join(map(_quoted, texts))


def _written(concern: Concern, around: _Around) -> str:
    match concern:
        case AnyOf(parts):
            return _joined(" || ", (_written(part, around) for part in sorted(parts, key=nesting)), "false")
        case AllOf(parts):
            return _joined(" && ", (_written(part, around) for part in sorted(parts, key=nesting)), "true")
        case Not(part):
            return f"!({_written(part, around._replace(unusual=not around.unusual))})"
        case Each() | Key() | Text():
            return _optional_value(concern, around)
        case Flag(path):
            return f"{_optional(around.name, path)}.orValue(false)"
        case _:
            return _about_request(concern, around)


def _about_request(concern: Concern, around: _Around) -> str:
    if isinstance(concern, SentBy):
        return f"({_fits((concern.like,), around._replace(name='request.userInfo.username'))})"
    raise TypeError(f"{type(concern).__name__} has no CEL expression: add them here")


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


def _optional_value(concern: Each | Key | Text, around: _Around) -> str:
    """Write what holds for a list, an object or a string that may be absent."""
    field, value = _optional(around.name, concern.path), around.inside()
    present, absent = "", "false"
    match concern:
        case Each(_, where) if where == EVERY_OBJECT:
            present = f"{value.name} != null && size({value.name}) > 0"
        case Key(_, ("*",)):
            return f"size({field}.orValue({{}})) > 0"
        case Text(_, like) if is_exact(like):
            return _equals(f"{field}.orValue('')", exact(like))
        case Each(_, where):
            present = _element(where, value)
        case Key(_, like):
            present = _key(like, value)
        case Text(_, like, most):
            present = _fits(like, value, most)
            absent = "true" if "" in exact(like) or "*" in _starred(like) else "false"
    return f"{field}.optMap({value.name}, {present}).orValue({absent})"


def _element(where: Concern, elements: _Around) -> str:
    """Write what holds for an element of a list."""
    element = elements.inside()
    sizes = [] if elements.counted else [(f"size({elements.name})", MOST_ELEMENTS)]
    for path, most in walked(where):
        size = f"size({_optional(element.name, path)}.orValue([]))"
        sizes.append((f"{elements.name}.map({element.name}, {size}).sum()", most))
    expression = f"{elements.name}.exists({element.name}, {_written(where, element._replace(counted=True))})"
    expression = _unless_large(sizes, expression, elements)
    # A list that is required is null where the sender left it out (`json` tags without omitempty).
    return expression if elements.counted else f"{elements.name} != null && {_grouped(expression)}"


def _key(like: tuple[str, ...] | Listed, keys: _Around) -> str:
    """Write what holds for a key of an object."""
    expressions = [f"{_quoted(name)} in {keys.name}" for name in exact(like)]
    if not is_exact(like):
        key = keys.inside()
        sizes = [] if keys.counted else [(f"size({keys.name})", MOST_KEYS)]
        expressions.append(_unless_large(sizes, f"{keys.name}.exists({key.name}, {_compared(like, key)})", keys))
    return " || ".join(expressions)


def _fits(like: tuple[str, ...] | Listed, text: _Around, most: int = MOST_CHARACTERS) -> str:
    """Write that a string is one of some names, or fits one of the patterns among them."""
    expressions = [_equals(text.name, exact(like))] if exact(like) else []
    return " || ".join(expressions if is_exact(like) else [*expressions, _compared(like, text, most)])


def _compared(like: tuple[str, ...] | Listed, text: _Around, most: int = MOST_CHARACTERS) -> str:
    """Write that a string fits one of the patterns."""
    expressions = [_like(text.name, pattern) for pattern in _starred(like)]
    if isinstance(like, Listed):
        # The platform's own come last and in a form of their own, because the Helm chart learns of them when it is
        # rendered; so everything else is the same whether there are any or not.
        expressions += ["false"] if not expressions else []
        expression = _quoted(own_expression(like, text.platform))
        matches = _unless_large(
            [(f"size({expression})", MOST_OWN_CHARACTERS)], f"{text.name}.matches({expression})", text
        )
        expressions += [matches] if own(like, text.platform) else []
    return _unless_large([(f"size({text.name})", most)], " || ".join(expressions), text)


def _starred(like: tuple[str, ...] | Listed) -> list[str]:
    return [pattern for pattern in (known(like) if isinstance(like, Listed) else like) if "*" in pattern]


def _unless_large(sizes: Iterable[tuple[str, int]], expression: str, around: _Around) -> str:
    """Write that something is found; where a size is above its limit, the answer is decided and nothing is read."""
    if around.unusual:
        return " || ".join([*(f"{size} > {most}" for size, most in sizes), expression])
    return f"({' && '.join([*(f'{size} <= {most}' for size, most in sizes), f'({expression})'])})"


def _grouped(expression: str) -> str:
    return expression if expression.startswith("(") else f"({expression})"


def _equals(text: str, like: tuple[str, ...]) -> str:
    return f"{text} == {names(like)}" if len(like) == 1 else f"{text} in [{names(like)}]"


def _joined(operator: str, parts: Iterator[str], nothing: str) -> str:
    remaining = list(parts)
    return f"({operator.join(remaining)})" if len(remaining) > 1 else remaining[0] if remaining else nothing


def _optional(around: str, path: str) -> str:
    return around + "".join(f".?{name}" for name in path.split("."))


def _like(text: str, pattern: str) -> str:
    first, *between, last = pattern.split("*")
    if not (first or last or any(between)):
        return "true"
    if not between and not last:
        return f"{text}.startsWith({_quoted(first)})"
    if not between and not first:
        return f"{text}.endsWith({_quoted(last)})"
    if len(between) == 1 and not first and not last:
        return f"{text}.contains({_quoted(between[0])})"
    if not between:
        shortest = len(first) + len(last)
        ends = f"{text}.startsWith({_quoted(first)}) && {text}.endsWith({_quoted(last)})"
        return f"({ends} && size({text}) >= {shortest})"
    return f"{text}.matches({_quoted(f'^(?s:{formats.expression(pattern)})$')})"


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
_NOT_OF_KUBELETS: Final = f"!request.userInfo.?groups.orValue([]).exists(g, g == '{KUBELETS}')"


class Resource(Protocol):
    """A resource whose objects are evaluated: its API group, its name in URLs, and the objects that can interest a policy."""

    group: str
    plural: str
    concern: Concern


def match_conditions(resources: Sequence[Resource], platform: Platform) -> Iterator[dict[str, Any]]:
    """Yield what must hold of an object of one of some resources; nothing, if each is sent."""
    yield CHANGES_WHAT_IS_EVALUATED
    if any((resource.group, resource.plural) == ("", "pods") for resource in resources):
        expression = f"{alternatives(_NO_MIRROR, platform)} ||\n{_NOT_OF_KUBELETS}"
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
    if concern == EVERY_OBJECT:
        return
    # All conditions have to hold, and each has a limit of cost of its own: what is excluded is a condition by itself.
    wanted, excluded = concern, None
    if isinstance(concern, AllOf) and isinstance(concern.parts[-1], Not):
        *parts, excluded = concern.parts
        wanted = parts[0] if len(parts) == 1 else AllOf(tuple(parts))
    if wanted != EVERY_OBJECT:
        yield {"name": "concerns-a-policy", "expression": alternatives(wanted, platform)}
    if excluded is not None:
        yield {"name": "is-not-excluded", "expression": alternatives(excluded, platform)}
