from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from msgspec.structs import replace

from gpugate.webhook.audit.compare import AuditDocumentError, compare
from gpugate.webhook.audit.formats import json as audit_json
from gpugate.webhook.audit.formats.presentation import Presentation
from gpugate.webhook.audit.model import Action, Audited, AuditReport, Cluster, Finding, NotEvaluated, Summary
from gpugate.webhook.report.located import ObjectName

TIME = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
VLLM = ObjectName("apps/v1", "Deployment", "serving", "vllm")


def finding(path: str = "spec.a", message: str = "is wrong", policy: str = "pods/x") -> Finding:
    return Finding(policy, path, message, "enforce", Action.DENY)


def report(*findings: Finding, of: ObjectName = VLLM, **others: Any) -> AuditReport:
    audited = others.pop("audited", (Audited.of(of, findings),))
    summary = Summary.of(audited)
    return AuditReport(
        "0.1.0", Cluster("prod"), TIME, "g", "Kubernetes 1.36", 1.0, summary, counts={}, audited=audited, **others
    )


def old(found: AuditReport) -> str:
    return audit_json.render(replace(found, time=TIME - dt.timedelta(days=7)), Presentation())


def counts(before: AuditReport, now: AuditReport, **how: Any) -> tuple[int, int, int, int]:
    found = compare(old(before), now, **how)
    return len(found.new), len(found.fixed), found.unchanged, found.unknown


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(report(finding()), report(finding()), (0, 0, 1, 0), id="unchanged"),
        pytest.param(report(), report(finding()), (1, 0, 0, 0), id="new"),
        pytest.param(report(finding()), report(), (0, 1, 0, 0), id="fixed"),
        pytest.param(report(finding()), report(finding(policy="pods/y")), (1, 1, 0, 0), id="another-policy"),
        pytest.param(report(finding()), report(finding("spec.b")), (1, 1, 0, 0), id="another-path"),
        pytest.param(report(finding()), report(finding(), of=replace(VLLM, name="x")), (1, 1, 0, 0), id="another-object"),
        pytest.param(report(finding()), report(finding(), of=replace(VLLM, api_version="apps/v2")), (0, 0, 1, 0), id="a-later-version"),
        pytest.param(report(finding()), report(finding(message="5 of 6")), (0, 0, 1, 0), id="another-number"),
        pytest.param(report(finding("a[0].b")), report(finding("a[3].b")), (0, 0, 1, 0), id="list-in-another-order"),
        pytest.param(report(finding('l["x/y"]')), report(finding('l["x/z"]')), (1, 1, 0, 0), id="another-key"),
        pytest.param(
            report(finding("a[0].b"), finding("a[1].b")), report(finding("a[0].b")), (0, 1, 1, 0), id="one-of-two-elements"
        ),
        pytest.param(report(finding()), report(audited=()), (0, 1, 0, 0), id="object-is-gone"),
        pytest.param(
            report(finding()),
            report(audited=(), not_evaluated=(NotEvaluated("deployments", "forbidden"),)),
            (0, 0, 0, 1),
            id="kind-could-not-be-read",
        ),
        pytest.param(
            report(finding()), report(audited=(Audited.of(VLLM, skipped={"pods/x": "no pools"}),)), (0, 0, 0, 1), id="policy-could-not-look"
        ),
    ],
)  # fmt: skip
def test_findings_are_told_apart_by_policy_object_and_path(
    before: AuditReport, now: AuditReport, expected: tuple[int, int, int, int]
) -> None:
    assert counts(before, now) == expected


def test_of_two_in_one_place_the_one_that_says_the_same_stays() -> None:
    found = compare(old(report(finding("a[0]", "x"), finding("a[1]", "y"))), report(finding("a[0]", "y")))

    assert [change.finding.message for change in found.fixed] == ["x"]


def test_what_this_audit_was_not_asked_for_is_not_fixed() -> None:
    assert counts(report(finding()), report(audited=()), looked_at=lambda *_: False) == (0, 0, 0, 1)


def test_the_day_of_the_earlier_audit_is_said() -> None:
    assert compare(old(report()), report()).since == TIME - dt.timedelta(days=7)


def test_fields_that_a_later_version_adds_are_passed_over_and_those_it_added_may_lack() -> None:
    document = json.loads(old(report(finding())))
    for absent in ("cost", "remarks", "anonymized", "unused"):
        document.pop(absent, None)
    document["something"] = document["objects"][0]["findings"][0]["else"] = 1

    assert compare(json.dumps(document), report(finding())).unchanged == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "not json",
        '{"schema": "gpugate.dev/check/v1"}',
        '{"schema": "gpugate.dev/audit/v2"}',
        b"\xff\xfe",
        old(report())[:-40],
    ],
)
def test_what_is_no_audit_is_refused_with_the_reason(text: str | bytes) -> None:
    with pytest.raises(AuditDocumentError, match=r"not an audit in the format gpugate\.dev/audit/v1: ."):
        compare(text, report())
