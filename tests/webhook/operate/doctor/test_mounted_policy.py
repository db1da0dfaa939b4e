"""The policy file that the webhook's Pods use."""

from __future__ import annotations

from typing import Any

import pytest
from operate.doctor.installed import installation

from gpugate.webhook.operate.doctor_case import mounted_policy, used_bundle
from gpugate.webhook.operate.installation import Unread

MOUNT = {"name": "policy", "mountPath": "/etc/gpugate"}
VOLUME = {"name": "policy", "configMap": {"name": "rules"}}
DATA = {"rules": {"policy.yaml": "mode: audit", "other.yaml": "mode: off"}}


def deployment(container: dict[str, Any], volume: dict[str, Any] | None = None) -> dict[str, Any]:
    spec = {"containers": [{"volumeMounts": [MOUNT], **container}], "volumes": [volume or VOLUME]}
    return {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["serve", "--policy-file=/etc/gpugate/policy.yaml"]},
        {"command": ["gpugate", "serve", "--policy-file", "/etc/gpugate/policy.yaml"]},
        {"env": [{"name": "GPUGATE_POLICY_FILE", "value": "/etc/gpugate/policy.yaml"}]},
        {
            "args": ["--policy-file=/policy.yaml"],
            "volumeMounts": [{"name": "policy", "mountPath": "/policy.yaml", "subPath": "policy.yaml"}],
        },
    ],
    ids=["argument", "two arguments", "environment", "one file mounted"],
)
def test_the_policy_file_of_the_container_is_used(container: dict[str, Any]) -> None:
    found = mounted_policy(installation(deployments=(deployment(container),), config_maps=DATA))

    assert found == ("ConfigMap gpugate/rules, policy.yaml", "mode: audit")


def test_a_key_may_be_mounted_under_another_name() -> None:
    volume = {"name": "policy", "configMap": {"name": "rules", "items": [{"key": "other.yaml", "path": "policy.yaml"}]}}
    container = {"args": ["--policy-file=/etc/gpugate/policy.yaml"]}

    found = mounted_policy(installation(deployments=(deployment(container, volume),), config_maps=DATA))

    assert found is not None
    assert found.text == "mode: off"


@pytest.mark.parametrize(
    "deployments",
    [
        Unread("Deployments of gpugate", "no"),
        (),
        (deployment({"args": ["serve"]}),),
        (deployment({"args": ["--policy-file=/elsewhere/policy.yaml"]}),),
        (deployment({"args": ["--policy-file=/etc/gpugate/missing.yaml"]}),),
    ],
    ids=["unread", "no Deployment", "no policy file", "not mounted", "no such key"],
)
def test_there_may_be_none(deployments: Any) -> None:
    assert mounted_policy(installation(deployments=deployments, config_maps=DATA)) is None


PULLS = ["bundle", "pull", "ghcr.io/acme/policies@sha256:1", "/etc/gpugate/bundle/current", "--key=cosign.pub"]


@pytest.mark.parametrize(
    ("containers", "reference"),
    [
        ([{"name": "bundle", "args": PULLS}], "ghcr.io/acme/policies@sha256:1"),
        ([{"name": "sidecar", "image": "mesh"}, {"name": "bundle", "args": PULLS}], "ghcr.io/acme/policies@sha256:1"),
        ([{"name": "bundle", "args": ["bundle", "verify", "ghcr.io/acme/policies:1"]}], ""),
        ([], ""),
    ],
    ids=["of the chart", "beside another one", "another command", "none"],
)
def test_the_bundle_of_the_pods_is_named(containers: list[dict[str, Any]], reference: str) -> None:
    deployed = deployment({"args": ["serve", "--policy-file=/etc/gpugate/bundle/current/policy.yaml"]})
    deployed["spec"]["template"]["spec"]["initContainers"] = containers

    assert used_bundle(installation(deployments=(deployed,))) == reference
