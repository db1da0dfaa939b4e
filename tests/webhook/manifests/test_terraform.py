"""Objects in Terraform: where they are, what is unknown in them, and what hostile files cost."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.manifests.documents import Document, Positions, SourceText, read_text
from gpugate.webhook.manifests.inputs import Input, Language
from gpugate.webhook.manifests.load import load_files
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.terraform import documents, referred, template_documents
from gpugate.webhook.manifests.terraform_plan import is_plan, plan_documents

if TYPE_CHECKING:
    from collections.abc import Iterable


def read(text: str) -> list[Document]:
    found = list(documents("a.tf", text.encode()))
    assert not [part for part in found if isinstance(part, Problem)]
    return [part for part in found if isinstance(part, Document)]


def values(found: Iterable[Document | Problem]) -> list[Any]:
    return [part.value for part in found if isinstance(part, Document)]


HEAD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
SHORT = 'apiVersion = "v1", kind = "Pod", metadata = { name = "a" }'
INDENTED = "  apiVersion: v1\n  kind: Pod\n  metadata: {{name: {}}}\n"
MANY = r"""x = { HEAD, "q" : "a\n\"b\u00e9$${c}", n = -2.5, i = 3, t = true, z = null, l = ["a", 1], p = ("a"),
(k) = 1, h = <<-E
    one
      two
    E
}
"""
# What a file holds, with the objects in it.
OBJECTS: dict[str, tuple[str, list[Any]]] = {
    "a heredoc": ("yaml_body = <<YAML\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nYAML\n", [HEAD]),
    "an indented heredoc": (
        "yaml_body = <<-YAML\n    apiVersion: v1\n    kind: Pod\n    metadata:\n      name: a\n  YAML\n",
        [HEAD],
    ),
    "an indented heredoc with two documents": (
        f"x = <<-YAML\n{INDENTED.format('a')}  --- # next\n{INDENTED.format('b')}  YAML\n",
        [HEAD, {**HEAD, "metadata": {"name": "b"}}],
    ),
    "text that looks like a separator": (
        "x = <<-YAML\n  apiVersion: v1\n  kind: Pod\n  data: |\n    a\n    ---\n    b\n  YAML\n",
        [{"apiVersion": "v1", "kind": "Pod", "data": "a\n---\nb\n"}],
    ),
    "an object": (f"manifest = {{ {SHORT} }}\n", [HEAD]),
    "an object that is encoded": (f"x = yamlencode({{ {SHORT} }})\n", [HEAD]),
    "an object in a list in a function": (f"x = jsonencode([merge({{ {SHORT} }}, var.a)])\n", [HEAD]),
    "an object in an object": (f"x = {{ {SHORT}, spec = {{ {SHORT} }} }}\n", [{**HEAD, "spec": HEAD}]),
    "every kind of value": (
        MANY.replace("HEAD", SHORT),
        [
            {
                **HEAD,
                "q": 'a\n"bé${c}',
                "n": -2.5,
                "i": 3,
                "t": True,
                "z": None,
                "l": ["a", 1],
                "p": "a",
                "k": 1,
                "h": "one\n  two\n",
            }
        ],
    ),
    "what only Terraform can compute": (
        f'x = {{ {SHORT}, v = var.a, s = "${{var.a}}-b", c = var.x ? 1 : 2, f = [for a in b : a], g = tolist([1]) }}\n',
        [
            {
                **HEAD,
                "v": "${var.a}",
                "s": "${var.a}-b",
                "c": "${var.x ? 1 : 2}",
                "f": "${[for a in b : a]}",
                "g": "${tolist([1])}",
            }
        ],
    ),
    "a script": ("user_data = <<E\n#!/bin/sh\nkubectl apply -f - <<X\napiVersion: v1\nkind: Pod\nX\nE\n", []),
    "a policy": ('x = jsonencode({ Version = "2012-10-17", Statement = [] })\n', []),
    "values of a chart": (
        "values = [<<E\nimage: a\nscaleTargetRef: {apiVersion: apps/v1, kind: Deployment}\nE\n]\n",
        [],
    ),
    "a reference to an object": ('x = { scaleTargetRef = { apiVersion = "v1", kind = "Pod", name = "a" } }\n', []),
    "nothing": ("", []),
    "what is not HCL beside it": (f'x = ]] \ny = ((\nresource "a" "b" {{\n manifest = {{ {SHORT} }}\n}}\n', [HEAD]),
}


@pytest.mark.parametrize(("text", "objects"), OBJECTS.values(), ids=OBJECTS)
def test_objects_are_found_wherever_they_are(text: str, objects: list[Any]) -> None:
    assert values(documents("a.tf", text.encode())) == objects


UNKNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "a value": ("x: ${var.a}\n", {"x": "${var.a}"}),
    "a part of one": ("x: a-${var.a}-${b}\n", {"x": "a-${var.a}-${b}"}),
    "one in a flow": ("x: [${a}, '${b[\"c\"]}']\n", {"x": ["${a}", '${b["c"]}']}),
    "one in quotes that has quotes and braces": ('x: "${f({a = "}"})}"\n', {"x": '${f((a = ")"))}'}),
    "one over lines": ("x: ${f(\n a\n)}\nz: 1\n", {"x": "${f( a )}", "z": 1}),
    "a key": ("${a}: 1\n", {"${a}": 1}),
    "further members": ("x:\n  z: 1\n  ${indent(2, a)}\n", {"x": {"z": 1, "${indent(2, a)}": None}}),
    "all members": ("x:\n  ${indent(2, a)}\n", {"x": "${indent(2, a)}"}),
    "an escape": ("x: $${HOME} %%{a}\n", {"x": "${HOME} %{a}"}),
    "a condition": ("%{ if a }\nx: 1\n%{ else }\nx: 2\n%{ endif ~}\n", {"x": 1}),
    "conditions in a condition": ("x: %{ if a }%{ if b }1%{ else }2%{ endif }%{ else }${c}%{ endif }\n", {"x": 1}),
    "a loop": ("x:\n%{ for a in b ~}\n- ${a}\n%{ endfor ~}\n", {"x": ["${a}"]}),
    "a directive before a key": ("x:\n  %{ if a }z: 1%{ endif }\n  k: 2\n", {"x": {"z": 1, "k": 2}}),
    "an end without a beginning": ("%{ endif }x: 1\n", {"x": 1}),
    "what is not closed": ("x: ${a", {"x": "${a"}),
    "a number": ("x: 1\n", {"x": 1}),
    "characters that stand for expressions": ("x: \ue0000\ue001\n", {"x": "?0?"}),
}


@pytest.mark.parametrize(("text", "value"), UNKNOWN.values(), ids=UNKNOWN)
def test_expressions_in_templates_are_text(text: str, value: dict[str, Any]) -> None:
    (found,) = values(template_documents("a.tpl", f"apiVersion: v1\nkind: A\n{text}"))

    assert found == {"apiVersion": "v1", "kind": "A", **value}


POOL = """resource "kubectl_manifest" "a" {
  yaml_body = <<-YAML
    # ${var.note}
    apiVersion: v1
    kind: Pod
    metadata:
      name: ${var.name_of_it}
      labels: {a: ${b}, c: d}
  YAML
}
resource "kubernetes_manifest" "b" {
  manifest = {
    apiVersion = "v1"
    kind       = "Pod"
    metadata   = { name = "é", labels = { "a" = var.b } }
    spec = {
      containers = [{
        name = "a"
      }]
    }
  }
}
"""
PLACES = {
    "a value in a heredoc": (0, ("metadata", "name"), (7, 13, 30)),
    "one behind an expression": (0, ("metadata", "labels", "c"), (8, 28, 29)),
    "an object in a heredoc": (0, (), (4, 5, 15)),
    "a value": (1, ("metadata", "labels", "a"), (15, 49, 54)),
    "a key with a value over lines": (1, ("spec",), (16, 5, 9)),
    "an item": (1, ("spec", "containers", 0, "name"), (18, 16, 19)),
    "what is missing": (1, ("spec", "nodes", "x"), (16, 5, 9)),
    "an object": (1, (), (13, 18, 22)),
}


@pytest.mark.parametrize(("index", "path", "place"), PLACES.values(), ids=PLACES)
def test_a_path_has_its_place_in_the_file(index: int, path: tuple[str | int, ...], place: tuple[int, int, int]) -> None:
    document = read(POOL)[index]

    span, around = SourceText(document).find(path)

    assert (span.line, span.column, span.end) == place
    assert POOL.splitlines()[span.line - 1] in around.lines
    assert document.derived


def test_secrets_are_not_shown() -> None:
    (document,) = read(
        'x = {\n apiVersion = "v1"\n kind = "Secret"\n metadata = {name = "a"}\n stringData = {\n  a = "hidden"\n }\n}\n'
    )

    assert "hidden" not in "".join(SourceText(document).around(6).lines)


def test_what_a_body_cannot_be_read_for_is_told_at_its_line() -> None:
    (problem,) = documents("a.tf", b'resource "kubectl_manifest" "a" {\n  yaml_body = <<E\na: 1\nb: ${c}: d\nE\n}\n')

    assert isinstance(problem, Problem)
    assert (problem.source, problem.line) == ("a.tf", 4)
    assert any("${c}" in line for line in problem.excerpt.lines)


REFERRED = {
    "a template": ('x = templatefile("${path.module}/t/a.tpl", {a = "b.yaml"})', [("m/t/a.tpl", True)]),
    "a file": ('x = file("../a.yaml")', [("a.yaml", False)]),
    "a file in a function": ('x = yamldecode(file("a.yaml"))', [("m/a.yaml", False)]),
    "a path that is computed": ('x = file("${var.a}/a.yaml")\ny = file(local.a)', []),
    "something else": ('x = file("a.sh")\ny = filebase64("a.yaml")', []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), REFERRED.values(), ids=REFERRED)
def test_files_that_a_configuration_reads_are_known(text: str, found: list[tuple[str, bool]]) -> None:
    assert [(each.path, each.is_template) for each in referred("m/main.tf", text.encode())] == found


RELEASE = """resource "helm_release" "app" {
  name      = "x"
  chart     = "${path.module}/chart"
  namespace = "ml"
  values = [
    <<-E
      a: 1
      b: ${var.b}
    E
    , yamlencode({ c = var.c }), file("values.yaml"), var.more
  ]
}
resource "helm_release" "remote" {
  repository = "https://example.com"
  chart      = "app"
}
"""


def test_a_chart_that_is_installed_has_its_values() -> None:
    (chart,) = (each for each in referred("m/main.tf", RELEASE.encode()) if each.chart)

    assert (chart.path, chart.chart, chart.line) == ("m/chart", "helm_release.app", 1)
    assert (chart.namespace, chart.release) == ("ml", "x")
    assert chart.values == ("a: 1\nb: ${var.b}\n", '{"c": "${var.c}"}')


@pytest.mark.parametrize("name", ['"${var.a}"', "var.a", '"No Name"', '"-"', "1"])
def test_a_release_whose_name_is_computed_has_none(name: str) -> None:
    (chart,) = (each for each in referred("m/main.tf", RELEASE.replace('"x"', name).encode()) if each.chart)

    assert chart.release == ""


def plan(*resources: dict[str, Any], changes: list[dict[str, Any]] | None = None) -> Document:
    modules = {"resources": [resources[0]], "child_modules": [{"child_modules": [{"resources": list(resources[1:])}]}]}
    value = {
        "format_version": "1.2",
        "terraform_version": "1.13.0",
        "planned_values": {"root_module": modules},
        "resource_changes": changes or [],
    }
    (document,) = read_text("plan.json", json.dumps(value, indent=1))
    assert isinstance(document, Document)
    assert is_plan(document.value)
    return document


def resource(kind: str, name: str, held: dict[str, Any]) -> dict[str, Any]:
    return {"address": f"{kind}.{name}", "mode": "managed", "type": kind, "name": name, "values": held}


def test_a_plan_is_read_with_the_lines_of_its_resources() -> None:
    body = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n"
    document = plan(
        resource("kubectl_manifest", "a", {"yaml_body": body}),
        resource("kubernetes_manifest", "c", {"manifest": {**HEAD, "metadata": {"name": "c"}}}),
        resource("aws_instance", "d", {"manifest": HEAD}),
        resource("helm_release", "e", {"manifest": json.dumps({"v1/pod/e": {**HEAD, "metadata": {"name": "e"}}})}),
        resource("helm_release", "f", {"manifest": None, "values": ["a: 1"]}),
        resource("kustomization_resource", "g", {"manifest": json.dumps({**HEAD, "metadata": {"name": "g"}})}),
    )

    found = [part for part in plan_documents(document) if isinstance(part, Document)]

    assert [part.value["metadata"]["name"] for part in found if isinstance(part.value, dict)] == [
        "a",
        "b",
        "c",
        "e",
        "g",
    ]
    lines = document.text.splitlines()
    names = ("kubectl_manifest.a",) * 2 + ("kubernetes_manifest.c", "helm_release.e", "kustomization_resource.g")
    for part, name in zip(found, names, strict=True):
        span = Positions(part).find(("spec", "x"))
        assert name in lines[span.line - 1]
        assert SourceText(part).around(span.line).lines == ()


def test_what_is_known_after_apply_is_unknown() -> None:
    late = {"metadata": {}, "spec": {"role": True, "tags": [False, True]}}
    changes = [
        {"address": "kubernetes_manifest.a", "change": {"after_unknown": {"manifest": late}}},
        {"address": "kubectl_manifest.b", "change": {"after_unknown": {"yaml_body": True}}},
    ]
    held = {**HEAD, "spec": {"tags": ["x"]}}
    document = plan(
        resource("kubernetes_manifest", "a", {"manifest": held}),
        resource("kubectl_manifest", "b", {}),
        changes=changes,
    )

    first, second = plan_documents(document)

    unknown = "${known after apply}"
    assert isinstance(first, Document)
    assert first.value == {**HEAD, "spec": {"role": unknown, "tags": ["x", unknown]}}
    assert isinstance(second, Problem)
    assert (second.warning, second.message) == (True, "kubectl_manifest.b: yaml_body is known only after apply")


def test_files_are_read_by_what_they_are_written_in() -> None:
    template = "apiVersion: v1\nkind: Pod\nmetadata: {name: %{ if a }t%{ endif }}\n"
    written = plan(resource("kubernetes_manifest", "c", {"manifest": HEAD})).text
    files = [
        Input("a.tf", explicit=False, data=POOL.encode(), language=Language.HCL),
        Input("a.tpl", explicit=False, data=template.encode(), language=Language.TEMPLATE),
        Input("values.tpl", explicit=False, data=b"a: ${b}\n", language=Language.TEMPLATE),
        Input("plan.json", explicit=True, data=written.encode()),
    ]

    loaded = load_files(files)

    assert [each.request.name for each in loaded.manifests] == ["${var.name_of_it}", "é", "t", "a"]
    assert (loaded.problems, len(loaded.passed_over)) == ((), 1)


HOSTILE = {
    "quotes": '"' * 200_000,
    "open objects": "a={" * 30_000,
    "open templates": 'a="' + "${" * 50_000,
    "heredocs": "a=<<E\napiVersion: v1\nkind: Pod\nE\n" * 6_000,
    "one heredoc with expressions": "a=<<E\napiVersion: v1\nkind: Pod\nx: " + "${a}" * 30_000 + "\nE\n",
    "deep lists": f"a={{ {SHORT}, x = {'[' * 20_000}{']' * 50_000} }}",
    "deep objects": f"a={{ {SHORT}, x = {'{a=' * 6_000}1{'}' * 6_000} }}",
    "conditions": "a=<<E\napiVersion: v1\nkind: Pod\n" + "%{if a}" * 30_000 + "\nE\n",
    "open expressions in a template": "a=<<E\napiVersion: v1\nkind: Pod\nx: " + '${"' * 30_000 + "\nE\n",
    "brackets": "[{(" * 30_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_costs_bounded_time(text: str) -> None:
    """The bound is that of parsing, and as much again for what is read; a quadratic reader takes minutes."""
    before = time.process_time()

    list(documents("a.tf", text.encode()))
    referred("a.tf", text.encode())

    assert time.process_time() - before < 10


PARTS = (
    "%{if a}",
    "%{if a}x%{else}y",
    "%{endif}",
    "%{else}",
    "${a}",
    "${",
    '${"',
    "$${",
    "\n---\n",
    "x",
    "  ${a}\n",
    "\n",
    "%{",
    "}",
)


@pytest.mark.parametrize("part", PARTS)
def test_a_hostile_template_costs_time_in_proportion_to_it(part: str) -> None:
    """A reader that looks back from each expression takes minutes."""
    before = time.process_time()

    list(template_documents("a.tpl", f"apiVersion: v1\nkind: Pod\nx: {part * 20_000}", strips=True))

    assert time.process_time() - before < 10


def test_a_file_above_the_limit_is_refused() -> None:
    (problem,) = documents("a.tf", b"#" * (2 << 20) + b"\n")

    assert isinstance(problem, Problem)
    assert problem.message == "larger than 2 MiB"
