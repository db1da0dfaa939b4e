from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.webhook.manifests.documents import Document, SourceText, read_text
from gpugate.webhook.manifests.placeholders import Form, decoded, encoded, found_in, has_control_lines
from gpugate.webhook.manifests.problems import Problem

FOUND = {
    "$CLUSTER": [("$CLUSTER", Form.SHELL)],
    "role-$CLUSTER_NAME": [("$CLUSTER_NAME", Form.SHELL)],
    "$replicas": [("$replicas", Form.SHELL)],
    "role-${CLUSTER}": [("${CLUSTER}", Form.SHELL)],
    "${REGION:-eu-west-1}": [("${REGION:-eu-west-1}", Form.SHELL)],
    "a-${A}-${B}": [("${A}", Form.SHELL), ("${B}", Form.SHELL)],
    "${cluster_name}": [("${cluster_name}", Form.TERRAFORM)],
    "${var.name}-x": [("${var.name}", Form.TERRAFORM)],
    '${ipv6 ? "IPv6" : "IPv4"}': [('${ipv6 ? "IPv6" : "IPv4"}', Form.TERRAFORM)],
    "%{ if x }a": [("%{ if x }", Form.TERRAFORM)],
    "{{ .Name }}": [("{{ .Name }}", Form.BRACES)],
    "x-{{name}}": [("{{name}}", Form.BRACES)],
    "<AZ>": [("<AZ>", Form.MANUAL)],
    "<<CLUSTER_NAME>>": [("<<CLUSTER_NAME>>", Form.MANUAL)],
    "<YOUR CLUSTER>": [("<YOUR CLUSTER>", Form.MANUAL)],
    "arn:aws:iam::<account-id>:role/x": [("<account-id>", Form.MANUAL)],
    "<region>": [("<region>", Form.MANUAL)],
    "IMG_PLACEHOLDER": [("IMG_PLACEHOLDER", Form.MANUAL)],
    "repo/PLACEHOLDER:v1": [("PLACEHOLDER", Form.MANUAL)],
    "REPLACE_WITH_ROLE": [("REPLACE_WITH_ROLE", Form.MANUAL)],
    "CHANGE_ME": [("CHANGE_ME", Form.MANUAL)],
}
NOT_FOUND = (
    "$(NODE_NAME)",
    "^p[45]$",
    "costs $5",
    "a $name b",
    "a < B and c > d",
    "rate(x[5m]) > 1 < 2",
    "<b> and <i>",
    "my-cluster",
    "placeholder",
    "#!/bin/sh\necho ${HOME}\n",
    "{a: {b: c}}",
    "100%",
    "a${}b",
    "${unclosed",
    "x" * 3_000 + "${A}",
)


@pytest.mark.parametrize(("text", "expected"), FOUND.items())
def test_placeholders_are_found_with_their_form(text: str, expected: list[tuple[str, Form]]) -> None:
    assert found_in(text) == expected


@pytest.mark.parametrize("text", NOT_FOUND)
def test_other_texts_have_none(text: str) -> None:
    assert found_in(text) == []


def test_a_template_without_quotes_is_read_with_its_lines_and_columns() -> None:
    text = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Name }}\n  labels: {{- toYaml .L | nindent 4 }}\n  {{ .K }}: "{{ .V }}"\n  v: ${x ? "a" : "b"}\n'

    (document,) = read_text("f.yaml", text, templates=True)

    assert isinstance(document, Document)
    assert document.value == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "{{ .Name }}",
            "labels": "{{- toYaml .L | nindent 4 }}",
            "{{ .K }}": "{{ .V }}",
            "v": '${x ? "a" : "b"}',
        },
    }
    span, around = SourceText(document).find(("metadata", "name"))
    assert (span.line, span.column, span.end) == (4, 9, 20)
    assert around.lines[1] == "  name: {{ .Name }}"


CONTROL = ("{{- if .X }}", "  {{ range .Y -}}  ", "{% for a in b %}", "%{ if enabled ~}", "{{ .Whole }} # a comment")
NO_CONTROL = ("a: {{ .X }}", "{{ .K }}: {{ .V }}", "- {{ .X }}", "a: %{ if x }b%{ endif }", "{a: 1}", "%YAML 1.1")


@pytest.mark.parametrize("line", CONTROL)
def test_lines_that_only_the_tool_can_read_are_told(line: str) -> None:
    assert has_control_lines(f"a: 1\n{line}\nb: 2\n")


@pytest.mark.parametrize("line", NO_CONTROL)
def test_lines_with_values_are_none(line: str) -> None:
    assert not has_control_lines(f"a: 1\n{line}\nb: 2\n")


@given(st.text(alphabet="ab{}$%<>. :\n\"'-#\ue041é", max_size=60))
def test_encoding_keeps_the_length_and_is_reversible(text: str) -> None:
    made = encoded(text)

    assert made is None or (len(made) == len(text) and decoded(made) == text)


@given(
    st.dictionaries(st.text(alphabet="ab-", min_size=1), st.sampled_from(["${A}", "{{ .b }}", "<C>", "x"]), min_size=1)
)
def test_a_document_of_values_without_quotes_is_read_as_it_is_written(value: dict[str, str]) -> None:
    text = "".join(f"'{key}': {member}\n" for key, member in value.items())

    (document,) = read_text("f.yaml", text, templates=True)

    assert not isinstance(document, Problem)
    assert document.value == value
