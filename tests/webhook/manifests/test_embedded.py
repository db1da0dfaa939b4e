"""Manifests in texts of objects: those that Argo applies are read at their lines, those of ConfigMaps are counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpugate.webhook.manifests.documents import SourceText
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.load import Loaded, load_files
from gpugate.webhook.manifests.problems import Passing

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: a
spec:
  nodeName: here
"""


def indented(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}" if line.strip() else line for line in text.splitlines(keepends=True))


def workflow(manifest: str, action: str = "create", kind: str = "Workflow", before: str = "") -> str:
    spec = f"templates:\n- name: a\n  resource:\n    action: {action}\n    manifest: {manifest}\n"
    if kind == "CronWorkflow":
        spec = f"workflowSpec:\n{indented(spec, 2)}"
    return (
        f"{before}apiVersion: argoproj.io/v1alpha1\nkind: {kind}\n"
        f"metadata: {{name: w, namespace: ml}}\nspec:\n{indented(spec, 2)}"
    )


def block(text: str) -> str:
    return f"|\n{indented(text, 6)}"


def loaded(text: str) -> Loaded:
    return load_files([Input("a.yaml", explicit=True, data=text.encode())])


def names(found: Loaded) -> list[tuple[str, str, str]]:
    return [(each.request.kind.kind, each.request.namespace, each.request.name) for each in found.manifests]


@pytest.mark.parametrize("kind", ["Workflow", "WorkflowTemplate", "CronWorkflow", "ClusterWorkflowTemplate"])
@pytest.mark.parametrize("action", ["create", "apply", "replace"])
def test_what_a_workflow_applies_is_an_object(kind: str, action: str) -> None:
    found = loaded(workflow(block(POD), action, kind))
    namespace = "" if kind.startswith("Cluster") else "ml"
    assert names(found) == [(kind, namespace, "w"), ("Pod", namespace or "default", "a")]


@pytest.mark.parametrize("action", ["get", "delete", "patch", "'{{inputs.parameters.action}}'"])
def test_what_it_does_not_apply_is_none(action: str) -> None:
    assert names(loaded(workflow(block(POD), action))) == [("Workflow", "ml", "w")]


@pytest.mark.parametrize(
    ("manifest", "line", "column", "excerpt"),
    [
        pytest.param(block(POD), 15, 21, "          nodeName: here", id="literal"),
        pytest.param(block(f"\n{POD}"), 16, 21, "          nodeName: here", id="an-empty-line-before"),
        pytest.param(block(f"---\n{POD}"), 16, 21, "          nodeName: here", id="a-separator"),
        pytest.param(json.dumps(POD), 9, 17, f"      manifest: {json.dumps(POD)}", id="quoted"),
    ],
)
def test_it_is_found_at_its_lines(manifest: str, line: int, column: int, excerpt: str) -> None:
    text = workflow(manifest)
    pod = loaded(text).manifests[1]
    span, around = SourceText(pod.document).find(("spec", "nodeName"))
    assert (span.line, span.column) == (line, column)
    assert around.lines[line - around.first_line] == excerpt
    assert text.splitlines()[line - 1] == excerpt
    assert pod.document.derived


def test_a_document_behind_others_counts_from_its_own_line() -> None:
    text = workflow(block(f"{POD}---\n{POD}"), before="# a\n---\n")
    lines = [SourceText(each.document).find(("spec", "nodeName"))[0].line for each in loaded(text).manifests[1:]]
    assert [text.splitlines()[line - 1].strip() for line in lines] == ["nodeName: here"] * 2


@pytest.mark.parametrize(
    ("manifest", "passed"),
    [
        pytest.param(block(f"{POD}  x: [\n"), [Passing.TEMPLATE], id="not-yaml"),
        pytest.param(block(POD + "{{- if .a }}\n"), [Passing.TEMPLATE], id="a-template"),
        pytest.param(block("kind: Pod\n"), [], id="half-a-head"),
        pytest.param('"{{inputs.parameters.manifest}}"', [], id="a-placeholder"),
    ],
)
def test_what_cannot_be_read_is_passed_over(manifest: str, passed: list[Passing]) -> None:
    found = loaded(workflow(manifest))
    assert names(found) == [("Workflow", "ml", "w")]
    assert [each.passing for each in found.passed_over] == passed


def test_workflows_in_workflows_end() -> None:
    text = POD
    for _ in range(5):
        text = workflow(block(text))
    assert [kind for kind, _, _ in names(loaded(text))] == ["Workflow"] * 3


@pytest.mark.parametrize(("count", "size"), [(5_000, 0), (30, 100_000)])
def test_their_number_and_size_are_bounded(count: int, size: int) -> None:
    # One text that aliases repeat.
    first = f"&a {json.dumps(POD + '# ' + 'x' * size)}"
    text = "\n".join(
        f"  - {{name: t{n}, resource: {{action: create, manifest: {'*a' if n else first}}}}}" for n in range(count)
    )
    whole = f"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: w}}\nspec:\n  templates:\n{text}\n"
    assert len(loaded(whole).manifests) - 1 == (200 if not size else 9)


def config_map(**data: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param({"a": POD}, 1, id="a-pod"),
        pytest.param({"a": POD, "b": f"x: 1\n---\n{POD}", "c": "text"}, 2, id="several"),
        pytest.param({"a": "apiVersion: karpenter.sh/v1\nkind: 'NodePool'\n"}, 1, id="a-node-pool"),
        pytest.param({"a": "apiVersion: apps/v1\nkind: Deployment\n"}, 1, id="a-workload"),
        pytest.param({"a": "apiVersion: v1\nkind: Config\n"}, 0, id="a-kubeconfig"),
        pytest.param(
            {"a": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"}, 0, id="a-config"
        ),
        pytest.param({"a": "x:\n  apiVersion: v1\n  kind: Pod\n"}, 0, id="not-at-the-top"),
    ],
)
def test_those_of_a_config_map_are_counted(data: dict[str, Any], count: int) -> None:
    found = loaded(config_map(**data))
    assert names(found) == [("ConfigMap", "default", "a")]
    assert [each.passing for each in found.passed_over] == [Passing.EMBEDDED] * count
