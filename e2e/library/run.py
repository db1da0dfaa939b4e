"""Sends every example to the API server, as a dry run and for real, and keeps how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.api import Api
from cluster.connections import Connections

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.objects import Operation
from library.audit_log import AuditLog
from library.cases import BYSTANDER, by_policy_file
from library.ended import Ended, said
from library.workers_facts import WorkersFacts, looked_up
from library.world import World, WorldError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook

    from library.cases import Case

Json = dict[str, Any]
_USER_AGENT = "gpugate-e2e-examples"
_PATIENCE_SECONDS = 90
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True)
class Sent:
    """How an example ended as a dry run and for real.

    `impossible` says why it was not sent: the API server does not take what the example says that exists.
    """

    runs: tuple[Ended, ...] = ()
    impossible: str = ""

    @property
    def dry_run(self) -> Ended:
        """How the dry run ended."""
        return self.runs[0]

    @property
    def ended(self) -> Ended:
        """How it ended for real."""
        return self.runs[1]

    @property
    def refusal(self) -> str:
        """Why the API server itself does not take it, or what exists beside it; empty when it does."""
        return self.impossible or (self.ended.message if self.ended.refused else "")


# By the URL of the control plane: several test files ask for the same one.
_runs: dict[str, Mapping[str, Sent]] = {}


def library_run(control_plane: ControlPlane, webhook: ServedWebhook) -> Mapping[str, Sent]:
    """Send all examples, once for all tests; returns how each ended by its name."""
    if control_plane.audit_log is None:
        pytest.skip("what webhooks note is read in the API server's audit log, which is out of reach here")
    if control_plane.url not in _runs:
        _runs[control_plane.url] = _run(control_plane, webhook, control_plane.audit_log)
    return _runs[control_plane.url]


def _run(control_plane: ControlPlane, webhook: ServedWebhook, audit_log: Path) -> Mapping[str, Sent]:
    """Send them one after the other, as what is stored of one would be a fact to the next."""
    runs: dict[str, Sent] = {}
    library = _Library(control_plane, webhook, audit_log)
    try:
        for policy_file, cases in by_policy_file():
            webhook.use(policy_file)
            for case in cases:
                runs[case.name] = library.send(case)
    finally:
        library.close()
        webhook.reset()
    return runs


# Who sends the examples may do anything, and is not in the group system:masters, which policies may let do more.
_AUTHOR = "e2e-author"
# What is found can depend on who sends an object: controllers send what they made, an author only says so.
MAKERS = {
    "NodePool": "system:serviceaccount:karpenter:karpenter",
    "Provisioner": "system:serviceaccount:karpenter:karpenter",
    "CronJob": "system:serviceaccount:kube-system:cronjob-controller",
    "DaemonSet": "system:serviceaccount:kube-system:daemon-set-controller",
    "Job": "system:serviceaccount:kube-system:job-controller",
    "RayJob": "system:serviceaccount:kuberay:kuberay-operator",
    "ReplicaSet": "system:serviceaccount:kube-system:replicaset-controller",
    "StatefulSet": "system:serviceaccount:kube-system:statefulset-controller",
}
_SENDERS = tuple(dict.fromkeys((_AUTHOR, *MAKERS.values())))
_RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": _AUTHOR},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"} for name in _SENDERS],
}


def _sender(case: Case) -> str:
    """Return who sends an example: what its first owner says, if nothing is found in it, else its author."""
    owners = case.judged["metadata"].get("ownerReferences") or [{}]
    made = Path(case.name).name.startswith("good-")
    return MAKERS.get(owners[0].get("kind", ""), _AUTHOR) if made else _AUTHOR


class _Library:
    """Sends examples as their author, and makes what exists beside them as a user who is let off."""

    def __init__(self, control_plane: ControlPlane, webhook: ServedWebhook, audit_log: Path) -> None:
        self._connections = [
            Connections(control_plane.url, control_plane.ca_file, control_plane.admin, headers)
            for headers in (
                {"Impersonate-User": BYSTANDER, "Impersonate-Group": "system:masters"},
                *({"User-Agent": _USER_AGENT, "Impersonate-User": name} for name in _SENDERS),
            )
        ]
        self._bystander, *senders = map(Api, self._connections)
        self._senders = dict(zip(_SENDERS, senders, strict=True))
        self._grant()
        self._audit = AuditLog(audit_log, _USER_AGENT)
        needs = {need.kind for policy in CATALOG for handler in policy.handlers for need in handler.needs}
        self._world = World(
            self._bystander,
            WorkersFacts(webhook.metrics_folder, webhook.workers),
            {kind.name: f"{kind.group}/{kind.versions[-1]}".lstrip("/") for kind in needs},
        )

    def _grant(self) -> None:
        """Let the author do anything, and wait until the API server's authorizer has heard of it."""
        self._bystander.apply(_RIGHTS)
        asked = {"user": _AUTHOR, "resourceAttributes": {"verb": "create", "resource": "pods"}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": asked}
        latest = time.monotonic() + _PATIENCE_SECONDS
        while not self._bystander.create(review).body["status"]["allowed"]:
            assert time.monotonic() < latest, f"{_AUTHOR} may not create Pods, in spite of {_RIGHTS}"
            time.sleep(_PAUSE_SECONDS)

    def send(self, case: Case) -> Sent:
        assert case.example.request.operation is Operation.CREATE, f"{case.name}: an UPDATE needs its old object stored"
        try:
            with self._world.around(case, looked_up(case.example.config)):
                api = self._senders[_sender(case)]
                runs = self._create(api, case.judged, dry_run=True), self._create(api, case.judged)
                if runs[-1].stored:
                    self._world.remove(runs[-1].stored)
                return Sent(runs)
        except WorldError as error:
            return Sent(impossible=f"beside it: {error}")

    def close(self) -> None:
        self._world.close()
        self._bystander.delete(_RIGHTS)
        for connections in self._connections:
            connections.close()
        self._audit.close()

    def _create(self, api: Api, obj: Json, *, dry_run: bool = False) -> Ended:
        answer = api.create(obj, dry_run=dry_run)
        if answer.message.startswith("no matches for kind"):
            return Ended(answer.code, answer.message, (), {}, None)
        annotations = self._audit.next().get("annotations", {})
        stored = answer.body if answer.ok else None
        return Ended(answer.code, answer.message, tuple(answer.warnings), said(annotations), stored)
