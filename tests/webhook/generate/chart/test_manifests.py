"""The objects of the chart without Helm."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import ConfigError, PolicyConfig, parse
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


PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
FAIL: Json = {"failOnInstall": True, "pods": {"failurePolicy": "Fail"}}


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
        pytest.param({"replicaCount": 1, "webhooks": FAIL}, (), "failurePolicy: Fail with one replica", id="harmful"),
    ],
)
def test_values_are_refused_as_helm_refuses_them(values: Json, path: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        made(**values)

    assert (error.value.path, reason in error.value.message) == (path, True), error.value.message


PROVIDED: Json = {"mode": "provided", "secretName": "tls"}


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


def network_policy(**values: Any) -> Json:
    spec: Json = made(networkPolicy=values)["NetworkPolicy", "gpugate"]["spec"]
    return spec


class TestNetworkPolicy:
    def test_as_shipped_both_ports_are_reached_and_no_other(self) -> None:
        spec = network_policy()

        assert (spec["policyTypes"], "egress" in spec) == (["Ingress"], False)
        assert spec["ingress"] == [
            {"ports": [{"port": "reviews", "protocol": "TCP"}]},
            {"ports": [{"port": "health", "protocol": "TCP"}], "from": [{"namespaceSelector": {}}]},
        ]

    def test_networks_of_api_servers_are_the_only_ones_to_reach_the_webhook(self) -> None:
        reviews, _ = network_policy(apiServerCidrs=["10.0.0.0/28"])["ingress"]

        assert reviews["from"] == [{"ipBlock": {"cidr": "10.0.0.0/28"}}]

    def test_egress_leads_to_dns_and_api_servers(self) -> None:
        rule = {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}]}
        spec = network_policy(restrictEgress=True, apiServerPorts=[8443], egress=[rule])

        assert spec["policyTypes"] == ["Ingress", "Egress"]
        dns, api, more = spec["egress"]
        assert {(each["port"], each["protocol"]) for each in dns["ports"]} == {
            (port, protocol) for port in (53, 5353) for protocol in ("UDP", "TCP")
        }
        assert (api, more) == ({"ports": [{"port": 8443, "protocol": "TCP"}]}, rule)

    def test_it_can_be_left_out(self) -> None:
        assert ("NetworkPolicy", "gpugate") not in made(networkPolicy={"enabled": False})


class TestClientAuthentication:
    def test_authorities_are_mounted_from_a_config_map_of_the_chart(self) -> None:
        objects = made(clientAuthentication={"caBundle": PEM})
        pod = objects["Deployment", "gpugate"]["spec"]["template"]["spec"]
        (volume,) = (each for each in pod["volumes"] if each["name"] == "client-ca")

        assert objects["ConfigMap", volume["configMap"]["name"]]["data"] == {"ca.crt": PEM}
        assert {"--client-ca=/etc/gpugate/client-ca/ca.crt", "--client-name=kube-apiserver"} <= set(
            pod["containers"][0]["args"]
        )

    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            pytest.param({"caBundle": PEM, "configMapName": "ca"}, "are both given", id="two-sources"),
            pytest.param({"caBundle": "LS0tLS1C"}, "holds no certificate", id="encoded"),
            pytest.param({"caBundle": f"{PEM}-----BEGIN PRIVATE KEY-----\n"}, "holds a private key", id="with-a-key"),
        ],
    )
    def test_what_is_no_list_of_authorities_is_rejected(self, values: Json, reason: str) -> None:
        with pytest.raises(ConfigError, match=reason):
            made(clientAuthentication=values)
