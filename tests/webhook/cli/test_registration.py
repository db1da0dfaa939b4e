from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    file = tmp_path / "ca.crt"
    file.write_text(PEM)
    return file


def test_it_prints_what_kubectl_applies(gpugate: Run, authority: Path) -> None:
    ran = gpugate("registration", "--url", "https://10.0.0.7:8443", "--ca-file", authority)

    objects = list(yaml.safe_load_all(ran.out))
    assert (ran.code, [each["kind"] for each in objects]) == (
        0,
        ["ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    )
    assert objects[3]["webhooks"][0]["clientConfig"]["url"] == "https://10.0.0.7:8443/validate"


def test_without_a_url_the_service_is_asked(gpugate: Run, authority: Path) -> None:
    flags = ("--namespace", "guard", "--service", "gate", "--service-account", "reader")
    ran = gpugate("registration", "--ca-file", authority, *flags)

    _, binding, mutating, _ = yaml.safe_load_all(ran.out)
    service = mutating["webhooks"][0]["clientConfig"]["service"]
    assert service == {"namespace": "guard", "name": "gate", "path": "/mutate", "port": 443}
    assert binding["subjects"][0]["name"] == "reader"


def test_a_server_that_keeps_certificates_gets_the_rights_for_it(gpugate: Run) -> None:
    ran = gpugate("registration", "--certificate-secret", "authorities")

    objects = list(yaml.safe_load_all(ran.out))
    secrets = [rule for each in objects for rule in each.get("rules", ()) if rule["resources"] == ["secrets"]]
    assert secrets[-1]["resourceNames"] == ["authorities"]
    # Applied again, it must not take away what the server published.
    assert all("caBundle" not in hook["clientConfig"] for each in objects[-2:] for hook in each["webhooks"])


def failing(configuration: dict[str, Any]) -> set[str]:
    hooks = configuration["webhooks"]
    return {each["name"] for each in hooks if each["failurePolicy"] == "Fail"} - {
        "probe.mutate.gpugate.dev",
        "probe.validate.gpugate.dev",
    }


def test_the_policy_file_decides_what_is_sent(gpugate: Run, authority: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n")

    ran = gpugate("registration", "--ca-file", authority, "--policy-file", file, "--fail", "pods")

    *_, validating = yaml.safe_load_all(ran.out)
    assert failing(validating) == set()


def test_requests_wait_for_the_groups_that_are_asked_for(gpugate: Run, authority: Path) -> None:
    flags = ("--fail", "pods", "--fail", "claims", "--fail-mutating", "scaling")
    ran = gpugate("registration", "--ca-file", authority, *flags)

    *_, mutating, validating = yaml.safe_load_all(ran.out)
    assert failing(mutating) == {"scaling.mutate.gpugate.dev"}
    assert failing(validating) == {"pods.validate.gpugate.dev", "claims.validate.gpugate.dev"}


@pytest.mark.parametrize("group", ["nodeclaims", "workloads"])
def test_what_nodes_and_warnings_come_with_cannot_be_made_to_wait(gpugate: Run, authority: Path, group: str) -> None:
    ran = gpugate("registration", "--ca-file", authority, "--fail", group)

    assert (ran.code, "invalid value" in ran.err) == (2, True)


def test_karpenter_is_who_it_is_said_to_be(gpugate: Run, authority: Path) -> None:
    ran = gpugate("registration", "--ca-file", authority, "--karpenter-user", "system:serviceaccount:nodes:k")

    *_, validating = yaml.safe_load_all(ran.out)
    assert validating["webhooks"][0]["matchConditions"][0] == {
        "name": "is-not-from-karpenter",
        "expression": "!(request.userInfo.username in ['system:serviceaccount:nodes:k'])",
    }


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        pytest.param(["--url", "http://a:1"], "--url http://a:1: write https://HOST:PORT", id="not-https"),
        pytest.param(["--url", "https://a/validate"], "without a path: /mutate and /validate are added", id="path"),
        pytest.param(["--url", "https://a:x"], "write https://HOST:PORT", id="no-port"),
        pytest.param(["--namespace", "A b"], "--namespace A b: ", id="no-name"),
        pytest.param(["--certificate-secret", "a"], "set either --ca-file", id="kept-and-given"),
        pytest.param(["--ca-file", "nowhere.crt"], "--ca-file nowhere.crt: no such file", id="no-file"),
    ],
)
def test_a_mistake_is_named(gpugate: Run, authority: Path, flags: list[str], says: str) -> None:
    ran = gpugate("registration", "--ca-file", authority, *flags)

    assert (ran.code, says in ran.err, ran.out) == (2, True, "")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("AAAA", "contains no PEM certificate"),
        (PEM + "-----BEGIN PRIVATE KEY-----\nAAAA\n", "contains a private key, which would become public"),
    ],
)
def test_only_certificates_are_published(gpugate: Run, authority: Path, content: str, says: str) -> None:
    authority.write_text(content)

    ran = gpugate("registration", "--ca-file", authority)

    assert (ran.code, says in ran.err, ran.out) == (2, True, "")
