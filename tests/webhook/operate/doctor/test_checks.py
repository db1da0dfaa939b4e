"""The problems that each check reports for an installation with one broken part."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from operate.doctor.installed import AUTHORITIES, NOW, authorities, case, endpoint_slice, pod, secret

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.webhook.operate import doctor_case, doctor_checks
from gpugate.webhook.operate.doctor_case import AUTHORITY, SERVER, Handshake, Right, Target, check_expiry
from gpugate.webhook.operate.doctor_checks import examine
from gpugate.webhook.operate.installation import Unread, public_parts
from gpugate.webhook.operate.reachability import Probed, Trouble
from gpugate.webhook.report.located import Severity

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
FORBIDDEN = Unread("Secret gpugate/gpugate-certificates", "these credentials may not read it")


def severities(**parts: Any) -> dict[str, str]:
    """Return code -> severity of the problems, without notes."""
    problems = examine(case(**parts)).problems
    return {problem.code: problem.severity.value for problem in problems if problem.severity is not Severity.NOTE}


def test_a_healthy_installation_has_no_problems() -> None:
    diagnosis = examine(case())

    assert (severities(), diagnosis.exit_code) == ({}, 0)
    assert "Service gpugate/gpugate and its endpoints" in diagnosis.checked


BROKEN: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "no Service": ({"service": None}, {"service-missing": "error"}),
    "Service without the port": (
        {"service": {"spec": {"selector": {"app": "gpugate"}, "ports": [{"port": 8443}]}}},
        {"service-port": "error"},
    ),
    "Service for other Pods": (
        {"service": {"spec": {"selector": {"app": "other"}, "ports": [{"port": 443}]}}},
        {"no-pods": "error"},
    ),
    "endpoints not ready": ({"endpoint_slices": (endpoint_slice(ready=False),)}, {"no-endpoints": "error"}),
    "no endpoints": ({"endpoint_slices": ()}, {"no-endpoints": "error"}),
    "endpoints without ports": ({"endpoint_slices": (endpoint_slice(ports=()),)}, {"service-target-port": "error"}),
    "no Lease": ({"lease": None}, {"no-leader": "error"}),
    "Lease that nobody holds": ({"lease": {"spec": {"holderIdentity": ""}}}, {"no-leader": "error"}),
    "Lease not renewed": (
        {"lease": {"spec": {"holderIdentity": "a", "renewTime": (NOW - HOUR).isoformat()}}},
        {"no-leader": "error"},
    ),
    "Lease never renewed": ({"lease": {"spec": {"holderIdentity": "a"}}}, {"no-leader": "error"}),
    "Secret empty": ({"secret": public_parts({"metadata": {}, "data": {}})}, {"secret-corrupt": "error"}),
    "Secret that is no base64": (
        {"secret": public_parts({"metadata": {}, "data": {"active.crt": "?"}})},
        {"secret-corrupt": "error"},
    ),
    "no Secret": ({"secret": None}, {"secret-missing": "error"}),
    "rotation asked for": ({"secret": public_parts(secret(gpugate_rotate="1"))}, {"not-answered": "warning"}),
    "Secret of somebody else": (
        {"secret": public_parts(secret(authorities()))},
        {"ca-bundle-foreign": "error", "ca-bundle-incomplete": "error"},
    ),
}


@pytest.mark.parametrize(("parts", "expected"), BROKEN.values(), ids=BROKEN)
def test_each_broken_part_is_reported(parts: dict[str, Any], expected: dict[str, str]) -> None:
    assert severities(**parts) == expected


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
        (
            {"conditions": [{"status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]},
            "Unschedulable: 0/3 nodes",
        ),
        ({"phase": "Pending"}, "Pending"),
    ],
)
def test_without_ready_endpoints_the_states_of_pods_are_listed(status: dict[str, Any], says: str) -> None:
    (problem,) = examine(case(endpoint_slices=(), pods=(pod(**status),))).problems

    assert says in problem.message


def test_a_lease_is_not_stale_for_the_skew_of_a_clock() -> None:
    renewed = (NOW - dt.timedelta(seconds=60)).isoformat()

    assert severities(lease={"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed}}) == {}


def test_unreadable_objects_are_listed_and_the_rest_is_checked() -> None:
    diagnosis = examine(case(secret=FORBIDDEN))

    assert (diagnosis.exit_code, diagnosis.problems) == (4, ())
    assert [(gap.subject, gap.applies) for gap in diagnosis.gaps if gap.applies] == [(FORBIDDEN.subject, True)]
    assert FORBIDDEN.subject not in diagnosis.checked
    assert "Lease gpugate/gpugate" in diagnosis.checked


def test_an_error_counts_more_than_what_could_not_be_read() -> None:
    assert examine(case(secret=FORBIDDEN, service=None)).exit_code == 1


def test_an_unreadable_configuration_is_not_reported_as_missing() -> None:
    configurations = case().installation.configurations
    kind = "MutatingWebhookConfiguration"

    found = list(
        doctor_checks.check_registration(case(configurations={**configurations, kind: Unread(f"{kind} gpugate", "no")}))
    )

    assert found == []


def test_kinds_that_the_cluster_does_not_have_are_a_note() -> None:
    served = {group: frozenset[str]() for group in doctor_checks.failing_groups(case())}

    (problem,) = doctor_checks.check_kinds(replace(case(), served=served))

    assert problem.severity is Severity.NOTE
    assert "nodepools.karpenter.sh" in problem.message


AUTHORITY_LIFE = 90 * DAY


@pytest.mark.parametrize(
    ("age", "last", "expected"),
    [
        (1 * DAY, True, []),
        (61 * DAY, True, [("renewal-overdue", "warning")]),
        (61 * DAY, False, []),
        (89 * DAY + 12 * HOUR, True, [("expires-soon", "error")]),
        (89 * DAY + 12 * HOUR, False, [("expires-soon", "warning")]),
        (91 * DAY, False, [("expired", "error")]),
        (-2 * DAY, True, [("not-yet-valid", "error")]),
    ],
)
def test_an_authority_is_to_be_replaced_in_time(
    age: dt.timedelta, expected: list[tuple[str, str]], *, last: bool
) -> None:
    pem = certificate_authority("a", now=NOW - age, lifetime=AUTHORITY_LIFE).certificate

    found = check_expiry(pem, "somewhere", NOW, AUTHORITY, last=last)

    assert [(each.code, each.severity.value) for each in found] == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0 * HOUR, []),
        (18 * HOUR, []),
        (20 * HOUR, [("renewal-overdue", "warning")]),
        (23 * HOUR, [("expires-soon", "error")]),
        (25 * HOUR, [("expired", "error")]),
    ],
)
def test_a_certificate_of_a_day_is_not_always_about_to_expire(
    age: dt.timedelta, expected: list[tuple[str, str]]
) -> None:
    pem = server_certificate(AUTHORITIES.active, ["a"], now=NOW, lifetime=DAY).certificate

    found = check_expiry(pem, "somewhere", NOW + age, SERVER, last=True)

    assert [(each.code, each.severity.value) for each in found] == expected


def test_an_authority_in_many_objects_is_reported_once() -> None:
    later = replace(case(), installation=replace(case().installation, now=NOW + 89 * DAY + 23 * HOUR))

    found = [each for each in doctor_case.check_certificates(later) if each.code == "expires-soon"]

    assert len(found) == len(AUTHORITIES.certificates)
    assert "more" in found[0].where


TARGET = Target("gpugate.gpugate.svc", "10.0.0.1", 8443, AUTHORITIES.bundle)


def test_a_refused_certificate_is_reported() -> None:
    (problem,) = doctor_case.check_handshakes(
        replace(case(), handshakes=[Handshake(TARGET, refused="Hostname mismatch")])
    )

    assert (problem.code, problem.where) == ("refused", "https://10.0.0.1:8443, as gpugate.gpugate.svc")


def test_an_unreachable_address_is_not_reported_as_healthy() -> None:
    diagnosis = examine(replace(case(), handshakes=[Handshake(TARGET, unreached="timed out")]))

    assert diagnosis.exit_code == 0
    assert "the serving certificate of the webhook" not in diagnosis.checked
    assert ("unreachable from this machine: https://10.0.0.1:8443 (timed out)", False) in {
        (gap.reason, gap.applies) for gap in diagnosis.gaps
    }


@pytest.mark.parametrize(
    ("probed", "expected"),
    [
        (Probed(()), []),
        (Probed(("validate",)), ["a probe to validate got no response"]),
        (
            Probed(("mutate", "validate"), Trouble("no process listens at this address", "look")),
            ["no process listens at this address"],
        ),
        (Probed(("mutate", "validate"), Trouble("do not allow a probe", "ask"), incomplete=True), []),
    ],
)
def test_an_unanswered_probe_is_reported(probed: Probed, expected: list[str]) -> None:
    found = [each.message for each in doctor_checks.check_reachability(replace(case(), probed=probed))]

    assert [text in each for text, each in zip(expected, found, strict=True)] == [True] * len(expected)


def test_a_probe_that_could_not_be_sent_is_listed_as_not_checked() -> None:
    probed = Probed(("mutate", "validate"), Trouble("do not allow a probe", "ask somebody"), incomplete=True)

    diagnosis = examine(replace(case(), probed=probed))

    assert diagnosis.exit_code == 4
    assert "a probe through the API server" not in diagnosis.checked


def test_missing_rights_are_reported_by_object() -> None:
    allowed = [
        Right("get", "", "namespaces", allowed=True),
        Right("list", "", "namespaces"),
        Right("watch", "", "namespaces"),
        Right("update", "", "secrets", "gpugate-certificates", "gpugate"),
    ]

    found = [each.message for each in doctor_checks.check_rights(replace(case(), rights=allowed))]

    assert found == ["may not list, watch namespaces", "may not update secrets gpugate-certificates in gpugate"]


def test_required_rights_are_those_of_the_roles() -> None:
    role = {
        "kind": "Role",
        "metadata": {"name": "gpugate", "namespace": "gpugate"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get", "update"]}],
    }
    binding = {"kind": "RoleBinding", "metadata": {"name": "gpugate"}}

    assert list(doctor_checks.required_rights([role, binding])) == [
        Right("get", "", "secrets", "a", "gpugate"),
        Right("update", "", "secrets", "a", "gpugate"),
    ]
