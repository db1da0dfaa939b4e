"""Find the findings whose cause another finding of the same run reports.

At admission the API server sends one object, so a policy reports a cause at each object that is part of it: a
HorizontalPodAutoscaler and a ScaledObject of one workload both have a finding that names the other. If all objects are
evaluated, the policy says which of these findings is reported, and the others become further locations of it. A finding
with a stricter mode is never replaced by one with a less strict mode.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.sdk.findings import Other, Stance

# Files of one run may define an object thousands of times, each time with a finding.
_COMPARED: Final = 100

# Kind, namespace and name of an object.
_Key: TypeAlias = tuple[str, str, str]


class Statement(Struct, frozen=True):
    """The properties by which findings are compared.

    Attributes:
        policy: its id.
        message: its message.
        stance: its stance.
        kind: the kind of its object, with `namespace` and `name`.
        others: further objects that are part of it.
        follows: whether the finding at each of these is kept, and not this one.
        owner: the owner of the object, whose template has the same finding.
    """

    policy: str
    message: str
    stance: Stance
    kind: str
    namespace: str
    name: str
    others: tuple[Other, ...] = ()
    follows: bool = False
    owner: Other | None = None

    @property
    def at(self) -> _Key:
        """Its object."""
        return _key(self.kind, self.namespace, self.name)


def followers(statements: Sequence[Statement]) -> Mapping[int, tuple[int, ...]]:
    """Return finding -> the findings that report its cause, by index, for those that are not reported separately."""
    replaced: dict[int, tuple[int, ...]] = {}
    if not any(statement.follows or statement.owner for statement in statements):
        return replaced
    by_object: dict[tuple[str, _Key], list[int]] = {}
    for index, statement in enumerate(statements):
        by_object.setdefault((statement.policy, statement.at), []).append(index)
    parts = {
        index: frozenset(map(_of, statement.others)) for index, statement in enumerate(statements) if statement.others
    }
    for index, statement in enumerate(statements):
        leading = tuple(_leading(index, statement, statements, by_object, parts))
        if leading:
            replaced[index] = leading
    return {index: last for index in replaced if (last := _last(index, replaced))}


def _leading(
    index: int,
    follower: Statement,
    statements: Sequence[Statement],
    by_object: Mapping[tuple[str, _Key], list[int]],
    parts: Mapping[int, frozenset[_Key]],
) -> Iterator[int]:
    """Yield the findings that state the cause of one; none if an object that it names has no such finding."""
    if follower.owner is not None:
        for other in islice(by_object.get((follower.policy, _of(follower.owner)), ()), _COMPARED):
            made_by = statements[other]
            if other != index and made_by.message == follower.message and made_by.stance >= follower.stance:
                yield other
                return
    if not follower.follows:
        return
    leaders: dict[int, None] = {}
    for other_object in follower.others:
        at = islice(by_object.get((follower.policy, _of(other_object)), ()), _COMPARED)
        leader = next((other for other in at if _leads(statements[other], parts.get(other), follower)), None)
        if leader is None:
            return
        leaders[leader] = None
    yield from leaders


def _leads(leader: Statement, parts: frozenset[_Key] | None, follower: Statement) -> bool:
    """Tell whether a finding names the object of another; a finding without others refers to all dependent objects."""
    return not leader.follows and leader.stance >= follower.stance and (parts is None or follower.at in parts)


def _last(index: int, followed: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Follow findings to those that are kept; none if they form a circle."""
    ends: dict[int, None] = {}
    pending, visited = list(followed[index]), {index}
    while pending:
        leader = pending.pop()
        if leader in visited:
            continue
        visited.add(leader)
        if leader in followed:
            pending += followed[leader]
        else:
            ends[leader] = None
    return tuple(sorted(ends))


def _of(other: Other) -> _Key:
    return _key(other.kind, other.namespace, other.name)


def _key(kind: str, namespace: str, name: str) -> _Key:
    # The API server gives a request for a Namespace the namespace itself, a stored one has none.
    return kind, "" if kind == "Namespace" else namespace, name
