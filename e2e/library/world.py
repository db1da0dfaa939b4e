"""What exists in the cluster beside the examples, before and while each is judged."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cluster.namespaces import namespace_object

from library.standing import STANDING, context_of, contradicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cluster.api import Api

    from library.cases import Case
    from library.workers_facts import WorkersFacts

Json = dict[str, Any]
# Controllers make them for objects of ours, some time later.
_FOLLOWING = frozenset({"Job", "ReplicaSet", "ResourceClaim"})
_CLAIM = "PersistentVolumeClaim"
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.1


class WorldError(Exception):
    """What an example says that exists cannot: the text is the API server's, or says why it need not be asked."""


class World:
    """A cluster that has the namespaces of all examples, and the device and runtime classes of NVIDIA's drivers.

    Args:
        bystander: makes objects that nobody judges.
        facts: tells when the webhook has heard of them.
        kinds: every kind that the webhook may watch, with an apiVersion.
    """

    def __init__(self, bystander: Api, facts: WorkersFacts, kinds: Mapping[str, str]) -> None:
        self._api = bystander
        self._facts = facts
        self._wait_until_others_have_left(kinds)
        for obj in STANDING:
            self._make(obj)
        self._numbers = Counter({kind: len(bystander.list(version, kind)) for kind, version in kinds.items()})

    def close(self) -> None:
        """Remove everything."""
        for obj in reversed(STANDING):
            self.remove(obj)

    @contextmanager
    def around(self, judged: Case, kinds: frozenset[str]) -> Iterator[None]:
        """Make what an example says that exists, have each worker know it, and remove it at the end.

        Args:
            judged: the example.
            kinds: those that workers watch.

        Raises:
            WorldError: the API server does not take it.
        """
        inside = {obj["metadata"].get("namespace") for obj in context_of(judged)}
        if judged.judged["kind"] == "Namespace" and judged.judged["metadata"]["name"] in inside:
            raise WorldError("nothing exists in a namespace that is yet to be created")
        gone = [obj for obj in STANDING if contradicts(obj, judged)]
        made: list[Json] = []
        try:
            for obj in gone:
                self.remove(obj)
            for obj in context_of(judged):
                answer = self._api.create(obj)
                if not answer.ok:
                    raise WorldError(answer.message)
                made.append(obj)
            changed = Counter(obj["kind"] for obj in made)
            changed.subtract(obj["kind"] for obj in gone)
            surely = kinds - (_FOLLOWING - set(changed))
            self._facts.wait_for({kind: self._numbers[kind] + changed[kind] for kind in surely})
            yield
        finally:
            for obj in reversed(made):
                self.remove(obj)
            for obj in gone:
                self._make(obj)
            self._facts.wait_for({kind: self._numbers[kind] for kind in kinds})

    def remove(self, obj: Json) -> None:
        """Delete an object, and what belongs to it, at once."""
        claims = self._wait_for_claims(obj) if obj["kind"] == "StatefulSet" else []
        for removed in (obj, *claims):
            self._api.delete(removed, gracePeriodSeconds=0, propagationPolicy="Background")
        if obj["kind"] == "Namespace":
            # The namespace controller takes five seconds for one, and ours are empty (k8s.io/kubernetes v1.36
            # pkg/controller/namespace, namespaceDeletionGracePeriod).
            answer = self._api.replace(
                {**namespace_object(obj["metadata"]["name"]), "spec": {}}, subresource="finalize"
            )
            assert answer.ok, answer.message

    def _wait_for_claims(self, stateful_set: Json) -> list[Json]:
        """Return the claims of a StatefulSet: its controller creates them, and leaves them behind.

        It creates those of the second Pod when the first one is ready, and none gets a node here.
        """
        spec, name = stateful_set["spec"], stateful_set["metadata"]["name"]
        templates = [template["metadata"]["name"] for template in spec.get("volumeClaimTemplates", ())]
        beginnings = tuple(f"{template}-{name}-" for template in templates if spec.get("replicas") != 0)
        latest = time.monotonic() + _PATIENCE_SECONDS
        claims: list[Json] = []
        while len(claims) < len(beginnings):
            claims = [
                claim for claim in self._api.list("v1", _CLAIM) if claim["metadata"]["name"].startswith(beginnings)
            ]
            assert time.monotonic() < latest, f"StatefulSet {name} has no claims {beginnings}"
            time.sleep(_PAUSE_SECONDS)
        return [{"apiVersion": "v1", "kind": _CLAIM, **claim} for claim in claims]

    def _wait_until_others_have_left(self, kinds: Mapping[str, str]) -> None:
        """Wait until nothing of other tests is there any more, which policies would take into account."""
        latest = time.monotonic() + _PATIENCE_SECONDS
        while left := [obj for kind, version in kinds.items() for obj in self._api.list(version, kind) if _goes(obj)]:
            names = [f"{obj['kind']} {obj['metadata']['name']}" for obj in left]
            assert time.monotonic() < latest, f"other tests left {', '.join(names)} behind"
            time.sleep(_PAUSE_SECONDS)

    def _make(self, obj: Json) -> None:
        answer = self._api.create(obj)
        assert answer.ok, answer.message


def _goes(obj: Json) -> bool:
    # The API server itself keeps its Service (k8s.io/kubernetes v1.36 pkg/controlplane/controller/kubernetesservice).
    if (obj["kind"], obj["metadata"]["name"]) == ("Service", "kubernetes"):
        return False
    return obj["kind"] != "Namespace" or "deletionTimestamp" in obj["metadata"]
