from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from cluster.fake_api_server import Answer
from operate.fake_installation import LEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from operate.fake_installation import Cluster

_NAME = 'name="pools.validate.gpugate.dev",operation="CREATE",rejected="false",type="validating"'
METRICS = f"""apiserver_admission_webhook_admission_duration_seconds_bucket{{{_NAME},le="0.005"}} 7
apiserver_admission_webhook_admission_duration_seconds_count{{{_NAME}}} 7
"""
LABELS = {"app": "gpugate"}
POLICY = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n"


@pytest.fixture
def whole(installed: Cluster) -> Cluster:
    """An installation with everything that a chart makes."""
    here = {"namespace": "gpugate"}
    container = {
        "name": "gpugate",
        "args": ["serve", "--policy-file=/etc/gpugate/policy.yaml"],
        "volumeMounts": [{"name": "policy", "mountPath": "/etc/gpugate"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "policy", "configMap": {"name": "gpugate-policy"}}]}
    deployment = {
        "metadata": {**here, "name": "gpugate"},
        "spec": {"replicas": 2, "template": {"metadata": {"labels": LABELS}, "spec": pod}},
        "status": {"readyReplicas": 1},
    }
    installed.store.put(("apps", "deployments"), deployment)
    installed.store.put(("", "services"), {"metadata": {**here, "name": "gpugate"}, "spec": {"selector": LABELS}})
    policy = {"metadata": {**here, "name": "gpugate-policy"}, "data": {"policy.yaml": POLICY}}
    installed.store.put(("", "configmaps"), policy)
    installed.store.put(LEASES, {"metadata": {**here, "name": "gpugate"}, "spec": {"holderIdentity": "gpugate-7d9f"}})
    installed.secret()
    installed.answers += [
        Answer("/version", body=b'{"gitVersion": "v1.36.3"}'),
        Answer("/metrics", body=METRICS.encode()),
    ]
    return installed


@pytest.mark.usefixtures("whole")
def test_everything_is_shown(webhook: Callable[..., Any]) -> None:
    ran = webhook("status")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].split() == (
        [
            "CONFIGURATION",
            "WEBHOOK",
            "FAILURE",
            "TIMEOUT",
            "CA",
            "EXPIRES",
            "CALLS",
            "DENIED",
            "FAILED",
            "P99",
            "RESOURCES",
        ]
    )
    row = next(line.split() for line in lines if " pools.validate" in line)
    assert row[:9] == ["validating/gpugate", "pools.validate.gpugate.dev", "Ignore", "3s", "-", "7", "0", "0", "5"]
    assert "Deployment gpugate: 1 of 2 ready" in lines
    assert "Leader: gpugate-7d9f" in lines
    assert "Mode: audit (ConfigMap gpugate/gpugate-policy, policy.yaml)" in lines
    assert any(line.startswith("CAs: active until 20") for line in lines)
    assert lines[-1] == "Break-glass: gpugate webhook disable"


@pytest.mark.usefixtures("whole")
def test_the_same_as_json(webhook: Callable[..., Any]) -> None:
    document = json.loads(webhook("status", "-o", "json").out)

    assert document["schema"] == "gpugate.dev/status/v1"
    assert document["deployments"] == [{"name": "gpugate", "ready": 1, "desired": 2}]
    entry = next(each for each in document["entries"] if each["webhook"] == "pools.validate.gpugate.dev")
    assert entry["counters"] == {"calls": 7, "denied": 0, "failed": 0, "p99_seconds": 0.005}


def test_what_may_not_be_read_says_so(whole: Cluster, webhook: Callable[..., Any]) -> None:
    whole.forbidden |= {"secrets", "deployments"}
    whole.answers[-1] = Answer("/metrics", 403, b"{}")

    ran = webhook("status")

    assert ran.code == 0
    assert "Not read: Secret gpugate/gpugate-certificates: these credentials may not read it" in ran.out
    assert "CALLS" in ran.out
    assert "Counters:" not in ran.out


def test_a_configuration_that_may_not_be_read_leaves_it_open(whole: Cluster, webhook: Callable[..., Any]) -> None:
    whole.forbidden.add("validatingwebhookconfigurations")

    assert webhook("status").code == 4


def test_one_that_is_off(whole: Cluster, webhook: Callable[..., Any]) -> None:
    webhook("disable", "--yes", "--reason", "INC-1")

    ran = webhook("status")

    assert (ran.code, ": INC-1; to enable it: gpugate webhook enable" in ran.out) == (1, True)
    assert "Break-glass" not in ran.out
    assert whole.asked("/metrics")


def test_nothing_is_installed(cluster: Cluster, webhook: Callable[..., Any]) -> None:
    cluster.answers.append(Answer("/version", body=b"{}"))

    ran = webhook("status")

    assert (ran.code, ran.out.count("does not exist")) == (1, 2)
