"""What a test of a case file would have to expect to pass, written as closely as it can be to what it expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.case_format import Expect, Where
from gpugate.webhook.policy_tests.matching import EFFECTS, fits, listed
from gpugate.webhook.policy_tests.observed import ObservedPlaces, observed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.policy_tests.observed import Observed
    from gpugate.webhook.policy_tests.results import Judged

_Json = dict[str, Any]  # Any: the JSON edge


def rewritten(written: _Json, expect: Expect, judged: Judged) -> _Json:
    """Return the `expect` section that fits a verdict.

    Args:
        written: the section as it is.
        expect: the same, read.
        judged: the object and the verdict on it.
    """
    verdict = judged.verdict
    seen = list(observed(verdict, ObservedPlaces(judged.ready.manifest)))
    made = dict(written)
    if "allow" in made:
        made["allow"] = verdict.allowed
    for effect in EFFECTS:
        by_patch = effect == "mutate" and ("patch" in made or "fixed" in made) and effect not in made
        if not by_patch:
            _put(made, effect, _policies(getattr(expect, effect), effect, seen, others=expect.also is None))
    _put(made, "malformed", [render(wrong.path) for wrong in verdict.malformed])
    if "skip" in made:
        made["skip"] = [outcome.policy for outcome in verdict.outcomes if outcome.skipped]
    if "patch" in made:
        made["patch"] = [dict(operation) for operation in verdict.operations]
    if isinstance(made.get("fixed"), dict) and "apiVersion" in made["fixed"]:
        made["fixed"] = verdict.object or {}
    found = {each.policy for each in seen}
    if "at" in made:
        _put(made, "at", {p: _places(made["at"][p], expect, p, seen) for p in made["at"] if p in found})
    if "message" in made:
        _put(made, "message", {p: _messages(made["message"][p], p, seen) for p in made["message"] if p in found})
    # Nothing but `also: any` would pass whatever comes.
    return made if made.keys() - {"also"} else {**made, "allow": verdict.allowed}


def _put(made: _Json, key: str, value: list[str] | _Json) -> None:
    if value:
        made[key] = value
    else:
        made.pop(key, None)


def _policies(before: Sequence[str], effect: str, seen: Sequence[Observed], *, others: bool) -> list[str]:
    now = dict.fromkeys(each.policy for each in seen if each.effect == effect)
    kept = [policy for policy in before if policy in now]
    return [*kept, *(policy for policy in now if policy not in kept)] if others else kept


def _places(written: Any, expect: Expect, policy: str, seen: Sequence[Observed]) -> Any:  # Any: as it is written
    before = listed(expect.at[policy])
    found = [each for each in seen if each.policy == policy]
    if all(any(fits(where, each) for where in before) for each in found) and all(
        any(fits(where, each) for each in found) for where in before
    ):
        return written
    with_path = any(where.path is not None for where in before)
    with_line = any(where.line is not None for where in before)
    made: list[Any] = []
    for each in found:
        where = Where(path=each.path if with_path else None, line=each.place.line if with_line else None)
        shown = each.path if where.line is None else msgspec.to_builtins(where)
        if shown not in made:
            made.append(shown)
    return made[0] if len(made) == 1 else made


def _messages(written: Any, policy: str, seen: Sequence[Observed]) -> Any:  # Any: as it is written
    found = [each.message for each in seen if each.policy == policy]
    made = [
        text if any(text in message for message in found) else found[0]
        for text in (written if isinstance(written, list) else [written])
    ]
    return made if isinstance(written, list) else made[0]
