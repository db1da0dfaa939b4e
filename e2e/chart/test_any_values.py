"""Test random values: the chart rejects them with a reason, or renders each text unchanged in its field."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from chart.chart_values import RELEASES, TEXTS, VALUES
from chart.conftest import CHART, NAMESPACE, Helm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

Json = dict[str, Any]
# Each example starts a program.
few = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def run_template(helm: Helm, folder: Path, values: Json, release: str = "gate") -> subprocess.CompletedProcess[str]:
    # JSON is YAML without ambiguous scalars.
    file = folder / "values.yaml"
    file.write_text(json.dumps(values, ensure_ascii=False))
    return helm.ran("template", release, CHART, "--namespace", NAMESPACE, "--values", file)


def render(helm: Helm, folder: Path, values: Json, release: str = "gate") -> list[Json]:
    rendered = run_template(helm, folder, values, release)
    assert rendered.returncode == 0, rendered.stderr
    return read_objects(rendered.stdout)


def read_objects(text: str) -> list[Json]:
    """Parse objects like kubectl and Helm; PyYAML reads the text `<<` as a merge key."""
    objects = list(read_text("rendered", text))
    assert not [obj for obj in objects if isinstance(obj, Problem)]
    return [obj.value for obj in objects if isinstance(obj, Document) and obj.value]


def select(objects: list[Json], kind: str) -> Json:
    (selected,) = (obj for obj in objects if obj["kind"] == kind)
    return selected


@few
@given(values=VALUES)
def test_values_are_rejected_with_a_reason_or_rendered(helm: Helm, tmp_path: Path, values: Json) -> None:
    rendered = run_template(helm, tmp_path, values)
    if rendered.returncode:
        assert re.search(r"schema|gpugate/templates/validate\.yaml", rendered.stderr)
        return
    objects = read_objects(rendered.stdout)
    assert all(obj["apiVersion"] and obj["kind"] and obj["metadata"]["name"] for obj in objects)
    policy = json.loads(
        next(obj for obj in objects if obj["metadata"]["name"].endswith("-policy"))["data"]["policy.yaml"]
    )
    given_policy = {key: value for key, value in values.get("policy", {}).items() if value is not None}
    assert policy | given_policy == policy


@few
@given(arguments=st.lists(TEXTS), note=TEXTS, reason=TEXTS)
def test_texts_are_rendered_unchanged(helm: Helm, tmp_path: Path, arguments: list[str], note: str, reason: str) -> None:
    exemption = {"policies": ["pods/*"], "names": ["a"], "reason": f"r{reason}", "owner": "o", "expires": "2027-03-31"}
    values = {
        "extraArgs": arguments,
        "extraEnv": [{"name": "A", "value": note}],
        "podAnnotations": {"note": note},
        "commonAnnotations": {"note": note},
        "nodeSelector": {"a": note},
        "clientAuthentication": {"configMapName": "ca", "names": arguments},
        "policy": {"exemptions": [exemption]},
        "audit": {"extraArgs": arguments},
    }
    objects = render(helm, tmp_path, values)
    template = select(objects, "Deployment")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    audit = select(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    policy = next(obj for obj in objects if obj["metadata"]["name"].endswith("-policy"))

    expected = [*(f"--client-name={name}" for name in arguments), *arguments]
    assert container["args"][len(container["args"]) - len(expected) :] == expected
    assert container["env"] == [{"name": "A", "value": note}]
    assert template["metadata"]["annotations"]["note"] == note
    # `toYaml` of Helm drops the last line break.
    assert {obj["metadata"]["annotations"]["note"].rstrip("\n") for obj in objects} == {note.rstrip("\n")}
    assert template["spec"]["nodeSelector"]["a"] == note
    assert audit["args"][len(audit["args"]) - len(arguments) :] == arguments
    assert json.loads(policy["data"]["policy.yaml"])["exemptions"] == [exemption]


@few
@given(name=TEXTS)
def test_platform_values_cannot_end_a_match_condition(helm: Helm, tmp_path: Path, name: str) -> None:
    platform = {"taints": {"*": [{"key": name}]}, "accelerators": {"resources": [name], "device_classes": [name]}}
    rendered = run_template(helm, tmp_path, {"policy": {"platform": platform}})
    if rendered.returncode:
        assert "schema" in rendered.stderr
        return
    assert re.fullmatch(r"[A-Za-z0-9./_*-]+", name)


@few
@given(release=RELEASES)
def test_names_are_valid_for_the_api_server(helm: Helm, tmp_path: Path, release: str) -> None:
    objects = render(helm, tmp_path, {}, release)
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}

    assert {name for _, name in names if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)} == set()
    # The name of a Job adds eleven characters to that of its CronJob (`k8s.io/kubernetes` pkg/apis/batch/validation, v1.36).
    assert [name for kind, name in names if kind == "CronJob" and len(name) > 52] == []


NAMES = {
    "gate": "gate-gpugate",
    "my.gpugate": "my-gpugate",
    "3gate": "gpugate-3gate",
    f"{'a' * 38}--b": "a" * 38,
    "r" * 53: "r" * 40,
}


@pytest.mark.parametrize(("release", "name"), NAMES.items(), ids=NAMES)
def test_names_derive_from_the_release(helm: Helm, tmp_path: Path, release: str, name: str) -> None:
    assert select(render(helm, tmp_path, {}, release), "Service")["metadata"]["name"] == name


@pytest.mark.parametrize("word", ["on", "null", "1e3"])
def test_names_that_look_like_yaml_scalars_are_quoted(helm: Helm, tmp_path: Path, word: str) -> None:
    account = {"create": False, "name": word}
    objects = render(helm, tmp_path, {"serviceAccount": account, "migNamespaces": {word: ["1g.10gb"]}}, word)

    assert select(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == word
    assert select(objects, "ResourceClaimTemplate")["metadata"]["namespace"] == word
    assert {obj["metadata"]["labels"]["app.kubernetes.io/instance"] for obj in objects} == {word}
