"""Keeps what takes each other's place in a cluster apart: renderings of one chart, overlays of one base.

Two renderings that make the same object, or are one release with other values, are never in a cluster together. What one
of them holds is no fact for the other, or a chart with two values files would seem to have everything twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.policies.sdk.request import Request

_Key = tuple[str, str, str, str]


def apart(
    facts: Sequence[tuple[int, list[Request]]], units: Mapping[int, str]
) -> tuple[list[Request], dict[int, list[Request]]]:
    """Return the facts that all files of a run share, and those of each rendering that has alternatives.

    Args:
        facts: the facts in each file, by the file's place in the run.
        units: for each rendering, by its place in the run, what it is a rendering of.
    """
    if len(units) < 2:
        return [fact for _, held in facts for fact in held], {}
    held = dict(facts)
    keys = {number: {key for fact in held.get(number, ()) if (key := _key(fact))} for number in units}
    others = {number: {o for o in units if o != number and _exclude(o, number, keys, units)} for number in units}
    shown: set[int] = set()
    for number in units:
        # Files beside them see the first of alternatives.
        if not others[number] & shown:
            shown.add(number)
    common = [fact for number, each in facts if number not in units or number in shown for fact in each]
    own = {
        number: [fact for each, there in facts if each not in hidden for fact in there]
        for number, hidden in others.items()
        if hidden
    }
    return common, own


def _exclude(one: int, other: int, keys: Mapping[int, set[_Key]], units: Mapping[int, str]) -> bool:
    return units[one] == units[other] or not keys[one].isdisjoint(keys[other])


def _key(fact: Request) -> _Key | None:
    return (fact.kind.group, fact.kind.kind, fact.namespace, fact.name) if fact.name else None
