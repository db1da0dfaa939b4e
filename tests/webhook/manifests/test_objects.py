from __future__ import annotations

import pytest

from gpugate.webhook.manifests.documents import Document, Positions, read_text
from gpugate.webhook.manifests.objects import Found, Manifest, NotAManifest, objects
from gpugate.webhook.manifests.problems import Passing, Problem


def found(text: str, *, namespace: str = "default", lenient: bool = False) -> list[Found]:
    (document,) = read_text("f.yaml", text)
    assert isinstance(document, Document)
    return list(objects(document, namespace=namespace, lenient=lenient))


def manifest(text: str, *, namespace: str = "default") -> Manifest:
    (made,) = found(text, namespace=namespace)
    assert isinstance(made, Manifest)
    return made


def test_an_object_becomes_a_request_to_create_it() -> None:
    request = manifest("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ml}}").request

    assert (request.operation, str(request.kind)) == ("CREATE", "apps/v1 Deployment")
    assert (request.namespace, request.name, request.generate_name) == ("ml", "a", "")


NAMESPACES = {
    "namespaced": ("{apiVersion: v1, kind: Pod, metadata: {name: a}}", "team-a"),
    "says it itself": ("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}}", "b"),
    "workload of a framework": ("{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a}}", "team-a"),
    "cluster-wide": ("{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}}", ""),
    "cluster-wide and says one": ("{apiVersion: v1, kind: Node, metadata: {name: a, namespace: b}}", ""),
    "namespace": ("{apiVersion: v1, kind: Namespace, metadata: {name: a}}", "a"),
    "unknown kind": ("{apiVersion: example.org/v1, kind: Example, metadata: {name: a}}", ""),
}


@pytest.mark.parametrize(("text", "namespace"), NAMESPACES.values(), ids=NAMESPACES)
def test_the_namespace_is_the_one_it_would_be_created_in(text: str, namespace: str) -> None:
    assert manifest(text, namespace="team-a").request.namespace == namespace


def test_the_items_of_a_list_are_objects_with_their_path() -> None:
    inner = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: b}}]}"
    text = f"{{apiVersion: v1, kind: List, items: [{{apiVersion: v1, kind: Pod, metadata: {{name: a}}}}, {inner}]}}"

    made = [(part.prefix, part.request.name) for part in found(text) if isinstance(part, Manifest)]

    assert made == [(("items", 0), "a"), (("items", 1, "items", 0), "b")]


def test_the_items_of_a_typed_list_have_its_type() -> None:
    made = manifest("{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}]}")

    assert (str(made.request.kind), made.request.object) == (
        "v1 Pod",
        {"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "Pod"},
    )


POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}}"
LISTS = {
    "a list with a name": f"{{apiVersion: v1, kind: List, metadata: {{name: x}}, items: [{POD}]}}",
    "items of another kind": f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: x}}, items: [{POD}]}}",
    "items of a kubeconfig": f"{{apiVersion: v1, kind: Config, items: [{POD}]}}",
    "items of a kustomization": f"{{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, items: [{POD}]}}",
    "items of a policy configuration": f"{{apiVersion: gpugate.dev/v1, kind: PolicyConfig, items: [{POD}]}}",
    "items of an unknown kind": f"{{apiVersion: v1, kind: Podd, items: [{POD}]}}",
    "no apiVersion": f"{{kind: List, items: [{POD}]}}",
    "items with the type of an object": "{apiVersion: v1, kind: Pod, items: [{metadata: {name: a}}]}",
    "a type that is none": "{apiVersion: v1, kind: PodList, items: [{kind: 5, metadata: {name: a}}]}",
}


@pytest.mark.parametrize("lenient", [False, True], ids=["named", "in a directory"])
@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_items_make_a_list_whatever_holds_them(text: str, *, lenient: bool) -> None:
    (made,) = [part for part in found(text, lenient=lenient) if isinstance(part, Manifest)]

    assert (made.prefix, str(made.request.kind), made.request.name) == (("items", 0), "v1 Pod", "a")


NO_LISTS = {
    "an object": (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, items: {}}",
        "items is an object, not a list",
    ),
    "a text": ("{apiVersion: v1, kind: List, items: a}", "items is a string, not a list"),
}


@pytest.mark.parametrize(("text", "message"), NO_LISTS.values(), ids=NO_LISTS)
def test_items_that_are_no_list_are_refused(text: str, message: str) -> None:
    (problem,) = found(text)

    assert isinstance(problem, Problem)
    assert (problem.message, problem.warning) == (message, False)


def test_an_object_with_null_for_items_is_not_created() -> None:
    (problem,) = found("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, items: null}")

    assert isinstance(problem, Problem)
    assert problem.warning
    assert problem.message == "kubectl takes a ConfigMap with items for a list, and creates only the items"


def test_a_bad_item_leaves_the_others() -> None:
    bad, good = found("{apiVersion: v1, kind: List, items: [3, {apiVersion: v1, kind: Pod, metadata: {name: b}}]}")

    assert isinstance(bad, Problem)
    assert bad.message == "not a Kubernetes object but a number"
    assert isinstance(good, Manifest)


def test_a_document_is_composed_once_for_all_that_is_wrong_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[str] = []

    def positions(document: Document) -> Positions:
        composed.append(document.source)
        return Positions(document)

    monkeypatch.setattr("gpugate.webhook.manifests.documents.Positions", positions)
    nameless = "- {apiVersion: v1, kind: Pod, metadata: {}}\n"
    parts = found(f"apiVersion: v1\nkind: List\nitems:\n{nameless * 20}")

    assert [part.line for part in parts if isinstance(part, Problem)] == list(range(4, 24))
    assert len(composed) == 1


def test_lists_in_lists_in_lists_are_refused() -> None:
    text = "{apiVersion: v1, kind: Pod, metadata: {name: a}}"
    for _ in range(4):
        text = f"{{apiVersion: v1, kind: List, items: [{text}]}}"

    *warnings, problem = found(text)

    assert isinstance(problem, Problem)
    assert (problem.message, problem.warning) == ("more than 3 lists in each other", False)
    assert all(isinstance(each, Problem) and each.warning for each in warnings)


OTHER_FILES = {
    "values of a chart": "{replicas: 3}",
    "a chart": "{apiVersion: v2, name: vllm, version: 0.1.0}",
    "a list of patches": "[{op: add, path: /spec}]",
}


@pytest.mark.parametrize("text", OTHER_FILES.values(), ids=OTHER_FILES)
def test_a_file_for_another_tool_is_passed_over_in_a_directory(text: str) -> None:
    (part,) = found(text, lenient=True)

    assert isinstance(part, NotAManifest)


@pytest.mark.parametrize("text", OTHER_FILES.values(), ids=OTHER_FILES)
def test_a_file_for_another_tool_is_a_problem_when_it_was_named(text: str) -> None:
    (part,) = found(text)

    assert isinstance(part, Problem)


TOOLS = {
    "kustomization": "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}",
    "policy configuration": "{apiVersion: gpugate.dev/v1, kind: PolicyConfig}",
    "kubeconfig": "{apiVersion: v1, kind: Config, clusters: []}",
}


@pytest.mark.parametrize("text", TOOLS.values(), ids=TOOLS)
def test_instructions_for_a_tool_are_passed_over_with_a_reason(text: str) -> None:
    (part,) = found(text)

    assert isinstance(part, NotAManifest)
    assert (part.passing, bool(part.detail)) == (Passing.TOOL_FILE, True)


def test_an_unknown_kind_of_an_open_group_is_an_object() -> None:
    assert manifest("{apiVersion: resource.k8s.io/v1, kind: SomethingNew, metadata: {name: a}}").request.name == "a"
