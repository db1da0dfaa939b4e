"""Compares who finds what, where and in which words with what a test expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from gpugate.webhook.manifests.case_format import Where
from gpugate.webhook.policy_tests.observed import Effect
from gpugate.webhook.report.policy_tested import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.manifests.case_format import Expect, Places
    from gpugate.webhook.policy_tests.cases import Case
    from gpugate.webhook.policy_tests.observed import Observed
    from gpugate.webhook.policy_tests.results import Judged

EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)
SAID: Final[dict[Effect, str]] = {"deny": "denies", "warn": "warns", "record": "records", "mutate": "mutates"}


def wanted(expect: Expect) -> dict[Effect, tuple[str, ...]]:
    """Return the policies that a test expects something of, by what that is."""
    return {"deny": expect.deny, "warn": expect.warn, "record": expect.record, "mutate": expect.mutate}


def effects(case: Case, expect: Expect, judged: Judged, seen: Sequence[Observed]) -> Iterator[Failure]:
    """Yield what is expected and does not come, then what comes and is not expected."""
    asked = wanted(expect)
    for effect in EFFECTS:
        for index, policy in enumerate(asked[effect]):
            if not any((each.policy, each.effect) == (policy, effect) for each in seen):
                place = case.error(("expect", effect, index), "").place
                yield Failure(f"{policy} is expected to {effect}", place, (why_not(policy, judged, seen),))
    if expect.also == "any":
        return
    # A whole patch or a whole object says more than who makes it.
    by_patch = expect.patch is not None or expect.fixed is not None
    for each in seen:
        excused = each.effect == "mutate" and by_patch and not expect.mutate
        if each.policy not in asked[each.effect] and not excused:
            at = f"{each.path}: " if each.path else ""
            message = f"{each.policy} {SAID[each.effect]}, which is not expected"
            yield Failure(message, each.place, (f"{at}{each.message}",))


def why_not(policy: str, judged: Judged, seen: Sequence[Observed]) -> str:
    """Say what a policy does instead of what is expected of it."""
    others = dict.fromkeys(SAID[each.effect] for each in seen if each.policy == policy)
    if others:
        return f"it {' and '.join(others)}"
    if policy not in {rule.policy.id for rule in judged.ready.ruleset.rules}:
        return "it is off in this configuration"
    outcome = next((each for each in judged.verdict.outcomes if each.policy == policy), None)
    if outcome is None:
        what = f"{judged.ready.request.operation} of {judged.ready.request.kind.kind}"
        return f"it does not judge this {what}; `gpugate explain {policy}` says what it judges"
    if outcome.skipped:
        return f"it could not look: {'; '.join(outcome.skipped)}"
    return "it finds nothing"


def located(case: Case, expect: Expect, judged: Judged, seen: Sequence[Observed]) -> Iterator[Failure]:
    """Yield places at which nothing is found, and what is found elsewhere."""
    for policy, places in expect.at.items():
        asked = listed(places)
        found = [each for each in seen if each.policy == policy]
        if not found:
            yield from _finds_nothing(case, expect, judged, ("at", policy))
            continue
        for index, where in enumerate(asked):
            if not any(fits(where, each) for each in found):
                step = (index,) if isinstance(places, tuple) else ()
                place = case.error(("expect", "at", policy, *step), "").place
                got = tuple(dict.fromkeys(f"it is at {_at(each)}" for each in found))
                yield Failure(f"{policy} finds nothing at {_written(where)}", place, got)
        for each in found:
            if not any(fits(where, each) for where in asked):
                yield Failure(f"{policy} finds something at {_at(each)}, which is not expected", each.place)


def _finds_nothing(case: Case, expect: Expect, judged: Judged, at: tuple[str, str]) -> Iterator[Failure]:
    """Say that a policy finds nothing, unless that has been said because it is expected to do something."""
    policy = at[1]
    if not any(policy in policies for policies in wanted(expect).values()):
        place = case.error(("expect", *at), "").place
        yield Failure(f"{policy} finds nothing", place, (why_not(policy, judged, ()),))


def listed(places: Places) -> tuple[Where, ...]:
    """Return places as a list of them, whichever way they are written."""
    several = places if isinstance(places, tuple) else (places,)
    return tuple(Where(path=each) if isinstance(each, str) else each for each in several)


def fits(where: Where, each: Observed) -> bool:
    """Tell whether something is at a place."""
    return where.path in {None, each.path} and where.line in {None, each.place.line}


def _written(where: Where) -> str:
    path = "the object" if where.path == "" else where.path
    line = f"line {where.line}" if where.line else ""
    return ", ".join(part for part in (path, line) if part)


def _at(each: Observed) -> str:
    return f"{each.path or 'the object'}, line {each.place.line}"


def messages(case: Case, expect: Expect, judged: Judged, seen: Sequence[Observed]) -> Iterator[Failure]:
    """Yield texts that no message of their policy contains."""
    for policy, texts in expect.message.items():
        found = [each.message for each in seen if each.policy == policy]
        if not found and policy not in expect.at:
            yield from _finds_nothing(case, expect, judged, ("message", policy))
        for index, text in enumerate((texts,) if isinstance(texts, str) else texts):
            if found and not any(text in message for message in found):
                step = () if isinstance(texts, str) else (index,)
                place = case.error(("expect", "message", policy, *step), "").place
                details = tuple(dict.fromkeys(f"it says: {message}" for message in found))
                yield Failure(f"no message of {policy} contains {text!r}", place, details)
