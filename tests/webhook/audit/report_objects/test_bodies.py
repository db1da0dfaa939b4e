"""What a report says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from audit.report_objects.audits import deployment, finding, node_pool

from gpugate.policies.sdk.findings import Patch, Patches
from gpugate.webhook.audit.model import Action, Audited, Fix
from gpugate.webhook.audit.report_bodies import Limits, body
from gpugate.webhook.registration.report_kinds import OPEN_REPORTS, POLICY_REPORTS

Json = dict[str, Any]
FIX = Patches((Patch("set", ("spec", "replicas"), 2, "two survive one"),))


def made(audited: Audited, earlier: list[Json] | None = None, seconds: int = 100, **limits: int) -> Json:
    found = body(OPEN_REPORTS, audited, earlier or [], seconds, Limits(**limits))
    assert found is not None
    return found


def test_a_report_is_on_its_object_and_goes_with_it() -> None:
    report = made(deployment("web", finding()))
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web"}

    assert report["metadata"] == {
        "name": "gpugate-uid-web",
        "namespace": "ml",
        "labels": {"app.kubernetes.io/managed-by": "gpugate"},
        "ownerReferences": [owner],
    }
    assert report["scope"] == {**owner, "namespace": "ml"}


@pytest.mark.parametrize(
    ("kinds", "namespaced", "cluster", "header"),
    [
        (OPEN_REPORTS, "Report", "ClusterReport", {"source", "configuration"}),
        (POLICY_REPORTS, "PolicyReport", "ClusterPolicyReport", set()),
    ],
    ids=["openreports", "wgpolicyk8s"],
)
def test_each_group_has_its_kinds_and_its_members(kinds: Any, namespaced: str, cluster: str, header: set[str]) -> None:
    on_deployment = body(kinds, deployment("web", finding()), [], 0, Limits())
    on_pool = body(kinds, node_pool("gpu", finding()), [], 0, Limits())

    assert on_deployment is not None
    assert on_pool is not None
    assert (on_deployment["kind"], on_pool["kind"]) == (namespaced, cluster)
    assert "namespace" not in {**on_pool["metadata"], **on_pool["scope"]}
    assert set(on_pool) - {"apiVersion", "kind", "metadata", "scope", "summary", "results"} == header


def test_a_result_says_what_where_and_what_to_do() -> None:
    (result,) = made(
        deployment("web", finding(remedy=Fix.of(FIX), template_of="Deployment", note="at most a warning"))
    )["results"]
    properties = result.pop("properties")

    assert result == {
        "source": "gpugate",
        "policy": "pods/wildcard-toleration",
        "category": "pods",
        "severity": "high",
        "result": "fail",
        "scored": True,
        "message": "it tolerates everything",
        "timestamp": {"seconds": 100, "nanos": 0},
    }
    assert len(properties.pop("resultID")) == 16
    assert properties == {
        "wouldAction": "deny",
        "field": "spec.tolerations",
        "podsOf": "Deployment",
        "note": "at most a warning",
        "fix": "set spec.replicas: 2",
    }


@pytest.mark.parametrize(
    ("action", "result", "scored"),
    [
        (Action.DENY, "fail", True),
        (Action.MUTATE, "warn", False),
        (Action.WARN, "warn", False),
    ],
)
def test_only_what_would_be_denied_fails(action: Action, result: str, *, scored: bool) -> None:
    report = made(deployment("web", finding(action=action)))

    assert (report["results"][0]["result"], report["results"][0]["scored"]) == (result, scored)
    assert report["summary"] == {"fail": int(scored), "warn": int(not scored), "skip": 0}


@pytest.mark.parametrize("findings", [(), (finding(action=Action.RECORD),)], ids=["nothing", "a-record"])
def test_what_is_good_or_only_recorded_has_no_report(findings: tuple[Any, ...]) -> None:
    assert body(OPEN_REPORTS, deployment("web", *findings), [], 0, Limits()) is None


def test_the_worst_comes_first_whatever_the_order() -> None:
    found = [finding("pods/b", Action.WARN), finding("pods/c", Action.DENY), finding("pods/a", Action.WARN)]

    assert made(deployment("web", *found)) == made(deployment("web", *reversed(found)))
    assert [result["policy"] for result in made(deployment("web", *found))["results"]] == ["pods/c", "pods/a", "pods/b"]


def ids(report: Json) -> list[str]:
    return [result["properties"]["resultID"] for result in report["results"]]


def test_a_result_keeps_its_id_when_a_figure_in_its_message_changes() -> None:
    one, other = (made(deployment("web", finding(message=f"{count} of 5 types"))) for count in (1, 2))

    assert ids(one) == ids(other)


def test_no_two_results_have_the_same_id() -> None:
    twice = [finding(message=text) for text in ("one", "two")]
    found = ids(made(deployment("web", *twice))) + ids(made(deployment("other", *twice)))

    assert len(set(found)) == 4


def test_a_result_says_since_when() -> None:
    first = made(deployment("web", finding()), seconds=100)
    second = made(deployment("web", finding(), finding("pods/new")), first["results"], seconds=200)

    assert {result["policy"]: result["timestamp"]["seconds"] for result in second["results"]} == {
        "pods/wildcard-toleration": 100,
        "pods/new": 200,
    }


def test_what_could_not_be_looked_at_this_time_stays() -> None:
    first = made(deployment("web", finding("scaling/x"), finding("pods/fixed")), seconds=100)
    second = made(deployment("web", skipped={"scaling/x": "Pods are not known"}), first["results"], seconds=200)

    assert second["results"] == [result for result in first["results"] if result["policy"] == "scaling/x"]
    assert second["summary"] == {"fail": 1, "warn": 0, "skip": 1}


def test_what_is_cut_is_counted() -> None:
    report = made(deployment("web", *(finding(path=f"spec[{n:02}]") for n in range(10))), results=4)
    told = report["results"][-1]

    assert report["configuration"] == {"limits": {"maxResults": 4}}
    assert (len(report["results"]), report["summary"]["fail"]) == (4, 10)
    assert (told["policy"], told["result"], told["properties"]["cut"]) == ("results-cut", "skip", "7")


def test_what_is_cut_is_no_result_of_the_next_audit() -> None:
    first = made(deployment("web", *(finding(path=f"spec[{n:02}]") for n in range(10))), results=4)
    second = made(deployment("web", finding(path="spec[00]")), first["results"], results=4)

    assert [result["policy"] for result in second["results"]] == ["pods/wildcard-toleration"]


def test_a_report_is_never_more_than_etcd_takes() -> None:
    long = "\N{GRINNING FACE}" * 2000
    report = made(
        deployment("web", *(finding(path=f"spec[{n:02}].{long}", message=long, note=long) for n in range(100)))
    )
    told = report["results"][-1]

    assert len(json.dumps(report, ensure_ascii=False).encode()) < 1_100_000
    assert (report["summary"]["fail"], told["policy"]) == (100, "results-cut")
    assert int(told["properties"]["cut"]) + len(report["results"]) == 101


def test_texts_are_harmless_and_short() -> None:
    (result,) = made(deployment("web", finding(message="a\x1b[31m" + "x" * 50)), text=20)["results"]

    assert result["message"] == "a\N{REPLACEMENT CHARACTER}[31m" + "x" * 13 + "…"
