from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.audit.formats.json import render
from gpugate.webhook.audit.formats.read import AuditDocumentError, read
from gpugate.webhook.audit.formats.schema import schema
from gpugate.webhook.audit.model import Action

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport


@pytest.mark.parametrize("name", ["audit", "hostile"])
def test_what_is_written_is_read_again(name: str, presentation: Presentation, request: pytest.FixtureRequest) -> None:
    report = request.getfixturevalue(name)

    assert read(render(report, replace(presentation, include_passed=True))) == report


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
