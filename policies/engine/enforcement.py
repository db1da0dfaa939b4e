"""The mode that applies to a finding, from modes, namespaces and exemptions, and unused exemptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.engine.ruleset import Standing
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.findings import Stance

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpugate.policies.engine.config import Exemption, PolicyConfig
    from gpugate.policies.engine.ruleset import Rule, Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.objects import Request

_MIRROR = "kubernetes.io/config.mirror"


def stance(rule: Rule, request: Request, exemptions: Sequence[Exemption]) -> Standing:
    """Return the stance of a finding of a rule in a request; `exemptions` are those of `applying`.

    The namespace's mode takes precedence over the rule's. An exempted finding is only recorded.
    """
    mode = _mode(rule, request.namespace)
    if mode is Stance.OFF:
        return Standing(mode)
    for exemption in exemptions:
        if _fits(exemption.policies, rule.policy.id):
            return Standing(Stance.AUDIT, exemption)
    return Standing(mode)


def applying(request: Request, config: PolicyConfig, today: dt.date) -> tuple[Exemption, ...]:
    """Return the valid exemptions that apply to a request, for any policy."""
    return tuple(
        exemption for exemption in config.exemptions if today <= exemption.expires and _lets_off(exemption, request)
    )


def exempting(name: str, request: Request, config: PolicyConfig, today: dt.date) -> Exemption | None:
    """Return the exemption for findings without a policy, which an exemption has to name exactly."""
    return next((exemption for exemption in applying(request, config, today) if name in exemption.policies), None)


def exemption_note(exemption: Exemption) -> str:
    """Return the note of an exempted finding."""
    return f"exempt until {exemption.expires}: {exemption.reason}"


def is_left_alone(request: Request, config: PolicyConfig) -> bool:
    """Tell whether no rule evaluates a request: in an excluded namespace, or for a mirror Pod.

    A mirror Pod runs regardless of admission. Its annotation counts only if a kubelet sends it, because every user can
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


def _fits(patterns: tuple[str, ...], *texts: str) -> bool:
    return any(formats.matches(pattern, text) for pattern in patterns for text in texts)


def _lets_off(exemption: Exemption, request: Request) -> bool:
    return (
        _fits(exemption.kinds, request.stored_kind.kind)
        and _fits(exemption.namespaces, request.namespace)
        # A name that the API server will generate matches no name, because anyone can write `generateName`, even with a
        # name that makes it meaningless. When an object is validated, its name is known.
        and _fits(exemption.names, request.name)
        and _fits(exemption.users, request.user)
        and (exemption.groups == ("*",) or _fits(exemption.groups, *request.groups))
    )


def _is_mirror(request: Request) -> bool:
    if request.kind.kind != "Pod" or not request.is_from_kubelet:
        return False
    metadata = (request.object or request.old_object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and _MIRROR in annotations


class ExemptionUse:
    """The exemptions that lowered findings, by their index in the configuration."""

    def __init__(self, ruleset: Ruleset, today: dt.date) -> None:
        self._config = ruleset.config
        self._rules = {rule.policy.id: rule for rule in ruleset.rules}
        self._places = {id(exemption): index for index, exemption in enumerate(ruleset.config.exemptions)}
        self._today = today

    def of(self, verdict: Verdict) -> frozenset[int]:
        """Return the exemptions that the notes of a verdict name."""
        if not self._places:
            return frozenset()
        malformed = exempting("malformed", verdict.request, self._config, self._today) if verdict.malformed else None
        own = {self.place_of(malformed)} if malformed else set()
        noted = {finding.policy for finding in verdict.findings if finding.note}
        exemptions = applying(verdict.request, self._config, self._today) if noted else ()
        applied = (stance(self._rules[policy], verdict.request, exemptions).exemption for policy in noted)
        return frozenset(own.union(self.place_of(exemption) for exemption in applied if exemption is not None))

    def place_of(self, exemption: Exemption) -> int:
        """Return the path of an exemption in the configuration."""
        return self._places[id(exemption)]


def expired(exemptions: Sequence[Exemption], today: dt.date) -> Iterator[str]:
    """Yield the expired exemptions."""
    for exemption in exemptions:
        if exemption.expires < today:
            yield f"{_named(exemption)}: expired on {exemption.expires} ({exemption.owner}: {exemption.reason})"


def unused(
    exemptions: Sequence[Exemption], today: dt.date, used: Collection[int], looked: Mapping[str, bool] | None = None
) -> Iterator[str]:
    """Yield the valid exemptions that lowered no finding.

    Those with users or groups are omitted, because the user that would create an object is unknown.

    Args:
        exemptions: those of the configuration.
        today: the current day.
        used: the indices of those that lowered a finding.
        looked: policy in force -> whether it was evaluated everywhere. An exemption is not reported if one of its
            policies was not, or if it is for none of them. None stands for a run in which all policies were evaluated.
    """
    for index, exemption in enumerate(exemptions):
        by_anybody = exemption.users == ("*",) and exemption.groups == ("*",)
        if index not in used and exemption.expires >= today and by_anybody and _looked(exemption, looked):
            yield f"{_named(exemption)}: applies to no finding ({exemption.owner}: {exemption.reason})"


def _looked(exemption: Exemption, looked: Mapping[str, bool] | None) -> bool:
    if looked is None:
        return True
    could = [
        could for policy, could in looked.items() if any(formats.matches(name, policy) for name in exemption.policies)
    ]
    return bool(could) and all(could)


def bound_to_people(exemptions: Sequence[Exemption], today: dt.date) -> int:
    """Count the valid exemptions that name users or groups, which are therefore not applied."""
    restricted = (e for e in exemptions if e.expires >= today and (e.users != ("*",) or e.groups != ("*",)))
    return sum(1 for _ in restricted)


def _named(exemption: Exemption) -> str:
    """Describe an exemption by its objects and policies."""
    places = (
        ("kinds", exemption.kinds),
        ("namespaces", exemption.namespaces),
        ("names", exemption.names),
    )
    limits = "; ".join(f"{key} {', '.join(texts)}" for key, texts in places if texts != ("*",))
    return f"{', '.join(exemption.policies)}{f' for {limits}' if limits else ''}"
