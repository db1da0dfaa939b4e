"""Which entries the webhook configurations have: one for each risk group and phase, with what is sent through it.

A resource of which only some requests can be denied is sent through two entries: through that of its group those that can,
and through another, which never says `failurePolicy: Fail`, the rest. So a Pod that no policy can deny starts while the
webhook is unavailable, whatever the failure policy of its group: a CNI that tolerates every taint, for one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyEntry
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.concerns import any_of, covers
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.generate.judged_resources import mutated, validated
from gpugate.webhook.generate.match_conditions import match_conditions
from gpugate.webhook.generate.risk_groups import RiskGroup, risk_group
from gpugate.webhook.generate.rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.platform import Platform
    from gpugate.webhook.generate.judged_resources import Judged

Phase: TypeAlias = Literal["mutate", "validate"]
_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a webhook configuration, without where the webhook is.

    Attributes:
        name: unique over both configurations: the audit log keeps the first annotation of a name.
        group: what it is about.
        rules: which requests it is for.
        conditions: the match conditions.
        may_wait: whether a request can be refused or changed, so that it may be made to wait for an answer.
    """

    name: str
    group: RiskGroup
    rules: Sequence[_Object]
    conditions: Sequence[_Object]
    may_wait: bool


def entries(ruleset: Ruleset, phase: Phase) -> Iterator[Entry]:
    """Yield the entries for the rules in force, in the order of the groups; none for a group that no rule is about."""
    judged = mutated(ruleset) if phase == "mutate" else validated(ruleset)
    for group in RiskGroup:
        of_group = [each for each in judged if risk_group(each) is group]
        waiting, advised = _parts(of_group)
        name = f"{group.value}.{phase}.gpugate.dev"
        platform = ruleset.config.platform
        if waiting and group.may_wait:
            yield _entry(name, group, waiting, platform, may_wait=True)
            if advised:
                yield _entry(f"warnings.{name}", group, advised, platform, may_wait=False)
        elif of_group:
            yield _entry(name, group, of_group, platform, may_wait=False)


def whole_catalogue(config: PolicyConfig) -> Ruleset:
    """Return every rule there is, as shipped and those that ship off enforced, for a platform and its namespaces.

    The entries for it are right whatever modes a policy file gives; the Helm chart installs them.
    """
    on = {policy.id: PolicyEntry(mode="enforce") for policy in CATALOG if policy.mode is Stance.OFF}
    return bind(CATALOG, msgspec.structs.replace(config, mode=None, policies=on, namespaces={}))


def _entry(name: str, group: RiskGroup, judged: Sequence[Judged], platform: Platform, *, may_wait: bool) -> Entry:
    return Entry(name, group, rules(judged), tuple(match_conditions(judged, platform)), may_wait)


def _parts(judged: Iterable[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Return of which requests some can be denied or mutated, and those that get warnings and records at most."""
    waiting, advised = [], []
    for each in judged:
        if each.enforced == any_of():
            advised.append(each)
        elif covers(each.enforced, each.concern):
            waiting.append(each)
        else:
            waiting.append(replace(each, concern=each.enforced))
            advised.append(replace(each, concern=each.advised & ~each.enforced))
    return waiting, advised
