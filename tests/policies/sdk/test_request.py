"""What is evaluated of a request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.sdk.objects import (
    POD,
    POD_EPHEMERAL_CONTAINERS,
    GroupVersionKind,
    Operation,
    Request,
)

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
TEMPLATE: dict[str, Json] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
NEW: dict[str, Json] = {"metadata": {"name": "new"}, "spec": {"template": TEMPLATE}}
OLD: dict[str, Json] = {"metadata": {"name": "old"}, "spec": {}}
POD_KIND = GroupVersionKind("", "v1", "Pod")


@pytest.mark.parametrize(
    ("operation", "obj", "old", "values", "old_values"),
    [
        (Operation.CREATE, NEW, None, [NEW, TEMPLATE], []),
        (Operation.UPDATE, NEW, OLD, [NEW, TEMPLATE], [OLD]),
        (Operation.UPDATE, OLD, NEW, [OLD], [NEW, TEMPLATE]),
        (Operation.DELETE, None, NEW, [NEW, TEMPLATE], []),
        (Operation.DELETE, None, None, [], []),
        (Operation.CONNECT, None, None, [], []),
    ],
)
def test_the_object_and_its_templates_are_evaluated(
    operation: Operation,
    obj: dict[str, Json] | None,
    old: dict[str, Json] | None,
    values: list[Json],
    old_values: list[Json],
) -> None:
    request = Request(DEPLOYMENT, operation, obj, old)
    assert [subject.field.value for subject in request.subjects] == values
    assert [subject.field.value for subject in request.old_subjects] == old_values


def test_a_template_is_a_pod_in_its_workload() -> None:
    whole, template = Request(DEPLOYMENT, Operation.CREATE, NEW).subjects
    assert (whole.kind, whole.wrapper, whole.field.path) == (DEPLOYMENT, None, ())
    assert (template.kind, template.field.path) == (POD_KIND, ("spec", "template"))
    assert template.wrapper is not None
    assert (template.wrapper.kind, template.wrapper.root.value) == (DEPLOYMENT, NEW)


@pytest.mark.parametrize(
    ("name", "generate_name", "shown"), [("a", "", "a"), ("a", "b-", "a"), ("", "b-", "b-*"), ("", "", "")]
)
def test_a_request_is_shown_by_its_name_or_what_it_will_be_made_from(name: str, generate_name: str, shown: str) -> None:
    request = Request(DEPLOYMENT, Operation.CREATE, NEW)
    assert replace(request, name=name, generate_name=generate_name).shown_name == shown


@pytest.mark.parametrize(
    ("api_version", "kind", "gvk", "shown"),
    [
        ("apps/v1", "Deployment", DEPLOYMENT, "apps/v1 Deployment"),
        ("v1", "Pod", POD_KIND, "v1 Pod"),
        ("a/b/v1", "X", GroupVersionKind("a/b", "v1", "X"), "a/b/v1 X"),
    ],
)
def test_a_type_is_read_from_the_words_of_a_manifest(
    api_version: str, kind: str, gvk: GroupVersionKind, shown: str
) -> None:
    assert (GroupVersionKind.of(api_version, kind), str(gvk), gvk.api_version) == (gvk, shown, api_version)


@pytest.mark.parametrize(
    ("gvk", "covered"),
    [
        (POD_KIND, True),
        (GroupVersionKind("", "v2", "Pod"), False),
        (GroupVersionKind("apps", "v1", "Pod"), False),
        (GroupVersionKind("", "v1", "PodTemplate"), False),
    ],
    ids=str,
)
def test_a_kind_covers_types(gvk: GroupVersionKind, covered: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert POD.covers(gvk) is covered
    assert POD_EPHEMERAL_CONTAINERS.covers(gvk) is covered
