"""Whatever the values are: they are refused with a reason, or each text stands where it belongs and nowhere else."""

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


def ran(helm: Helm, folder: Path, values: Json, release: str = "gate") -> subprocess.CompletedProcess[str]:
    # JSON is YAML in which nothing is read as something else.
    file = folder / "values.yaml"
    file.write_text(json.dumps(values, ensure_ascii=False))
    return helm.ran("template", release, CHART, "--namespace", NAMESPACE, "--values", file)


def made(helm: Helm, folder: Path, values: Json, release: str = "gate") -> list[Json]:
    rendered = ran(helm, folder, values, release)
    assert rendered.returncode == 0, rendered.stderr
    return read_objects(rendered.stdout)


def read_objects(text: str) -> list[Json]:
    """What kubectl and Helm read: PyYAML takes the text `<<` for something else."""
    found = list(read_text("rendered", text))
    assert not [each for each in found if isinstance(each, Problem)]
    return [each.value for each in found if isinstance(each, Document) and each.value]


def one(objects: list[Json], kind: str) -> Json:
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


@few
@given(values=VALUES)
def test_values_are_refused_with_a_reason_or_can_be_applied(helm: Helm, tmp_path: Path, values: Json) -> None:
    rendered = ran(helm, tmp_path, values)
    if rendered.returncode:
        assert re.search(r"schema|gpugate/templates/validate\.yaml", rendered.stderr)
        return
    found = read_objects(rendered.stdout)
    assert all(each["apiVersion"] and each["kind"] and each["metadata"]["name"] for each in found)
    policy = json.loads(
        next(each for each in found if each["metadata"]["name"].endswith("-policy"))["data"]["policy.yaml"]
    )
    given_policy = {key: value for key, value in values.get("policy", {}).items() if value is not None}
    assert policy | given_policy == policy


@few
@given(arguments=st.lists(TEXTS), note=TEXTS, reason=TEXTS)
def test_a_text_stays_what_it_is(helm: Helm, tmp_path: Path, arguments: list[str], note: str, reason: str) -> None:
    exemption = {"policies": ["pods/*"], "names": ["a"], "reason": f"r{reason}", "owner": "o", "expires": "2027-03-31"}
    values = {
        "server": {"arguments": arguments, "environment": [{"name": "A", "value": note}]},
        "pods": {"annotations": {"note": note}, "nodeSelector": {"a": note}},
        "clientAuthentication": {"configMapName": "ca", "names": arguments},
        "policy": {"exemptions": [exemption]},
        "audit": {"arguments": arguments},
    }
    objects = made(helm, tmp_path, values)
    template = one(objects, "Deployment")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    audit = one(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    policy = next(each for each in objects if each["metadata"]["name"].endswith("-policy"))

    expected = [*(f"--client-name={each}" for each in arguments), *arguments]
    assert container["args"][len(container["args"]) - len(expected) :] == expected
    assert container["env"] == [{"name": "A", "value": note}]
    assert template["metadata"]["annotations"]["note"] == note
    assert template["spec"]["nodeSelector"]["a"] == note
    assert audit["args"][len(audit["args"]) - len(arguments) :] == arguments
    assert json.loads(policy["data"]["policy.yaml"])["exemptions"] == [exemption]


@few
@given(name=TEXTS)
def test_nothing_of_a_platform_ends_a_match_condition(helm: Helm, tmp_path: Path, name: str) -> None:
    platform = {"taints": {"*": [{"key": name}]}, "accelerators": {"resources": [name], "device_classes": [name]}}
    rendered = ran(helm, tmp_path, {"policy": {"platform": platform}})
    if rendered.returncode:
        assert "schema" in rendered.stderr
        return
    assert re.fullmatch(r"[A-Za-z0-9./_*-]+", name)


@few
@given(release=RELEASES)
def test_every_name_is_one_that_the_api_server_takes(helm: Helm, tmp_path: Path, release: str) -> None:
    objects = made(helm, tmp_path, {}, release)
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}

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
def test_objects_are_called_by_the_release_as_services_may_be(
    helm: Helm, tmp_path: Path, release: str, name: str
) -> None:
    assert one(made(helm, tmp_path, {}, release), "Service")["metadata"]["name"] == name


@pytest.mark.parametrize("word", ["on", "null", "1e3"])
def test_a_name_that_yaml_would_read_as_something_else_stays_a_name(helm: Helm, tmp_path: Path, word: str) -> None:
    account = {"create": False, "name": word}
    objects = made(helm, tmp_path, {"serviceAccount": account, "migNamespaces": {word: ["1g.10gb"]}}, word)

    assert one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == word
    assert one(objects, "ResourceClaimTemplate")["metadata"]["namespace"] == word
    assert {each["metadata"]["labels"]["app.kubernetes.io/instance"] for each in objects} == {word}
