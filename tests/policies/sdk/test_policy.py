"""What a policy file says about its policy."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE_POOL, POD, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import (
    WRITES,
    AnyContext,
    Context,
    Params,
    Policy,
    Table,
    mutates,
    policy_in,
    validates,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.findings import Patch, Skip, Violation

DOC = "GPU Pods that use CUDA on X.\n\nAnd why.\n"


class Limit(Params):
    """A parameter."""

    most: int = 2


@validates(POD, NODE_POOL, mode=Stance.WARN, at_most=Stance.WARN)
def check(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    yield from ()


@mutates(DEPLOYMENT, POD, mode=Stance.WARN, operations=frozenset({Operation.CREATE}))
def change(_pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    yield from ()


@validates(POD)
def enforced(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    yield from ()


@validates(POD, params=Limit, mode=Stance.WARN)
def limited(_pod: Field, _ctx: Context[Limit]) -> Iterator[Violation | Skip]:
    yield from ()


def module(doc: str | None = DOC, **members: object) -> ModuleType:
    made = ModuleType("library.policies.pods.some_bad_pattern", doc)
    vars(made).update(members)
    return made


def test_a_policy_is_named_for_its_file() -> None:
    policy = policy_in(module(check=check, change=change, helper=len))
    assert policy == Policy("pods/some-bad-pattern", DOC.strip(), (check, change))
    assert (policy.title, policy.mode, policy.params) == ("GPU Pods that use CUDA on X", Stance.WARN, Params)
    assert policy.kinds == (POD, NODE_POOL, DEPLOYMENT)


def test_a_policy_without_documentation_has_no_title() -> None:
    assert policy_in(module(None, check=check)).doc == ""


@pytest.mark.parametrize(
    "members",
    [{}, {"check": check, "enforced": enforced}, {"check": check, "limited": limited}],
    ids=["no function", "two modes", "two types of parameters"],
)
def test_a_file_defines_one_policy(members: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="some_bad_pattern: needs @validates or @mutates"):
        policy_in(module(**members))


def test_a_function_says_whether_it_changes_objects_and_how_far_it_goes() -> None:
    assert (check.mutates, check.operations, check.at_most) == (False, WRITES, Stance.WARN)
    assert (change.mutates, change.operations, change.at_most) == (True, {Operation.CREATE}, Stance.ENFORCE)
    assert (enforced.mode, enforced.at_most, enforced.needs, enforced.tables) == (
        Stance.ENFORCE,
        Stance.ENFORCE,
        (),
        (),
    )


def test_what_is_derived_of_a_subject_is_computed_once() -> None:
    computed: list[Field] = []

    def compute(subject: Field, _ctx: AnyContext) -> int:
        computed.append(subject)
        return len(computed)

    pod = Field({})
    table = Table("types", lambda: "unused")
    ctx = Context(
        Params(),
        pod,
        None,
        Request(None, Operation.CREATE, {}),  # type: ignore[arg-type] # no kind is needed
        NoFacts(),
        Platform(),
        Target(),
        tables={"types": "loaded"},
    )
    assert (ctx.derived(compute), ctx.derived(compute), computed) == (1, 1, [pod])
    assert ctx.table(table) == "loaded"
