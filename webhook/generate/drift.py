"""How the webhook configurations of a cluster differ from those that are generated for the rules in force.

What is compared is which requests are sent, by which entry and on which terms, not how entries are called or grouped.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gpugate.webhook.generate import break_glass
from gpugate.webhook.generate.coverage import DEFAULT_MATCH_POLICY, covers, sent
from gpugate.webhook.generate.drift_bundles import bundle_drift
from gpugate.webhook.generate.drift_entries import conduct, escapes
from gpugate.webhook.generate.drift_installations import missing, second_installations, turned_off
from gpugate.webhook.generate.drift_reasons import APPLY_AGAIN, Drift, Reason, where
from gpugate.webhook.generate.drift_scope import too_much
from gpugate.webhook.generate.entries import whole_catalogue
from gpugate.webhook.generate.meant import Meant
from gpugate.webhook.generate.registration import webhook_configurations
from gpugate.webhook.generate.risk_groups import RiskGroup

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.generate.coverage import Object, Sent
    from gpugate.webhook.generate.registration import Server

_Policies: TypeAlias = "Mapping[str, set[str]]"

# What a probe asks about; no policy judges it.
_PROBE: Final = "configmaps"


def drift(  # noqa: PLR0913 -- what is compared, with what, and when
    ruleset: Ruleset,
    live: Sequence[Object],
    server: Server,
    bundle: bytes,
    *,
    now: dt.datetime,
    name: str = "gpugate",
    meant: Meant | None = None,
) -> Sequence[Drift]:
    """Return every difference that matters; none where requests go where they should.

    Args:
        ruleset: the rules in force.
        live: webhook configurations of both kinds as the API server returns them, each with its `kind`; those of
            other names are looked at for a second installation only.
        server: where the webhook answers; its `ca_bundle` is not looked at.
        bundle: the authorities that every `caBundle` should hold, PEM; empty where they are not known.
        now: the time, with its zone.
        name: what both configurations are called.
        meant: what was chosen.
    """
    own = {each["kind"]: each for each in live if each["metadata"]["name"] == name}
    # The Helm chart installs what is right for every policy file, `gpugate registration` what is right for one.
    every = (ruleset, whole_catalogue(ruleset.config))
    found = min((_from_expected(rules, own, server, meant or Meant(), name) for rules in every), key=len)
    found += bundle_drift(own.values(), bundle, now)
    found += second_installations(each for each in live if each["metadata"]["name"] != name)
    return tuple(dict.fromkeys(found))


def _from_expected(ruleset: Ruleset, own: Mapping[str, Object], server: Server, meant: Meant, name: str) -> list[Drift]:
    found: list[Drift] = []
    for expected, policies in _expected(ruleset, server, meant):
        if expected["kind"] in own:
            found += _compared(expected, own[expected["kind"]], policies)
        else:
            found.append(missing(expected["kind"], name))
    return found


def _expected(ruleset: Ruleset, server: Server, meant: Meant) -> Iterator[tuple[Object, _Policies]]:
    """Yield each configuration, and which failure policies its entries may have."""

    def generated(*failing: Collection[RiskGroup]) -> tuple[Object, Object]:
        fail, fail_mutating = failing
        users = meant.of_karpenter
        made = webhook_configurations(ruleset, server, fail=fail, fail_mutating=fail_mutating, karpenter_users=users)
        return meant.narrowed(made[0]), meant.narrowed(made[1])

    every = tuple(RiskGroup)
    # Where this one says Ignore, nothing can be refused or changed.
    strict = generated(every, every)
    known = (meant.fail_mutating, meant.fail)
    chosen = strict if known == (None, None) else generated(meant.fail or (), meant.fail_mutating or ())
    for one, other, groups in zip(strict, chosen, known, strict=True):
        either = {each["name"]: {each["failurePolicy"], "Ignore"} for each in one["webhooks"]}
        named = {each["name"]: {each["failurePolicy"]} for each in other["webhooks"]}
        yield one, either if groups is None else named


def _compared(expected: Object, live: Object, policies: _Policies) -> Iterator[Drift]:
    if break_glass.off(live):
        yield turned_off(live)
    senders = [_Sender.of(each) for each in break_glass.enabled(live).get("webhooks") or ()]
    unsent: list[Sent] = []
    for wanted_entry in expected["webhooks"]:
        name = wanted_entry["name"]
        is_there = any(each.name == name for each in senders)
        escaping = {
            each.name: tuple(escapes(where(live, each.entry), each.entry, wanted_entry, policies[name]))
            for each in senders
        }
        for wanted in sent(wanted_entry):
            by = [each.name for each in senders if each.sends(wanted)]
            # Where several send it, it is evaluated if one of them lets nothing escape. Else the entry of the same name is
            # compared: two entries for one resource differ in their conditions alone.
            best = min(
                by, key=lambda sender: (bool(escaping[sender]), sender != name, len(escaping[sender])), default=None
            )
            if best is None or (escaping[best] and is_there and name not in by):
                unsent.append(wanted)
            else:
                yield from escaping[best]
    yield from _not_sent(live, unsent)
    judged = [each for entry in expected["webhooks"] for each in sent(entry)]
    for each in senders:
        place = where(live, each.entry)
        yield from conduct(place, each.entry, expected)
        yield from too_much(place, each.rules, judged, each.match_policy)


class _Sender(NamedTuple):
    entry: Object
    name: str
    rules: tuple[Sent, ...]
    match_policy: str

    @classmethod
    def of(cls, entry: Object) -> _Sender:
        return cls(entry, entry["name"], tuple(sent(entry)), entry.get("matchPolicy") or DEFAULT_MATCH_POLICY)

    def sends(self, wanted: Sent) -> bool:
        # All that is generated is found by the first, and it is what is there as a rule.
        return wanted in self.rules or any(covers(each, wanted, self.match_policy) for each in self.rules)


def _not_sent(live: Object, unsent: Sequence[Sent]) -> Iterator[Drift]:
    for name, group in groupby(sorted(unsent, key=lambda each: each.name), key=lambda each: each.name):
        operations = " and ".join(sorted({each.operation for each in group}))
        text = f"{operations} of {name} is judged, but no entry sends it"
        if name == _PROBE:
            text = "no entry sends probes, so nobody can see whether the API server reaches the webhook"
        yield Drift(Reason.NOT_PROBED if name == _PROBE else Reason.NOT_SENT, where(live), text, APPLY_AGAIN)
