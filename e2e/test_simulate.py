"""`gpugate simulate` on the API server's own audit log, and on a record, repeats the decisions of the webhook and its shadow."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from cluster.component_files import SIMULATED as NAMESPACE
from cluster.namespaces import make_namespace
from cluster.served_webhook import served_webhook
from eventually import eventually
from gpu_pods import pod, pod_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
        newer = [{"op": "add", "path": "/metadata/labels/newer", "value": "label"}]
        assert api.patch(plain_pod("plain"), newer, "json").ok

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
    return report_of(*flags, "--from", str(log))


def report_of(*flags: str) -> dict[str, Any]:
    """Run `gpugate simulate`, and return its report."""
    command = [sys.executable, "-m", "gpugate", "simulate", *flags, "-o", "json"]
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


GPU = {"nvidia.com/gpu": "1"}
IN_FORCE = f"""{HEAD}policies:
  pods/wildcard-toleration: {{mode: warn}}
  pods/hidden-gpu-access: {{mode: enforce}}
  pods/missing-gpu-toleration: {{mode: warn}}
"""
CANDIDATE = f"""{HEAD}policies:
  pods/wildcard-toleration: {{mode: enforce}}
  pods/hidden-gpu-access: {{mode: warn}}
  pods/missing-gpu-toleration: {{mode: enforce}}
"""


def gpu_pod(name: str) -> dict[str, Any]:
    written = plain_pod(name)
    written["spec"] = pod_spec(GPU)
    return written


def job(name: str, template: dict[str, Any]) -> dict[str, Any]:
    template = {
        "metadata": {"labels": template["metadata"]["labels"]},
        "spec": {**template["spec"], "restartPolicy": "Never"},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def cron_job(name: str, template: dict[str, Any]) -> dict[str, Any]:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job(name, template)["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": job(name, template)["metadata"], "spec": spec}


class Day:
    """A day in the audit log of the API server, and the webhook that has a shadow policy file and a record."""

    def __init__(
        self, webhook: ServedWebhook, events: Callable[[], list[dict[str, Any]]], folder: Path, record: Path
    ) -> None:
        self._webhook = webhook
        self._events = events
        self._folder = folder
        self.record = record

    def replayed(self) -> dict[str, Any]:
        """Return what both policy files decide about the requests of the audit log."""
        log = self._folder / "audit.log"
        log.write_text("".join(f"{json.dumps(event)}\n" for event in self._events()))
        return simulated(log, IN_FORCE, CANDIDATE)

    def shadowed(self) -> dict[str, Any]:
        """Return what the servers decided about the requests themselves."""
        document = self._folder / "shadow.json"
        document.write_bytes(self._webhook.health.shadow())
        return report_of("--from", str(document))

    def recorded(self, *flags: str) -> dict[str, Any]:
        """Return what the candidate decides about the reviews that the servers recorded, beside what they decided."""
        candidate = self._folder / "candidate.yaml"
        candidate.write_text(CANDIDATE)
        return report_of("--candidate", str(candidate), "--from", str(self.record), *flags)


@pytest.fixture(scope="module")
def day(
    webhook: ServedWebhook, control_plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Day]:
    """A day's work with a shadow: Pods, rollouts, Jobs and CronJobs, some of which only one of both policy files denies."""
    if control_plane.audit_log is None:
        pytest.skip("the audit log of this cluster cannot be read")
    audit_log = control_plane.audit_log
    folder = tmp_path_factory.mktemp("shadowed")
    webhook.unregister()
    with ExitStack() as stack:
        stack.callback(webhook.register)
        record = folder / "record"
        shadowed = stack.enter_context(served_webhook(api, control_plane, folder, CANDIDATE, record))
        stack.callback(shadowed.unregister)
        shadowed.use(IN_FORCE)
        start = audit_log.stat().st_size
        stack.callback(api.delete, make_namespace(api, NAMESPACE))

        def events() -> list[dict[str, Any]]:
            with audit_log.open("rb") as written:
                written.seek(start)
                found = [json.loads(line) for line in written if line.endswith(b"\n")]
            return [event for event in found if event["objectRef"].get("namespace") == NAMESPACE]

        for obj in (plain_pod("plain"), hidden("hidden"), plain_pod("greedy", tolerations=EVERYTHING), gpu_pod("gpu")):
            api.create(obj)
        api.create(deployment("greedy-too", plain_pod("x", tolerations=EVERYTHING)))
        api.create(deployment("usual", plain_pod("x")))
        api.create(deployment("gpus", gpu_pod("x")))
        api.create(job("once", plain_pod("x", tolerations=EVERYTHING)))
        api.create(cron_job("nightly", plain_pod("x", tolerations=EVERYTHING)))

        def created(kind: str, controller: str) -> int:
            names = [
                event for event in events() if event["objectRef"]["resource"] == kind and event["verb"] == "create"
            ]
            return sum(event["user"]["username"].endswith(f":{controller}") for event in names)

        assert eventually(lambda: created("pods", "replicaset-controller") >= 6)
        # Two rollouts: one that only the candidate denies, one that both allow.
        rollout = [{"op": "add", "path": "/spec/template/metadata/annotations", "value": {"rolled": "out"}}]
        everything = {"op": "add", "path": "/spec/template/spec/tolerations", "value": EVERYTHING}
        for name, steps in (("usual", [*rollout, everything]), ("gpus", rollout)):
            answer = api.patch(deployment(name, plain_pod("x")), steps, "json")
            assert answer.ok, answer.message
        labelled = plain_pod("plain")
        labelled["metadata"]["labels"]["new"] = "label"
        assert api.apply(labelled).ok
        # No Pod becomes ready here, so that each rollout stops after its first Pod.
        assert eventually(lambda: created("pods", "replicaset-controller") >= 8)
        assert eventually(lambda: created("pods", "job-controller") >= 2)
        # A further run would come between the reading of two sources that are compared.
        assert api.patch(cron_job("nightly", plain_pod("x")), {"spec": {"suspend": True}}).ok
        yield Day(shadowed, events, folder, record)


def changed_pairs(report: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (owner, policy) -> (decision of the policy file in force, decision of the candidate)."""
    return {
        (f"{change['object']['kind']}/{change['object']['name']}", policy["policy"]): (
            policy["current"],
            policy["candidate"],
        )
        for change in report["changes"]
        for policy in change["policies"]
    }


def agreed(
    one: Callable[[], dict[str, Any]], other: Callable[[], dict[str, Any]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the pairs of two sources once they are the same; servers evaluate and write a moment after their answers."""
    pairs: dict[tuple[str, str], tuple[str, str]] = {}

    def agree() -> bool:
        pairs.clear()
        pairs.update(changed_pairs(one()))
        return pairs == changed_pairs(other())

    assert eventually(agree), f"{changed_pairs(one())} and {changed_pairs(other())}"
    return pairs


def test_shadow_and_replay_agree_on_every_pair(day: Day) -> None:
    shadowed = agreed(day.shadowed, day.replayed)
    assert shadowed["Pod/greedy", "pods/wildcard-toleration"] == ("warn", "deny")
    assert shadowed["Pod/hidden", "pods/hidden-gpu-access"] == ("deny", "warn")
    assert shadowed["Pod/gpu", "pods/missing-gpu-toleration"] == ("warn", "mutate")
    assert shadowed["Deployment/gpus", "pods/missing-gpu-toleration"] == ("warn", "mutate")
    assert {owner for owner, _ in shadowed} >= {"Deployment/usual", "Deployment/greedy-too", "Job/once"}
    assert "Pod/plain" not in {owner for owner, _ in shadowed}


def test_a_record_and_the_audit_log_agree_on_every_pair(day: Day) -> None:
    recorded = agreed(day.recorded, day.replayed)
    assert recorded["Deployment/gpus", "pods/missing-gpu-toleration"] == ("warn", "mutate")


def test_a_record_has_the_cluster_data_that_policies_look_up(day: Day) -> None:
    def lacks_cluster_data() -> bool:
        return any("no cluster data" in remark for remark in day.recorded()["remarks"])

    assert eventually(lambda: not lacks_cluster_data())


def test_the_policy_file_in_force_decides_a_record_as_the_servers_did(day: Day) -> None:
    in_force = ("--current", str(day.record.with_name("policy.yaml")))

    assert agreed(lambda: day.recorded(*in_force), day.recorded)


def test_every_review_was_evaluated_by_the_shadow(day: Day) -> None:
    coverage = day.shadowed()["coverage"]
    assert (coverage["evaluated"], coverage["not_evaluated"]) == (coverage["requests"], {})


def test_people_and_controllers_are_told_apart_alike(day: Day) -> None:
    for report in (day.shadowed(), day.replayed()):
        requests = {change["object"]["name"]: change["requests"] for change in report["changes"]}
        assert (requests["greedy"]["people"], requests["greedy"]["controllers"]) == (1, 0)
        assert requests["greedy-too"]["controllers"] >= 2
        assert requests["once"]["controllers"] >= 1
