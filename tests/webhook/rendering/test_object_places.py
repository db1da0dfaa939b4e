from __future__ import annotations

import pytest
import yaml

from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.rendering.kustomization_places import path_of, place_of
from gpugate.webhook.report.located import ObjectName

FILE = """# a comment
apiVersion: v1
kind: Pod
metadata:
  name: a
  labels: {x: z}
spec:
  containers:
  - name: one
    image: b
  - name: two
    image: b
"""
MADE = {
    "as it is": ("", "spec.containers[1].image", 12),
    "under a longer name": ("name: a|name: dev-a-x", "spec.containers[1].image", 12),
    "a value that was changed": ("image: b|image: c", "spec.containers[0].image", None),
    "an item that is another one": ("name: one|name: zero", "spec.containers[0].image", None),
    "a field that is in neither": ("", "spec.tolerations", 7),
    "a field that was added": ("spec:|spec:\n  tolerations: []", "spec.tolerations", None),
    "the object": ("x: z|x: w", "", 2),
    "a label": ("", "metadata.labels.x", 6),
    "another object": ("name: a|name: other", "spec", None),
    "another kind": ("kind: Pod|kind: Job", "spec", None),
}


@pytest.mark.parametrize(("change", "field", "line"), MADE.values(), ids=MADE)
def test_a_place_is_certain_when_the_value_is_the_same(change: str, field: str, line: int | None) -> None:
    old, _, new = change.partition("|")
    made = yaml.safe_load(FILE.replace(old, new, 1) if change else FILE)
    name = ObjectName(made["apiVersion"], made["kind"], "default", made["metadata"]["name"])
    documents = [part for part in read_text("pod.yaml", FILE) if isinstance(part, Document)]

    found = place_of(documents, name, made, field)

    assert (found and found[1].line) == line


def test_of_two_objects_that_it_may_be_it_is_neither() -> None:
    documents = [part for part in read_text("pod.yaml", f"{FILE}---\n{FILE}") if isinstance(part, Document)]

    assert place_of(documents, ObjectName("v1", "Pod", "default", "a"), yaml.safe_load(FILE), "spec") is None


PATHS = {
    "a member": ("a.b", ("a", "b")),
    "a key that is like another": ("ab", ("ab",)),
    "an element": ("l[1].x", ("l", 1, "x")),
    "a key with a dot": ('a["c.d/e"]', ("a", "c.d/e")),
    "as far as there is something": ("a.b.gone[3]", ("a", "b")),
}


@pytest.mark.parametrize(("field", "path"), PATHS.values(), ids=PATHS)
def test_a_field_that_people_write_is_a_path(field: str, path: tuple[str | int, ...]) -> None:
    assert path_of({"a": {"b": 1, "c.d/e": 2}, "ab": 3, "l": [0, {"x": 1}]}, field) == path
