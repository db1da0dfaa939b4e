"""Label, annotation or taint that Karpenter no longer reads.

## Why is this bad?
A Pod with `karpenter.sh/do-not-evict` looks protected and is not, as Karpenter v1.0 dropped the key. A Pod that selects nodes by
`karpenter.sh/provisioner-name` stays Pending, because no node has that label. A toleration of `karpenter.sh/disruption`
tolerates nothing. Nothing reports any of this.

## Instead
- `karpenter.sh/do-not-evict`, `karpenter.sh/do-not-consolidate`: `karpenter.sh/do-not-disrupt: "true"` on the Pod
- `karpenter.sh/provisioner-name`: `karpenter.sh/nodepool`, with the name of the NodePool
- `karpenter.sh/disruption=disrupting`: `karpenter.sh/disrupted`, which has no value

An old annotation beside the new one passes, as charts set both to serve every version.

## Sources
Karpenter v1.14.1 `designs/v1-api.md` ("Labels/Annotations/Tags"), `designs/v1-roadmap.md` (taints), `pkg/apis/v1/labels.go`,
`taints.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.legacy_apis import LEGACY_KEYS
from gpugate.policies.nodepools.legacy_keys.uses import USED_IN_POD, Place, in_metadata, in_node_template, in_pod
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import EC2_NODE_CLASS, NODE_POOL, POD
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.policy import Context, Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.nodepools.legacy_keys.uses import Use
    from gpugate.policies.sdk.field import Field

_DROPPED_IN: Final = "1.0"
_GONE: Final = "no node has the label {key} since Karpenter v1.0"
_MESSAGES: Final[dict[Place, str]] = {
    "annotation": "the annotation {key} is ignored since Karpenter v1.0",
    "label": "the label {key} means nothing since Karpenter v1.0",
    "selector": f"{_GONE}: the Pod stays Pending",
    "exclusion": f"{_GONE}: this keeps the Pod off none",
    "preference": f"{_GONE}: this prefers none",
    "topology": f"{_GONE}: Pods cannot be placed by it",
    "toleration": "no node has the taint {key} since Karpenter v1.0: this tolerates nothing",
    "requirement": "the API server refuses a requirement on {key}, which no node has since Karpenter v1.0",
    "taint": "the taint {key} means nothing since Karpenter v1.0",
}
_PROTECTION: Final = "karpenter.sh/do-not-disrupt"
_DISRUPTED: Final = "karpenter.sh/disrupted"


@validates(POD, mode=Stance.WARN, concerns=USED_IN_POD)
def check_pod(pod: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each dropped key in a Pod or Pod template, with the one that took its place."""
    if at_least(ctx.target.karpenter, _DROPPED_IN):
        for use in in_pod(pod):
            message = _MESSAGES[use.place].format(key=use.key)
            yield Violation(use.field.path, message, hint=_hint(use), fix=_renamed(use, pod))


@validates(NODE_POOL, mode=Stance.WARN)
def check_pool(pool: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each dropped key in a NodePool."""
    yield from _to_remove((*in_metadata(pool), *in_node_template(pool["spec", "template"])), ctx)


@validates(EC2_NODE_CLASS, mode=Stance.WARN)
def check_node_class(node_class: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each dropped key in the metadata of a node class."""
    yield from _to_remove(tuple(in_metadata(node_class)), ctx)


def _to_remove(uses: tuple[Use, ...], ctx: Context[Params]) -> Iterator[Violation]:
    for use in uses if at_least(ctx.target.karpenter, _DROPPED_IN) else ():
        protects = LEGACY_KEYS[use.key] == _PROTECTION
        hint = f"remove it; protect Pods with {_PROTECTION}" if protects else "remove it"
        removed = Patch("remove", use.field.path, None, f"removes {use.key}, which nothing reads")
        fix = Patches((removed,)) if use.place in {"annotation", "label"} else None
        yield Violation(use.field.path, _MESSAGES[use.place].format(key=use.key), hint=hint, fix=fix)


def _hint(use: Use) -> str:
    successor = LEGACY_KEYS[use.key]
    if successor == _PROTECTION:
        return f'write {successor}: "true"'
    return f"write {successor}{', with the name of a NodePool' if use.place in {'selector', 'preference'} else ''}"


def _renamed(use: Use, pod: Field) -> Patches | None:
    """Return the change to the key that took the place of a dropped one; None where a value has to be chosen too."""
    path, new = use.field.path, LEGACY_KEYS[use.key]
    reason = f"writes {new}, which took the place of {use.key}"
    if use.place == "annotation" and new == _PROTECTION and use.field.text == "true":
        added = Patch("set", (*path[:-1], new), "true", reason)
        return Patches((Patch("remove", path, None, reason), added))
    renamed = Patch("set", path, new, reason)
    if use.place == "toleration" and new == _DISRUPTED:
        exists = Patch("set", (*path[:-1], "operator"), "Exists", reason)
        value = (*path[:-1], "value")
        dropped = (Patch("remove", value, None, reason),) if pod[value] else ()
        return Patches((renamed, exists, *dropped))
    return Patches((renamed,)) if use.place == "topology" else None
