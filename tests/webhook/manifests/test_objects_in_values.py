"""Objects that the values of a chart hold, where the project file says so."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gpugate.webhook.manifests.documents import Positions
from gpugate.webhook.manifests.inputs import Input, ObjectsInValues
from gpugate.webhook.manifests.load import load_files

POOLS = """karpenter:
  pools:
    gpu:
      limits: {cpu: 1}
    cpu:
      name: other
      limits: {cpu: 2}
list:
- name: a
  node: {spec: {x: 1}}
- 3
"""


def mapped(path: str, spec: str = "") -> ObjectsInValues:
    return ObjectsInValues(("*",), path, "karpenter.sh/v1", "NodePool", spec)


def objects(text: str, *maps: ObjectsInValues) -> list[dict[str, Any]]:
    loaded = load_files([Input("values.yaml", explicit=True, data=text.encode(), objects=maps)])
    assert loaded.problems == ()
    return [dict(each.request.object or {}) for each in loaded.manifests]


HELD: dict[str, tuple[ObjectsInValues, list[tuple[str, Any]]]] = {
    "each member": (
        mapped("karpenter.pools.*"),
        [("gpu", {"limits": {"cpu": 1}}), ("other", {"limits": {"cpu": 2}})],
    ),
    "one member": (mapped("karpenter.pools.gpu"), [("gpu", {"limits": {"cpu": 1}})]),
    "each item that is an object, with a key for the spec": (mapped("list.*", "node.spec"), [("a", {"x": 1})]),
    "a key for the spec that is missing": (mapped("karpenter.pools.gpu", "spec"), [("gpu", {})]),
}


@pytest.mark.parametrize(("how", "found"), HELD.values(), ids=HELD)
def test_values_are_objects_where_a_path_leads(how: ObjectsInValues, found: list[tuple[str, Any]]) -> None:
    made = objects(POOLS, how)

    assert [(each["metadata"]["name"], each["spec"]) for each in made] == found
    assert {(each["apiVersion"], each["kind"]) for each in made} == {("karpenter.sh/v1", "NodePool")}


def test_several_paths_lead_to_objects_of_one_file() -> None:
    assert len(objects(POOLS, mapped("karpenter.pools.*"), mapped("list.*", "node.spec"))) == 3


def test_a_path_that_leads_to_nothing_leaves_the_file_as_it_is() -> None:
    loaded = load_files([Input("values.yaml", explicit=False, data=POOLS.encode(), objects=(mapped("gone.*"),))])

    assert (loaded.manifests, len(loaded.passed_over)) == ((), 1)


PLACES = {
    "a field": (("spec", "limits", "cpu"), 7, 21),
    "the name": (("metadata", "name"), 6, 13),
    "the object": ((), 5, 5),
    "what is missing": (("spec", "template", "spec"), 5, 5),
}


@pytest.mark.parametrize(("path", "line", "column"), PLACES.values(), ids=PLACES)
def test_a_field_has_its_place_in_the_values(path: tuple[str, ...], line: int, column: int) -> None:
    loaded = load_files(
        [Input("values.yaml", explicit=True, data=POOLS.encode(), objects=(mapped("karpenter.pools.*"),))]
    )
    document = loaded.manifests[1].document

    span = Positions(document).find(path)

    assert (span.line, span.column) == (line, column)
    assert (document.derived, document.partial) == (True, True)


def test_many_objects_cost_time_in_proportion() -> None:
    """A reader that goes through the file for each object takes minutes."""
    text = "pools:\n" + "".join(f"  p{number}: {{limits: {{cpu: 1}}}}\n" for number in range(10_000))
    before = time.process_time()

    assert len(objects(text, mapped("pools.*"))) == 10_000
    assert time.process_time() - before < 10
