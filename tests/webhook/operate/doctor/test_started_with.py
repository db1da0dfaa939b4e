"""The options of the webhook configurations, read from the webhook's Deployment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from operate.doctor.installed import case, installation

from gpugate.webhook.operate.doctor_case import complete_options, loads_own_policies
from gpugate.webhook.operate.doctor_checks import examine
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.meant import Meant
from gpugate.webhook.report.located import Severity

ARGUMENTS = ["--karpenter-user=a", "--without=pods", "--without", "scaling", "--only-namespace=training"]
CHOSEN = Meant(karpenter_users=("a",), without=(RiskGroup.PODS, RiskGroup.SCALING), only_namespaces=("training",))


def started(*arguments: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"command": ["gpugate"], "args": list(arguments)}]}}}}


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (ARGUMENTS, CHOSEN),
        ([], Meant(without=(), only_namespaces=())),
        (["--karpenter-user=none"], Meant(karpenter_users=(), without=(), only_namespaces=())),
        (["--without=unheard-of"], Meant(without=(), only_namespaces=())),
    ],
    ids=["everything", "nothing", "nobody of Karpenter's", "a group of another version"],
)
def test_it_is_read_from_the_arguments(arguments: list[str], meant: Meant) -> None:
    assert complete_options(Meant(), installation(deployments=(started("serve", *arguments),))) == meant


def test_flags_override_the_arguments_of_the_container() -> None:
    flags = Meant(fail=(), karpenter_users=("b",), without=(), only_namespaces=("c",))

    assert complete_options(flags, installation(deployments=(started("serve", *ARGUMENTS),))) == flags


@pytest.mark.parametrize(
    "deployments",
    [
        Unread("Deployments of gpugate", "no"),
        (),
        (started("audit", *ARGUMENTS),),
        (started("serve", "--webhook-configuration=another", *ARGUMENTS),),
    ],
    ids=["unread", "none", "of another program", "of another installation"],
)
def test_without_a_serving_container_nothing_is_completed(deployments: Any) -> None:
    assert complete_options(Meant(), installation(deployments=deployments)) == Meant()


@pytest.mark.parametrize(
    ("arguments", "loads"),
    [
        (["serve", "--policy-path=/etc/gpugate/policies"], True),
        (["serve", "--policy-path", "p"], True),
        (["serve"], False),
    ],
    ids=["a flag", "two words", "none"],
)
def test_whether_the_webhook_loads_policies_outside_the_library(arguments: list[str], *, loads: bool) -> None:
    assert loads_own_policies(installation(deployments=(started(*arguments),))) is loads


@pytest.mark.parametrize(("knows_own", "codes"), [(True, []), (False, ["own-policies-unknown"])])
def test_policies_that_are_not_named_are_a_note(codes: list[str], *, knows_own: bool) -> None:
    found = [
        problem for problem in examine(replace(case(), knows_own=knows_own)).problems if problem.code.startswith("own-")
    ]

    assert [problem.code for problem in found] == codes
    assert {problem.severity for problem in found} <= {Severity.NOTE}
