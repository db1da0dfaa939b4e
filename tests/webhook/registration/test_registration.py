"""What an API server is told to send, from the rules in force."""

from __future__ import annotations

import base64
import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pytest
from example_laws import for_each_example
from library_examples import library_example, ruleset_of

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import Ruleset, bind
from gpugate.policies.sdk.concerns import Key, without
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import NODE_POOL, POD_DISRUPTION_BUDGET, Kind, Operation
from gpugate.policies.sdk.platform import Platform
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.policies.sdk.policy import Policy, validates
from gpugate.webhook.config import starter
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.registration import match_conditions
from gpugate.webhook.registration.entries import RiskGroup, mutated, validated
from gpugate.webhook.registration.objects import Server, webhook_configurations

SERVER = Server(b"authority", url="https://127.0.0.1:8443")


def shipped(**config: Any) -> Ruleset:
    """Every policy in its shipped mode, on a platform that has set its conventions."""
    return bind(CATALOG, msgspec.structs.replace(starter.configuration(), **config))


def only(*ids: str) -> Ruleset:
    return bind(CATALOG, PolicyConfig(policies={each: PolicyEntry(mode="enforce") for each in ids}), only=ids)


def entries(ruleset: Ruleset, kind: str, **options: Any) -> dict[str, dict[str, Any]]:
    """The webhooks of one configuration by their name, without the phase in it."""
    mutating, validating = webhook_configurations(ruleset, SERVER, **options)
    configuration, phase = {"mutating": (mutating, ".mutate"), "validating": (validating, ".validate")}[kind]
    return {each["name"].replace(phase, ""): each for each in configuration["webhooks"]}


def sent(webhook: dict[str, Any]) -> dict[str, str]:
    """Resource with its group -> operations."""
    return {
        f"{name}.{rule['apiGroups'][0]}".rstrip("."): " ".join(rule["operations"])
        for rule in webhook["rules"]
        for name in rule["resources"]
    }


def test_what_can_be_changed_is_sent_to_mutate() -> None:
    found = entries(shipped(), "mutating")

    assert {name: sent(each) for name, each in found.items() if not name.startswith("probe.")} == {
        "pools.gpugate.dev": {
            "ec2nodeclasses.karpenter.k8s.aws": "CREATE",
            "nodeclasses.eks.amazonaws.com": "CREATE",
        },
        "warnings.pools.gpugate.dev": {"nodepools.karpenter.sh": "CREATE"},
        "pods.gpugate.dev": {"pods": "CREATE UPDATE"},
        "scaling.gpugate.dev": {"scaledobjects.keda.sh": "CREATE UPDATE"},
    }


@pytest.mark.parametrize(
    ("group", "resources"),
    [
        (
            "pools",
            {
                "awsnodetemplates.karpenter.k8s.aws",
                "ec2nodeclasses.karpenter.k8s.aws",
                "horizontalautoscalers.karpenter.sh",
                "metricsproducers.karpenter.sh",
                "nodeclasses.eks.amazonaws.com",
                "nodepools.karpenter.sh",
                "nodepools/scale.karpenter.sh",
                "provisioners.karpenter.sh",
                "provisioners.provisioning.karpenter.sh",
                "scalablenodegroups.karpenter.sh",
            },
        ),
        ("nodeclaims", {"machines.karpenter.sh", "nodeclaims.karpenter.sh"}),
        ("pods", {"pods", "pods/ephemeralcontainers"}),
        ("scaling", {"horizontalpodautoscalers.autoscaling", "scaledjobs.keda.sh", "scaledobjects.keda.sh"}),
        (
            "claims",
            {
                "deviceclasses.resource.k8s.io",
                "resourceclaims.resource.k8s.io",
                "resourceclaimtemplates.resource.k8s.io",
            },
        ),
        ("disruption", {"poddisruptionbudgets.policy"}),
        ("quotas", {"resourcequotas"}),
        ("namespaces", {"namespaces"}),
    ],
)
def test_each_group_is_sent_by_an_entry_of_its_own(group: str, resources: set[str]) -> None:
    assert set(sent(entries(shipped(), "validating")[f"{group}.gpugate.dev"])) == resources


def test_every_workload_with_a_pod_template_is_sent_for_warnings() -> None:
    groups = {rule["apiGroups"][0] for rule in entries(shipped(), "validating")["workloads.gpugate.dev"]["rules"]}

    # Rules and monitors of Prometheus have no Pods, but their requests never wait either.
    assert groups == {group for group, _ in TEMPLATES} - {"keda.sh"} | {"monitoring.coreos.com"}


def test_a_kind_that_nobody_thought_of_never_waits() -> None:
    kind = Kind("example.com", ("v1",), "Gadget", "gadgets")
    handler = validates(kind)(lambda _obj, _ctx: iter(()))
    ruleset = bind([Policy("pods/x", "", (handler,))], PolicyConfig())

    found = entries(ruleset, "validating", fail=tuple(RiskGroup))["workloads.gpugate.dev"]
    assert (sent(found), found["failurePolicy"]) == ({"gadgets.example.com": "CREATE UPDATE"}, "Ignore")


def test_kinds_of_one_group_with_different_concerns_each_have_their_own_condition() -> None:
    concerned = validates(POD_DISRUPTION_BUDGET, concerns=Key("metadata.labels", ("a",)))(lambda _obj, _ctx: iter(()))
    other = validates(Kind("policy", ("v1",), "Other", "others"))(lambda _obj, _ctx: iter(()))
    ruleset = bind([Policy("pods/x", "", (concerned, other))], PolicyConfig())

    _, condition = entries(ruleset, "validating")["disruption.gpugate.dev"]["matchConditions"]
    assert condition == {
        "name": "poddisruptionbudgets-concerns-a-policy",
        "expression": "request.resource.group != 'policy' || request.resource.resource != 'poddisruptionbudgets' ||\n"
        "has(object.metadata) && has(object.metadata.labels) && 'a' in object.metadata.labels",
    }


def test_nothing_is_sent_of_which_no_policy_says_anything() -> None:
    mutating, validating = webhook_configurations(bind(CATALOG, PolicyConfig(), only=()), SERVER)

    names = [each["name"] for each in (*mutating["webhooks"], *validating["webhooks"])]
    assert names == ["probe.mutate.gpugate.dev", "probe.validate.gpugate.dev"]


def test_a_policy_that_is_off_has_no_part() -> None:
    on = {"pods/mig-without-claim": PolicyEntry(mode="enforce")}
    annotation = "gpugate.dev/mig-profile"

    def conditions(ruleset: Ruleset) -> str:
        return str(entries(ruleset, "mutating")["pods.gpugate.dev"]["matchConditions"])

    assert annotation not in conditions(shipped())
    assert annotation in conditions(shipped(policies=on))


def test_a_deletion_is_sent_where_a_policy_judges_it() -> None:
    handler = validates(NODE_POOL, operations=frozenset({Operation.DELETE}))(lambda _obj, _ctx: iter(()))
    ruleset = bind([Policy("nodepools/x", "", (handler,))], PolicyConfig())

    assert sent(entries(ruleset, "validating")["pools.gpugate.dev"]) == {"nodepools.karpenter.sh": "DELETE"}
    rules = [rule for each in entries(shipped(), "validating").values() for rule in each["rules"]]
    deleted = {(*rule["apiGroups"], *rule["resources"]) for rule in rules if "DELETE" in rule["operations"]}
    assert deleted == {("karpenter.sh", "nodepools")}


def test_no_rule_stands_for_more_than_it_names() -> None:
    for configuration in webhook_configurations(shipped(), SERVER):
        for rule in (rule for each in configuration["webhooks"] for rule in each["rules"]):
            assert "*" not in "".join((*rule["apiGroups"], *rule["resources"], *rule["operations"]))
            assert rule["scope"] in {"Namespaced", "Cluster"}


@pytest.mark.parametrize(
    "resource", ["nodes", "leases", "events", "certificatesigningrequests", "tokenreviews", "secrets", "configmaps"]
)
def test_a_cluster_can_heal_without_us(resource: str) -> None:
    hooks = [hook for each in webhook_configurations(shipped(), SERVER) for hook in each["webhooks"]]
    resources = {name for hook in hooks if not hook["name"].startswith("probe.") for name in map(_resource, sent(hook))}

    assert resource not in resources


def _resource(name: str) -> str:
    return name.partition(".")[0].partition("/")[0]


def waiting(ruleset: Ruleset, phase: str = "validating", **options: Any) -> set[str]:
    found = entries(ruleset, phase, **options).items()
    return {
        name.removesuffix(".gpugate.dev")
        for name, each in found
        if each["failurePolicy"] == "Fail" and each["name"].split(".")[0] != "probe"
    }


def test_nothing_waits_unless_it_is_asked_for() -> None:
    assert (waiting(shipped()), waiting(shipped(), "mutating")) == (set(), set())


def test_a_group_waits_where_it_is_asked_for() -> None:
    assert waiting(shipped(), fail=[RiskGroup.PODS]) == {"pods"}
    assert waiting(shipped(), "mutating", fail_mutating=[RiskGroup.SCALING]) == {"scaling"}


def test_only_what_can_be_refused_or_changed_waits_for_us() -> None:
    every = {"fail": tuple(RiskGroup), "fail_mutating": tuple(RiskGroup)}

    assert waiting(shipped(), **every) == {"pools", "pods", "scaling", "claims", "disruption", "quotas", "namespaces"}
    assert waiting(shipped(), "mutating", **every) == {"pools", "pods", "scaling"}
    assert waiting(shipped(mode="audit"), **every) == set()


SYSTEM = "system:serviceaccount:kube-system:"
EVERYWHERE: list[dict[str, Any]] = [
    {"operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists", "effect": "NoExecute"},
]
OF_A_DAEMON_SET = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}]
}
PRIVILEGED = [{"name": "agent", "securityContext": {"privileged": True}}]
# Pods without which no node becomes ready, and no network, and who sends them.
BOOTSTRAP: dict[str, tuple[str, dict[str, Any]]] = {
    "a Deployment of the CNI": (
        f"{SYSTEM}replicaset-controller",
        {"metadata": {}, "spec": {"hostNetwork": True, "containers": [{"name": "typha"}], "tolerations": EVERYWHERE}},
    ),
    "a CNI agent": (
        f"{SYSTEM}daemon-set-controller",
        {
            "metadata": OF_A_DAEMON_SET,
            "spec": {
                "containers": PRIVILEGED,
                "initContainers": PRIVILEGED,
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "modules", "hostPath": {"path": "/lib/modules"}}],
            },
        },
    ),
    "the same of a controller manager without ServiceAccounts": (
        "system:kube-controller-manager",
        {
            "metadata": OF_A_DAEMON_SET,
            "spec": {"containers": PRIVILEGED, "tolerations": [{"operator": "Exists"}]},
        },
    ),
    "DNS": (
        f"{SYSTEM}replicaset-controller",
        {
            "metadata": {},
            "spec": {
                "containers": [{"name": "coredns", "resources": {"limits": {"memory": "170Mi"}}}],
                "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
                "nodeSelector": {"kubernetes.io/os": "linux"},
            },
        },
    ),
    "a Pod with a key that Karpenter dropped": (
        f"{SYSTEM}replicaset-controller",
        {"metadata": {"annotations": {"karpenter.sh/do-not-evict": "true"}}, "spec": {"containers": [{"name": "a"}]}},
    ),
}


@pytest.mark.parametrize(("user", "pod"), BOOTSTRAP.values(), ids=BOOTSTRAP)
def test_a_pod_that_no_policy_denies_never_waits(user: str, pod: dict[str, Any]) -> None:
    for judging in (validated, mutated):
        (pods,) = (each for each in judging(shipped()) if each.plural == "pods")
        assert not pods.enforced.holds(Field(pod), Platform(), user)


def test_pods_that_can_only_be_warned_about_have_an_entry_that_ignores_failures() -> None:
    found = entries(shipped(), "validating", fail=tuple(RiskGroup))
    (pods,) = (each for each in validated(shipped()) if each.plural == "pods")
    written = {
        name: [each["expression"] for each in found[name]["matchConditions"] if each["name"] == "concerns-a-policy"]
        for name in ("pods.gpugate.dev", WARNED)
    }

    assert (found["pods.gpugate.dev"]["failurePolicy"], found[WARNED]["failurePolicy"]) == ("Fail", "Ignore")
    assert written == {
        "pods.gpugate.dev": [match_conditions.wanted(pods.enforced, Platform())],
        WARNED: [match_conditions.wanted(without(pods.advised, pods.enforced) & ~pods.enforced, Platform())],
    }


WARNED = "warnings.pods.gpugate.dev"
EXAMPLES = sorted(Path(gpugate.policies.__file__).parent.glob("pods/examples/*/*.yaml"))


@for_each_example(EXAMPLES)
def test_a_pod_that_is_denied_is_one_that_waits(file: Path) -> None:
    example = library_example(file)
    request = example.request
    if request.kind.kind != "Pod":
        return
    ruleset = ruleset_of(example.config)
    facts = RunFacts(example.context, complete=example.complete)
    verdict = evaluate(ruleset, request, facts, today=dt.date(2026, 11, 21))
    waits = any(
        each.enforced.holds(Field(request.object or request.old_object), example.config.platform, request.user)
        for judging in (validated, mutated)
        for each in judging(ruleset)
        if each.plural == "pods"
    )

    assert waits or not verdict.denials


def test_of_namespaces_only_those_wait_that_open_themselves_to_administrative_claims() -> None:
    found = entries(shipped(), "validating", fail=tuple(RiskGroup))
    waits, others = found["namespaces.gpugate.dev"], found["warnings.namespaces.gpugate.dev"]

    labels = "object.metadata.labels"
    label = f"has(object.metadata) && has({labels}) && 'resource.kubernetes.io/admin-access' in {labels}"
    assert (waits["failurePolicy"], waits["matchConditions"][-1]["expression"]) == ("Fail", label)
    assert (others["failurePolicy"], others["matchConditions"][-1]["expression"]) == ("Ignore", f"!({label})")


def test_no_two_webhooks_share_a_name_which_would_lose_what_one_of_them_notes_in_the_audit_log() -> None:
    names = [
        each["name"]
        for configuration in webhook_configurations(shipped(), SERVER)
        for each in configuration["webhooks"]
    ]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("policy", [None, *(policy.id for policy in CATALOG)])
def test_no_two_conditions_of_a_webhook_share_a_name_which_the_api_server_refuses(policy: str | None) -> None:
    ruleset = shipped(policies={policy: PolicyEntry(mode="enforce")} if policy else {})

    for configuration in webhook_configurations(ruleset, SERVER, fail=tuple(RiskGroup)):
        for each in configuration["webhooks"]:
            names = [condition["name"] for condition in each.get("matchConditions", ())]
            assert len(names) == len(set(names))


def test_kinds_of_one_name_in_several_groups_each_have_their_own_condition() -> None:
    concerned = [
        validates(Kind(group, ("v1",), "Job", "jobs"), concerns=Key("metadata.labels", ("a",)))(lambda _o, _c: iter(()))
        for group in ("batch", "batch.volcano.sh")
    ]
    other = validates(Kind("apps", ("v1",), "Deployment", "deployments"))(lambda _obj, _ctx: iter(()))
    ruleset = bind([Policy("pods/x", "", (*concerned, other))], PolicyConfig())

    conditions = entries(ruleset, "validating")["workloads.gpugate.dev"]["matchConditions"]
    assert [each["name"] for each in conditions[1:]] == [
        "jobs.batch-concerns-a-policy",
        "jobs.batch.volcano.sh-concerns-a-policy",
    ]


def test_every_webhook_leaves_out_updates_that_change_nothing_that_is_judged() -> None:
    for configuration in webhook_configurations(shipped(), SERVER):
        *hooks, _ = configuration["webhooks"]
        assert all("changes-evaluated-fields" in [each["name"] for each in hook["matchConditions"]] for hook in hooks)


def test_namespaces_are_left_out_by_the_label_that_nobody_can_change() -> None:
    server = Server(b"authority", namespace="guard")
    mutating, _ = webhook_configurations(shipped(excluded_namespaces=("kube-system",)), server)

    assert mutating["webhooks"][0]["namespaceSelector"] == {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["guard", "kube-system"]}
        ]
    }


def test_who_sends_a_node_claim_decides_whether_it_is_sent_not_the_owner_it_names() -> None:
    found = entries(only("nodepools/legacy-api"), "validating")["nodeclaims.gpugate.dev"]

    assert [each["name"] for each in found["matchConditions"]] == ["is-not-from-karpenter", "changes-evaluated-fields"]


def test_karpenter_writes_node_pools_without_us_and_nothing_else() -> None:
    exempt = {
        name
        for name, each in entries(shipped(), "validating", karpenter_users=["system:serviceaccount:a:b"]).items()
        if {
            "name": "is-not-from-karpenter",
            "expression": "!(request.userInfo.username in ['system:serviceaccount:a:b'])",
        }
        in each["matchConditions"]
    }

    assert exempt == {"pools.gpugate.dev", "warnings.pools.gpugate.dev", "nodeclaims.gpugate.dev"}


BUNDLE = base64.b64encode(b"authority").decode()


@pytest.mark.parametrize(
    ("server", "client_config"),
    [
        (SERVER, {"url": "https://127.0.0.1:8443/validate", "caBundle": BUNDLE}),
        (
            Server(b"authority", namespace="guard", service="gate"),
            {"service": {"namespace": "guard", "name": "gate", "path": "/validate", "port": 443}, "caBundle": BUNDLE},
        ),
    ],
    ids=["by-url", "by-service"],
)
def test_where_it_is_sent(server: Server, client_config: dict[str, Any]) -> None:
    _, validating = webhook_configurations(shipped(), server)

    assert [each["clientConfig"] for each in validating["webhooks"]] == [client_config] * len(validating["webhooks"])


def test_what_holds_for_every_entry() -> None:
    mutating, validating = webhook_configurations(shipped(), SERVER)

    for each in (*mutating["webhooks"], *validating["webhooks"]):
        assert each["matchPolicy"] == "Equivalent"
        assert each["sideEffects"] == "None"
        assert each["admissionReviewVersions"] == ["v1"]
    assert {each["timeoutSeconds"] for each in mutating["webhooks"]} == {2}
    assert {each["timeoutSeconds"] for each in validating["webhooks"]} == {3}
    assert {each["reinvocationPolicy"] for each in mutating["webhooks"]} == {"IfNeeded"}
    assert not any("reinvocationPolicy" in each for each in validating["webhooks"])
