"""What of a webhook's answer gets into the API server's audit log, and what the API server notes of its own."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from api_server.stub_webhook import allowing, patching, raw
from eventually import eventually

if TYPE_CHECKING:
    from cluster.control_plane import ControlPlane
    from stub_webhook.registration import Registrar
    from stub_webhook.server import Stub

HOOK = "hook-1.answers.e2e.gpugate.dev"
LONGEST = "k" * 63


def annotations(control_plane: ControlPlane, registrar: Registrar, *, ok: bool = True) -> dict[str, str]:
    """Create a ConfigMap, and return what the audit log says of it."""
    with closing(control_plane.audit_log.open(encoding="utf-8")) as log:
        log.seek(0, 2)
        answer = registrar.try_create(name="audited")
        assert answer.ok == ok, answer.message
        where = f"/namespaces/{registrar.namespace}/configmaps"
        found: list[dict[str, dict[str, str]]] = []

        def written() -> bool:
            found.extend(json.loads(line) for line in log if where in line and line.endswith("\n"))
            return bool(found)

        assert eventually(written)
    return found[0].get("annotations", {})


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("denied", True),
        ("policies.denied_by-us", True),
        (LONGEST, True),
        (LONGEST + "k", False),
        ("with/slash", False),
        ("with space", False),
        ("-begins", False),
        ("", False),
    ],
)
def test_keys(control_plane: ControlPlane, stub: Stub, registrar: Registrar, key: str, *, kept: bool) -> None:
    stub.behaviour = lambda call: allowing(call.request, auditAnnotations={key: "said"})
    with registrar.registered("validating", registrar.hook()):
        found = annotations(control_plane, registrar)
    assert (found.get(f"{HOOK}/{key}") == "said") == kept


def test_a_long_value_is_kept_whole(control_plane: ControlPlane, stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: allowing(call.request, auditAnnotations={"long": "x" * 5000})
    with registrar.registered("validating", registrar.hook()):
        assert annotations(control_plane, registrar)[f"{HOOK}/long"] == "x" * 5000


def test_those_of_a_denial_are_kept_too(control_plane: ControlPlane, stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: allowing(call.request, allowed=False, auditAnnotations={"denied": "said"})
    with registrar.registered("validating", registrar.hook()):
        assert annotations(control_plane, registrar, ok=False)[f"{HOOK}/denied"] == "said"


def test_a_failed_call_that_was_ignored_is_noted(control_plane: ControlPlane, stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda _: raw(b"", 500)
    with registrar.registered("validating", registrar.hook(failurePolicy="Ignore")):
        found = annotations(control_plane, registrar)
    assert found["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"] == HOOK


def test_a_patch_is_noted(control_plane: ControlPlane, stub: Stub, registrar: Registrar) -> None:
    stub.behaviour = lambda call: patching(
        call.request, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    )
    with registrar.registered("mutating", registrar.hook()):
        found = annotations(control_plane, registrar)
    noted = json.loads(found["mutation.webhook.admission.k8s.io/round_0_index_0"])
    assert noted == {"configuration": "answers.e2e.gpugate.dev", "webhook": HOOK, "mutated": True}
