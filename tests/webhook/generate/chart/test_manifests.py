"""The objects of the chart without Helm."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, parse
from gpugate.policies.engine.errors import ConfigError
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.platform import Platform
from gpugate.webhook.generate.chart.manifests import default_values, manifests, merged
from gpugate.webhook.generate.drift import drift
from gpugate.webhook.generate.drift_reasons import Reason
from gpugate.webhook.generate.entries import entries, whole_catalogue
from gpugate.webhook.generate.registration import Server

Json = dict[str, Any]


def made(**values: Any) -> dict[tuple[str, str], Json]:
    found = manifests(merged(values, default_values()), "gpugate", "guard")
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


PLATFORM: Json = {
    "taints": {"a.b/*": [{"key": "a.b/npu"}, {"key": "dedicated-*", "value": "npu"}]},
    "accelerators": {"resources": ["a.b/npu", "a.b/slice-*"], "device_classes": ["npu.a.b"]},
}


@pytest.mark.parametrize("platform", [{}, PLATFORM], ids=["no-names-of-its-own", "names-of-its-own"])
@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_the_entries_are_those_of_the_whole_catalogue(phase: Any, platform: Json) -> None:
    kind = "MutatingWebhookConfiguration" if phase == "mutate" else "ValidatingWebhookConfiguration"
    values = made(webhooks={"karpenterUsers": []}, policy={"platform": platform})
    *found, _ = values[kind, "gpugate"]["webhooks"]

    ruleset = whole_catalogue(PolicyConfig(platform=parse(platform, Platform, ())))
    assert [(each["name"], each["rules"], each["matchConditions"]) for each in found] == [
        (entry.name, entry.rules, list(entry.conditions)) for entry in entries(ruleset, phase)
    ]


@pytest.mark.parametrize("mode", ["audit", None])
def test_they_are_what_is_looked_for_whatever_the_policy_file_says(mode: str | None) -> None:
    live = [each for (kind, _), each in made().items() if kind.endswith("WebhookConfiguration")]
    ruleset = bind(CATALOG, PolicyConfig(mode=mode))
    found = drift(ruleset, live, Server(b"", "guard"), b"", now=dt.datetime.now(dt.UTC))

    # The webhook publishes its authority itself.
    assert {each.reason for each in found} == {Reason.BUNDLE_EMPTY}


def test_webhook_configurations_come_last() -> None:
    kinds = [kind for kind, _ in made()]

    assert kinds[-2:] == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]


def test_hooks_of_helm_are_not_among_them() -> None:
    assert not any("helm.sh" in str(each["metadata"]) for each in made().values())


@pytest.mark.parametrize(
    ("values", "path", "reason"),
    [
        pytest.param({"imagee": {}}, ("imagee",), "unknown key", id="unknown"),
        pytest.param({"image": {"tag": ""}}, ("image", "tag"), "matching regex", id="wrong"),
        pytest.param(
            {"webhooks": {"pods": {"enabled": None}}}, ("webhooks", "pods", "enabled"), "null", id="taken-away"
        ),
        pytest.param({"policy": {"mode": "Audit"}}, ("policy", "mode"), "invalid", id="policy"),
        pytest.param(
            {"policy": {"policies": {"pods/x": {"mode": "warn"}}}},
            ("policy", "policies", "pods/x"),
            "no policy is called",
            id="unknown-policy",
        ),
        pytest.param({"networkPolicy": {"enabled": True}}, (), "networkPolicy without apiServerCidrs", id="harmful"),
    ],
)
def test_values_are_refused_as_helm_refuses_them(values: Json, path: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        made(**values)

    assert (error.value.path, reason in error.value.message) == (path, True), error.value.message


def test_null_takes_a_default_away() -> None:
    spec = made(pods={"affinity": None})["Deployment", "gpugate"]["spec"]["template"]["spec"]

    assert "affinity" not in spec
