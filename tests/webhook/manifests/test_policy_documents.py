"""Mistakes in files of policies in CEL are reported with file, line and column."""

from __future__ import annotations

import pytest

from gpugate.webhook.manifests.policy_documents import PolicyDocumentError, read_policies

POLICY = """\
apiVersion: gpugate.dev/v1
kind: Policy
id: acme/example
title: Example
why: The cluster has rules.
match:
  kinds: [Pod]
validations:
  - expression: has(object.spec)
    message: missing spec
"""
LONG = POLICY.replace(
    "has(object.spec)",
    """|
      has(object.spec) &&
      gpu.pod.gps <= 2""",
)


def test_every_document_of_a_file_is_a_policy() -> None:
    second = POLICY.replace("acme/example", "acme/other")

    policies = read_policies("policies.yaml", f"{POLICY}---\n{second}".encode())

    assert [policy.id for policy in policies] == ["acme/example", "acme/other"]


# Contents of files without a policy.
OTHER = {
    "values": "replicas: 1\n",
    "a manifest": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
    "a policy of another tool": "apiVersion: kyverno.io/v1\nkind: Policy\n",
    "a policy file": "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: warn\n",
    "a list of instance types": "apiVersion: gpugate.dev/v1\nkind: InstanceTypes\n",
    "text": "see gpugate.dev/v1\n",
    "no YAML": "a: [1",
    "empty": "",
}


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_a_file_without_a_policy_has_none(text: str) -> None:
    assert read_policies("p.yaml", text.encode()) == []


def test_the_encoding_of_a_file_does_not_hide_its_policies() -> None:
    assert len(read_policies("p.yaml", POLICY.encode("utf-16"))) == 1


def test_an_id_begins_with_the_organisation() -> None:
    second = POLICY.replace("acme/example", "other/example")

    with pytest.raises(PolicyDocumentError) as caught:
        read_policies("p/acme/a.yaml", f"{POLICY}---\n{second}".encode(), "acme")

    message = "must begin with `acme/`, after the folder of the file: write acme/example, or move the file"
    assert str(caught.value) == f"p/acme/a.yaml:14:5: id: {message}"


MISTAKES = {
    "not YAML": (f"{POLICY}---\na: [1", "p.yaml:13:1: not YAML: "),
    "not YAML in the only document": (f"{POLICY}examples: [", "p.yaml:12:1: not YAML: "),
    "another version": (POLICY.replace("/v1", "/v2"), "p.yaml:1:13: apiVersion: must be gpugate.dev/v1"),
    "a misspelt kind": (POLICY.replace("Policy", "Polcy"), "p.yaml:2:7: kind: must be Policy"),
    "an unknown key": (
        POLICY + "validation: []\n",
        "p.yaml:11:13: validation: unknown key; did you mean `validations`?",
    ),
    "another kind": (
        f"{POLICY}---\n{POLICY.replace('kind: Policy', 'kind: Pod')}",
        "p.yaml:13:7: kind: must be Policy",
    ),
    "an expression on one line": (
        POLICY.replace("object", "objct"),
        "p.yaml:9:17: validations[0].expression: character 5: unknown variable `objct`; did you mean `object`?",
    ),
    "an expression on several lines": (
        LONG,
        "p.yaml:11:15: validations[0].expression: character 29: unknown field `gpu.pod.gps`; did you mean `gpu.pod.gpus`?",
    ),
    "a kind": (POLICY.replace("[Pod]", "[Pd]"), "p.yaml:7:11: match.kinds[0]: unknown kind `Pd`; did you mean `Pod`?"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_has_its_location(text: str, message: str) -> None:
    with pytest.raises(PolicyDocumentError) as caught:
        read_policies("p.yaml", text.encode())

    assert str(caught.value).startswith(message)
