"""`gpugate simulate` on the API server's own audit log repeats the decisions of the served webhook."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from cluster.component_files import SIMULATED as NAMESPACE
from cluster.namespaces import make_namespace
from eventually import eventually
from gpu_pods import pod, pod_spec

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
SERVED = f"{HEAD}policies:\n  pods/wildcard-toleration: {{mode: enforce}}\n"
OFF = f"{HEAD}policies:\n  pods/wildcard-toleration: {{mode: off}}\n  pods/hidden-gpu-access: {{mode: off}}\n"
HIDDEN = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
EVERYTHING = [{"operator": "Exists"}]


def plain_pod(name: str, **spec: Any) -> dict[str, Any]:
    written = pod(name, NAMESPACE)
    written["spec"] = {**pod_spec(), **spec}
    return written


def hidden(name: str) -> dict[str, Any]:
    written = plain_pod(name)
    written["spec"]["containers"][0] |= HIDDEN
    return written


def deployment(name: str, template: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": {**template["metadata"]["labels"], **labels}}, "spec": template["spec"]}
    template["spec"].pop("terminationGracePeriodSeconds")
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


@pytest.fixture
def log(control_plane: ControlPlane, api: Api, webhook: ServedWebhook, tmp_path: Path) -> Path:
    """The audit log of a day's work: Pods and Deployments that are allowed, denied, updated and applied."""
    if control_plane.audit_log is None:
        pytest.skip("the audit log of this cluster cannot be read")
    start = control_plane.audit_log.stat().st_size
    webhook.use(SERVED)
    with ExitStack() as stack:
        made = make_namespace(api, NAMESPACE)
        stack.callback(api.delete, made)
        stack.callback(webhook.use, HEAD)
        for obj in (plain_pod("plain"), hidden("hidden"), plain_pod("greedy", tolerations=EVERYTHING)):
            api.create(obj)
        api.create(deployment("greedy-too", plain_pod("x", tolerations=EVERYTHING)))
        api.create(deployment("usual", plain_pod("x")))
        labelled = plain_pod("plain")
        labelled["metadata"]["labels"]["new"] = "label"
        assert api.apply(labelled).ok
        api.patch(plain_pod("plain"), [{"op": "add", "path": "/metadata/labels/newer", "value": "label"}])

        def controllers_tried() -> bool:
            with control_plane.audit_log.open("rb") as written:
                written.seek(start)
                events = [json.loads(line) for line in written if line.endswith(b"\n")]
            tries = [event for event in events if event["user"]["username"].endswith(":replicaset-controller")]
            denied = [event for event in tries if event["responseStatus"]["code"] == 403]
            return bool(denied) and len(tries) - len(denied) >= 2

        assert eventually(controllers_tried)
    with control_plane.audit_log.open("rb") as written:
        written.seek(start)
        lines = [
            line
            for line in written
            if line.endswith(b"\n") and json.loads(line)["objectRef"].get("namespace") == NAMESPACE
        ]
    (tmp_path / "audit.log").write_bytes(b"".join(lines))
    return tmp_path / "audit.log"


def simulated(log: Path, current: str, candidate: str) -> dict[str, Any]:
    files = {"current": current, "candidate": candidate}
    for name, text in files.items():
        log.with_name(f"{name}.yaml").write_text(text)
    flags = [word for name in files for word in (f"--{name}", str(log.with_name(f"{name}.yaml")))]
    command = [sys.executable, "-m", "gpugate", "simulate", *flags, "--from", str(log), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- our own program
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_current_policies_deny_what_the_webhook_denied(log: Path) -> None:
    report = simulated(log, SERVED, OFF)
    denied = {change["object"]["name"] for change in report["changes"] if change["current"] == "deny"}
    events = [json.loads(line) for line in log.read_bytes().splitlines()]
    refused = [event for event in events if event["responseStatus"]["code"] == 403]
    assert len(refused) >= 3
    assert denied == {"hidden", "greedy", "greedy-too"}
    assert simulated(log, SERVED, SERVED)["changes"] == []


def test_requests_are_those_of_people_and_of_controllers(log: Path) -> None:
    changes = {change["object"]["name"]: change for change in simulated(log, OFF, SERVED)["changes"]}
    assert (changes["hidden"]["requests"]["people"], changes["hidden"]["requests"]["controllers"]) == (1, 0)
    assert changes["greedy-too"]["object"]["kind"] == "Deployment"
    assert changes["greedy-too"]["requests"]["controllers"] >= 1
    assert "usual" not in changes
