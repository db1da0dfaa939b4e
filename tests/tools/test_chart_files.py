"""What the chart gets from the policy library."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, parse
from gpugate.policies.sdk.platform import Platform
from gpugate.tools.chart_files import rights, values_schema, webhooks
from gpugate.webhook.registration.entries import RiskGroup, entries, whole_catalogue
from gpugate.webhook.registration.objects import Server, webhook_configurations
from gpugate.webhook.registration.rbac import audit_rbac, event_rbac, keeper_rbac, rbac

Json = dict[str, Any]
CHART = Path(__file__).parents[2] / "charts" / "gpugate"
PLATFORM: Json = {
    "taints": {"a.b/*": [{"key": "a.b/npu"}, {"key": "dedicated-*", "value": "npu"}]},
    "accelerators": {"resources": ["a.b/npu", "a.b/slice-*"], "device_classes": ["npu.a.b"]},
}
# As `_helpers.tpl` writes them.
NAMES = {
    "taints": r"|a\\.b/npu|dedicated-.*",
    "resources": r"|a\\.b/npu|a\\.b/slice-.*|deviceclass\\.resource\\.kubernetes\\.io/npu\\.a\\.b",
}
CONFIGURATIONS = {each["path"]: each for each in webhooks()["configurations"]}


def rendered(expression: str, names: dict[str, str]) -> str:
    """What Helm makes of an expression that is a template."""

    def block(found: re.Match[str]) -> str:
        return found[2].replace("{{ . }}", names[found[1]]) if names[found[1]] else ""

    return re.sub(r"{{ with \.(\w+) }}(.*?){{ end }}", block, expression)


@pytest.mark.parametrize(
    ("platform", "names"),
    [({}, {"taints": "", "resources": ""}), (PLATFORM, NAMES)],
    ids=["no-names-of-its-own", "names-of-its-own"],
)
@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_the_entries_are_those_of_the_whole_catalogue(phase: Any, platform: Json, names: dict[str, str]) -> None:
    *found, _ = CONFIGURATIONS[phase]["webhooks"]
    ruleset = whole_catalogue(PolicyConfig(platform=parse(platform, Platform, ())))

    assert [
        (
            each["name"],
            each["rules"],
            [(condition["name"], rendered(condition["expression"], names)) for condition in each["matchConditions"]],
        )
        for each in found
    ] == [
        (entry.name, entry.rules, [(condition["name"], condition["expression"]) for condition in entry.conditions])
        for entry in entries(ruleset, phase)
    ]


def test_what_helm_reads_as_a_template_is_about_the_names_of_a_platform() -> None:
    expressions = [
        condition["expression"]
        for each in CONFIGURATIONS.values()
        for entry in each["webhooks"]
        for condition in entry["matchConditions"]
    ]
    actions = {action for expression in expressions for action in re.findall(r"{{.*?}}", expression)}

    assert actions == {"{{ with .taints }}", "{{ with .resources }}", "{{ . }}", "{{ end }}"}


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_everything_else_is_as_in_the_registration(phase: Any) -> None:
    """As `gpugate registration` prints it, for the same policies, without what values decide."""
    made = webhook_configurations(whole_catalogue(PolicyConfig()), Server(b""), fail=RiskGroup, fail_mutating=RiskGroup)
    registered = made[0] if phase == "mutate" else made[1]
    found = CONFIGURATIONS[phase]

    assert found["kind"] == registered["kind"]
    for mine, other in zip(found["webhooks"], registered["webhooks"], strict=True):
        assert (mine["name"], mine["rules"]) == (other["name"], other["rules"])
        assert found["common"].items() <= other.items()
        assert ("failurePolicyValue" in mine or mine.get("failurePolicy") == "Fail") == (
            other["failurePolicy"] == "Fail"
        )
        conditions = {condition["name"] for condition in other["matchConditions"]}
        assert mine.get("exemptKarpenter", False) == ("is-not-from-karpenter" in conditions)


def test_what_values_decide_is_among_the_values() -> None:
    described = json.loads((CHART / "values.schema.json").read_text())["definitions"]
    sections = described["Webhooks"]["properties"]

    def keys(group: str) -> set[str]:
        name = sections[group]["allOf"][0]["$ref"].rpartition("/")[2]
        return set(described[name]["properties"])

    decided: dict[str, set[str]] = {group: {"enabled"} for group in webhooks()["groups"]}
    for each in CONFIGURATIONS.values():
        assert each["timeoutValue"] in sections
        for entry in each["webhooks"]:
            if "failurePolicyValue" in entry:
                decided[entry["group"]].add(entry["failurePolicyValue"])
    assert {group: keys(group) for group in decided} == decided


def test_the_groups_are_all_there_are() -> None:
    assert webhooks()["groups"] == [group.value for group in RiskGroup]


def test_the_rights_are_those_of_the_registration() -> None:
    ruleset = whole_catalogue(PolicyConfig())
    role, _ = rbac(ruleset, "guard", "gate")
    keeper, _, publisher, _ = keeper_rbac("guard", "gate", "gate-certificates", "gate", "gate")
    audit, _, reports, _ = audit_rbac(ruleset, "guard", "gate", reports=True)
    events, _ = event_rbac("guard", "gate")
    named = json.dumps(rights()).replace(r"{{ include \"gpugate.fullname\" . }}", "gate")

    assert json.loads(named.replace("{{ .Release.Namespace }}", "guard")) == {
        "webhook": role["rules"],
        "certificates": keeper["rules"],
        "publisher": publisher["rules"],
        "events": events["rules"],
        "audit": audit["rules"],
        "auditReports": reports["rules"],
    }


SCHEMA: Json = values_schema({"definitions": {"Kept": {}, "PolicyGone": {}}, "title": "kept"})


def test_only_what_is_said_of_policies_is_replaced() -> None:
    assert SCHEMA["title"] == "kept"
    assert [name for name in SCHEMA["definitions"] if not name.startswith("Policy")] == ["Kept"]
    assert "PolicyGone" not in SCHEMA["definitions"]


def test_the_ids_of_policies_are_known() -> None:
    (ids, _, _) = SCHEMA["definitions"]["Policy"]["properties"]["policies"]["propertyNames"]["anyOf"]

    assert set(ids["enum"]) == {policy.id for policy in CATALOG}


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("pods/missing-fabric", True),
        ("pods/*", True),
        ("acme/no-h100-in-dev", True),
        ("pods/missing-fabrics", False),
        ("acme", False),
    ],
)
def test_policies_outside_the_library_may_be_named(name: str, valid: bool) -> None:  # noqa: FBT001 -- a column
    names = SCHEMA["definitions"]["Policy"]["properties"]["policies"]["propertyNames"]
    checked = fastjsonschema.compile(names)

    if valid:
        checked(name)
    else:
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            checked(name)


def test_what_helm_cannot_read_is_not_in_the_schema() -> None:
    assert "(?" not in json.dumps(SCHEMA)
    assert "$defs" not in json.dumps(SCHEMA)
