"""What definitions may say beside what those that come with gpugate do: a definition, values, which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.platform import Target
from gpugate.webhook.schemas import rules
from gpugate.webhook.schemas.added import table_of, write
from gpugate.webhook.schemas.check import Schemas
from gpugate.webhook.schemas.compile import DefinitionError

Object = dict[str, Any]


def definition(spec: Object, **version: Any) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    versions = [{"name": "v1", "served": True, "schema": schema, **version}]
    names = {"kind": "Thing", "plural": "things"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions},
    }


def refused(tmp_path: Any, spec: Object, value: Any, old: Any = None) -> dict[str, str]:
    write(table_of(definition(spec), "thing.yaml").table, tmp_path)
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": value}
    before = {**obj, "spec": old} if old is not None else None
    found = Schemas(tmp_path).problems(obj, "example.com", "v1", "Thing", Target(), before)
    return {render(problem.path): problem.message for problem in found}


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
OBJECT = {"type": "object"}
DURATION = {**TEXT, "format": "duration"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {**OPEN, "x-kubernetes-embedded-resource": True}
# Title -> schema, value, refused fields.
CASES: dict[str, tuple[Object, Any, list[str]]] = {
    "too few elements": ({"type": "array", "items": TEXT, "minItems": 1}, [], ["spec"]),
    "too few members": ({"type": "object", "additionalProperties": TEXT, "minProperties": 2}, {"a": ""}, ["spec"]),
    "too many members": ({"type": "object", "additionalProperties": TEXT, "maxProperties": 1}, {"a": "", "b": ""}, ["spec"]),
    "too short": ({"type": "string", "minLength": 2}, "a", ["spec"]),
    "the least itself": ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1, ["spec"]),
    "the most itself": ({"type": "number", "maximum": 1.5, "exclusiveMaximum": True}, 1.5, ["spec"]),
    "no multiple": ({"type": "integer", "multipleOf": 5}, 7, ["spec"]),
    "a multiple": ({"type": "number", "multipleOf": 0.1}, 0.3, []),
    "none of anyOf": ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}, 3, ["spec"]),
    "two of oneOf": ({"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 9}]}, 7, ["spec"]),
    "one of oneOf": ({"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 9}]}, 3, []),
    "all of allOf": ({"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 9}]}, 10, ["spec"]),
    "what is forbidden": ({"type": "string", "not": {"enum": ["a"]}}, "a", ["spec"]),
    "a null that may be": ({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}}, {"a": None}, []),
    "a null among values": ({"type": "object", "additionalProperties": TEXT}, {"a": None}, []),
    "unknown members that are kept": (OPEN, {"a": {"b": [None]}}, []),
    "a known member beside them": ({**OPEN, "properties": {"a": TEXT}}, {"a": 1, "b": 2}, ["spec.a"]),
    "a set": ({"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}, ["a", "b", "a", "a"], ["spec[2]"]),
    "a map of two keys": (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a", "b"],
            "items": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        },
        [{"a": "1"}, {"a": "1", "b": "2"}, {"a": "1"}],
        ["spec[2]"],
    ),
    "a whole object": (EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, []),
    "a whole object without a kind": (EMBEDDED, {"apiVersion": "v1", "metadata": {"labels": {"a b": ""}}}, ["spec.kind", 'spec.metadata.labels["a b"]']),
    "a time": ({"type": "string", "format": "date-time"}, "2026-02-30T00:00:00Z", ["spec"]),
    "an address": ({"type": "string", "format": "ipv4"}, "::1", ["spec"]),
    "a network": ({"type": "string", "format": "cidr"}, "10.0.0.0/8", []),
    "a format that is not known": ({"type": "string", "format": "colour"}, "?", []),
    "a default that a rule reads": (
        {
            "type": "object",
            "properties": {"a": {"type": "string", "default": "x"}},
            "x-kubernetes-validations": [{"rule": "self.a == 'x'"}],
        },
        {},
        [],
    ),
    "a rule with a message of its own": (
        {**WHOLE, "x-kubernetes-validations": [{"rule": "self > 5", "messageExpression": "'not ' + string(self)"}]},
        3,
        ["spec"],
    ),
    "a rule on a field below": (
        {
            "type": "object",
            "properties": {"a": WHOLE},
            "x-kubernetes-validations": [{"rule": "self.a > 5", "fieldPath": ".a"}],
        },
        {"a": 1},
        ["spec.a"],
    ),
    "a list of a list in a rule": ({"type": "array", "items": TEXT, "x-kubernetes-validations": [{"rule": "self.indexOf('b') < 0"}]}, ["a"], []),
    "a whole number in a computation": ({**OBJECT, "properties": {"a": NUMBER}, "x-kubernetes-validations": [{"rule": "self.a * 2.5 > 2.0 && self.a / self.a < 1.5"}]}, {"a": 1}, []),
    "a share of whole numbers": ({**OBJECT, "properties": {"a": NUMBER, "b": NUMBER}, "x-kubernetes-validations": [{"rule": "self.a / self.b > 0.4"}]}, {"a": 1, "b": 2}, []),
    "durations that a rule compares": ({**OBJECT, "properties": {"a": DURATION, "b": DURATION}, "x-kubernetes-validations": [{"rule": "self.a < self.b"}]}, {"a": "5s", "b": "10s"}, []),
    "the size of bytes": ({**TEXT, "format": "byte", "x-kubernetes-validations": [{"rule": "self.size() < 4"}]}, "YWJj", []),
    "a whole number among others": ({**NUMBER, "enum": [0.5, 1.0]}, 1, []),
    "a number with decimals among whole ones": ({**WHOLE, "enum": [1, 2]}, 2.0, []),
    "a yes among numbers": ({"enum": [1]}, True, ["spec"]),
    "a moment in small letters": ({**TEXT, "format": "date-time"}, "2026-01-31t12:00:00z", []),
    "members of any form": ({**OBJECT, "additionalProperties": {}}, {"a": 1}, []),
    "a multiple that is too great to tell": ({**NUMBER, "multipleOf": 0.1}, 10**400, []),
    "a number that no computation takes": ({"type": "number", "x-kubernetes-validations": [{"rule": "double(self) > 1.0"}]}, 10**400, []),
    "a text of many digits": ({**TEXT, "x-kubernetes-validations": [{"rule": "int(self) > 1"}]}, "9" * 5000, ["spec"]),
    "a rule that an API server would not take": ({**TEXT, "x-kubernetes-validations": [{"rule": "{[self]: 1} == {}"}]}, "a", []),
    "a rule that is not checked": ({**TEXT, "x-kubernetes-validations": [{"rule": "isURL(self)"}]}, "?", []),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "fields"), CASES.values(), ids=CASES)
def test_a_value_is_refused(schema: Object, value: Any, fields: list[str], tmp_path: Any) -> None:
    assert list(refused(tmp_path, schema, value)) == fields


def test_a_rule_has_its_own_message_where_the_expression_gives_no_text(tmp_path: Any) -> None:
    rule = {"rule": "self > 5", "message": "more than 5", "messageExpression": "true ? self : 'never'"}

    assert refused(tmp_path, {**WHOLE, "x-kubernetes-validations": [rule]}, 3) == {
        "spec": "violates a rule of its schema: more than 5"
    }


def test_a_rule_says_what_its_message_is_made_of(tmp_path: Any) -> None:
    schema, value, _ = CASES["a rule with a message of its own"]

    assert refused(tmp_path, schema, value)["spec"] == "violates a rule of its schema: not 3"


DEAR = {"rule": "self.all(x, !(x + 1000 in self))", "message": "dear"}
CHEAP = {"rule": "self.size() > 999", "message": "cheap"}
SIXTY = list(range(60))
# Title -> schema, value, refused fields, where 5,000 steps may be taken and `DEAR` takes more than half of them.
BOUNDED: dict[str, tuple[Object, Any, list[str]]] = {
    "a rule beside it": ({"type": "array", "items": WHOLE, "x-kubernetes-validations": [DEAR, CHEAP]}, SIXTY[:50], ["spec"]),
    "a rule after too many": ({"type": "array", "items": WHOLE, "x-kubernetes-validations": [DEAR, DEAR, CHEAP]}, SIXTY, []),
    "a member after too many": (
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": WHOLE, "x-kubernetes-validations": [DEAR, DEAR]},
                "b": {**WHOLE, "x-kubernetes-validations": [{"rule": "self > 5"}]},
            },
        },
        {"a": SIXTY, "b": 1},
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "fields"), BOUNDED.values(), ids=BOUNDED)
def test_the_rules_of_an_object_have_one_budget(
    schema: Object, value: Any, fields: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "STEPS", 5_000)

    assert list(refused(tmp_path, schema, value)) == fields


def test_another_object_has_a_budget_of_its_own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "STEPS", 5_000)
    schema = {"type": "array", "items": WHOLE, "x-kubernetes-validations": [DEAR, CHEAP]}

    assert [list(refused(tmp_path, schema, SIXTY[:50])) for _ in range(2)] == [["spec"], ["spec"]]


LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": TEXT, "size": {"type": "integer", "maximum": 5}}},
}
ONLY_GROWS = [{"rule": "self >= oldSelf", "message": "may not shrink"}]
# Title -> schema, old, new, refused fields.
UPDATES: dict[str, tuple[Object, Any, Any, list[str]]] = {
    "a rule on a change": ({**WHOLE, "x-kubernetes-validations": ONLY_GROWS}, 5, 3, ["spec"]),
    "a change that the rule allows": ({**WHOLE, "x-kubernetes-validations": ONLY_GROWS}, 5, 7, []),
    "a fault that was there": (LIST, [{"name": "a", "size": 9}], [{"name": "b"}, {"name": "a", "size": 9}], []),
    "another fault in its place": (LIST, [{"name": "a", "size": 9}], [{"name": "a", "size": 8}], ["spec[0].size"]),
    "a new fault beside it": (LIST, [{"name": "a", "size": 9}], [{"name": "b", "size": 9}], ["spec[0].size"]),
    "a rule that did not hold before": (
        {"type": "object", "properties": {"a": {**WHOLE, "x-kubernetes-validations": [{"rule": "self > 5"}]}, "b": TEXT}},
        {"a": 1},
        {"a": 1, "b": "x"},
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "old", "new", "fields"), UPDATES.values(), ids=UPDATES)
def test_an_update_answers_for_what_it_changes(
    schema: Object, old: Any, new: Any, fields: list[str], tmp_path: Any
) -> None:
    assert list(refused(tmp_path, schema, new, old)) == fields


def test_what_is_not_checked_is_told() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {**TEXT, "pattern": "(a+)+b"},
            "b": {**TEXT, "x-kubernetes-validations": [{"rule": "isURL(self)"}]},
            "c": {**DURATION, "x-kubernetes-validations": [{"rule": "self == '1s'"}]},
        },
    }

    told = [(each.path, each.expression, each.why) for each in table_of(definition(schema), "x").unchecked]

    assert told == [
        ("spec.a", "(a+)+b", "it repeats what repeats itself, or too much, which could take long"),
        ("spec.b", "isURL(self)", "unknown function `isURL`"),
        ("spec.c", "self == '1s'", "it reads a text of the format duration"),
    ]


BROKEN: dict[str, tuple[Object, str]] = {
    "an old version": ({**definition(TEXT), "apiVersion": "apiextensions.k8s.io/v1beta1"}, "apiextensions.k8s.io/v1"),
    "half a file": ({**definition(TEXT), "spec": {"group": "a"}}, "is the file whole"),
    "a group that leads elsewhere": ({**definition(TEXT), "spec": {**definition(TEXT)["spec"], "group": "../.."}}, "no DNS name"),
    "nothing served": (definition(TEXT, served=False), "none is served"),
    "no schema": (definition(TEXT, schema={}), "v1 has no schema"),
    "an unknown word": (definition({"type": "string", "maxLenght": 5}), "spec: maxLenght is no part"),
    "members that are no object": (definition({"type": "object", "properties": ["a"]}), "spec.properties: must be an object"),
    "an enum that is none": (definition({"type": "string", "enum": 5}), "another type"),
    "a rule that is none": (definition({"type": "string", "x-kubernetes-validations": ["self"]}), "another type"),
    "a pattern that is none": (definition({"type": "string", "pattern": 5}), "another type"),
    "a length that is none": (definition({"type": "string", "maxLength": "5"}), "Expected `int"),
    "subresources that are none": (definition(TEXT, subresources=["scale"]), "another type"),
    "unknown fields that are kept": ({**definition(TEXT), "spec": {**definition(TEXT)["spec"], "preserveUnknownFields": True}}, "keep every field"),
    "a schema that is none": (definition({"type": "array", "items": 5}), "spec[0]: not a schema"),
}  # fmt: skip


@pytest.mark.parametrize(("broken", "words"), BROKEN.values(), ids=BROKEN)
def test_a_definition_that_cannot_be_read_is_refused(broken: Object, words: str) -> None:
    with pytest.raises(DefinitionError, match=words.replace("[", r"\[").replace(".", r"\.")):
        table_of(broken, "x")


def test_schemas_within_each_other_without_end_are_refused() -> None:
    deep: Object = TEXT
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}

    with pytest.raises(DefinitionError, match="deeper than 100 levels"):
        table_of(definition(deep), "x")


def test_schemas_that_double_with_every_level_are_refused() -> None:
    doubled: Object = TEXT
    for _ in range(12):
        doubled = {"anyOf": [doubled, doubled]}

    with pytest.raises(DefinitionError, match="stand in each other too often"):
        table_of(definition(doubled), "x")
