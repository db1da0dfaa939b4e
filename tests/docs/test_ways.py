"""What the checks of blocks find."""

from __future__ import annotations

import pytest
from documentation.blocks import Block
from documentation.ways import is_run, mistakes


def block(language: str, text: str) -> Block:
    name, *words = language.split()
    return Block("page.md", 1, name, tuple(words), text, generated=False)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ruby", "puts 1\n"),
        ("yaml", "a: 1\n"),
        ("yaml", "a: [\n"),
        ("yaml", "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmodes: audit\n"),
        ("yaml policy", "policies: {pods/no-such-policy: {mode: warn}}\n"),
        ("yaml values", "replicas: 2\n"),
        ("yaml", "tests:\n  - name: a\n    objects: b.yaml\n"),
        ("yaml", "jobs: {check: {steps: [{run: gpugate chekc .}]}}\n"),
        ("yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}  # expect: pods/missing-gpu-toleration\n"),
        ("console parse", "$ gpugate check --no-such-flag\n"),
        ("console", "$ gpugate doctor --no-such-flag\n"),
        ("console", "$ helm install gpugate charts/gpugate --set replicas=2\n"),
        ("console", "$ helm install gpugate charts/other\n"),
        ("console", "$ kubectl frobnicate\n"),
        ("console", "$ make no-such-target\n"),
        ("console", "$ pip install 'gpugate[all] @ git+https://example.com/gpugate@0123'\n"),
        ("console", "$ pip install '.[all]'\n"),
        ("console", "$ pip install gpugate\n"),
        ("console", "$ pip install 'gpugate[webhook]==0.1.0'\n"),
        ("console", "$ frobnicate\n"),
        ("python", "def f(:\n"),
        ("python", "from gpugate.policies.sdk.findings import NoSuchThing\n"),
        ("json", "{a: 1}\n"),
        ("toml", "a = \n"),
        ("csv", "a,b\n1\n"),
        ("text", "$ a command\n"),
    ],
)
def test_a_mistake_is_found(language: str, text: str) -> None:
    assert mistakes(block(language, text))


@pytest.mark.parametrize(
    ("language", "text", "run"),
    [
        ("console", "$ gpugate check .\n", True),
        ("console", "$ gpugate audit --from dump.yaml\n", True),
        ("console", "$ gpugate audit\n", False),
        ("console", "$ gpugate check . | kubectl apply -f -\n", False),
        ("console parse", "$ gpugate check .\n", False),
        ("yaml", "a: 1\n", False),
    ],
)
def test_commands_that_need_no_cluster_are_run(language: str, text: str, *, run: bool) -> None:
    assert is_run(block(language, text)) is run
