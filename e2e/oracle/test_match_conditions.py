"""What match conditions cost, and what they answer: by the code that the API server evaluates them with.

Limits: `k8s.io/apiserver` v0.36.3 pkg/apis/cel/config.go, PerCallLimit for one expression and
RuntimeCELCostBudgetMatchConditions for all those of one webhook. Above either the conditions fail, and a request is not
sent where `failurePolicy` is Ignore (pkg/admission/plugin/webhook/matchconditions/matcher.go).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.concern_objects import costly, objects, oversized
from oracle.process import Oracle

import tools
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.sdk import objects as kinds
from gpugate.policies.sdk.concerns import EVERY_OBJECT
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import Kind
from gpugate.policies.sdk.platform import Accelerators, Platform, Taint
from gpugate.webhook.registration import match_conditions
from gpugate.webhook.registration.entries import (
    EvaluatedResource,
    entries,
    mutated,
    risk_group,
    validated,
    whole_catalogue,
)
from gpugate.webhook.registration.match_conditions import CHANGES_WHAT_IS_EVALUATED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.concerns import Concern
    from gpugate.webhook.registration.entries import Entry

Json = dict[str, Any]
PER_EXPRESSION = 1_000_000
PER_WEBHOOK = 2_500_000
# A tenth of what is allowed is the most that anything costs.
SHARE = 10
OWN = Platform(
    taints={"example.com/*": (Taint(key="example.com/npu"), Taint(key="dedicated"))},
    accelerators=Accelerators(
        resources=("example.com/npu", "example.com/slice-*"), device_classes=("npu.example.com",)
    ),
)
PLATFORMS = {"no names of its own": Platform(), "names of its own": OWN}
KINDS = {
    (kind.group, kind.plural): kind for kind in vars(kinds).values() if isinstance(kind, Kind) and not kind.subresource
}


@pytest.fixture(scope="module")
def conditions() -> Iterator[Oracle]:
    with contextlib.closing(Oracle(tools.path("conditions"))) as process:
        yield process


def evaluated(
    conditions: Oracle, judged: EvaluatedResource, obj: Json, expressions: Sequence[str], **more: Any
) -> Json:
    kind = KINDS[judged.group, judged.plural]
    version = f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]
    about = {"user": "alice", "operation": "CREATE", "oldObject": None, **more}
    made = {**obj, "apiVersion": version, "kind": kind.name}
    return conditions.ask("evaluate", {**about, "object": made, "expressions": expressions, "resource": judged.plural})


def generated(platform: Platform) -> Iterator[tuple[str, Entry, EvaluatedResource]]:
    """Every entry with a condition that reads the object, and each resource that is sent through it."""
    ruleset = whole_catalogue(PolicyConfig(platform=platform))
    for phase, judging in (("mutate", mutated), ("validate", validated)):
        every = judging(ruleset)
        for entry in entries(ruleset, phase):
            for judged in every:
                if risk_group(judged) is entry.group and judged.concern != EVERY_OBJECT:
                    yield f"{entry.name} {judged.plural}", entry, judged


ENTRIES = {
    f"{name} {own}": (platform, entry, judged)
    for own, platform in PLATFORMS.items()
    for name, entry, judged in generated(platform)
}


def concerns_of(judged: EvaluatedResource) -> tuple[Concern, ...]:
    """What conditions are written from: all that is sent, what can be denied or mutated, and the rest."""
    return judged.concern, judged.enforced, judged.advised & ~judged.enforced


def assert_cheap(answer: Json) -> None:
    """Check what each expression costs, and all of them, and that none fails."""
    found = answer["conditions"]
    assert [each["error"] for each in found if "error" in each] == []
    assert max(each["cost"] for each in found) < PER_EXPRESSION / SHARE
    assert sum(each["cost"] for each in found) < PER_WEBHOOK / SHARE


@pytest.mark.parametrize(("platform", "entry", "judged"), ENTRIES.values(), ids=ENTRIES)
def test_an_object_within_every_limit_costs_less_than_a_tenth(
    conditions: Oracle, platform: Platform, entry: Entry, judged: EvaluatedResource
) -> None:
    expressions = [each["expression"] for each in entry.conditions]
    for concern in concerns_of(judged):
        obj, user = costly(concern, platform)
        assert_cheap(evaluated(conditions, judged, obj, expressions, user=user))


@pytest.mark.parametrize(("platform", "entry", "judged"), ENTRIES.values(), ids=ENTRIES)
def test_an_object_as_large_as_a_request_can_be_costs_less_than_a_tenth(
    conditions: Oracle, platform: Platform, entry: Entry, judged: EvaluatedResource
) -> None:
    expressions = [each["expression"] for each in entry.conditions]
    for _, obj, user in oversized(judged.concern, platform):
        assert_cheap(evaluated(conditions, judged, obj, expressions, user=user))


CONCERNS: dict[Concern, EvaluatedResource] = {
    concern: judged for _, _, judged in ENTRIES.values() for concern in concerns_of(judged) if concern != EVERY_OBJECT
}


ASKED = {
    f"{judged.plural} {names} {number}": (concern, platform, objects(concern, platform))
    for names, platform in PLATFORMS.items()
    for number, (concern, judged) in enumerate(CONCERNS.items(), 1)
}


# All concerns share the cases.
@settings(max_examples=max(20, settings.default.max_examples // len(ASKED)))
@given(st.data())
@pytest.mark.parametrize(("concern", "platform", "made"), ASKED.values(), ids=ASKED)
def test_a_condition_answers_as_the_concern_does(
    conditions: Oracle, concern: Concern, platform: Platform, made: st.SearchStrategy[Json], data: st.DataObject
) -> None:
    obj = data.draw(made)
    user = data.draw(st.sampled_from(["alice", "system:serviceaccount:kube-system:daemon-set-controller", "z" * 200]))

    expression = match_conditions.alternatives(concern, platform)
    answer = evaluated(conditions, CONCERNS[concern], obj, [expression], user=user, show=True)

    held = concern.holds(Field(answer["object"]), platform, user)
    assert answer["conditions"][0].get("error") is None
    assert answer["conditions"][0]["result"] == held


MANY = Platform(accelerators=Accelerators(resources=tuple(f"example.com/accelerator-{n}-*" for n in range(100))))


def test_no_number_of_own_names_makes_a_condition_fail(conditions: Oracle) -> None:
    for _, entry, judged in generated(MANY):
        expressions = [each["expression"] for each in entry.conditions]
        for concern in concerns_of(judged):
            obj, user = costly(concern, MANY)
            assert_cheap(evaluated(conditions, judged, obj, expressions, user=user))


POD = next(judged for judged in CONCERNS.values() if judged.plural == "pods")
LABELS = {f"z/{number:x}": "" for number in range(200_000)}


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({}, False),
        ({"metadata": {"labels": {**LABELS, "z/1": "other"}}}, True),
        ({"metadata": {"labels": LABELS, "annotations": {"a": "b"}}}, True),
        ({"spec": {"containers": [{"name": "b"}]}}, True),
    ],
    ids=["nothing", "a-label", "an-annotation", "the-spec"],
)
def test_telling_what_an_update_changes_costs_less_than_a_tenth(
    conditions: Oracle, change: Json, *, changed: bool
) -> None:
    before: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": LABELS}, "spec": {"containers": []}}
    expression = CHANGES_WHAT_IS_EVALUATED["expression"]

    answer = evaluated(conditions, POD, {**before, **change}, [expression], oldObject=before, operation="UPDATE")

    assert_cheap(answer)
    assert answer["conditions"][0]["result"] is changed


NULL = {
    "lists": {"spec": {"containers": [{"name": "a", "env": None}], "tolerations": None, "volumes": None}},
    "elements": {"spec": {"containers": [None], "tolerations": [None]}, "metadata": {"ownerReferences": [None]}},
    "objects": {
        "spec": {"containers": [{"resources": {"limits": None}}], "affinity": None},
        "metadata": {"labels": None},
    },
    "strings": {"spec": {"containers": [{"env": [{"name": None}]}], "runtimeClassName": None}},
}


@pytest.mark.parametrize("obj", NULL.values(), ids=NULL)
def test_null_is_gone_before_a_condition_reads_it(conditions: Oracle, obj: Json) -> None:
    for _, entry, judged in generated(Platform()):
        if judged.plural == "pods":
            assert_cheap(evaluated(conditions, judged, obj, [each["expression"] for each in entry.conditions]))
