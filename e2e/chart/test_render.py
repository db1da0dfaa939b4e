"""What holds of everything that the chart renders."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import tools
import yaml
from chart.conftest import CASES, CHART, Helm

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
def test_helm_has_nothing_to_find_fault_with(helm: Helm, case: Path) -> None:
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
def test_no_image_is_run_but_ours(helm: Helm, case: Path) -> None:
    images = {spec["containers"][0]["image"] for _, spec in pod_specs(helm.objects("--values", case))}

    assert len(images) == 1
    assert "/gpugate" in images.pop()


@cases
def test_it_is_the_same_every_time(helm: Helm, case: Path) -> None:
    assert helm.template("--values", case).stdout == helm.template("--values", case).stdout


def test_nothing_is_asked_of_a_cluster_or_of_chance() -> None:
    text = "".join(file.read_text() for file in (CHART / "templates").rglob("*") if file.is_file())
    actions = " ".join(re.findall(r"{{.*?}}", text, re.DOTALL))

    assert re.findall(r"\b(?:lookup|gen\w*Cert|genCA|rand\w*|uuidv4|now|getHostByName)\b", actions) == []


@cases
def test_gpugate_has_nothing_to_find_fault_with(helm: Helm, case: Path) -> None:
    rendered = helm.template("--values", case).stdout
    command = [sys.executable, "-m", "gpugate.webhook.cli.main", "check", "-"]
    ran = subprocess.run(command, input=rendered, capture_output=True, text=True, check=False)  # noqa: S603 -- ours

    assert (ran.returncode, "0 errors, 0 warnings" in ran.stdout) == (0, True), ran.stdout


def test_every_object_is_in_the_namespace_of_the_release_or_in_none(render: Render) -> None:
    cluster_scoped = {
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    }
    outside = {key for key, each in render().items() if each["metadata"].get("namespace") != "guard"}

    assert {kind for kind, _ in outside} == cluster_scoped


def test_two_releases_share_no_name(helm: Helm) -> None:
    def names(release: str) -> set[str]:
        text = helm.ran("template", release, CHART, "--namespace", release, "--set", "fullnameOverride=").stdout
        return {each["metadata"]["name"] for each in yaml.safe_load_all(text) if each}

    assert names("one")
    assert names("one") & names("two") == set()


def test_the_longest_names_still_fit(helm: Helm) -> None:
    rendered = helm.ran("template", "r" * 53, CHART, "--namespace", "n" * 63)

    assert rendered.returncode == 0, rendered.stderr
    assert max(len(each["metadata"]["name"]) for each in yaml.safe_load_all(rendered.stdout) if each) <= 63


def test_the_notes_say_how_it_stands_and_how_to_end_it() -> None:
    # Helm 3 asks a cluster for them.
    helm = Helm(tools.path("helm"))
    ran = helm.ran("install", "gate", CHART, "--namespace", "default", "--dry-run=client", "--set", "replicaCount=1")
    said = ran.stdout.partition("NOTES:")[2]

    assert "Mode: audit (all requests are allowed" in said
    assert "While the webhook is unavailable: all requests are allowed" in said
    assert "One replica" in said
    assert "Namespace default" in said
    assert "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration gate-gpugate" in said


def test_how_long_it_takes(helm: Helm, figures: list[str]) -> None:
    started = time.monotonic()
    assert helm.template().returncode == 0
    figures.append(f"{helm.program.name} template with default values: {time.monotonic() - started:.2f} s")
