"""One change to a valid object: which field is refused, in which words, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from changed_object import put

if TYPE_CHECKING:
    from collections.abc import Callable

TERM = "spec.template.spec"
LIMITS = "spec.jobTargetRef.template.spec.containers.0.resources.limits"
# Title -> kind, where, what is written there, the field that is refused, words of the message, words of the remedy.
CASES: dict[str, tuple[str, str, Any, str, str, str]] = {
    "a field in the wrong case": ("NodePool", "spec.Weight", 1, "spec.Weight", 'Weight": kubectl rejects it', "did you mean weight?"),
    "a field with a letter missing": ("NodePool", "spec.wight", 1, "spec.wight", 'wight": kubectl rejects it', "did you mean weight?"),
    "a field like no other": ("NodePool", "spec.zzz", 1, "spec.zzz", "other clients drop it", "known fields: disruption, limits"),
    "an object around known fields": ("NodePool", "spec.pool", {"replicas": 1}, "spec.pool", '"spec.pool"', "one level up: replicas"),
    "an object around fields that are there": ("NodePool", "spec.zzz", {"template": {}}, "spec.zzz", '"spec.zzz"', "remove it; known"),
    "an unknown field of metadata": ("NodePool", "metadata.lables", {}, "metadata.lables", '"metadata.lables"', "labels?"),
    "a field deep in a Pod": (
        "ScaledJob",
        "spec.jobTargetRef.template.spec.containers.0.resources.limit",
        {},
        "spec.jobTargetRef.template.spec.containers[0].resources.limit",
        'limit": kubectl rejects it',
        "did you mean limits?",
    ),
    "a field of the API server's own kind": (
        "ResourceClaim",
        "spec.devices.requests.0.exactly.className",
        "x",
        "spec.devices.requests[0].exactly.className",
        'className": kubectl rejects it',
        "deviceClassName?",
    ),
    "a number for a string": (
        "NodePool",
        "spec.disruption.budgets.0.nodes",
        1,
        "spec.disruption.budgets[0].nodes",
        "must be a string, not a number",
        'put it in quotes: "1"',
    ),
    "a boolean for a string": (
        "ScaledObject",
        "spec.triggers.0.metadata.threshold",
        True,
        "spec.triggers[0].metadata.threshold",
        "must be a string, not a boolean",
        'in quotes: "true"',
    ),
    "a string for a number": ("NodePool", "spec.weight", "5", "spec.weight", "must be a whole number", "without quotes"),
    "decimals": ("NodePool", "spec.weight", 1.5, "spec.weight", "must be a whole number, not 1.5", "without decimals"),
    "a list for an object": ("NodePool", "spec.template", [], "spec.template", "must be an object, not a list", "spec"),
    "a null in a list": ("NodePool", f"{TERM}.requirements.0.values.0", None, f"{TERM}.requirements[0].values[0]", "null", "remove"),
    "neither string nor number": ("NodePool", "spec.limits.cpu", [], "spec.limits.cpu", "a string or a whole number", ""),
    "a text that is not a valid quantity": ("NodePool", "spec.limits.cpu", "8 GB", "spec.limits.cpu", "does not match", "write what matches"),
    "no quantity of the API server's": (
        "ResourceClaim",
        "spec.devices.requests.0.exactly.capacity",
        {"requests": {"memory": "many"}},
        "spec.devices.requests[0].exactly.capacity.requests.memory",
        '"many" is not a valid quantity',
        "16Gi",
    ),
    "days in a duration": ("NodePool", f"{TERM}.expireAfter", "30d", f"{TERM}.expireAfter", '"30d"', "720h or 1h30m, or Never"),
    "a line break at the end": ("NodePool", f"{TERM}.expireAfter", "30m\n", f"{TERM}.expireAfter", '"30m\\n"', "720h"),
    "none of the values": (
        "NodePool",
        "spec.disruption.consolidationPolicy",
        "Whenempty",
        "spec.disruption.consolidationPolicy",
        "is not one of WhenEmpty, WhenEmptyOrUnderutilized, Balanced",
        "did you mean WhenEmpty?",
    ),
    "nothing like the values": ("NodePool", f"{TERM}.taints.0.effect", "Go", f"{TERM}.taints[0].effect", "is not one of", "one of them:"),
    "what must be there": ("NodePool", f"{TERM}.nodeClassRef.kind", ..., f"{TERM}.nodeClassRef.kind", "is missing", "write kind"),
    "too small": ("NodePool", "spec.weight", 0, "spec.weight", "0 is too small: at least 1", "write at least 1"),
    "too great": ("NodePool", "spec.weight", 101, "spec.weight", "101 is too large: at most 100", "write at most 100"),
    "no 32 bits": ("ScaledObject", "spec.maxReplicaCount", 2**31, "spec.maxReplicaCount", "does not fit into an int32", ""),
    "too many elements": (
        "NodePool",
        "spec.disruption.budgets",
        [{"nodes": "1"}] * 51,
        "spec.disruption.budgets",
        "has 51 elements, and at most 50",
        "remove 1",
    ),
    "too long a text": (
        "NodePool",
        f"{TERM}.requirements.0.key",
        "a" * 400,
        f"{TERM}.requirements[0].key",
        "has 400 characters, and at most 316",
        "shorten",
    ),
    "the same element twice": (
        "ScaledJob",
        "spec.jobTargetRef.template.spec.containers.1",
        {"name": "main"},
        "spec.jobTargetRef.template.spec.containers[1]",
        "another element has the same name",
        "change its name",
    ),
    "a rule": (
        "NodePool",
        "spec.disruption.budgets.0.schedule",
        "@daily",
        "spec.disruption.budgets",
        "'schedule' must be set with 'duration'",
        "satisfy the rule",
    ),
    "a rule that has no value": (
        "EC2NodeClass",
        "spec.kubelet.evictionSoftGracePeriod",
        ...,
        "spec.kubelet",
        "`evictionSoftGracePeriod` is missing; the rule is: evictionSoft OwnerKey does not have",
        "write what the rule reads",
    ),
    "a rule on a default": ("NodePool", "spec.replicas", 3, "spec", "'weight' is not supported on static NodePools", ""),
    "a name": ("NodePool", "metadata.name", "GPU", "metadata.name", '"GPU" is not a valid name', "lower-case"),
    "no name": ("NodePool", "metadata.name", ..., "metadata.name", "name or generateName is required", "write a name"),
    "the value of a label": ("NodePool", "metadata.labels", {"a": "b c"}, "metadata.labels.a", '"b c" is not a valid label value', "63"),
    "the key of a label": ("NodePool", "metadata.labels", {"a b": ""}, 'metadata.labels["a b"]', "not a valid label key", "DNS"),
    "a label that is no text": ("NodePool", "metadata.labels", {"a": 1}, "metadata.labels.a", "must be a string", '"1"'),
    "no time": ("NodePool", "metadata.creationTimestamp", "now", "metadata.creationTimestamp", "date-time", "2026-01-31T"),
    "the key of an annotation": ("NodePool", "metadata.annotations", {"/a": ""}, 'metadata.annotations["/a"]', "not a valid annotation key", ""),
    "a finalizer": ("NodePool", "metadata.finalizers", ["a b"], "metadata.finalizers[0]", "not a valid finalizer name", ""),
    "an owner without uid": (
        "NodePool",
        "metadata.ownerReferences",
        [{"apiVersion": "v1", "kind": "Node", "name": "a"}],
        "metadata.ownerReferences[0].uid",
        "uid is empty",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", CASES)
def test_one_field_is_refused(title: str, valid: Callable[[str], Any], problems: Callable[..., Any]) -> None:
    kind, where, value, path, message, remedy = CASES[title]
    obj = valid(kind)
    put(obj, where, value)

    found = problems(obj)

    assert list(found) == [path]
    assert message in found[path][0]
    assert remedy in found[path][1]


TAKEN: dict[str, tuple[str, str, Any]] = {
    "nothing changed": ("NodePool", "spec.weight", 10),
    "a null for what may be absent": ("NodePool", "spec.weight", None),
    "a null where there is a default": ("NodePool", f"{TERM}.expireAfter", None),
    "a number where either may be": ("NodePool", "spec.limits.cpu", 5),
    "a whole number with decimals": ("NodePool", "spec.weight", 5.0),
    "status, which a creation loses": ("NodePool", "status", {"conditions": [{"type": "Ready"}]}),
    "a rule on a change": ("NodeClaim", "spec.expireAfter", "Never"),
    "free members": ("ScaledObject", "spec.triggers.0.metadata.anything", "goes"),
    "a quantity that is a number": ("ResourceClaim", "spec.devices.requests.0.exactly.capacity", {"requests": {"memory": 5}}),
    "free members of the API server's": ("ResourceClaim", "spec.devices.config", [{"opaque": {"driver": "a", "parameters": {"x": [1]}}}]),
    "a generated name": ("NodePool", "metadata", {"generateName": "gpu-"}),
    "the same requirement twice": ("NodePool", f"{TERM}.taints.1", {"key": "nvidia.com/gpu", "effect": "NoSchedule"}),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "where", "value"), TAKEN.values(), ids=TAKEN)
def test_what_the_api_server_takes_is_not_refused(
    kind: str, where: str, value: Any, valid: Callable[[str], Any], problems: Callable[..., Any]
) -> None:
    obj = valid(kind)
    put(obj, where, value)

    assert problems(obj) == {}


def test_an_object_is_left_as_it_is(valid: Callable[[str], Any], problems: Callable[..., Any]) -> None:
    obj = valid("NodePool") | {"status": {}}
    before = repr(obj)

    problems(obj)

    assert repr(obj) == before


def test_a_misspelt_field_that_must_be_there_is_told_once(
    valid: Callable[[str], Any], problems: Callable[..., Any]
) -> None:
    obj = valid("NodePool")
    obj["spec"]["disruption"] = {"consolidateafter": "30m"}

    assert list(problems(obj)) == ["spec.disruption.consolidateafter"]


def test_rules_are_not_judged_beside_a_field_that_is_missing(
    valid: Callable[[str], Any], problems: Callable[..., Any]
) -> None:
    obj = valid("NodePool")
    put(obj, f"{TERM}.nodeClassRef.kind", ...)
    put(obj, f"{TERM}.nodeClassRef.name", "")

    assert list(problems(obj)) == [f"{TERM}.nodeClassRef.kind"]


def test_kinds_and_versions_without_a_schema_are_let_alone(problems: Callable[..., Any]) -> None:
    of_nobody = {"apiVersion": "example.com/v1", "kind": "../../etc/passwd", "metadata": {}}
    of_old = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "NodePool", "metadata": {}}

    assert (problems(of_nobody), problems(of_old)) == ({}, {})


@pytest.mark.parametrize("value", ["${WEIGHT}", "{{ weight }}", "<WEIGHT>", "$WEIGHT"])
def test_a_placeholder_is_no_wrong_value(value: str, valid: Callable[[str], Any], problems: Callable[..., Any]) -> None:
    obj = valid("NodePool")
    put(obj, "spec.weight", value)
    put(obj, "metadata.name", value)

    assert problems(obj) == {}
