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


PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
PROVIDED: Json = {"mode": "provided", "secretName": "tls"}
FAIL: Json = {"failOnInstall": True, "pods": {"failurePolicy": "Fail"}}


def memory(limit: str | float) -> Json:
    return {"pods": {"resources": {"limits": {"memory": limit}}}}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param(memory("159Mi"), "less than 160Mi", id="memory"),
        pytest.param(memory("100M"), "less than 160Mi", id="memory-in-M"),
        pytest.param(memory("0.1Gi"), "less than 160Mi", id="memory-in-Gi"),
        pytest.param(memory(100_000_000), "less than 160Mi", id="memory-in-bytes"),
        pytest.param(memory("1e8"), "less than 160Mi", id="memory-with-exponent"),
        pytest.param({"serviceAccount": {"create": False}}, "every Pod of the namespace", id="rights-for-everybody"),
        pytest.param({"certificates": {**PROVIDED, "caBundle": "QUFB"}}, "holds no certificate", id="bundle-encoded"),
        pytest.param(
            {"certificates": {**PROVIDED, "caBundle": f"{PEM}-----BEGIN EC PRIVATE KEY-----"}},
            "holds a private key",
            id="bundle-with-a-key",
        ),
        pytest.param(
            {"webhooks": FAIL, "podDisruptionBudget": {"maxUnavailable": 2}}, "lets every replica go", id="all-may-go"
        ),
        pytest.param(
            {"policy": {"excluded_namespaces": ["kube-system", "gpu-*"]}}, "no name of a namespace", id="glob"
        ),
        pytest.param({"policy": {"platform": {"taints": {"*": [{"key": "a'b"}]}}}}, "no name has", id="quote-in-taint"),
        pytest.param(
            {"policy": {"platform": {"accelerators": {"resources": ["a')||('"]}}}},
            "no name has",
            id="quote-in-resource",
        ),
        pytest.param(
            {"webhooks": {"karpenterUsers": ["system:serviceaccount:a:b\n"]}}, "matching regex", id="line-break"
        ),
        pytest.param({"podDisruptionBudget": {"minAvailable": -1}}, ">= 0", id="less-than-none"),
    ],
)
def test_values_that_would_do_harm_are_refused(values: Json, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        made(**values)


@pytest.mark.parametrize(
    "values",
    [
        memory("160Mi"),
        memory("0.5Gi"),
        memory(536_870_912),
        memory("1Ti"),
        memory("1E"),
        {"pods": {"resources": {"limits": None}}},
        {"serviceAccount": {"create": False}, "rbac": {"create": False}},
        {"certificates": {**PROVIDED, "caBundle": f"# comment\n{PEM}"}},
        {"podDisruptionBudget": {"maxUnavailable": 2}},
    ],
)
def test_values_that_do_none_are_taken(values: Json) -> None:
    assert made(**values)


NAMES = {
    "gate": "gate-gpugate",
    "my.gpugate": "my-gpugate",
    "3gate": "gpugate-3gate",
    f"{'a' * 38}--b": "a" * 38,
    "r" * 53: "r" * 40,
}


@pytest.mark.parametrize(("release", "name"), NAMES.items(), ids=NAMES)
def test_objects_are_called_by_the_release_as_services_may_be(release: str, name: str) -> None:
    kinds = {each["kind"]: each["metadata"]["name"] for each in manifests(default_values(), release, "guard")}

    assert kinds["Service"] == name


def test_a_slice_that_is_listed_twice_has_one_template() -> None:
    found = list(manifests(merged({"migNamespaces": {"a": ["1g.10gb", "1g.10gb"]}}, default_values()), "gate", "guard"))

    assert [each["kind"] for each in found].count("ResourceClaimTemplate") == 1


def test_no_service_sets_a_variable_that_is_a_fallback_of_a_flag() -> None:
    objects = made()
    pods = [
        objects["Deployment", "gpugate"]["spec"]["template"]["spec"],
        objects["CronJob", "gpugate-audit"]["spec"]["jobTemplate"]["spec"]["template"]["spec"],
    ]

    assert [pod["enableServiceLinks"] for pod in pods] == [False, False]


def test_null_takes_a_default_away() -> None:
    spec = made(pods={"affinity": None})["Deployment", "gpugate"]["spec"]["template"]["spec"]

    assert "affinity" not in spec
