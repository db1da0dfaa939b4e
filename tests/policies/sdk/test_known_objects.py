from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.sdk.facts import Known, Unavailable, derived, object_contexts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE_POOL, RESOURCE_CLAIM
from gpugate.policies.sdk.platform import Platform

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext

POOLS = ({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}})


@dataclass
class ReplaceableFacts:
    """Facts that can be replaced, kind by kind."""

    known: dict[Kind, Known] = field(default_factory=dict)

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        return self.known.get(kind) or Unavailable(f"{kind.plural} of {namespace} are not known")


@dataclass(eq=False)
class Counting:
    """Something that is derived of pools, and of how many claims there are; counts how often."""

    calls: int = 0

    def __call__(self, known: Known, ctx: AnyContext) -> tuple[int, str]:
        self.calls += 1
        claims = ctx.facts.list(RESOURCE_CLAIM, ctx.request.namespace)
        return len(known.items) + (len(claims.items) if isinstance(claims, Known) else 0), ctx.request.namespace


def pools() -> Known:
    return Known(tuple(map(Field, POOLS)), complete=True)


@pytest.fixture
def ctx(context: Callable[..., AnyContext]) -> AnyContext:
    return replace(context({"metadata": {"name": "evaluated"}}), facts=ReplaceableFacts())


def test_it_is_computed_once_for_all_subjects(ctx: AnyContext) -> None:
    known, count = pools(), Counting()
    another = replace(ctx, subject=Field({}), request=replace(ctx.request, name="another", namespace="other"), memo={})

    assert derived(known, count, ctx) == derived(known, count, another) == (2, "")
    assert count.calls == 1


def test_it_is_computed_again_when_what_it_looked_up_is_another(ctx: AnyContext) -> None:
    known, count, facts = pools(), Counting(), ReplaceableFacts()
    ctx = replace(ctx, facts=facts)
    derived(known, count, ctx)
    facts.known[RESOURCE_CLAIM] = Known((Field({}),), complete=True)

    assert [derived(known, count, ctx)[0], derived(known, count, ctx)[0]] == [3, 3]
    assert count.calls == 2


def test_it_is_not_computed_again_when_what_it_did_not_look_up_is_another(ctx: AnyContext) -> None:
    known, count, facts = pools(), Counting(), ReplaceableFacts()
    ctx = replace(ctx, facts=facts)
    derived(known, count, ctx)
    facts.known[DEPLOYMENT] = Known((), complete=True)
    derived(known, count, ctx)

    assert count.calls == 1


def test_it_is_computed_again_for_another_configuration(ctx: AnyContext) -> None:
    known, count = pools(), Counting()
    derived(known, count, ctx)
    derived(known, count, replace(ctx, platform=Platform()))

    assert count.calls == 2


def test_it_is_computed_again_for_another_namespace(ctx: AnyContext) -> None:
    known, count = pools(), Counting()

    assert [derived(known, count, ctx, name)[1] for name in ("ml", "web")] == ["ml", "web"]


def test_other_objects_have_their_own(ctx: AnyContext) -> None:
    count = Counting()
    derived(pools(), count, ctx)
    derived(pools(), count, ctx)

    assert count.calls == 2


def test_each_object_keeps_what_is_derived_of_it(ctx: AnyContext) -> None:
    known, seen = pools(), []

    def name(pool: Field, _ctx: AnyContext) -> str:
        seen.append(pool["metadata", "name"].text)
        return seen[-1]

    for _ in range(2):
        assert [around.derived(name) for around in object_contexts(known, ctx)] == ["a", "b"]
    assert {around.request.namespace for around in object_contexts(known, ctx)} == {""}
    assert {around.request.namespace for around in object_contexts(known, ctx, "ml")} == {"ml"}
    assert seen == ["a", "b"]


def test_an_object_forgets_it_when_what_was_looked_up_then_is_another(ctx: AnyContext) -> None:
    known, facts = pools(), ReplaceableFacts()
    ctx = replace(ctx, facts=facts)

    def is_known(_pool: Field, ctx: AnyContext) -> bool:
        return isinstance(ctx.facts.list(NODE_POOL), Known)

    before = [around.derived(is_known) for around in object_contexts(known, ctx)]
    facts.known[NODE_POOL] = known

    assert before == [False, False]
    assert [around.derived(is_known) for around in object_contexts(known, ctx)] == [True, True]


def test_of_what_is_not_known_there_is_none(ctx: AnyContext) -> None:
    assert object_contexts(Unavailable("not read yet"), ctx) == ()
