from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpugate.webhook.manifests.inputs import STDIN, Input
from gpugate.webhook.manifests.load import load, load_files
from gpugate.webhook.manifests.objects import NotAManifest
from gpugate.webhook.manifests.problems import Passing

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.manifests.load import Loaded


def read(text: str, name: str = "f.yaml", *, explicit: bool = False) -> Loaded:
    return load_files([Input(name, explicit=explicit, data=text.encode())])


def passing(loaded: Loaded) -> list[Passing]:
    return [part.passing for part in loaded.passed_over if isinstance(part, NotAManifest)]


FOREIGN = {
    "tags of CloudFormation": ("s.yaml", "Resources:\n  Role: !Ref Name\n  Arn: !Sub '${Role}.x'\n"),
    "tags of Python": ("mkdocs.yml", "markdown_extensions:\n- emoji: !!python/name:a.b\n"),
    "a key that occurs twice": ("values.yaml", "nodeSelector: {}\nreplicas: 1\nnodeSelector: {}\n"),
    "a repeated key of JSON": ("package.json", '{"name": "a", "name": "b"}'),
    "JSON with comments": ("tsconfig.json", '{\n  // the target\n  "target": "es2020"\n}\n'),
    "JSON with comments, in several lines of brackets": ("t.json", '{\n//\n"a": [\n{\n//\n}\n]\n}\n{ //\n}\n'),
    "JSON with a trailing comma": ("tsconfig.json", '{"target": "es2020",}'),
    "a broken file for another tool": ("ci.yaml", "jobs:\n  a: b: c\n"),
    "a second document of another tool": ("ci.yaml", "a: 1\n...\nb: 2\n"),
    "text behind a separator": ("notes.yaml", "a: 1\n--- title\nb: 2\n"),
    "prose": ("notes.yaml", "Nothing but words\n"),
    "a head that is not at the top": ("x.yaml", "template:\n  apiVersion: v1\n  kind: Pod\n  a: b: c\n"),
    "a head that is not at the top of JSON": ("x.json", '{"a": {"apiVersion": "v1", "kind": "Pod"}, // no\n}'),
    "Latin-1": ("values.yaml", "name: Stra\udce9\n"),
}


@pytest.mark.parametrize(("name", "text"), FOREIGN.values(), ids=FOREIGN)
def test_what_has_no_head_is_passed_over_without_a_finding(name: str, text: str) -> None:
    loaded = load_files([Input(name, explicit=False, data=text.encode(errors="surrogateescape"))])

    assert loaded.problems == ()
    assert set(passing(loaded)) == {Passing.NON_MANIFEST}


@pytest.mark.parametrize(("name", "text"), FOREIGN.values(), ids=FOREIGN)
def test_what_has_no_head_is_a_problem_when_it_was_named(name: str, text: str) -> None:
    assert load_files([Input(name, explicit=True, data=text.encode(errors="surrogateescape"))]).problems


TEMPLATES = {
    "instructions on lines of their own": "apiVersion: v1\nkind: Pod\nmetadata:\n{{- range .X }}\n  name: a\n{{- end }}\n",
    "blocks of Jinja": "apiVersion: v1\nkind: Pod\n{% if x %}\nmetadata: {name: a}\n{% endif %}\n",
    "directives of Terraform": "apiVersion: v1\nkind: Pod\n%{ if x ~}\nmetadata: {name: a}\n%{ endif ~}\n",
    "a value that is several lines": "apiVersion: v1\nkind: Pod\nmetadata:\n  {{ .a }}\n  {{ .b }}\n",
    "values of another tool": "a:\n%{ if x ~}\nb: 1\n%{ endif }\n",
}


@pytest.mark.parametrize("text", TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_that_only_its_tool_can_read_is_passed_over(text: str) -> None:
    loaded = read(text)

    assert (loaded.problems, passing(loaded)) == ((), [Passing.TEMPLATE])


BROKEN = {
    "a key that occurs twice": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\nspec: {}\n",
    "an unknown tag": "apiVersion: v1\nkind: Pod\nmetadata: {name: !x a}\n",
    "wrong indentation": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n spec: {}\n",
    "an indented object": "  apiVersion: v1\n  kind: Pod\n  metadata: a: b\n",
    "quoted keys": "'apiVersion': v1\n\"kind\": Pod\nmetadata: a: b\n",
    "the head at the end": "metadata:\n\tname: a\nkind: Pod\napiVersion: v1\n",
    "JSON with a comment": '{"apiVersion": "v1", // no\n"kind": "Pod"}',
    "JSON that ends early": '{"metadata": {"name": "a"}, "kind": "Pod", "apiVersion": "v1"',
    "JSON behind a separator and a comment": '---\n# {\n{"apiVersion": "v1", "kind": "Pod"\n',
    "braces without quotes": "{apiVersion: v1, kind: Pod, metadata: [}",
    "a list": "kind: PodList\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a, name: b}}\n",
    "text behind a separator before it": "--- x\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
    "text behind a separator after it": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n--- x\na: 1\n",
    "a manifest without a kind": "apiVersion: v1\nmetadata: {name: a}\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_manifest_is_reported_wherever_it_is(text: str) -> None:
    assert read(text).problems
    assert read(text, "f.json").problems


def test_one_broken_manifest_among_other_documents_is_reported() -> None:
    loaded = read("a: !Ref x\n---\napiVersion: v1\nkind: Pod\na: b: c\n---\nd: e: f\n")

    assert [problem.line for problem in loaded.problems] == [5]
    assert len(passing(loaded)) == 2


def test_a_file_that_is_too_large_is_reported_when_it_begins_as_a_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpugate.webhook.manifests.inputs.MAX_BYTES", 100)
    (tmp_path / "data.json").write_text(json.dumps({"rows": ["x" * 100]}))
    (tmp_path / "pod.yaml").write_text(f"apiVersion: v1\nkind: Pod\nx: {'x' * 100}\n")

    loaded = load([str(tmp_path)])

    assert [problem.source for problem in loaded.problems] == [f"{tmp_path}/pod.yaml"]
    assert passing(loaded) == [Passing.NON_MANIFEST]


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
KEYS = st.text(alphabet="abkKindapiVersion:#-'\"{ ", max_size=10).filter(lambda key: key not in {"apiVersion", "kind"})
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.sampled_from(["apiVersion", "kind"]), inner),
    max_leaves=8,
)
DAMAGE = st.sampled_from(
    ["", "\n a: b: c\n", "\nx: !Ref y\n", "\nq: 1\nq: 2\n", "\n\t- x\n", "\n// c\n", "}", "\n---x\n"]
)


@given(st.dictionaries(KEYS, VALUES), st.booleans(), DAMAGE)
def test_no_document_without_a_head_has_a_problem(value: dict[str, Any], as_json: bool, damage: str) -> None:  # noqa: FBT001 -- a strategy
    # Deeper lines begin with a space, so that what looks like a head below is not taken for one.
    text = json.dumps(value) if as_json else yaml.safe_dump(value)

    assert read(text + damage, "f.json" if as_json else "f.yaml").problems == ()


@given(st.dictionaries(KEYS, VALUES), st.booleans())
def test_every_document_with_a_head_that_cannot_be_read_has_a_problem(value: dict[str, Any], as_json: bool) -> None:  # noqa: FBT001 -- a strategy
    whole = {**value, "apiVersion": "v1", "kind": "Pod"}
    text = f"{json.dumps(whole)[:-1]} \\\n" if as_json else f"{yaml.safe_dump(whole)}metadata: a: b\n"

    # Signs of a template in the text are a reason to pass it over.
    assert read(text).problems or passing(read(text)) == [Passing.TEMPLATE]


def test_standard_input_is_named() -> None:
    assert load_files([Input(STDIN, explicit=True, data=b"a: !x b\n")]).problems


def pods(count: int) -> list[str]:
    return [json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}"}}) for i in range(count)]


SEPARATED = {
    "on lines between": "\n---\n".join(pods(2_000)),
    "behind each": "".join(f"{pod}\n---\n" for pod in pods(2_000)),
    "before each": "".join(f"---\n{pod}\n" for pod in pods(2_000)),
    "with comments": "\n--- # Source: x\n".join(pods(2_000)),
    "with line ends of Windows": "\r\n---\r\n".join(pods(2_000)),
    "indented by tabs": "\n---\n".join(pod.replace(", ", ",\n\t") for pod in pods(2_000)),
}


def test_escapes_that_kubectl_does_not_read_between_separators_have_a_remedy() -> None:
    text = """{"a": 1}\n---\n{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\\ud83d\\ude00"}}"""

    (problem,) = read(text, "f.json").problems

    assert problem.remedy == "write the character itself, or remove the --- lines between JSON objects"


@pytest.mark.parametrize("name", ["f.json", "f.yaml"])
@pytest.mark.parametrize("text", SEPARATED.values(), ids=SEPARATED)
def test_json_documents_between_separators_are_all_read(text: str, name: str) -> None:
    loaded = read(text, name)

    assert (len(loaded.manifests), loaded.problems) == (2_000, ())
