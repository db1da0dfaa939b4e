"""What the API server answers when something that is stored is created once more, as a dry run, while gpugate enforces."""

from __future__ import annotations

import copy
import json
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cluster.api import Api
from cluster.connections import Connections
from library.audit_log import AuditLog
from library.ended import said
from library.run import MAKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cluster.answer import Answer
    from cluster.control_plane import ControlPlane

Json = dict[str, Any]

_USER_AGENT = "gpugate-e2e-recreated"
_MUTATED = "mutation.webhook.admission.k8s.io/"
_OURS = "gpugate.dev"
# May do anything, and is not in the group system:masters, which policies may let do more.
_AUTHOR = "e2e-recreating"
_SENDERS = (_AUTHOR, *dict.fromkeys(MAKERS.values()))
_RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": _AUTHOR},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"} for name in _SENDERS],
}
_STORED_ONLY = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "deletionTimestamp")
_PATIENCE_SECONDS = 90


@dataclass(frozen=True)
class Recreated:
    """How it ended.

    Attributes:
        action: what became of it, in the words of an audit.
        said: the policies by the word that the webhooks' audit annotations have for what they did.
        answer: what its user got.
    """

    action: str
    said: Mapping[str, frozenset[str]]
    answer: Answer


class Recreating:
    """Somebody who creates things again; `senders` has the API server as each user."""

    def __init__(self, senders: Mapping[str, Api], log: AuditLog) -> None:
        self._senders = senders
        self._log = log

    def written(self, obj: Json) -> Recreated:
        """Create an object under its own name: the API server asks webhooks before it finds that the name is taken."""
        return self._created(obj, _AUTHOR)

    def pod(self, stored: Json) -> Recreated:
        """Create a Pod as its controller would, under a new name."""
        again = copy.deepcopy(stored)
        name = again["metadata"].pop("name")
        for key in _STORED_ONLY:
            again["metadata"].pop(key, None)
        again["metadata"].setdefault("generateName", f"{name}-")
        again.pop("status", None)
        again["spec"].pop("nodeName", None)
        owners = (owner["kind"] for owner in again["metadata"].get("ownerReferences", ()) if owner.get("controller"))
        return self._created(again, MAKERS.get(next(owners, ""), _AUTHOR))

    def _created(self, obj: Json, sender: str) -> Recreated:
        answer = self._senders[sender].create(obj, dry_run=True)
        annotations = self._log.next().get("annotations", {})
        found = said(annotations)
        denied = answer.code == 403 and _OURS in answer.message.partition("denied the request")[0]
        taken = answer.ok or answer.body.get("reason") == "AlreadyExists"
        assert denied or taken, answer.message
        if denied:
            action = "deny"
        elif _is_mutated(annotations):
            action = "mutate"
        elif any(_is_ours(text, found) for text in answer.warnings):
            action = "warn"
        else:
            action = "allow"
        return Recreated(action, found, answer)


def _is_mutated(annotations: Mapping[str, str]) -> bool:
    """Tell whether the API server wrote down that a webhook of ours changed the object."""
    changes = [json.loads(text) for key, text in annotations.items() if key.startswith(_MUTATED)]
    return any(each["mutated"] and each["webhook"].endswith(_OURS) for each in changes)


def _is_ours(warning: str, found: Mapping[str, frozenset[str]]) -> bool:
    return any(f"[{policy}]" in warning for policies in found.values() for policy in policies)


@contextmanager
def recreating(api: Api, control_plane: ControlPlane) -> Iterator[Recreating]:
    """Let somebody create things again."""
    assert control_plane.audit_log is not None
    api.apply(_RIGHTS)
    with ExitStack() as stack:
        senders = {}
        for name in _SENDERS:
            headers = {"User-Agent": _USER_AGENT, "Impersonate-User": name}
            connections = Connections(control_plane.url, control_plane.ca_file, control_plane.admin, headers)
            senders[name] = Api(stack.enter_context(closing(connections)))
            _wait_for_rights(api, name)
        yield Recreating(senders, stack.enter_context(closing(AuditLog(control_plane.audit_log, _USER_AGENT))))
    api.delete(_RIGHTS)


def _wait_for_rights(api: Api, name: str) -> None:
    asked = {"user": name, "resourceAttributes": {"verb": "create", "resource": "pods"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": asked}
    end = time.monotonic() + _PATIENCE_SECONDS
    while not api.create(review).body["status"]["allowed"]:
        assert time.monotonic() < end, f"{name} may not create Pods"
        time.sleep(0.05)
