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


def test_the_policy_file_decides_what_is_sent(gpugate: Run, authority: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n")

    ran = gpugate("registration", "--ca-file", authority, "--policy-file", file)

    *_, validating = yaml.safe_load_all(ran.out)
    assert {each["failurePolicy"] for each in validating["webhooks"]} == {"Ignore"}


def test_failure_policies_are_asked_for(gpugate: Run, authority: Path) -> None:
    flags = ("--failure-policy", "Ignore", "--mutating-failure-policy", "Fail")
    ran = gpugate("registration", "--ca-file", authority, *flags)

    *_, mutating, validating = yaml.safe_load_all(ran.out)
    assert (mutating["webhooks"][0]["failurePolicy"], validating["webhooks"][0]["failurePolicy"]) == ("Fail", "Ignore")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        pytest.param(["--url", "http://a:1"], "--url http://a:1: write https://HOST:PORT", id="not-https"),
        pytest.param(["--url", "https://a/validate"], "without a path: /mutate and /validate are added", id="path"),
        pytest.param(["--url", "https://a:x"], "write https://HOST:PORT", id="no-port"),
        pytest.param(["--namespace", "A b"], "--namespace A b: ", id="no-name"),
        pytest.param(["--ca-file", "nowhere.crt"], "--ca-file nowhere.crt: no such file", id="no-file"),
    ],
)
def test_a_mistake_is_named(gpugate: Run, authority: Path, flags: list[str], says: str) -> None:
    ran = gpugate("registration", "--ca-file", authority, *flags)

    assert (ran.code, says in ran.err, ran.out) == (2, True, "")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("AAAA", "holds no certificate in PEM"),
        (PEM + "-----BEGIN PRIVATE KEY-----\nAAAA\n", "holds a private key, which everybody could read then"),
    ],
)
def test_only_certificates_are_published(gpugate: Run, authority: Path, content: str, says: str) -> None:
    authority.write_text(content)

    ran = gpugate("registration", "--ca-file", authority)

    assert (ran.code, says in ran.err, ran.out) == (2, True, "")
