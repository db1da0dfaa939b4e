from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpugate.policies.pods._training import names_object_store, outlives
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind, Wrapper


def pod(volume: str, mount: str = "{name: v}") -> Field:
    container = {"volumeMounts": [yaml.safe_load(mount)]}
    return Field({"spec": {"containers": [container], "volumes": [{"name": "v", **yaml.safe_load(volume)}]}})


@pytest.mark.parametrize(
    ("volume", "mount", "expected"),
    [
        ("persistentVolumeClaim: {claimName: a}", "{name: v}", True),
        ("persistentVolumeClaim: {claimName: a}", "{name: v, readOnly: true}", False),
        ("persistentVolumeClaim: {claimName: a, readOnly: true}", "{name: v}", False),
        ("persistentVolumeClaim: {claimName: a}", "{name: w}", False),
        ("csi: {driver: s3.csi.aws.com}", "{name: v}", True),
        ("csi: {driver: secrets-store.csi.k8s.io, readOnly: true}", "{name: v}", False),
        ("nfs: {server: a, path: /}", "{name: v}", True),
        *(
            (f"{name}: {{}}", "{name: v}", False)
            for name in ("emptyDir", "hostPath", "ephemeral", "configMap", "image")
        ),
    ],
)
def test_a_volume_outlives_the_pod(volume: str, mount: str, *, expected: bool) -> None:
    assert outlives(pod(volume, mount), None) is expected


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("StatefulSet", {"volumeClaimTemplates": [{"spec": {}}]}, True),
        ("CronWorkflow", {"workflowSpec": {"volumeClaimTemplates": [{"spec": {}}]}}, True),
        ("Job", {"volumes": [{"mountPath": "/c", "volumeClaimName": "a"}]}, True),
        ("Job", {"volumes": [{"mountPath": "/c"}]}, False),
        ("Workflow", {"volumes": [{"name": "v", "emptyDir": {}}]}, False),
    ],
)
def test_a_workload_may_add_one(kind: str, spec: dict[str, Any], *, expected: bool) -> None:
    wrapper = Wrapper(GroupVersionKind("", "v1", kind), Field({"spec": spec}))
    assert outlives(Field({"spec": {}}), wrapper) is expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ("args: [--out, 's3://b/run']", True),
        ("args: ['--out=s3://b/run']", True),
        ("command: [train, 'gs://b']", True),
        ("env: [{name: OUT, value: 's3://b'}]", True),
        ("env: [{name: OUT, valueFrom: {secretKeyRef: {name: 's3://b'}}}]", False),
        ("args: [--out, /tmp]", False),
        ("image: 's3://b'", False),
    ],
)
def test_an_object_store_is_named(container: str, *, expected: bool) -> None:
    found = Field({"spec": {"containers": [yaml.safe_load(container)]}})
    assert names_object_store(found, ("s3://", "gs://")) is expected
