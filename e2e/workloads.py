"""Workloads of training and serving frameworks, no larger than the tests need them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def workload(api_version: str, kind: str, spec: Object, namespace: str = "") -> Object:
    """Write a workload of any kind."""
    metadata = {"name": "run-1", "namespace": namespace, "labels": {"team": "search", "cost-center": "cc-1234"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def job(template: Object, **others: Any) -> Object:
    """Write the spec of a Job."""
    return {
        "backoffLimit": 0,
        **others,
        "template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}},
    }


def replicas(**templates: Object) -> Object:
    """Write the replica specs of a Kubeflow job: type of replica -> template."""
    return {name: {"replicas": 1, "template": template} for name, template in templates.items()}
