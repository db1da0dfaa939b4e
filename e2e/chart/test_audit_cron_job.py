"""Test the rendered CronJob that audits the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from chart.conftest import CHART

if TYPE_CHECKING:
    from collections.abc import Callable

    Render = Callable[..., dict[tuple[str, str], dict[str, Any]]]

Json = dict[str, Any]
NAME = "gate-gpugate-audit"


def pod(objects: dict[tuple[str, str], Json]) -> Json:
    spec: Json = objects["CronJob", NAME]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


def granted(objects: dict[tuple[str, str], Json]) -> dict[str, Json]:
    """Return the roles that are bound to its ServiceAccount."""
    bound = {
        each["roleRef"]["name"]
        for (kind, _), each in objects.items()
        if kind.endswith("RoleBinding") and each["subjects"][0]["name"] == NAME
    }
    return {name: each for (kind, name), each in objects.items() if kind == "ClusterRole" and name in bound}


def test_the_arguments_of_the_audit(render: Render) -> None:
    assert pod(render())["containers"][0]["args"] == [
        "audit",
        "--policy-file=/etc/gpugate/policy/policy.yaml",
        "--as-mode=enforce",
        "--write-reports",
        "--output=prometheus",
        "--summary-log",
    ]


def test_reading_and_writing_have_separate_roles(
    render: Render,
) -> None:
    roles = granted(render())
    verbs = {name: {verb for rule in each["rules"] for verb in rule["verbs"]} for name, each in roles.items()}
    groups = {group for rule in roles[f"{NAME}-reports"]["rules"] for group in rule["apiGroups"]}

    assert pod(render())["serviceAccountName"] == NAME
    assert verbs == {NAME: {"get", "list"}, f"{NAME}-reports": {"get", "list", "create", "update", "delete"}}
    assert groups == {"openreports.io", "wgpolicyk8s.io"}


def test_no_role_can_read_secrets(render: Render) -> None:
    read = {name for role in granted(render()).values() for rule in role["rules"] for name in rule["resources"]}

    assert {"pods", "nodes"} <= read
    assert read & {"secrets", "configmaps", "*"} == set()


def test_without_reports_no_role_can_write(render: Render) -> None:
    objects = render("--set", "audit.writeReports=false")

    assert list(granted(objects)) == [NAME]
    assert "--write-reports" not in pod(objects)["containers"][0]["args"]


def test_metrics_are_written_to_the_volume(render: Render) -> None:
    spec = pod(render("--values", CHART / "ci" / "busy-values.yaml"))
    path = {"path": "/var/lib/node_exporter/textfile_collector", "type": "Directory"}

    assert "--output=prometheus=/metrics/gpugate.prom" in spec["containers"][0]["args"]
    assert {"name": "metrics", "mountPath": "/metrics"} in spec["containers"][0]["volumeMounts"]
    assert {"name": "metrics", "hostPath": path} in spec["volumes"]


@pytest.mark.parametrize(
    ("flag", "left"),
    [
        ("audit.enabled=false", set()),
        ("rbac.create=false", {("ServiceAccount", NAME), ("CronJob", NAME)}),
    ],
)
def test_the_cron_job_is_optional(render: Render, flag: str, left: set[tuple[str, str]]) -> None:
    assert {key for key in render("--set", flag) if "audit" in key[1]} == left


def test_audits_do_not_overlap(render: Render) -> None:
    spec = render()["CronJob", NAME]["spec"]

    assert (spec["concurrencyPolicy"], spec["jobTemplate"]["spec"]["activeDeadlineSeconds"]) == ("Forbid", 1800)
