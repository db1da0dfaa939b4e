"""Which exemptions of the configuration let somebody off, which are over, and which are of no use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.engine.enforcement import stance
from gpugate.policies.sdk import formats

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpugate.policies.engine.config import Exemption
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict


class ExemptionUse:
    """Tells which exemptions lowered findings, by their places in the configuration."""

    def __init__(self, ruleset: Ruleset, today: dt.date) -> None:
        self._config = ruleset.config
        self._rules = {rule.policy.id: rule for rule in ruleset.rules}
        self._places = {id(exemption): place for place, exemption in enumerate(ruleset.config.exemptions)}
        self._today = today

    def of(self, verdict: Verdict) -> frozenset[int]:
        """Return those that the engine found for the rules of a verdict, and told in a note."""
        if not self._places:
            return frozenset()
        noted = {finding.policy for finding in verdict.findings if finding.note}
        found = (stance(self._rules[policy], verdict.request, self._config, self._today).exemption for policy in noted)
        return frozenset(self._places[id(exemption)] for exemption in found if exemption is not None)


def expired(exemptions: Sequence[Exemption], today: dt.date) -> Iterator[str]:
    """Say which exemptions are over."""
    for exemption in exemptions:
        if exemption.expires < today:
            yield f"{_named(exemption)}: over since {exemption.expires} ({exemption.owner}: {exemption.reason})"


def unused(
    exemptions: Sequence[Exemption], today: dt.date, used: Collection[int], looked: Mapping[str, bool] | None = None
) -> Iterator[str]:
    """Say which exemptions in force lowered no finding.

    Of one that names users or groups nobody can say: who would create an object is not known.

    Args:
        exemptions: those of the configuration.
        today: the day.
        used: the places of those that lowered one.
        looked: policy in force -> whether it could look everywhere; nothing is said of an exemption for one that could
            not, or for none of them. None stands for a run in which all could.
    """
    for place, exemption in enumerate(exemptions):
        by_anybody = exemption.users == ("*",) and exemption.groups == ("*",)
        if place not in used and exemption.expires >= today and by_anybody and _looked(exemption, looked):
            yield f"{_named(exemption)}: lets nothing off ({exemption.owner}: {exemption.reason})"


def _looked(exemption: Exemption, looked: Mapping[str, bool] | None) -> bool:
    if looked is None:
        return True
    could = [
        could for policy, could in looked.items() if any(formats.matches(name, policy) for name in exemption.policies)
    ]
    return bool(could) and all(could)


def bound_to_people(exemptions: Sequence[Exemption], today: dt.date) -> int:
    """Count the exemptions in force that name users or groups, and are not applied because of that."""
    found = (e for e in exemptions if e.expires >= today and (e.users != ("*",) or e.groups != ("*",)))
    return sum(1 for _ in found)


def _named(exemption: Exemption) -> str:
    """Name an exemption by what it lets off which policies."""
    places = (
        ("kinds", exemption.kinds),
        ("namespaces", exemption.namespaces),
        ("names", exemption.names),
    )
    limits = "; ".join(f"{key} {', '.join(texts)}" for key, texts in places if texts != ("*",))
    return f"{', '.join(exemption.policies)}{f' for {limits}' if limits else ''}"
