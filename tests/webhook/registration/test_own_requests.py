"""What policies outside the library add to the registration of the library, and what is reported where it is missing."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.concerns import EVERY_OBJECT, Key, reader
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE, NODE_POOL, POD, Kind, Operation
from gpugate.policies.sdk.policy import Policy, validates
from gpugate.webhook.registration.drift import drift
from gpugate.webhook.registration.drift_reasons import REGISTER_OWN, Reason
from gpugate.webhook.registration.entries import RiskGroup, validated, whole_catalogue
from gpugate.webhook.registration.objects import Server, webhook_configurations
from gpugate.webhook.registration.own_requests import ENTRY_NAMES, TooManyKindsError, added, chart_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Violation
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.registration.drift_reasons import Drift

Json = dict[str, Any]
PODS = Path(__file__).parents[3] / "policies" / "pods" / "examples"
RUN = Kind("example.com", ("v1",), "Run", "runs")
CONFIG_MAP = Kind("", ("v1",), "ConfigMap", "configmaps")
TEAM = Key("metadata.labels", ("team",))
WRITES = frozenset({Operation.CREATE, Operation.UPDATE})


def policy(
    *kinds: Kind,
    name: str = "x",
    operations: frozenset[Operation] = WRITES,
    concerns: Concern = EVERY_OBJECT,
    needs: Sequence[Kind] = (),
) -> Policy:
    @validates(*kinds, operations=operations, concerns=concerns, needs=tuple(Need(kind, ("spec",)) for kind in needs))
    def check(_subject: Field, _ctx: AnyContext) -> Iterator[Violation]:
        """Find nothing."""
        yield from ()

    return Policy(f"acme/{name}", "", (check,))


def ruleset(*own: Policy) -> Ruleset:
    return bind((*CATALOG, *own), PolicyConfig())


# Policies -> resource and operations of the rules that are added, and the names of the match conditions on objects.
ADDED: dict[str, tuple[Sequence[Policy], set[tuple[str, str]], set[str]]] = {
    "none": ((), set(), set()),
    "Pods that the library evaluates": ([policy(POD, concerns=MAY_DEMAND)], set(), set()),
    "all Pods": ([policy(POD)], {("pods", "CREATE UPDATE")}, {"concerns-a-policy"}),
    "Pods with a label": (
        [policy(POD, concerns=TEAM)],
        {("pods", "CREATE UPDATE")},
        {"concerns-a-policy"},
    ),
    "the end of Pods": (
        [policy(POD, operations=frozenset({Operation.DELETE}), concerns=MAY_DEMAND)],
        {("pods", "DELETE")},
        {"concerns-a-policy"},
    ),
    "the beginning and the end of Pods": (
        [policy(POD, operations=frozenset({Operation.CREATE, Operation.DELETE}))],
        {("pods", "CREATE DELETE")},
        set(),
    ),
    "workloads, which are all sent": ([policy(DEPLOYMENT)], set(), set()),
    "another kind": ([policy(RUN)], {("runs", "CREATE UPDATE")}, set()),
    "several": (
        [policy(RUN, NODE_POOL), policy(CONFIG_MAP, name="y")],
        {("configmaps", "CREATE UPDATE"), ("runs", "CREATE UPDATE")},
        set(),
    ),
}
COMMON = {"changes-evaluated-fields", "is-not-a-mirror-pod"}


@pytest.mark.parametrize(("own", "rules", "conditions"), ADDED.values(), ids=ADDED)
def test_only_requests_that_the_library_does_not_get_are_added(
    own: Sequence[Policy], rules: set[tuple[str, str]], conditions: set[str]
) -> None:
    found = added(ruleset(*own))

    entry = found["validate"]
    names = {condition["name"] for condition in entry.conditions} - COMMON
    sent = {(resource, " ".join(rule["operations"])) for rule in entry.rules for resource in rule["resources"]}
    assert (sent, names) == (rules, conditions)
    assert found["mutate"].rules == ()


@pytest.mark.parametrize("concern", [EVERY_OBJECT, TEAM], ids=["all", "some"])
def test_a_pod_is_sent_by_one_entry_if_a_policy_concerns_it(concern: Concern) -> None:
    """Decided as the engine decides it; the oracle compares this with the expressions."""
    own = bind([policy(POD, concerns=concern)], PolicyConfig(policies={}))
    (of_own,) = (each.concern for each in validated(own) if each.plural == "pods")
    (of_library,) = (each.concern for each in validated(whole_catalogue(PolicyConfig())) if each.plural == "pods")
    platform = PolicyConfig().platform
    left = reader(of_own & ~of_library, platform)
    wanted, library = reader(of_own, platform), reader(of_library, platform)
    texts = (file.read_text(encoding="utf-8") for file in sorted(PODS.glob("*/*.yaml")))
    objects = [obj for text in texts for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]
    pods = [obj for obj in objects if obj["kind"] == "Pod"]

    assert len(pods) > 100
    for pod in pods:
        assert left(pod, "") == (wanted(pod, "") and not library(pod, ""))


def test_updates_of_other_kinds_are_sent_whatever_changes() -> None:
    (condition,) = added(ruleset(policy(CONFIG_MAP)))["validate"].conditions

    assert condition["expression"].startswith(
        "request.resource.group + '/' + request.resource.resource in ['/configmaps']"
    )


def test_the_values_have_the_permissions_that_the_library_does_not_have() -> None:
    values = chart_values(ruleset(policy(RUN, needs=[CONFIG_MAP, NODE, NODE_POOL])))["policies"]["registration"]

    def resources(rules: Sequence[Json]) -> set[str]:
        return {resource for rule in rules for resource in rule["resources"]}

    assert resources(values["webhookRules"]) == {"configmaps"}
    assert resources(values["auditRules"]) == {"configmaps", "runs"}
    assert values["mutate"] == {}


def test_more_conditions_than_an_entry_may_have_are_refused() -> None:
    kinds = [Kind("example.com", ("v1",), f"Run{number}", f"run{number}s") for number in range(63)]
    policies = [policy(kind, name=kind.plural, concerns=Key("metadata.labels", (kind.plural,))) for kind in kinds]

    with pytest.raises(TooManyKindsError, match="need 65 match conditions, and an entry may have 64"):
        chart_values(ruleset(*policies))


OWN = ruleset(policy(POD), policy(RUN, name="y"))
SERVER = Server(b"")


def live(registered: Ruleset | None) -> list[Json]:
    """Return what the chart installs, with the policies outside the library that were registered."""
    of_own = added(registered) if registered else None
    whole = whole_catalogue(PolicyConfig())
    every = tuple(RiskGroup)
    made = webhook_configurations(whole, SERVER, fail=every, fail_mutating=every, own=of_own)
    configurations: list[Json] = json.loads(json.dumps(made))
    return configurations


def found(running: Ruleset, registered: Ruleset | None, *, knows_own: bool = True) -> list[Drift]:
    now = dt.datetime(2027, 1, 31, 12, tzinfo=dt.UTC)
    differences = drift(running, live(registered), SERVER, b"", now=now, knows_own=knows_own)
    return [each for each in differences if each.reason is not Reason.BUNDLE_EMPTY]


def test_registered_policies_are_no_drift() -> None:
    assert found(OWN, OWN) == []


def test_unregistered_policies_are_reported_with_what_to_do() -> None:
    assert {(each.reason, each.message, each.remedy) for each in found(OWN, None)} == {
        (
            Reason.NOT_SENT,
            f"policies outside the library evaluate CREATE and UPDATE of {name}, but entries send only what concerns the library",
            REGISTER_OWN,
        )
        for name in ("pods", "runs.example.com")
    }


@pytest.mark.parametrize(
    ("running", "registered", "reasons"),
    [
        pytest.param(
            OWN,
            ruleset(policy(POD)),
            {Reason.NOT_SENT, Reason.MATCH_CONDITIONS, Reason.UNCONDITIONAL},
            id="a kind was added",
        ),
        pytest.param(OWN, ruleset(policy(POD, concerns=TEAM), policy(RUN)), {Reason.MATCH_CONDITIONS}, id="more Pods"),
        pytest.param(
            ruleset(policy(POD)),
            OWN,
            {Reason.NOT_EVALUATED, Reason.MATCH_CONDITIONS, Reason.UNCONDITIONAL},
            id="a kind was removed",
        ),
    ],
)
def test_an_older_registration_is_reported(running: Ruleset, registered: Ruleset, reasons: set[Reason]) -> None:
    assert {each.reason for each in found(running, registered)} == reasons


def test_entries_for_unknown_policies_are_not_compared() -> None:
    assert found(ruleset(), OWN, knows_own=False) == []
    assert {each.reason for each in found(ruleset(), OWN)} == {Reason.NOT_EVALUATED}


def test_the_entries_have_names_of_their_own() -> None:
    names = {entry["name"] for configuration in live(None) for entry in configuration["webhooks"]}

    assert names.isdisjoint(ENTRY_NAMES)
