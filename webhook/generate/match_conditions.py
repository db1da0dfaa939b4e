"""Conditions by which the API server keeps to itself what can interest no policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk.concerns import EVERY_OBJECT, Key, SentBy
from gpugate.webhook.generate import cel

if TYPE_CHECKING:
    from collections.abc import Sequence

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
# What no rule judges, as `engine/enforcement.py` decides it: a kubelet says what it runs anyway.
_NO_MIRROR: Final = ~(SentBy("system:node:*") & Key("metadata.annotations", ("kubernetes.io/config.mirror",)))


def match_conditions(judged: Judged, platform: Platform) -> Sequence[dict[str, Any]]:
    """Return what must hold of an object of one resource, beside `CHANGES_WHAT_IS_JUDGED`; none if each is sent."""
    if judged.concern == EVERY_OBJECT:
        return ()
    found = [{"name": "can-interest-a-policy", "expression": cel.alternatives(judged.concern, platform)}]
    if (judged.group, judged.plural) == ("", "pods"):
        found.insert(0, {"name": "is-no-mirror-pod", "expression": cel.alternatives(_NO_MIRROR, platform)})
    return found
