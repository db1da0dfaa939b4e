from __future__ import annotations

import dataclasses
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from gpugate.policies.sdk.findings import Patch, Patches
from gpugate.webhook.audit.formats.json import AuditDocumentError, encode, read, render, schema
from gpugate.webhook.audit.model import (
    Action,
    Audited,
    AuditReport,
    Cluster,
    Cost,
    Finding,
    Fix,
    NotEvaluated,
    Summary,
    Unbounded,
)
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation


@pytest.mark.parametrize("name", ["audit", "hostile"])
def test_what_is_written_is_read_again(name: str, presentation: Presentation, request: pytest.FixtureRequest) -> None:
    report = request.getfixturevalue(name)

    assert read(render(report, dataclasses.replace(presentation, include_passed=True))) == report


def test_compliant_objects_are_counted_and_listed_only_when_asked_for(
    audit: AuditReport, presentation: Presentation
) -> None:
    document = json.loads(render(audit, presentation))

    assert document["summary"]["allow"] == sum(each.action is Action.ALLOW for each in audit.audited) > 0
    assert {each["action"] for each in document["objects"]} == {"deny", "mutate", "warn", "record"}


def test_an_audit_without_costs_has_null(audit: AuditReport, presentation: Presentation) -> None:
    document = json.loads(render(replace(audit, cost=None), presentation))

    assert document["cost"] is None
    assert read(json.dumps(document)).cost is None


def test_a_document_has_these_members_in_this_order(presentation: Presentation) -> None:
    pool = ObjectName("karpenter.sh/v1", "NodePool", "", "gpu")
    patch = Patch("set", ("spec", "weight"), 2, "ranks pools")
    finding = Finding(
        "nodepools/x", "spec.weight", "is 1", "warn", Action.WARN, remedy=Fix.of(Patches((patch,))), related=(pool,)
    )
    audited = (Audited.of(pool, (finding,), uid="7", skipped={"pods/x": "no Pods"}),)
    cost = Cost("list prices", 0.5, 1.0, 0.0, (Unbounded(pool, "no limit", None),))
    when = dt.datetime(2026, 8, 24, 10, 17, tzinfo=dt.UTC)
    report = AuditReport(
        "1.2.3", Cluster("prod"), when, "3f9c", "Kubernetes 1.36", 0.5, Summary.of(audited), {"NodePool": 1}, audited
    )

    text = encode(replace(report, not_evaluated=(NotEvaluated("Pod", "forbidden"),), cost=cost), presentation)

    name = '{"apiVersion":"karpenter.sh/v1","kind":"NodePool","namespace":"","name":"gpu"}'
    change = '{"op":"set","path":["spec","weight"],"value":2,"reason":"ranks pools"}'
    assert text.decode() == (
        '{"schema":"gpugate.dev/audit/v1","gpugate":"1.2.3","cluster":{"name":"prod","version":"","user":"","uid":"",'
        '"id":"","region":"","labels":{},"clock_ahead_seconds":null},'
        '"time":"2026-08-24T10:17:00Z","generation":"3f9c","target":"Kubernetes 1.36","coverage":0.5,'
        '"summary":{"deny":0,"mutate":0,"warn":1,"record":0,"allow":0},"counts":{"NodePool":1},'
        f'"objects":[{{"object":{name},"action":"warn","uid":"7","pods":0,"allocated":[],"findings":['
        '{"policy":"nodepools/x","path":"spec.weight","message":"is 1","mode":"warn","action":"warn","why":"","hint":"",'
        f'"note":"","fix":{{"safe":false,"patches":[{change}],"objects":null}},"patches":[],"template_of":"",'
        f'"dependent":null,"related":[{name}]}}],"skipped":{{"pods/x":"no Pods"}},"team":""}}],'
        '"not_evaluated":[{"what":"Pod","reason":"forbidden","objects":null}],'
        '"cost":{"prices":"list prices","at_risk":0.5,"allocated":1.0,"idle":0.0,'
        f'"unbounded":[{{"object":{name},"reason":"no limit","usd_per_hour":null,"team":""}}],"wasted":[],"pools":[],'
        '"unpriced_gpus":0.0,"spend":0.0,"unallocated":0.0,"used":[],"spending":[]},"pending":[],"expired":[],"unused":[],"remarks":[],'
        '"anonymized":false,"usage":null,"run_id":""}'
    )


UNREADABLE = {
    "not JSON": "a: 1",
    "HTML": "<!doctype html>",
    "nothing": "",
    "not text": b"\xff\xfe",
    "another schema": '{"schema": "gpugate.dev/audit/v2"}',
    "a finding list": '{"schema": "gpugate.dev/check/v1", "findings": []}',
    "a part": '{"schema": "gpugate.dev/audit/v1"}',
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_audit_is_refused_with_what_to_do(text: str | bytes) -> None:
    with pytest.raises(
        AuditDocumentError, match=r"not an audit in the format gpugate\.dev/audit/v1: .*; write one with -o json=FILE"
    ):
        read(text)


WRONG: dict[str, dict[str, Any]] = {
    "a time without a zone": {"time": "2026-08-24T10:17:00"},
    "more coverage than there is": {"coverage": 1.5},
    "an unknown action": {"objects": [{"object": {}, "action": "explode"}]},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_document_with_a_mistake_is_refused_by_its_place(
    change: dict[str, Any], audit: AuditReport, presentation: Presentation
) -> None:
    document = json.loads(render(audit, presentation)) | change

    with pytest.raises(AuditDocumentError, match=rf"\$\.{next(iter(change))}"):
        read(json.dumps(document))


def test_fields_that_a_later_version_adds_are_passed_over(audit: AuditReport, presentation: Presentation) -> None:
    document = json.loads(render(audit, presentation)) | {"novelty": 1}

    assert read(json.dumps(document)).cluster == audit.cluster


def test_the_schema_knows_every_field_that_is_written(audit: AuditReport, presentation: Presentation) -> None:
    definitions = schema()["$defs"]

    def unknown(value: Any, shape: Any, path: str) -> list[str]:
        for choice in shape.get("anyOf", [shape]):
            shape = definitions[choice["$ref"].rpartition("/")[2]] if "$ref" in choice else choice
            if isinstance(value, list) and "items" in shape:
                return [each for item in value for each in unknown(item, shape["items"], path)]
            if isinstance(value, dict) and "properties" in shape:
                known = shape["properties"]
                lacking = [f"{path}.{key}" for key in shape.get("required", ()) if key not in value]
                return lacking + [
                    each
                    for key, member in value.items()
                    for each in (unknown(member, known[key], f"{path}.{key}") if key in known else [f"{path}.{key}"])
                ]
        return []

    assert unknown(json.loads(render(audit, presentation)), schema(), "$") == []
