"""Test the rendered CronJob that audits the cluster."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from chart.conftest import CHART
from webhook_process import GPUGATE

from gpugate.policies.sdk.platform import ClusterIdentity
from gpugate.webhook.admission import serve_command
from gpugate.webhook.audit import flags
from gpugate.webhook.cli.identity import cluster_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def test_the_cluster_is_named_to_webhook_and_audit(render: Render) -> None:
    named = {"name": "gpu-1", "region": "eu-west-1", "labels": {"env": "prod", "team/x": ""}}
    objects = render("--set-json", f"cluster={json.dumps(named)}", "--set", "metrics.serviceMonitor.enabled=true")
    webhook = objects["Deployment", "gate-gpugate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    audit = pod(objects)["containers"][0]["args"]
    identity = ClusterIdentity(name="gpu-1", region="eu-west-1", labels={"env": "prod", "team/x": ""})

    assert webhook[0] == "serve"
    assert cluster_of(serve_command.parser().parse_args(webhook[1:])) == identity
    assert cluster_of(flags.parser().parse_args(audit[1:])) == identity
    (endpoint,) = objects["ServiceMonitor", "gate-gpugate"]["spec"]["endpoints"]
    assert {each["targetLabel"]: each["replacement"] for each in endpoint["relabelings"]} == {
        "cluster": "gpu-1",
        "region": "eu-west-1",
    }


def test_metrics_have_the_name_that_the_policy_gives_the_cluster(render: Render) -> None:
    own = (
        "metrics.serviceMonitor.relabelings[0].targetLabel=cluster,metrics.serviceMonitor.relabelings[0].replacement=b"
    )
    objects = render("--set", f"metrics.serviceMonitor.enabled=true,policy.platform.cluster.name=gpu-1,{own}")
    (endpoint,) = objects["ServiceMonitor", "gate-gpugate"]["spec"]["endpoints"]

    # The last one wins.
    assert [each["replacement"] for each in endpoint["relabelings"]] == ["gpu-1", "b"]
    assert not any("--cluster" in argument for argument in pod(objects)["containers"][0]["args"])


def test_tables_are_written_to_the_volume(render: Render) -> None:
    spec = pod(render("--set", "audit.tables.volume.persistentVolumeClaim.claimName=tables"))
    container = spec["containers"][0]

    assert "--output=ndjson=/tables" in container["args"]
    assert {"name": "tables", "mountPath": "/tables"} in container["volumeMounts"]
    assert {"name": "tables", "persistentVolumeClaim": {"claimName": "tables"}} in spec["volumes"]
    assert "envFrom" not in container


def test_tables_are_written_to_a_bucket(render: Render) -> None:
    tables = {"format": "parquet", "url": "s3://gpu-audits/a", "secretName": "bucket"}
    image = "registry.example.com/gpugate-fleet:0.1.0"
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/audit"}
    audit = {"tables": tables, "image": image, "serviceAccountAnnotations": role}
    objects = render("--set-json", f"audit={json.dumps(audit)}")
    spec = pod(objects)
    container = spec["containers"][0]

    assert (container["image"], container["command"]) == (image, ["gpugate"])
    assert "--output=parquet=s3://gpu-audits/a" in container["args"]
    assert container["envFrom"] == [{"secretRef": {"name": "bucket"}}]
    assert {"name": "tables-credentials", "secret": {"secretName": "bucket"}} in spec["volumes"]
    assert not [volume for volume in spec["volumes"] if volume["name"] == "tables"]
    assert objects["ServiceAccount", NAME]["metadata"]["annotations"] == role


def test_the_command_writes_tables_that_a_report_reads(render: Render, tmp_path: Path) -> None:
    """The arguments of the container, with directories of this machine in the place of its mounts."""
    (tmp_path / "policy.yaml").write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n")
    (tmp_path / "dump.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, uid: u}\n")
    mounts = {"/etc/gpugate/policy": str(tmp_path), "/tables": str(tmp_path / "tables")}
    values = "cluster.name=gpu-1,audit.writeReports=false,audit.tables.volume.emptyDir.medium=Memory"
    arguments = [str(each) for each in pod(render("--set", values))["containers"][0]["args"]]
    for mount, folder in mounts.items():
        arguments = [each.replace(f"={mount}", f"={folder}") for each in arguments]
    command = [*GPUGATE, *arguments, "--from", str(tmp_path / "dump.yaml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 -- our own program

    assert ran.returncode == 0, ran.stderr
    (row,) = [
        json.loads(line)
        for file in tmp_path.glob("tables/runs/dt=*/cluster=gpu-1/*")
        for line in file.read_text().splitlines()
    ]
    assert row["cluster"] == "gpu-1"
    assert 'cluster="gpu-1"' in ran.stdout
