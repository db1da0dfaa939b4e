"""Expectations that no verdict can meet, or that name what there is not; they are mistakes and no failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.engine.config import near_misses
from gpugate.webhook.manifests.case_format import Expect
from gpugate.webhook.policy_tests.matching import EFFECTS, listed, wanted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.policy_tests.cases import Case


def refuse_contradictions(case: Case, expect: Expect, known: Collection[str]) -> None:
    """Refuse expectations that cannot be meant.

    Args:
        case: the test.
        expect: what it expects.
        known: the id of every policy there is.

    Raises:
        CaseFileError: a policy that does not exist, an expectation that contradicts another one, or one that every
            verdict meets.
    """
    for path, policy in _named(expect):
        if policy not in known:
            raise case.error(("expect", *path), f"no policy is called {policy}; {suggestion(policy, known)}")
    asked = {policy for policies in wanted(expect).values() for policy in policies}
    for section, members in (("at", expect.at), ("message", expect.message)):
        for policy in members:
            if policy not in asked and expect.also is None:
                message = f"{policy} is in none of {', '.join(EFFECTS)}: say what it does, or `also: any`"
                raise case.error(("expect", section, policy), message)
    if expect.allow and expect.deny:
        raise case.error(("expect", "allow"), "what a policy denies is not allowed: leave `allow` or `deny`")
    _refuse_empty(case, expect)


def _refuse_empty(case: Case, expect: Expect) -> None:
    """Refuse expectations that every verdict meets: such a test shows nothing."""
    if expect == Expect(also="any"):
        raise case.error(("expect", "also"), "whatever is found passes: say what else is expected, `allow` at least")
    for policy, places in expect.at.items():
        if not listed(places) or any(where.path is None and where.line is None for where in listed(places)):
            raise case.error(("expect", "at", policy), "no place: write the field, or `path`, `line` or both")
    for policy, texts in expect.message.items():
        if not texts or "" in (texts if isinstance(texts, tuple) else (texts,)):
            raise case.error(("expect", "message", policy), "no text: write a part of the message")


def suggestion(policy: str, known: Collection[str]) -> str:
    """Say what to write instead of a policy that does not exist."""
    near = near_misses(policy, known)
    return f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"


def _named(expect: Expect) -> Iterator[tuple[Path, str]]:
    for section, policies in (*wanted(expect).items(), ("skip", expect.skip or ())):
        yield from (((section, index), policy) for index, policy in enumerate(policies))
    for key in ("at", "message"):
        yield from (((key, policy), policy) for policy in getattr(expect, key))
