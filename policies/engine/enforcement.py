"""What a finding costs: the one place where modes, namespaces and exemptions meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.sdk import formats
from gpugate.policies.sdk.findings import Stance

if TYPE_CHECKING:
    import datetime as dt

    from gpugate.policies.engine.config import Exemption, PolicyConfig
    from gpugate.policies.engine.ruleset import Rule
    from gpugate.policies.sdk.objects import Request

_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Standing:
    """A stance, and the exemption that lowered it where one did."""

    stance: Stance
    exemption: Exemption | None = None


def stance(rule: Rule, request: Request, config: PolicyConfig, today: dt.date) -> Standing:
    """Tell what a finding of a rule costs in a request.

    The namespace's mode beats the rule's own. An exempted finding is recorded and costs nothing.
    """
    mode = _mode(rule, request.namespace)
    if mode is Stance.OFF:
        return Standing(mode)
    for exemption in config.exemptions:
        if today <= exemption.expires and _lets_off(exemption, rule.policy.id, request):
            return Standing(Stance.AUDIT, exemption)
    return Standing(mode)


def is_left_alone(request: Request, config: PolicyConfig) -> bool:
    """Tell whether no rule judges a request at all: in an excluded namespace, and for mirror Pods.

    A mirror Pod runs whatever admission says. Its annotation counts only when a kubelet sends it, because anybody can
    write it.
    """
    return request.namespace in config.excluded_namespaces or _is_mirror(request)


def _mode(rule: Rule, namespace: str) -> Stance:
    if not rule.namespace_modes or not namespace:
        return rule.mode
    if namespace in rule.namespace_modes:
        return rule.namespace_modes[namespace]
    fitting = (mode for pattern, mode in rule.namespace_modes.items() if formats.matches(pattern, namespace))
    return next(fitting, rule.mode)


def _lets_off(exemption: Exemption, policy_id: str, request: Request) -> bool:
    def fits(patterns: tuple[str, ...], *texts: str) -> bool:
        return any(formats.matches(pattern, text) for pattern in patterns for text in texts)

    return (
        fits(exemption.policies, policy_id)
        and fits(exemption.kinds, request.kind.kind)
        and fits(exemption.namespaces, request.namespace)
        # A name that the API server has yet to make matches no name: `generateName` may say anything, also beside a name,
        # for which it means nothing. When an object is validated, its name is known.
        and fits(exemption.names, request.name)
        and fits(exemption.users, request.user)
        and (exemption.groups == ("*",) or fits(exemption.groups, *request.groups))
    )


def _is_mirror(request: Request) -> bool:
    if request.kind.kind != "Pod" or not request.user.startswith("system:node:"):
        return False
    metadata = (request.object or request.old_object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and _MIRROR in annotations
