"""Test the objects of the default values, and the changes by other values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from chart.conftest import CHART
from chart.test_render import pod_specs

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.pods.mig_without_claim import ClaimParams
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.manifests.policy_file import load_policy_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chart.conftest import Helm

    Render = Callable[..., dict[tuple[str, str], dict[str, Any]]]

Json = dict[str, Any]
NAME = "gate-gpugate"
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
# Requests for claims are denied while the webhook is unavailable.
WAITING = ("--is-upgrade", "--set", "webhooks.claims.failurePolicy=Fail")
GROUPS = ("pools", "nodeclaims", "pods", "workloads", "scaling", "claims", "disruption", "quotas", "namespaces")


def deployment(render: Render, *flags: str | Path) -> Json:
    return render(*flags)["Deployment", NAME]["spec"]


def container(render: Render, *flags: str | Path) -> Json:
    return deployment(render, *flags)["template"]["spec"]["containers"][0]


def hooks(render: Render, *flags: str) -> dict[str, Json]:
    objects = render(*flags)
    return {
        each["name"].removesuffix(".gpugate.dev"): each
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for each in objects[kind, NAME]["webhooks"]
    }


class TestDefaults:
    def test_the_objects(self, render: Render) -> None:
        assert {(kind, name.removeprefix(NAME)) for kind, name in render()} == {
            ("ServiceAccount", ""),
            ("ClusterRole", ""),
            ("ClusterRoleBinding", ""),
            ("Role", "-certificates"),
            ("RoleBinding", "-certificates"),
            ("ClusterRole", "-certificates"),
            ("ClusterRoleBinding", "-certificates"),
            ("ConfigMap", "-policy"),
            ("Service", ""),
            ("Deployment", ""),
            ("PodDisruptionBudget", ""),
            ("NetworkPolicy", ""),
            ("MutatingWebhookConfiguration", ""),
            ("ValidatingWebhookConfiguration", ""),
            *((kind, "-wait") for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")),
            *((kind, "-wait") for kind in ("Role", "RoleBinding", "Job")),
            ("Secret", "-certificates"),
            ("Lease", ""),
            ("Pod", "-test"),
            *((kind, "-audit") for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "CronJob")),
            *((kind, "-audit-reports") for kind in ("ClusterRole", "ClusterRoleBinding")),
        }

    def test_all_requests_are_allowed_while_the_webhook_is_unavailable(self, render: Render) -> None:
        policy = yaml.safe_load(render()["ConfigMap", f"{NAME}-policy"]["data"]["policy.yaml"])
        waiting = {name for name, each in hooks(render).items() if each["failurePolicy"] == "Fail"}

        # Only the reachability probe has Fail, because under Ignore the API server does not report the reason of a failure.
        assert (policy["mode"], waiting) == ("audit", {"probe.mutate", "probe.validate"})

    def test_a_rollout_keeps_all_replicas(self, render: Render) -> None:
        spec = deployment(render)

        assert (spec["replicas"], spec["strategy"]["rollingUpdate"]) == (2, {"maxSurge": 1, "maxUnavailable": 0})

    def test_a_terminating_pod_finishes_its_requests(self, render: Render) -> None:
        spec = deployment(render)["template"]["spec"]
        paused = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]

        assert "--drain=10" in spec["containers"][0]["args"]
        assert spec["terminationGracePeriodSeconds"] >= paused + 10 + 15

    def test_pods_avoid_nodes_with_gpus(self, render: Render) -> None:
        spec = deployment(render)["template"]["spec"]
        (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]

        assert {"key": "nvidia.com/gpu.present", "operator": "NotIn", "values": ["true"]} in term["matchExpressions"]
        assert [each["key"] for each in spec["tolerations"]] == ["CriticalAddonsOnly"]

    def test_probes_use_the_health_port(self, render: Render) -> None:
        probes = [container(render)[f"{each}Probe"]["httpGet"]["port"] for each in ("startup", "liveness", "readiness")]

        assert probes == ["health", "health", "health"]

    def test_the_arguments_of_the_server(self, render: Render) -> None:
        assert container(render)["command"] == ["gpugate"]
        assert container(render)["args"] == [
            "serve",
            "--port=8443",
            "--health-port=8081",
            "--workers=2",
            "--drain=10",
            "--policy-file=/etc/gpugate/policy/policy.yaml",
            "--namespace=guard",
            f"--service={NAME}",
            f"--webhook-configuration={NAME}",
            f"--certificate-secret={NAME}-certificates",
            "--karpenter-user=system:serviceaccount:kube-system:karpenter",
            "--karpenter-user=system:serviceaccount:karpenter:karpenter",
        ]

    def test_the_service_selects_the_pods(self, render: Render) -> None:
        service = render()["Service", NAME]["spec"]

        assert service["selector"] == deployment(render)["template"]["metadata"]["labels"]
        assert service["ports"][0] == {"name": "https", "port": 443, "targetPort": "reviews", "protocol": "TCP"}
        for hook in hooks(render).values():
            assert {key: hook["clientConfig"]["service"][key] for key in ("namespace", "name", "port")} == {
                "namespace": "guard",
                "name": NAME,
                "port": 443,
            }

    def test_only_its_own_secrets_are_accessible(self, render: Render) -> None:
        objects = render()
        rules = [
            rule
            for (kind, name), each in objects.items()
            if kind in {"Role", "ClusterRole"} and not name.endswith("-cleanup")
            for rule in each["rules"]
            if "secrets" in rule["resources"]
        ]
        named = {
            verb for rule in rules for verb in rule["verbs"] if rule.get("resourceNames") != [f"{NAME}-certificates"]
        }

        assert named == {"create"}
        assert not any("*" in str(rule) for rule in rules)

    @pytest.mark.parametrize("name", [NAME, f"{NAME}-certificates"])
    def test_cluster_roles_only_read_and_change_its_own_configurations(self, render: Render, name: str) -> None:
        changes = {
            (resource, tuple(rule.get("resourceNames", ())))
            for rule in render()["ClusterRole", name]["rules"]
            for resource in rule["resources"]
            if set(rule["verbs"]) - {"get", "list", "watch"}
        }

        assert changes <= {
            ("mutatingwebhookconfigurations", (NAME,)),
            ("validatingwebhookconfigurations", (NAME,)),
        }

    def test_no_bundle_is_rendered(self, render: Render) -> None:
        assert not any("caBundle" in hook["clientConfig"] for hook in hooks(render).values())


class TestWebhooks:
    @pytest.mark.parametrize("group", GROUPS)
    def test_a_disabled_group_keeps_its_entry_without_rules(self, render: Render, group: str) -> None:
        shipped, found = hooks(render), hooks(render, "--set", f"webhooks.{group}.enabled=false")
        silent = {name for name, each in found.items() if "rules" not in each}

        assert list(found) == list(shipped)
        assert silent == {name for name in shipped if group in name.split(".")} | {"own.mutate", "own.validate"}

    def test_fail_applies_to_one_group(self, render: Render) -> None:
        flags = "webhooks.claims.failurePolicy=Fail,webhooks.scaling.mutatingFailurePolicy=Fail"
        found = hooks(render, "--is-upgrade", "--set", flags)
        waiting = {name for name, each in found.items() if each["failurePolicy"] == "Fail" and "probe" not in name}

        assert waiting == {"claims.validate", "scaling.mutate"}

    def test_platform_taints_and_resources_are_in_match_conditions(self, render: Render) -> None:
        found = hooks(render, "--values", str(CHART / "ci" / "platform-values.yaml"))
        expression = found["pods.validate"]["matchConditions"][-1]["expression"]

        assert r"matches('^(?s: |example\\.com/npu|dedicated\\.example\\.com/.*)$')" in expression
        assert r"matches('^(?s: |example\\.com/npu|example\\.com/slice-.*|deviceclass" in expression

    def test_excluded_namespaces_include_its_own(self, render: Render) -> None:
        found = hooks(render, "--set", "policy.excluded_namespaces={kube-system,b}")["pods.validate"]

        assert found["namespaceSelector"]["matchExpressions"] == [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["b", "guard", "kube-system"]}
        ]

    def test_requests_of_karpenter_are_not_sent(self, render: Render) -> None:
        found = hooks(render, "--set", "webhooks.karpenterUsers={system:serviceaccount:nodes:k}")
        exempt = {
            name
            for name, each in found.items()
            if "!(request.userInfo.username in ['system:serviceaccount:nodes:k'])"
            in [condition["expression"] for condition in each["matchConditions"]]
        }

        assert {"pools.mutate", "pools.validate", "nodeclaims.validate"} <= exempt
        assert not any(name.startswith(("pods", "claims", "scaling", "namespaces")) for name in exempt)


class TestCertificates:
    def test_cert_manager_creates_a_ca(self, render: Render) -> None:
        objects = render("--values", str(CHART / "ci" / "cert-manager-values.yaml"))
        made = {(kind, name.removeprefix(NAME)) for kind, name in objects if kind in {"Issuer", "Certificate"}}
        names = objects["Certificate", NAME]["spec"]["dnsNames"]

        assert made == {("Issuer", ""), ("Certificate", "-ca"), ("Issuer", "-ca"), ("Certificate", "")}
        assert names == [NAME, f"{NAME}.guard", f"{NAME}.guard.svc", f"{NAME}.guard.svc.cluster.local"]
        configuration = objects["ValidatingWebhookConfiguration", NAME]
        assert configuration["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": f"guard/{NAME}"}

    def test_an_existing_issuer_needs_only_a_certificate(self, render: Render) -> None:
        objects = render("--values", str(CHART / "ci" / "issuer-values.yaml"))

        assert [key for key in objects if key[0] in {"Issuer", "Certificate"}] == [("Certificate", NAME)]
        assert objects["Certificate", NAME]["spec"]["issuerRef"] == {"kind": "ClusterIssuer", "name": "platform"}

    @pytest.mark.parametrize(("case", "secret"), [("cert-manager", f"{NAME}-tls"), ("provided", "gpugate-provided")])
    def test_provided_certificates_are_read_from_their_secret(self, render: Render, case: str, secret: str) -> None:
        values = str(CHART / "ci" / f"{case}-values.yaml")
        pod = deployment(render, "--values", values)["template"]["spec"]

        assert {"name": "tls", "secret": {"secretName": secret}} in pod["volumes"]
        assert {"--tls-cert=/etc/gpugate/tls/tls.crt", "--tls-key=/etc/gpugate/tls/tls.key"} <= set(
            pod["containers"][0]["args"]
        )
        assert not any("--certificate-secret" in each for each in pod["containers"][0]["args"])
        assert ("Role", f"{NAME}-certificates") not in render("--values", values)


class TestToggles:
    def test_an_autoscaler_replaces_the_replica_count(self, render: Render) -> None:
        objects = render("--set", "autoscaling.enabled=true")

        assert "replicas" not in objects["Deployment", NAME]["spec"]
        assert objects["HorizontalPodAutoscaler", NAME]["spec"]["minReplicas"] == 2

    def test_client_authorities_are_mounted(self, render: Render, tmp_path: Path) -> None:
        (tmp_path / "clients.crt").write_text(PEM)
        flags = ("--set-file", f"clientAuthentication.caBundle={tmp_path / 'clients.crt'}")
        volumes = {each["name"]: each for each in deployment(render, *flags)["template"]["spec"]["volumes"]}

        assert render(*flags)["ConfigMap", f"{NAME}-client-ca"]["data"] == {"ca.crt": PEM}
        assert volumes["client-ca"]["configMap"]["name"] == f"{NAME}-client-ca"
        assert {"--client-ca=/etc/gpugate/client-ca/ca.crt", "--client-name=kube-apiserver"} <= set(
            container(render, *flags)["args"]
        )

    @pytest.mark.parametrize(
        ("flag", "kind", "name"),
        [
            ("metrics.serviceMonitor.enabled=true", "ServiceMonitor", NAME),
            ("metrics.prometheusRule.enabled=true", "PrometheusRule", NAME),
            ("metrics.dashboard.enabled=true", "ConfigMap", f"{NAME}-dashboard"),
            ("metrics.fleetRules.enabled=true", "PrometheusRule", f"{NAME}-fleet"),
            ("metrics.fleetDashboard.enabled=true", "ConfigMap", f"{NAME}-fleet-dashboard"),
        ],
    )
    def test_monitoring_objects_are_optional(self, render: Render, flag: str, kind: str, name: str) -> None:
        assert (kind, name) in render("--set", flag)
        assert (kind, name) not in render()

    def test_recording_rules_are_optional_groups_beside_the_alerts(self, render: Render) -> None:
        def groups(flags: str, name: str = NAME) -> list[Json]:
            return list(render("--set", flags)["PrometheusRule", name]["spec"]["groups"])

        on = "metrics.prometheusRule.enabled=true"
        written = yaml.safe_load((CHART / "files" / "recording-rules.yaml").read_text())["groups"]
        across = yaml.safe_load((CHART / "files" / "fleet-rules.yaml").read_text())["groups"]
        assert [group["name"] for group in groups(on)] == ["gpugate"]
        assert groups(f"{on},metrics.prometheusRule.recordingRules=true")[1:] == written
        assert groups("metrics.fleetRules.enabled=true", f"{NAME}-fleet") == across

    @pytest.mark.parametrize("hook", ["wait", "cleanup"])
    def test_hooks_are_optional(self, render: Render, hook: str) -> None:
        names = {name for _, name in render(*WAITING, "--set", f"hooks.{hook}.enabled=false")}

        assert f"{NAME}-{hook}" not in names

    @pytest.mark.parametrize(("flags", "there"), [((), False), (WAITING, True)], ids=["Ignore", "Fail"])
    def test_the_cleanup_job_exists_only_with_fail(
        self, render: Render, flags: tuple[str, ...], *, there: bool
    ) -> None:
        assert (("Job", f"{NAME}-cleanup") in render(*flags)) == there

    def test_namespaces_get_templates_for_their_mig_profiles(self, render: Render) -> None:
        objects = render("--set", "migNamespaces.inference={1g.10gb,1g.10gb+me}")
        templates = {
            name: each["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]["cel"]["expression"]
            for (kind, name), each in objects.items()
            if kind == "ResourceClaimTemplate" and each["metadata"]["namespace"] == "inference"
        }

        assert templates == {
            "mig-1g-10gb": "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'",
            "mig-1g-10gb-me": "device.attributes['gpu.nvidia.com'].profile == '1g.10gb+me'",
        }

    def test_duplicate_profiles_give_one_template(self, render: Render) -> None:
        kinds = [kind for kind, _ in render("--set", "migNamespaces.inference={1g.10gb,1g.10gb}")]

        assert kinds.count("ResourceClaimTemplate") == 1

    def test_template_names_match_those_of_policies(self, render: Render) -> None:
        objects = render("--set", "migNamespaces.inference={1g.10gb}")

        assert ("ResourceClaimTemplate", f"{ClaimParams().template_prefix}1g-10gb") in objects

    def test_null_removes_a_default(self, render: Render) -> None:
        assert "affinity" not in deployment(render, "--set", "affinity=null")["template"]["spec"]

    def test_a_policy_change_replaces_the_pods(self, render: Render) -> None:
        def checksum(*flags: str) -> str:
            annotations = deployment(render, *flags)["template"]["metadata"]["annotations"]
            return str(annotations["gpugate.dev/policy-checksum"])

        assert checksum() != checksum("--set", "policy.mode=warn")
        assert checksum() == checksum("--set", "replicaCount=3")

    def test_the_rendered_policy_file_is_valid(self, helm: Helm, tmp_path: Path) -> None:
        file = tmp_path / "installed.yaml"
        file.write_text(helm.template("--set", "policy.policies.pods/missing-gpu-toleration.mode=warn").stdout)
        ruleset = load_policy_file(file, lambda config: bind(CATALOG, config))

        modes = {rule.policy.id: rule.mode for rule in ruleset.rules}
        assert modes["pods/missing-gpu-toleration"] is Stance.WARN

    def test_a_shadow_policy_file_is_mounted_and_replaces_no_pod(
        self, helm: Helm, render: Render, tmp_path: Path
    ) -> None:
        flags = ("--set", "policy.shadow.policies.pods/missing-gpu-toleration.mode=warn")
        objects = render(*flags)
        spec = deployment(render, *flags)["template"]
        (container,) = spec["spec"]["containers"]
        mounted = next(mount for mount in container["volumeMounts"] if mount["name"] == "shadow-policy")
        ((key, text),) = objects["ConfigMap", f"{NAME}-shadow-policy"]["data"].items()
        assert f"--shadow-policy-file={mounted['mountPath']}/{key}" in container["args"]
        (tmp_path / key).write_text(text)
        ruleset = load_policy_file(tmp_path / key, lambda config: bind(CATALOG, config))
        assert {rule.policy.id: rule.mode for rule in ruleset.rules}["pods/missing-gpu-toleration"] is Stance.WARN

        # The policy file is without it, and is still found among the rendered manifests.
        (tmp_path / "installed.yaml").write_text(helm.template(*flags).stdout)
        load_policy_file(tmp_path / "installed.yaml", lambda config: bind(CATALOG, config))
        others = deployment(render, "--set", "policy.shadow.mode=warn")["template"]
        assert spec["metadata"]["annotations"] == others["metadata"]["annotations"]
        assert "shadow" not in str(render())

    def test_reviews_are_recorded_into_a_volume(self, render: Render) -> None:
        flags = (
            "--set-json",
            'record={"volume":{"persistentVolumeClaim":{"claimName":"reviews"}},"fraction":0.25,"maxSize":"2Gi"}',
        )
        spec = deployment(render, *flags)["template"]["spec"]
        (container,) = spec["containers"]
        (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "record")
        arguments = [argument for argument in container["args"] if argument.startswith("--record")]
        assert arguments == [f"--record={mount['mountPath']}", "--record-fraction=0.25", "--record-max=2Gi"]
        (volume,) = (volume for volume in spec["volumes"] if volume["name"] == "record")
        assert volume["persistentVolumeClaim"] == {"claimName": "reviews"}
        assert not mount.get("readOnly")

        without = deployment(render)["template"]["spec"]
        assert "record" not in str([*without["containers"][0]["args"], *without["volumes"]])
        assert (
            "--record=/record"
            in deployment(render, "--set-json", 'record.volume={"emptyDir":{}}')["template"]["spec"]["containers"][0][
                "args"
            ]
        )

    def test_services_set_no_variables_of_flags(self, helm: Helm) -> None:
        # The programs in hooks read the same variables.
        specs = dict(pod_specs(helm.objects(*WAITING)))

        assert len(specs) == 5
        assert {name for name, spec in specs.items() if spec["enableServiceLinks"] is not False} == set()


def pods(objects: dict[tuple[str, str], Json]) -> dict[str, Json]:
    """Return the Pods that come of the objects, by kind and name of what creates them."""
    templates = {
        "Pod": lambda each: each,
        "CronJob": lambda each: each["spec"]["jobTemplate"]["spec"]["template"],
        "Deployment": lambda each: each["spec"]["template"],
        "Job": lambda each: each["spec"]["template"],
    }
    return {f"{kind} {name}": templates[kind](each) for (kind, name), each in objects.items() if kind in templates}


WEBHOOK_POD = {f"Deployment {NAME}"}
POD_SPECS: dict[str, tuple[Json, Json, bool]] = {
    "imagePullSecrets": ({}, {"imagePullSecrets": [{"name": "registry"}]}, False),
    "tolerations": ({}, {"tolerations": [{"key": "infra", "operator": "Exists"}]}, False),
    "nodeSelector": ({}, {"nodeSelector": {"kubernetes.io/os": "linux", "pool": "infra"}}, False),
    "hostNetwork": ({"hostNetwork": True}, {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, True),
    "priorityClassName": ({}, {"priorityClassName": "platform"}, True),
    "podSecurityContext": (
        {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}},
        {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}},
        False,
    ),
    "topologySpreadConstraints": (
        {
            "topologySpreadConstraints": [
                {"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"},
                {"topologyKey": "a", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}},
            ]
        },
        {
            "topologySpreadConstraints": [
                {
                    "topologyKey": "rack",
                    "maxSkew": 2,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {
                        "matchLabels": {
                            "app.kubernetes.io/component": "webhook",
                            "app.kubernetes.io/instance": "gate",
                            "app.kubernetes.io/name": "gpugate",
                        }
                    },
                },
                {"topologyKey": "a", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}},
            ]
        },
        True,
    ),
}


class TestConventionalValues:
    @pytest.mark.parametrize(("values", "expected", "only_webhook"), POD_SPECS.values(), ids=POD_SPECS)
    def test_fields_of_pods(
        self, render: Render, tmp_path: Path, values: Json, expected: Json, *, only_webhook: bool
    ) -> None:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(values or expected))
        specs = {name: pod["spec"] for name, pod in pods(render(*WAITING, "--values", file)).items()}
        changed = {name for name, spec in specs.items() if {key: spec.get(key) for key in expected} == expected}

        assert len(specs) == 5
        assert changed == (WEBHOOK_POD if only_webhook else specs.keys())

    @pytest.mark.parametrize(
        ("values", "field", "expected"),
        [
            ({"extraArgs": ["--trace"]}, "args", "--trace"),
            ({"extraEnv": [{"name": "A", "value": "b"}]}, "env", {"name": "A", "value": "b"}),
            (
                {"extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}]},
                "volumeMounts",
                {"name": "ca", "mountPath": "/ca"},
            ),
        ],
        ids=["extraArgs", "extraEnv", "extraVolumeMounts"],
    )
    def test_additions_to_the_container(
        self, render: Render, tmp_path: Path, values: Json, field: str, expected: Any
    ) -> None:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(values))
        added = container(render, "--values", file)[field]

        assert added == [*container(render).get(field, []), expected]

    def test_extra_volumes_are_added(self, render: Render) -> None:
        volumes = deployment(render, "--set", "extraVolumes[0].name=ca,extraVolumes[0].emptyDir.medium=Memory")

        assert volumes["template"]["spec"]["volumes"] == [
            *deployment(render)["template"]["spec"]["volumes"],
            {"name": "ca", "emptyDir": {"medium": "Memory"}},
        ]

    def test_resources_are_of_the_webhook_and_of_hooks(self, render: Render) -> None:
        found = {
            name: pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            for name, pod in pods(render(*WAITING, "--set", "resources.requests.cpu=300m")).items()
        }

        assert {name for name, cpu in found.items() if cpu == "300m"} == found.keys() - {f"CronJob {NAME}-audit"}

    def test_the_security_context_is_of_every_container(self, render: Render) -> None:
        found = pods(render(*WAITING, "--set", "securityContext.runAsUser=1000"))

        assert {pod["spec"]["containers"][0]["securityContext"]["runAsUser"] for pod in found.values()} == {1000}

    def test_pod_labels_and_annotations_are_on_every_pod(self, render: Render) -> None:
        flags = ("--set-string", "podLabels.sidecar=false,podAnnotations.sidecar=false")
        found = pods(render(*WAITING, *flags))

        assert len(found) == 5
        for pod in found.values():
            assert pod["metadata"]["labels"]["sidecar"] == "false"
            assert pod["metadata"]["annotations"]["sidecar"] == "false"

    def test_common_labels_and_annotations_are_on_every_object(self, render: Render) -> None:
        switches = (
            "metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true"
        )
        flags = ("--set", f"{switches},commonLabels.team=platform,commonAnnotations.team=platform")
        cases = [(), ("--values", CHART / "ci" / "cert-manager-values.yaml"), ("--set", "autoscaling.enabled=true")]
        for case in cases:
            objects = render(*WAITING, *flags, "--set", "migNamespaces.a={1g.10gb}", *case)
            metadata = {key: each["metadata"] for key, each in objects.items()}

            assert {key for key, each in metadata.items() if each["labels"].get("team") != "platform"} == set()
            assert {key for key, each in metadata.items() if each["annotations"].get("team") != "platform"} == set()
            assert {pod["metadata"]["labels"]["team"] for pod in pods(objects).values()} == {"platform"}

    def test_common_labels_are_in_no_selector(self, render: Render) -> None:
        shipped, found = render(), render("--set", "commonLabels.team=platform,podLabels.team=platform")

        assert found["Service", NAME]["spec"] == shipped["Service", NAME]["spec"]
        assert found["Deployment", NAME]["spec"]["selector"] == shipped["Deployment", NAME]["spec"]["selector"]

    @pytest.mark.parametrize("key", ["commonLabels", "podLabels"])
    def test_labels_of_the_chart_cannot_be_replaced(self, render: Render, key: str) -> None:
        replaced = r"app\.kubernetes\.io/name=a,{key}.app\.kubernetes\.io/component=b"
        found = render("--set", f"{key}.{replaced.format(key=key)}")

        assert (
            found["Service", NAME]["spec"]["selector"].items()
            <= pods(found)[f"Deployment {NAME}"]["metadata"]["labels"].items()
        )
        assert {each["metadata"]["labels"]["app.kubernetes.io/name"] for each in found.values()} == {"gpugate"}

    @pytest.mark.parametrize(
        ("flags", "name"),
        [
            ("nameOverride=guard", "gate-guard"),
            ("nameOverride=gate", "gate"),
            ("nameOverride=a,fullnameOverride=b", "b"),
        ],
    )
    def test_names_can_be_overridden(self, render: Render, flags: str, name: str) -> None:
        objects = render("--set", flags)

        assert ("Deployment", name) in objects
        assert objects["Deployment", name]["metadata"]["labels"]["app.kubernetes.io/name"] == "gpugate"
        assert {each for _, each in objects if not each.startswith(name)} == set()

    def test_the_service_account_has_annotations(self, render: Render) -> None:
        account = render("--set", "serviceAccount.annotations.role=a")["ServiceAccount", NAME]

        assert account["metadata"]["annotations"] == {"role": "a"}


class TestNetworkPolicy:
    def spec(self, render: Render, **values: Any) -> Json:
        return render("--set-json", f"networkPolicy={json.dumps(values)}")["NetworkPolicy", NAME]["spec"]

    def test_by_default_only_both_ports_are_reachable(self, render: Render) -> None:
        spec = self.spec(render)

        assert (spec["policyTypes"], "egress" in spec) == (["Ingress"], False)
        assert spec["ingress"] == [
            {"ports": [{"port": "reviews", "protocol": "TCP"}]},
            {"ports": [{"port": "health", "protocol": "TCP"}], "from": [{"namespaceSelector": {}}]},
        ]

    def test_only_api_server_networks_reach_the_webhook(self, render: Render) -> None:
        assert self.spec(render, apiServerCidrs=["10.0.0.0/28"], metricsFrom=[])["ingress"] == [
            {"ports": [{"port": "reviews", "protocol": "TCP"}], "from": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]}
        ]

    def test_egress_is_limited_to_dns_and_api_servers(self, render: Render) -> None:
        rule = {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}]}
        spec = self.spec(render, restrictEgress=True, apiServerPorts=[8443], egress=[rule])

        assert spec["policyTypes"] == ["Ingress", "Egress"]
        dns, api, more = spec["egress"]
        assert {(each["port"], each["protocol"]) for each in dns["ports"]} == {
            (port, protocol) for port in (53, 5353) for protocol in ("UDP", "TCP")
        }
        assert (api, more) == ({"ports": [{"port": 8443, "protocol": "TCP"}]}, rule)

    def test_the_network_policy_is_optional(self, render: Render) -> None:
        assert ("NetworkPolicy", NAME) not in render("--set", "networkPolicy.enabled=false")


class TestMonitoring:
    def alerts(self, render: Render, mode: str) -> list[Json]:
        case = {"self": "default", "provided": "provided"}[mode]
        flags = ("--values", CHART / "ci" / f"{case}-values.yaml", "--set", "metrics.prometheusRule.enabled=true")
        (group,) = render(*flags)["PrometheusRule", NAME]["spec"]["groups"]
        return group["rules"]

    @pytest.mark.parametrize("mode", ["self", "provided"])
    def test_alerts_depend_on_the_certificate_mode(self, render: Render, mode: str) -> None:
        listed = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["alerts"]
        of_mode = [each for each in listed if each.get("self", mode == "self") == (mode == "self")]

        assert self.alerts(render, mode) == [
            {key: value for key, value in each.items() if key != "self"} for each in of_mode
        ]
        assert 0 < len(of_mode) < len(listed)

    def test_alerts_have_more_labels_and_a_runbook(self, render: Render) -> None:
        flags = "enabled=true,alertLabels.team=ml,alertLabels.severity=none,runbookUrl=https://a.example.com/alerts"
        values = ",".join(f"metrics.prometheusRule.{flag}" for flag in flags.split(","))
        (group,) = render("--set", values)["PrometheusRule", NAME]["spec"]["groups"]

        assert {alert["labels"]["team"] for alert in group["rules"]} == {"ml"}
        assert {alert["labels"]["severity"] for alert in group["rules"]} == {"warning", "critical"}
        assert {alert["annotations"]["runbook_url"] for alert in group["rules"]} == {
            f"https://a.example.com/alerts#{alert['alert'].lower()}" for alert in group["rules"]
        }

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("interval", "30s"),
            ("scrapeTimeout", "10s"),
            ("relabelings", [{"action": "labeldrop", "regex": "endpoint"}]),
            ("metricRelabelings", [{"action": "drop", "sourceLabels": ["__name__"], "regex": "gpugate_body.*"}]),
        ],
    )
    def test_settings_of_a_scrape(self, render: Render, key: str, value: Any) -> None:
        def endpoint(**values: Any) -> Json:
            monitor = json.dumps({"enabled": True, **values})
            (found,) = render("--set-json", f"metrics.serviceMonitor={monitor}")["ServiceMonitor", NAME]["spec"][
                "endpoints"
            ]
            return found

        assert endpoint() == {"port": "metrics", "path": "/metrics"}
        assert endpoint(**{key: value}) == endpoint() | {key: value}

    def test_the_dashboard_is_rendered_unchanged(self, render: Render) -> None:
        (text,) = render("--set", "metrics.dashboard.enabled=true")["ConfigMap", f"{NAME}-dashboard"]["data"].values()

        assert text == (CHART / "files" / "dashboard.json").read_text()


class TestOwnPolicies:
    FLAGS = (
        *("--set", "policies.organisation=acme", "--set", "policies.configMap=own"),
        *("--set", "policies.image=registry.example.com/policies:1", "--set", "audit.enabled=true"),
    )

    def test_the_webhook_and_the_audit_read_the_config_map_and_the_image(self, render: Render) -> None:
        objects = render(*self.FLAGS)
        for kind, name in (("Deployment", NAME), ("CronJob", f"{NAME}-audit")):
            ((_, spec),) = pod_specs([objects[kind, name]])
            (main,) = spec["containers"]
            assert [arg for arg in main["args"] if arg.startswith("--policy-path")] == [
                "--policy-path=/etc/gpugate/policies",
                "--policy-path=/etc/gpugate/policies-of-image",
            ]
            mounts = {mount["name"]: mount["mountPath"] for mount in main["volumeMounts"]}
            assert mounts["policies"] == "/etc/gpugate/policies/acme"
            assert mounts["policies-of-image"] == "/etc/gpugate/policies-of-image"
            volumes = {volume["name"]: volume for volume in spec["volumes"]}
            assert volumes["policies"]["configMap"] == {"name": "own"}
            assert volumes["policies-of-image"]["image"]["reference"] == "registry.example.com/policies:1"

    def test_only_with_them_the_webhook_may_create_events(self, render: Render) -> None:
        role = "Role", f"{NAME}-events"
        created = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}

        assert render(*self.FLAGS)[role]["rules"] == [created]
        assert role not in render()

    def test_the_registration_adds_to_the_roles(self, render: Render) -> None:
        rule = {"apiGroups": ["example.com"], "resources": ["runs"], "verbs": ["get", "list"]}
        for value, role in (("webhookRules", NAME), ("auditRules", f"{NAME}-audit")):
            flags = ("--set-json", f"policies.registration.{value}={json.dumps([rule])}")
            before, after = (render(*each)["ClusterRole", role]["rules"] for each in ((), flags))
            assert after == [*before, rule]

    def test_without_them_nothing_is_mounted(self, render: Render) -> None:
        assert "policies" not in {volume["name"] for volume in deployment(render)["template"]["spec"]["volumes"]}

    def test_the_policy_file_configures_them(self, render: Render) -> None:
        flags = ("--set", "policy.policies.acme/no-h100.mode=warn")
        assert "acme/no-h100" in render(*flags)["ConfigMap", f"{NAME}-policy"]["data"]["policy.yaml"]


class TestBundle:
    REFERENCE = f"registry.example.com/acme/policies@sha256:{'a' * 64}"
    KEY = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"

    @pytest.fixture
    def written(self, tmp_path: Path) -> Path:
        """Values with a key and CA certificates themselves."""
        bundle = {"reference": self.REFERENCE, "key": self.KEY, "ca": f"# of the registry\n{PEM}"}
        file = tmp_path / "values.json"
        file.write_text(json.dumps({"policy": {"bundle": bundle}}))
        return file

    def test_the_webhook_and_the_audit_pull_it_with_its_key_and_the_authorities(
        self, render: Render, written: Path
    ) -> None:
        objects = render("--values", written)
        for kind, name in (("Deployment", NAME), ("CronJob", f"{NAME}-audit")):
            ((_, spec),) = pod_specs([objects[kind, name]])
            (pulls,), (main,) = spec["initContainers"], spec["containers"]
            assert pulls["args"] == [
                *("bundle", "pull", self.REFERENCE, "/etc/gpugate/bundle/current"),
                *("--key=/etc/gpugate/bundle-key/cosign.pub", "--ca=/etc/gpugate/bundle-ca/ca.crt"),
            ]
            assert "--policy-file=/etc/gpugate/bundle/current/policy.yaml" in main["args"]
            volumes = {each["name"]: each.get("configMap", {}).get("name") for each in spec["volumes"]}
            assert (volumes["bundle-key"], volumes["bundle-ca"]) == (f"{NAME}-bundle-key", f"{NAME}-bundle-ca")

    def test_what_is_in_the_values_is_in_config_maps(self, render: Render, written: Path) -> None:
        objects = render("--values", written)
        data = {name.removeprefix(NAME): each["data"] for (kind, name), each in objects.items() if kind == "ConfigMap"}
        assert data == {
            "-bundle-key": {"cosign.pub": self.KEY},
            "-bundle-ca": {"ca.crt": f"# of the registry\n{PEM}"},
        }

    def test_what_exists_is_mounted(self, render: Render) -> None:
        names = {"keySecret": "key", "pullSecret": "login", "caConfigMap": "ca"}
        flags = (f"policy.bundle.{value}={name}" for value, name in ({"reference": self.REFERENCE} | names).items())
        spec = deployment(render, "--set", ",".join(flags))["template"]["spec"]
        volumes = {each["name"]: each for each in spec["volumes"]}
        assert volumes["bundle-key"]["secret"]["secretName"] == "key"
        assert volumes["bundle-login"]["secret"]["secretName"] == "login"
        assert volumes["bundle-ca"]["configMap"]["name"] == "ca"

    def test_without_authorities_those_of_the_image_are_trusted(self, render: Render) -> None:
        spec = deployment(render, "--set", f"policy.bundle.reference={self.REFERENCE}")["template"]["spec"]
        assert not [arg for arg in spec["initContainers"][0]["args"] if arg.startswith("--ca")]
        assert "bundle-ca" not in {each["name"] for each in spec["volumes"]}
