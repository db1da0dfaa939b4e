"""Test properties of all rendered objects."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from chart.conftest import CASES, CHART, Helm

import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Render = Callable[..., dict[tuple[str, str], dict[str, Any]]]

Json = dict[str, Any]


def pod_specs(objects: list[Json]) -> Iterator[tuple[str, Json]]:
    for each in objects:
        name = f"{each['kind']} {each['metadata']['name']}"
        if each["kind"] == "Pod":
            yield name, each["spec"]
        elif each["kind"] == "CronJob":
            yield name, each["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        elif each["kind"] in {"Deployment", "Job"}:
            yield name, each["spec"]["template"]["spec"]


cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)


@cases
def test_helm_lint_reports_nothing(helm: Helm, case: Path) -> None:
    ran = helm.ran("lint", "--strict", CHART, "--namespace", "guard", "--values", case)

    assert ran.returncode == 0, ran.stdout + ran.stderr


@cases
def test_every_pod_is_restricted(helm: Helm, case: Path) -> None:
    wrong = {}
    for name, spec in pod_specs(helm.objects("--values", case)):
        (container,) = spec["containers"]
        given = spec["securityContext"] | container["securityContext"]
        if given != {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }:
            wrong[name] = given
    assert wrong == {}


@cases
def test_only_the_configured_image_is_used(helm: Helm, case: Path) -> None:
    images = {spec["containers"][0]["image"] for _, spec in pod_specs(helm.objects("--values", case))}

    assert len(images) == 1
    assert "/gpugate" in images.pop()


@cases
def test_rendering_is_deterministic(helm: Helm, case: Path) -> None:
    assert helm.template("--values", case).stdout == helm.template("--values", case).stdout


def test_templates_use_no_cluster_lookup_or_random_values() -> None:
    text = "".join(file.read_text() for file in (CHART / "templates").rglob("*") if file.is_file())
    actions = " ".join(re.findall(r"{{.*?}}", text, re.DOTALL))

    assert re.findall(r"\b(?:lookup|gen\w*Cert|genCA|rand\w*|uuidv4|now|getHostByName)\b", actions) == []


@cases
def test_gpugate_check_reports_nothing(helm: Helm, case: Path) -> None:
    rendered = helm.template("--values", case).stdout
    command = [sys.executable, "-m", "gpugate.webhook.cli.main", "check", "-"]
    ran = subprocess.run(command, input=rendered, capture_output=True, text=True, check=False)  # noqa: S603 -- ours

    assert (ran.returncode, "0 errors, 0 warnings" in ran.stdout) == (0, True), ran.stdout


def test_objects_are_in_the_release_namespace_or_cluster_scoped(render: Render) -> None:
    cluster_scoped = {
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    }
    outside = {key for key, each in render().items() if each["metadata"].get("namespace") != "guard"}

    assert {kind for kind, _ in outside} == cluster_scoped


def test_releases_have_different_names(helm: Helm) -> None:
    def names(release: str) -> set[str]:
        text = helm.ran("template", release, CHART, "--namespace", release, "--set", "fullnameOverride=").stdout
        return {each["metadata"]["name"] for each in yaml.safe_load_all(text) if each}

    assert names("one")
    assert names("one") & names("two") == set()


def test_long_names_are_truncated(helm: Helm) -> None:
    rendered = helm.ran("template", "r" * 53, CHART, "--namespace", "n" * 63)

    assert rendered.returncode == 0, rendered.stderr
    assert max(len(each["metadata"]["name"]) for each in yaml.safe_load_all(rendered.stdout) if each) <= 63


def test_the_notes_contain_the_mode_and_the_emergency_command() -> None:
    # Helm 3 asks a cluster for them.
    helm = Helm(tools.path("helm"))
    ran = helm.ran("install", "gate", CHART, "--namespace", "default", "--dry-run=client", "--set", "replicaCount=1")
    notes = ran.stdout.partition("NOTES:")[2]

    assert "Mode: audit (all requests are allowed" in notes
    assert "While the webhook is unavailable: all requests are allowed" in notes
    assert "Only one replica" in notes
    assert "The release is in namespace default" in notes
    assert "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration gate-gpugate" in notes


def test_the_time_to_render(helm: Helm, figures: list[str]) -> None:
    started = time.monotonic()
    assert helm.template().returncode == 0
    figures.append(f"{helm.program.name} template with default values: {time.monotonic() - started:.2f} s")
