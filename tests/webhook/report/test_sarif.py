from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.report import sarif
from gpugate.webhook.report.located import Located, Location, Report, Severity, Sort

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path("/checkout/copy")
REPOSITORY = Path(__file__).parents[3]
# The members that the schema of SARIF 2.1.0 (errata 01) allows where we write one, of those that we write; `!` marks
# what it requires.
MESSAGE: Final = {"text!": str}
HELP: Final = {"text!": str, "markdown": str}
LEVEL: Final = {"none", "note", "warning", "error"}
RULE: Final = {
    "id!": str,
    "name": str,
    "shortDescription": MESSAGE,
    "fullDescription": MESSAGE,
    "help": HELP,
    "helpUri": str,
    "defaultConfiguration": {"level": LEVEL},
    "properties": {"tags": [str], "precision": str},
}
REGION: Final = {"startLine": int, "startColumn": int, "endLine": int, "endColumn": int}
LOCATION: Final = {
    "physicalLocation": {"artifactLocation": {"uri": str}, "region": REGION},
    "logicalLocations": [{"fullyQualifiedName": str, "kind": str}],
}
RESULT: Final = {
    "ruleId": str,
    "ruleIndex": int,
    "level": LEVEL,
    "message!": MESSAGE,
    "locations": [LOCATION],
    "partialFingerprints": {"gpugate/v1": str},
}
RUN: Final = {
    "tool!": {"driver!": {"name!": str, "semanticVersion": str, "rules": [RULE]}},
    "automationDetails": {"id": str},
    "columnKind": {"utf16CodeUnits", "unicodeCodePoints"},
    "results": [RESULT],
}
LOG: Final = {"$schema": str, "version!": {"2.1.0"}, "runs!": [RUN]}


def wrong(value: Any, shape: Any, path: str = "$") -> Iterator[str]:
    if isinstance(shape, dict):
        yield from (f"{path}: lacks {key[:-1]}" for key in shape if key.endswith("!") and key[:-1] not in value)
        known = {key.rstrip("!"): member for key, member in shape.items()}
        for key, member in value.items():
            yield from wrong(member, known[key], f"{path}.{key}") if key in known else [f"{path}.{key}: unknown"]
    elif isinstance(shape, list):
        for index, member in enumerate(value):
            yield from wrong(member, shape[0], f"{path}[{index}]")
    elif not (value in shape if isinstance(shape, set) else type(value) is shape):
        yield f"{path}: {value!r} is not {shape}"


def run_of(*findings: Located) -> Any:
    return json.loads(sarif.write(Report(findings), CATALOG, ROOT))["runs"][0]


def fingerprints(*findings: Located) -> list[str]:
    return [result["partialFingerprints"]["gpugate/v1"] for result in run_of(*findings)["results"]]


def test_the_log_has_the_shape_of_the_schema(report: Report) -> None:
    assert list(wrong(json.loads(sarif.write(report, CATALOG, ROOT)), LOG)) == []


def test_a_result_is_on_one_line_of_a_relative_file(denial: Located) -> None:
    (result,) = run_of(replace(denial, location=replace(denial.location, file="/checkout/copy/a b/pod.yaml")))[
        "results"
    ]

    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/pod.yaml"},
        "region": {"startLine": 3, "endLine": 3, "startColumn": 5, "endColumn": 9},
    }
    assert (result["level"], result["ruleId"]) == ("error", "pods/missing-gpu-toleration")
    assert result["message"]["text"] == "is wrong | 100% (Pod/ml/trainer)\nFix: write another\nFix: set spec.a: 1"


def test_a_file_as_a_whole_has_no_region() -> None:
    (result,) = run_of(Located(Sort.UNREADABLE, Severity.ERROR, "no such file", Location("a.yaml")))["results"]

    assert result["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "a.yaml"}}}]


def test_a_rule_is_explained_by_the_policy_itself(denial: Located) -> None:
    (rule,) = run_of(denial)["tool"]["driver"]["rules"]

    (policy,) = (policy for policy in CATALOG if policy.id == denial.policy)
    assert (rule["id"], rule["shortDescription"]["text"]) == (policy.id, policy.title)
    assert "## Why is this bad?" in rule["help"]["markdown"]
    assert "helpUri" not in rule


@pytest.mark.parametrize("sort", [Sort.VIOLATION, Sort.PATCH, Sort.BROKE])
def test_a_rule_of_a_policy_links_to_its_page(sort: Sort, denial: Located) -> None:
    assert (
        help_uri(replace(denial, sort=sort))
        == "https://docs.example.com/docs/policies/pods/missing-gpu-toleration.html"
    )


@pytest.mark.parametrize("sort", sorted(set(Sort) - {Sort.VIOLATION, Sort.PATCH, Sort.BROKE}, key=str))
def test_a_rule_without_a_policy_links_to_a_page_that_exists(sort: Sort) -> None:
    address = help_uri(Located(sort, Severity.ERROR, "is wrong", Location("a.yaml")))

    page = address.removeprefix("https://docs.example.com/").removesuffix(".html")
    assert (REPOSITORY / f"{page}.md").is_file()


def help_uri(finding: Located) -> str:
    log = json.loads(sarif.write(Report((finding,)), CATALOG, ROOT, docs="https://docs.example.com/"))
    assert list(wrong(log, LOG)) == []
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    return str(rule["helpUri"])


def test_a_result_points_to_its_rule(report: Report) -> None:
    run = json.loads(sarif.write(report, CATALOG, ROOT))["runs"][0]

    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [r["ruleId"] for r in run["results"]]


def test_a_fingerprint_outlives_a_change_of_lines_and_words(denial: Located) -> None:
    moved = replace(denial, location=replace(denial.location, line=30, file="b.yaml"), message="is wrong", hint="")

    assert fingerprints(moved) == fingerprints(denial)


OTHERS = {
    "another policy": {"policy": "pods/other"},
    "another field": {"path": "spec"},
    "another object": {"object": None},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_finding_has_another_fingerprint(other: dict[str, Any], denial: Located) -> None:
    assert len(set(fingerprints(denial, replace(denial, **other)))) == 2


def test_two_findings_in_one_field_have_two_fingerprints(denial: Located) -> None:
    first, second = fingerprints(denial, replace(denial, message="is worse"))

    assert second == f"{first}:2"


@pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)
def test_github_takes_every_rule(policy: Any, denial: Located) -> None:
    (rule,) = run_of(replace(denial, policy=policy.id))["tool"]["driver"]["rules"]

    assert list(wrong(rule, RULE)) == []
    assert [key for key in ("shortDescription", "fullDescription") if not 0 < len(rule[key]["text"]) <= 1024] == []
