"""Conditions by which the API server keeps to itself what can interest no policy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk.concerns import EVERY_OBJECT, AllOf, Key, Not, SentBy
from gpugate.webhook.generate import cel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.platform import Platform
    from gpugate.webhook.generate.judged_resources import Judged

# Policies read these and the spec; an update answers for what it adds, so one that leaves them as they are can be refused
# by none. So finalizers can be taken away when nobody answers, as that of every Pod of a Job.
CHANGES_WHAT_IS_JUDGED: Final = {
    "name": "changes-what-is-judged",
    "expression": (
        "request.operation != 'UPDATE' ||\n"
        "object.?spec != oldObject.?spec ||\n"
        "['labels', 'annotations', 'ownerReferences'].exists(a, object.metadata[?a] != oldObject.metadata[?a])"
    ),
}
NOT_OF_KARPENTER: Final = "is-not-karpenters-own"
# What no rule judges, as `engine/enforcement.py` decides it: a kubelet says what it runs anyway.
_NO_MIRROR: Final = ~(SentBy("system:node:*") & Key("metadata.annotations", ("kubernetes.io/config.mirror",)))


def match_conditions(judged: Sequence[Judged], platform: Platform) -> Iterator[dict[str, Any]]:
    """Yield what must hold of an object of one of some resources; nothing, if each is sent."""
    yield CHANGES_WHAT_IS_JUDGED
    if any((each.group, each.plural) == ("", "pods") for each in judged):
        yield {"name": "is-no-mirror-pod", "expression": cel.alternatives(_NO_MIRROR, platform)}
    concerns = {each.concern for each in judged}
    if len(concerns) == 1:
        yield from _interesting(concerns.pop(), platform)
        return
    # Several groups have a DaemonSet, and names of conditions are keys.
    several = {name for name, count in Counter(each.plural for each in judged).items() if count > 1}
    for each in judged:
        resource = f"{each.plural}.{each.group}" if each.plural in several else each.plural
        for condition in _interesting(each.concern, platform):
            other = f"request.resource.group != '{each.group}' || request.resource.resource != '{each.plural}'"
            name = f"{resource}-{condition['name']}"
            yield {"name": name, "expression": f"{other} ||\n{condition['expression']}"}


def not_of(users: Sequence[str]) -> dict[str, Any]:
    """Return that none of some users sends it; the API server has authenticated them."""
    return {"name": NOT_OF_KARPENTER, "expression": f"!(request.userInfo.username in [{cel.names(users)}])"}


def _interesting(concern: Concern, platform: Platform) -> Iterator[dict[str, Any]]:
    if concern == EVERY_OBJECT:
        return
    # All conditions have to hold, and each has a limit of cost of its own: what is excluded is a condition by itself.
    wanted, excluded = concern, None
    if isinstance(concern, AllOf) and isinstance(concern.parts[-1], Not):
        *rest, excluded = concern.parts
        wanted = rest[0] if len(rest) == 1 else AllOf(tuple(rest))
    if wanted != EVERY_OBJECT:
        yield {"name": "can-interest-a-policy", "expression": cel.alternatives(wanted, platform)}
    if excluded is not None:
        yield {"name": "is-not-excluded", "expression": cel.alternatives(excluded, platform)}
