"""How live webhook configurations may differ from what is generated, and what is said of it."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.certs.pki import certificate_authority
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.break_glass import Note, disabled
from gpugate.webhook.registration.drift import drift
from gpugate.webhook.registration.drift_reasons import Reason
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.meant import Meant
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpugate.webhook.registration.drift_reasons import Drift

NOW = dt.datetime(2027, 1, 31, 12, tzinfo=dt.UTC)
YEAR = dt.timedelta(days=365)
OURS = certificate_authority("gpugate-ca-1", now=NOW, lifetime=YEAR).certificate
FOREIGN = certificate_authority("somebody-else", now=NOW, lifetime=YEAR).certificate
EXPIRED = certificate_authority("gpugate-ca-0", now=NOW - 2 * YEAR, lifetime=YEAR).certificate
SERVER = Server(OURS)
RULESET = bind(CATALOG, PolicyConfig())
EVERY = tuple(RiskGroup)


def live() -> tuple[dict[str, Any], dict[str, Any]]:
    """The configurations as they should be, with what an API server fills in: the mutating one, the validating one."""
    made = json.loads(json.dumps(webhook_configurations(RULESET, SERVER, fail=EVERY, fail_mutating=EVERY)))
    for each in (entry for configuration in made for entry in configuration["webhooks"]):
        each.setdefault("objectSelector", {})
    mutating, validating = made
    return mutating, validating


def entry(configuration: dict[str, Any], name: str = "pods") -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in configuration["webhooks"] if each["name"].startswith(f"{name}."))
    return found


def found(*configurations: dict[str, Any], bundle: bytes = OURS, meant: Meant | None = None) -> Sequence[Drift]:
    return drift(RULESET, configurations, SERVER, bundle, now=NOW, meant=meant)


def reasons(*configurations: dict[str, Any], **options: Any) -> set[Reason]:
    return {each.reason for each in found(*configurations, **options)}


def test_what_was_generated_does_not_differ() -> None:
    assert found(*live()) == ()
    assert found(*live(), meant=Meant(EVERY, EVERY)) == ()


def test_entries_may_be_grouped_and_called_otherwise() -> None:
    mutating, validating = live()
    for index, each in enumerate(validating["webhooks"]):
        each["name"] = f"entry-{index}.gpugate.dev"
    pools = validating["webhooks"][0]
    first, *rest = pools["rules"]
    validating["webhooks"].append({**pools, "name": "more.gpugate.dev", "rules": rest})
    pools["rules"] = [first]

    assert found(mutating, validating) == ()


def sets(**members: Any) -> Callable[[dict[str, Any]], None]:
    return lambda webhook: webhook.update(members)


def to(url: str) -> Callable[[dict[str, Any]], None]:
    return sets(clientConfig={"url": url, "caBundle": base64.b64encode(OURS).decode()})


def trusting(*certificates: bytes) -> Callable[[dict[str, Any]], None]:
    bundle = base64.b64encode(b"".join(certificates)).decode()
    return lambda webhook: webhook["clientConfig"].update(caBundle=bundle)


def also(condition: str) -> Callable[[dict[str, Any]], None]:
    return lambda webhook: webhook["matchConditions"].append({"name": "added", "expression": condition})


def without(condition: str) -> Callable[[dict[str, Any]], None]:
    return lambda webhook: webhook.update(
        matchConditions=[each for each in webhook["matchConditions"] if each["name"] != condition]
    )


def weakened(webhook: dict[str, Any]) -> None:
    webhook["matchConditions"][-1]["expression"] = "false"


def leaving_out(*names: str) -> Callable[[dict[str, Any]], None]:
    def changed(webhook: dict[str, Any]) -> None:
        webhook["namespaceSelector"]["matchExpressions"][0]["values"] += names

    return changed


def sending(*resources: str, group: str = "") -> Callable[[dict[str, Any]], None]:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": list(resources), "operations": ["CREATE"]}
    return lambda webhook: webhook["rules"].append(rule)


CHANGED: dict[str, tuple[Callable[[dict[str, Any]], object], set[Reason]]] = {
    "rules gone": (sets(rules=[]), {Reason.NOT_SENT}),
    "condition added": (also("object.metadata.name != 'mine'"), {Reason.MATCH_CONDITIONS}),
    "condition weakened": (weakened, {Reason.MATCH_CONDITIONS}),
    "condition gone": (without("concerns-a-policy"), {Reason.UNCONDITIONAL}),
    "object selector": (sets(objectSelector={"matchLabels": {"a": "b"}}), {Reason.OBJECT_SELECTOR}),
    "object selector by expression": (
        sets(objectSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
        {Reason.OBJECT_SELECTOR},
    ),
    "namespace left out": (leaving_out("mine"), {Reason.NAMESPACE_SELECTOR}),
    "no namespace left out": (sets(namespaceSelector={}), {Reason.NOT_EXCLUDED}),
    "some namespaces only": (
        sets(namespaceSelector={"matchLabels": {"judged": "true"}}),
        {Reason.NAMESPACE_SELECTOR, Reason.NOT_EXCLUDED},
    ),
    "path of the other phase": (
        sets(clientConfig=SERVER.client_config("mutate")),
        {Reason.PATH},
    ),
    "URL instead of the Service": (to("https://mallory.example/validate"), {Reason.ADDRESS}),
    "Service of somebody else": (
        sets(clientConfig=Server(OURS, "mallory").client_config("validate")),
        {Reason.ADDRESS},
    ),
    "side effects": (sets(sideEffects="NoneOnDryRun"), {Reason.SIDE_EFFECTS}),
    "review versions": (sets(admissionReviewVersions=["v1beta1"]), {Reason.REVIEW_VERSIONS}),
    "match policy": (sets(matchPolicy="Exact"), {Reason.MATCH_POLICY}),
    "timeout": (sets(timeoutSeconds=30), {Reason.TIMEOUT}),
    "nodes too": (sending("nodes"), {Reason.TOO_WIDE}),
    "leases too": (sending("leases", group="coordination.k8s.io"), {Reason.TOO_WIDE}),
    "whatever there is": (sending("*", group="*"), {Reason.TOO_WIDE}),
    "Services too": (sending("services"), {Reason.NOT_EVALUATED}),
    "no bundle": (trusting(), {Reason.BUNDLE_EMPTY}),
    "a bundle that is no PEM": (trusting(b"AAAA"), {Reason.BUNDLE_EMPTY}),
    "another's bundle": (trusting(FOREIGN), {Reason.BUNDLE_FOREIGN, Reason.BUNDLE_INCOMPLETE}),
    "another's beside ours": (trusting(OURS, FOREIGN), {Reason.BUNDLE_FOREIGN}),
    "an expired bundle": (
        trusting(EXPIRED),
        {Reason.BUNDLE_EXPIRED, Reason.BUNDLE_INCOMPLETE, Reason.BUNDLE_FOREIGN},
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGED.values(), ids=CHANGED)
def test_a_changed_entry_is_told(change: Callable[[dict[str, Any]], object], expected: set[Reason]) -> None:
    mutating, validating = live()
    change(entry(validating))

    differences = found(mutating, validating)

    assert {each.reason for each in differences} == expected
    assert all("ValidatingWebhookConfiguration gpugate" in each.where for each in differences)


def test_spaces_and_lines_in_a_condition_mean_nothing() -> None:
    mutating, validating = live()
    for condition in entry(validating)["matchConditions"]:
        condition["expression"] = condition["expression"].replace("\n", "\n   ") + "\n"

    assert found(mutating, validating) == ()


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_either_failure_policy_will_do_where_nobody_says_which(policy: str) -> None:
    mutating, validating = live()
    entry(validating)["failurePolicy"] = policy

    assert found(mutating, validating) == ()


def test_another_failure_policy_than_was_meant_is_told() -> None:
    mutating, validating = live()
    entry(validating)["failurePolicy"] = "Ignore"

    (difference,) = found(mutating, validating, meant=Meant(EVERY, EVERY))

    assert (difference.reason, difference.remedy) == (Reason.FAILURE_POLICY, "set failurePolicy: Fail")


def without_pods(configuration: dict[str, Any]) -> None:
    """As the chart turns a group off."""
    for each in configuration["webhooks"]:
        if "pods" in each["name"].split("."):
            each["rules"] = []


def in_training_only(configuration: dict[str, Any]) -> None:
    for each in configuration["webhooks"]:
        if "matchExpressions" in each["namespaceSelector"]:
            only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["training"]}
            each["namespaceSelector"]["matchExpressions"].append(only)


def asking_karpenter(configuration: dict[str, Any]) -> None:
    for each in configuration["webhooks"]:
        without("is-not-from-karpenter")(each)


CHOSEN: dict[str, tuple[Callable[[dict[str, Any]], None], Meant, Reason]] = {
    "a group turned off": (without_pods, Meant(without=[RiskGroup.PODS]), Reason.NOT_SENT),
    "some namespaces only": (in_training_only, Meant(only_namespaces=["training"]), Reason.NAMESPACE_SELECTOR),
    "Karpenter too": (asking_karpenter, Meant(karpenter_users=[]), Reason.UNCONDITIONAL),
}


@pytest.mark.parametrize(("choose", "meant", "otherwise"), CHOSEN.values(), ids=CHOSEN)
def test_what_was_chosen_is_no_difference(
    choose: Callable[[dict[str, Any]], None], meant: Meant, otherwise: Reason
) -> None:
    mutating, validating = live()
    choose(mutating)
    choose(validating)

    assert found(mutating, validating, meant=meant) == ()
    assert reasons(mutating, validating) == {otherwise}
    assert reasons(*live(), meant=meant) != set()


def test_what_can_refuse_nothing_must_not_hold_anything_up() -> None:
    mutating, validating = live()
    entry(validating, "workloads")["failurePolicy"] = "Fail"

    assert reasons(mutating, validating) == {Reason.FAILURE_POLICY}


def test_a_mutation_must_be_made_again_after_others() -> None:
    mutating, validating = live()
    entry(mutating)["reinvocationPolicy"] = "Never"

    assert reasons(mutating, validating) == {Reason.REINVOCATION}


def test_a_configuration_that_is_gone_is_told() -> None:
    mutating, _ = live()

    (difference,) = found(mutating)

    assert (difference.reason, difference.where) == (Reason.MISSING, "ValidatingWebhookConfiguration gpugate")


def test_one_that_was_turned_off_says_by_whom_and_nothing_else() -> None:
    mutating, validating = live()
    off = disabled(validating, Note("alice", "2027-01-31T11:00:00Z", "INC-1"))

    (difference,) = found(mutating, off)

    assert difference.reason is Reason.DISABLED
    assert "by alice on 2027-01-31T11:00:00Z (INC-1)" in difference.message
    assert difference.remedy == "gpugate webhook enable"


def test_nobody_can_see_whether_it_is_reached_without_an_entry_for_probes() -> None:
    mutating, validating = live()
    validating["webhooks"].remove(entry(validating, "probe"))

    assert reasons(mutating, validating) == {Reason.NOT_PROBED}


@pytest.mark.parametrize(
    "second",
    [
        {"metadata": {"name": "old", "labels": {"app.kubernetes.io/name": "gpugate"}}},
        {"metadata": {"name": "old"}, "webhooks": [{"name": "pods.validate.gpugate.dev"}]},
    ],
    ids=["by its label", "by its entries"],
)
def test_a_second_installation_is_told(second: dict[str, Any]) -> None:
    assert reasons(*live(), {"kind": "ValidatingWebhookConfiguration", **second}) == {Reason.SEVERAL}


def test_webhooks_of_others_are_none_of_our_business() -> None:
    other = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kyverno"}, "webhooks": [{"name": "a.b.c"}]}

    assert found(*live(), other) == ()


def test_without_known_authorities_entries_are_compared_with_each_other() -> None:
    mutating, validating = live()
    trusting(FOREIGN)(entry(validating))

    (difference,) = found(mutating, validating, bundle=b"")

    assert (difference.reason, "pods.validate" in difference.where) == (Reason.BUNDLES_DIFFER, True)


def test_every_reason_can_be_a_label() -> None:
    assert all(reason.value.replace("-", "").isalpha() for reason in Reason)
